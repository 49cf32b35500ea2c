"""The hook without a framework: steps, modes, what is saved, and how it ends."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded
import smdebug
import writing
from conftest import Messages
from smdebug import Collection, Hook, ReductionConfig, SaveConfig, SaveConfigMode, modes, singleton
from smdebug.collection import CollectionManager
from smdebug.exceptions import (
    InvalidCollectionConfiguration,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)

EVERY_STEP = SaveConfig(save_interval=1)
ONE = np.ones(2, dtype=np.float32)


def collections(out_dir: Path, worker: str = "worker_0") -> dict[str, Any]:
    path = out_dir / f"collections/000000000/{worker}_collections.json"
    return json.loads(path.read_text())["collections"]


# ---- construction


def test_out_dir_is_needed() -> None:
    with pytest.raises(RuntimeError, match="out_dir"):
        Hook()


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    hook = Hook("~/run")
    assert hook.out_dir == str(tmp_path / "run")
    hook.close()
    assert (tmp_path / "run/training_job_end.ts").exists()


def test_nothing_is_made_before_the_first_step_is_saved(out_dir: Path) -> None:
    hook = Hook(out_dir)
    assert not out_dir.exists()
    assert (hook.step, hook.mode, hook.last_saved_step) == (-1, modes.GLOBAL, None)
    hook.close()


def test_a_directory_with_a_finished_job_is_refused(out_dir: Path) -> None:
    Hook(out_dir).close()
    with pytest.raises(SMDebugRuntimeError, match="finished job"):
        Hook(out_dir)


def test_the_arguments_can_be_read_back(out_dir: Path) -> None:
    hook = Hook(
        str(out_dir),
        reduction_config=ReductionConfig(["min"]),
        save_config={"save_interval": 3},
        include_regex="relu",
        include_collections=["weights", ["biases"]],
        include_workers="all",
    )
    assert hook.out_dir == str(out_dir)
    assert hook.tensorboard_dir is None
    assert hook.dry_run is False
    assert hook.save_all is False
    assert hook.save_all_workers is True
    assert hook.include_regex == ["relu"]
    assert set(hook.include_collections) == {"weights", "biases", "losses", "default"}
    assert hook.save_config == SaveConfig(save_interval=3)
    assert hook.reduction_config == ReductionConfig(["min"])
    assert (hook.worker, hook.chief_worker) == ("worker_0", "worker_0")
    assert hook.init_step == -1
    assert hook.training_run == 0
    assert hook.logger.name == "smdebug"
    assert not hook.has_default_hook_configuration()
    assert str(out_dir) in repr(hook)
    hook.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"include_workers": "some"}, SMDebugValueError),
        ({"include_workers": 3}, SMDebugTypeError),
        ({"reduction_config": {"reductions": "min"}}, SMDebugTypeError),
        ({"save_config": 3}, SMDebugTypeError),
        ({"save_config": {"interval": 3}}, SMDebugValueError),
        ({"include_regex": 3}, SMDebugTypeError),
        ({"include_regex": "("}, SMDebugValueError),
        ({"exclude_regex": "["}, SMDebugValueError),
        ({"include_collections": {"a": 1}}, SMDebugTypeError),
        ({"durable": "always"}, SMDebugValueError),
        ({"layout": "zip"}, SMDebugValueError),
        ({"layout": 2}, SMDebugTypeError),
        ({"overflow": "drops"}, SMDebugValueError),
        ({"overflow": True}, SMDebugTypeError),
        ({"max_queue_bytes": 0}, SMDebugValueError),
        ({"max_queue_bytes": "many"}, ValueError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(
    out_dir: Path, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Hook(out_dir, **arguments)
    assert not out_dir.exists()


def test_a_path_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(SMDebugNotImplementedError, match="gs"):
        Hook("gs://bucket/run")


def test_the_default_configuration_is_known(out_dir: Path) -> None:
    hook = Hook(out_dir)
    assert hook.has_default_hook_configuration()
    hook.save_scalar("a", 1)
    hook.step()
    assert hook.has_default_hook_configuration()
    hook.close()


# ---- steps and modes


def test_steps_are_counted_and_saved_by_the_plan(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=3))
    for number in range(8):
        hook.step()
        assert hook.step == number
        hook.save_tensor("w", ONE * number)
    assert hook.last_saved_step == 6
    hook.close()
    assert recorded.steps(out_dir) == [0, 3, 6]
    assert recorded.value(out_dir, "w", 6).tolist() == [6, 6]


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_committed_step_can_be_read_while_the_hook_is_open(out_dir: Path, layout: str) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, save_all=True, layout=layout)
    assert hook.committed_steps == 0
    for step in range(3):
        with hook.step():
            hook.save("w", ONE * step)
    assert hook._core.wait_until_written(60_000)
    assert hook.committed_steps == 3
    assert smdebug.create_trial(out_dir).steps() == [0, 1, 2]
    hook.close()
    assert hook.committed_steps == 3
    assert copy.copy(hook).committed_steps == 0


def test_the_layout_comes_from_the_argument_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_LAYOUT", "packed")
    for name, layout, folder in [("a", None, "v2"), ("b", "original", "index")]:
        hook = Hook(tmp_path / name, save_config=EVERY_STEP, layout=layout)
        with hook.step():
            hook.save_tensor("w", ONE)
        hook.close()
        assert (tmp_path / name / folder).is_dir()
    monkeypatch.setenv("SMDEBUG_LAYOUT", "flat")
    with pytest.raises(SMDebugValueError, match="SMDEBUG_LAYOUT"):
        Hook(tmp_path / "c")


def test_a_run_goes_on_in_its_own_layout_only(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_LAYOUT", "packed")
    writing.step(out_dir, 0)
    with pytest.raises(SMDebugValueError, match="choose another directory or the same layout"):
        Hook(out_dir, layout="original")
    Hook(out_dir, layout="packed").close()


def test_a_step_is_visible_when_its_block_ends(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, durable="off")
    with hook.step() as number:
        assert number == 0
        hook.save_tensor("w", ONE)
    hook.step()
    hook.save_tensor("w", ONE)
    hook.end_step()
    hook.close()
    assert recorded.steps(out_dir) == [0, 1]


def test_nothing_is_saved_between_end_and_begin_of_a_step(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    with hook.step():
        hook.save_tensor("in", ONE)
    hook.save_tensor("between", ONE)
    hook.close()
    assert recorded.names(out_dir) == ["in"]


def test_steps_may_have_numbers_of_their_own(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    for number in (10, 1000, 12345):
        hook.step(number)
        hook.save_tensor("w", ONE)
    with pytest.raises(SMDebugValueError, match="12345"):
        hook.begin_step(12345)
    hook.begin_step()
    hook.save_tensor("w", ONE)
    hook.close()
    assert recorded.steps(out_dir) == [10, 1000, 12345, 12346]
    assert (out_dir / "index/000000012/000000012345_worker_0.json").exists()


def test_each_mode_counts_its_own_steps(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=2))
    for mode in (modes.TRAIN, modes.EVAL):
        hook.set_mode(mode)
        assert hook.mode is mode
        for _ in range(3):
            hook.step()
            hook.save_tensor("w", ONE)
    assert hook.mode_steps == {modes.TRAIN: 2, modes.EVAL: 2, modes.GLOBAL: 5}
    hook.close()
    assert recorded.steps(out_dir) == [0, 2, 3, 5]
    places = [recorded.tensors(out_dir, step)["w"] for step in (0, 2, 3, 5)]
    assert [(r.mode, r.mode_step) for r in places] == [
        (modes.TRAIN, 0),
        (modes.TRAIN, 2),
        (modes.EVAL, 0),
        (modes.EVAL, 2),
    ]


def test_the_mode_of_a_step_is_the_one_it_began_with(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.set_mode(modes.TRAIN)
    hook.step()
    hook.save_tensor("w", ONE)
    hook.set_mode(modes.EVAL)
    hook.save_tensor("v", ONE)
    hook.save_scalar("s", 1)
    hook.close()
    assert {r.mode for r in recorded.tensors(out_dir).values()} == {modes.TRAIN}
    assert recorded.index(out_dir, 0)["mode"] is modes.TRAIN


def test_modes_may_have_different_plans(out_dir: Path) -> None:
    config = {modes.TRAIN: SaveConfigMode(save_interval=2), modes.EVAL: SaveConfigMode(end_step=0)}
    hook = Hook(out_dir, save_config=config)
    for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT):
        hook.set_mode(mode)
        for _ in range(3):
            hook.step()
            hook.save_tensor("w", ONE)
    hook.close()
    assert recorded.steps(out_dir) == [0, 2, 6]


@pytest.mark.parametrize("mode", ["train", "TRAIN", 1, None])
def test_only_modes_are_modes(out_dir: Path, mode: Any) -> None:
    hook = Hook(out_dir)
    with pytest.raises(SMDebugValueError, match="mode"):
        hook.set_mode(mode)
    hook.close()


def test_the_step_number_pickles_as_a_number(out_dir: Path) -> None:
    hook = Hook(out_dir)
    assert type(pickle.loads(pickle.dumps(hook.step))) is int
    hook.close()


# ---- scalars


def test_scalars_are_saved_at_every_step(out_dir: Path) -> None:
    hook = Hook(out_dir)  # every 500th step
    for number in range(3):
        hook.step()
        hook.save_scalar("loss", number / 2, timestamp=12.5)
    hook.close()
    assert recorded.steps(out_dir) == [0, 1, 2]
    record = recorded.tensors(out_dir, 2)["scalar/loss"]
    assert (record.value.tolist(), record.wall_secs, record.dtype) == ([1.0], 12.5, "float64")
    assert collections(out_dir)["scalars"]["tensor_names"] == ["scalar/loss"]


def test_the_last_scalar_of_a_step_wins(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.step()
    hook.save_scalar("a", 1)
    hook.save_scalar("a", 2)
    hook.step()
    hook.save_scalar("a", 3)
    hook.close()
    assert recorded.value(out_dir, "scalar/a", 0).tolist() == [2]
    assert recorded.value(out_dir, "scalar/a", 1).tolist() == [3]
    assert [name for name, _, _ in recorded.index(out_dir, 0)["tensors"]] == ["scalar/a"]


def test_a_scalar_before_the_first_step_goes_with_the_first_step(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.set_mode(modes.TRAIN)
    hook.save_scalar("a", 1)
    hook.step()
    hook.step()
    hook.close()
    assert recorded.steps(out_dir) == [0]
    assert recorded.tensors(out_dir)["scalar/a"].mode is modes.TRAIN


def test_a_scalar_of_a_job_without_steps_is_kept(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.save_scalar("a", 1)
    hook.close()
    assert recorded.value(out_dir, "scalar/a").tolist() == [1]


def test_a_scalar_after_the_end_of_a_step_does_not_destroy_it(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    with hook.step():
        hook.save_tensor("w", ONE)
    hook.save_scalar("late", 1)
    hook.close()
    assert "w" in recorded.names(out_dir)
    assert any("scalar/late" in recorded.names(out_dir, step) for step in recorded.steps(out_dir))


def test_scalars_are_copied_and_keep_their_type(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.step()
    array = np.array([[1.5]], dtype=np.float32)
    values: dict[str, Any] = {
        "array": array,
        "zero_d": np.array(3, dtype=np.int16),
        "numpy": np.float16(2),
        "int": 7,
        "bool": True,
        "float": 0.1,
        "large": 2**63 - 1,
        "nan": float("nan"),
    }
    for name, value in values.items():
        hook.save_scalar(name, value)
    array[:] = 9
    hook.close()
    found = {n.removeprefix("scalar/"): r for n, r in recorded.tensors(out_dir).items()}
    assert {n: r.dtype for n, r in found.items()} == {
        "array": "float32",
        "zero_d": "int16",
        "numpy": "float16",
        "int": "int64",
        "bool": "bool",
        "float": "float64",
        "large": "int64",
        "nan": "float64",
    }
    assert all(r.value.shape == (1,) for r in found.values())
    assert found["array"].value[0] == 1.5
    assert found["float"].value[0] == 0.1
    assert found["large"].value[0] == 2**63 - 1
    assert np.isnan(found["nan"].value[0])


@pytest.mark.parametrize("value", [[1, 2], "one", None, np.zeros(0), {}, 1 + 2j, b"x"])
def test_a_scalar_is_a_single_number(out_dir: Path, value: Any) -> None:
    hook = Hook(out_dir)
    hook.step()
    with pytest.raises(SMDebugTypeError):
        hook.save_scalar("a", value)
    hook.close()


# ---- tensors and collections


def test_save_tensor_writes_into_several_collections(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", ONE, ["mine", "weights"])
    hook.save_tensor("v", ONE, "mine")
    hook.save_tensor("u", ONE)
    hook.close()
    assert recorded.names(out_dir) == ["u", "v", "w"]
    found = collections(out_dir)
    assert found["mine"]["tensor_names"] == ["v", "w"]
    assert found["weights"]["tensor_names"] == ["w"]
    assert found["default"]["tensor_names"] == ["u"]


def test_a_collection_of_its_own_plan_decides_for_save_tensor(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(end_step=0))
    hook.add_collection(Collection("often", save_config=SaveConfig(save_interval=2)))
    for _ in range(4):
        hook.step()
        hook.save_tensor("never", ONE)
        hook.save_tensor("w", ONE, "often")
        hook._core.save("offered_often", ONE)
    hook.close()
    assert recorded.steps(out_dir) == [0, 2]
    assert recorded.names(out_dir, 2) == ["w"]


def test_the_value_is_copied_when_it_is_saved(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    large = np.full(1 << 20, 3, dtype=np.float32)
    small = np.full(3, 3, dtype=np.int8)
    hook.save_tensor("large", large)
    hook.save_tensor("small", small)
    large[:] = 0
    small[:] = 0
    hook.close()
    assert recorded.value(out_dir, "large").min() == 3
    assert recorded.value(out_dir, "small").tolist() == [3, 3, 3]


def test_the_last_value_of_a_name_in_a_step_is_read(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", ONE)
    hook.save_tensor("w", ONE * 2)
    hook.close()
    assert recorded.value(out_dir, "w").tolist() == [2, 2]


def test_offered_tensors_follow_the_patterns(out_dir: Path) -> None:
    hook = Hook(
        out_dir, save_config=EVERY_STEP, include_regex=["relu", "^tanh"], exclude_regex="skip"
    )
    hook.get_collection("picked").add_tensor_name("odd")
    hook.step()
    for name in ("my_relu", "tanh1", "x_tanh", "relu_skip", "odd", "my_loss"):
        hook._core.save(name, ONE)
    hook.close()
    assert recorded.names(out_dir) == ["my_loss", "my_relu", "tanh1"]
    assert collections(out_dir)["default"]["tensor_names"] == ["my_relu", "tanh1"]


def test_save_all_saves_everything_but_what_is_excluded(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, save_all=True, exclude_regex=["^secret"])
    hook.step()
    for name in ("a", "secret_b", "c"):
        hook._core.save(name, ONE)
    hook.close()
    assert recorded.names(out_dir) == ["a", "c"]
    assert "all" in hook.include_collections


def test_gradients_are_saved_in_training_only(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["gradients", "weights"])
    for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT):
        hook.set_mode(mode)
        hook.step()
        hook._core.save("gradient/w", ONE)
        hook._core.save("weight", ONE)
    hook.close()
    assert [recorded.names(out_dir, step) for step in range(3)] == [
        ["gradient/w", "weight"],
        ["weight"],
        ["weight"],
    ]


def test_collections_share_what_is_saved_of_a_tensor(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["a", "b"])
    hook.add_collection(Collection("a", ["w"], reduction_config=ReductionConfig(["min", "median"])))
    hook.add_collection(
        Collection(
            "b", ["w"], reduction_config=ReductionConfig(["min"], norms=["l2"], save_shape=True)
        )
    )
    hook.step()
    hook._core.save("w", np.array([3.0, -4.0]))
    hook.close()
    prefix = "smdebug/reductions/"
    assert recorded.names(out_dir) == [prefix + "l2/w", prefix + "median/w", prefix + "min/w"]
    assert recorded.value(out_dir, prefix + "l2/w") == 5
    assert recorded.index(out_dir, 0)["shapes"] == [("w", "w", (2,))]


def test_a_change_to_a_collection_takes_effect_at_the_next_step(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["mine"])
    hook.get_collection("mine").include("^a")
    hook.step()
    hook._core.save("a", ONE)
    hook._core.save("b", ONE)
    hook.get_collection("mine").include("^b")
    hook.step()
    hook._core.save("a", ONE)
    hook._core.save("b", ONE)
    hook.get_collection("mine").save_config = SaveConfig(end_step=0)
    hook.step()
    hook._core.save("a", ONE)
    hook.close()
    assert [recorded.names(out_dir, step) for step in recorded.steps(out_dir)] == [
        ["a"],
        ["a", "b"],
    ]


def test_an_included_collection_that_holds_nothing_is_refused(out_dir: Path) -> None:
    hook = Hook(out_dir, include_collections=["mine"])
    hook.get_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration, match="mine") as caught:
        hook.step()
    assert caught.value.c_name == "mine"


def test_a_collection_that_is_only_looked_up_does_no_harm(
    out_dir: Path, messages: Messages
) -> None:
    hook = Hook(out_dir, include_collections=["absent"])
    hook.get_collection("typo")
    hook.step()
    hook.close()
    assert messages.containing("typo")
    assert messages.containing("absent")


def test_the_manager_can_be_replaced(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["mine"])
    manager = CollectionManager()
    manager.add(Collection("mine", ["^x"]))
    hook.collection_manager = manager
    assert hook.collection_manager is manager
    hook.step()
    hook._core.save("x1", ONE)
    hook._core.save("loss", ONE)
    hook.close()
    assert recorded.names(out_dir) == ["x1"]
    assert list(collections(out_dir)) == ["mine"]


def test_a_manager_that_comes_in_the_middle_of_a_step_decides_from_the_next_one(
    out_dir: Path,
) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["mine"])
    hook.get_collection("mine").include("^x")
    hook.step()
    hook._core.save("x1", ONE)
    manager = CollectionManager()
    manager.add(Collection("mine", ["^y"]))
    hook.collection_manager = manager
    for name in ("x2", "y1"):
        hook._core.save(name, ONE)
    hook.step()
    for name in ("x3", "y2"):
        hook._core.save(name, ONE)
    hook.close()
    assert recorded.names(out_dir, 0) == ["x1", "x2"]
    assert recorded.names(out_dir, 1) == ["y2"]
    assert list(collections(out_dir)) == ["mine"]


def test_add_to_collection_takes_names(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.add_to_collection("mine", "a")
    hook.add_to_collection("mine", ["b", "c"])
    assert hook.get_collections()["mine"].tensor_names == {"a", "b", "c"}
    for wrong in (3, [3]):
        with pytest.raises(TypeError):
            hook.add_to_collection("mine", wrong)
    with pytest.raises(SMDebugTypeError):
        hook.add_collection("mine")
    hook.close()


def test_collections_are_written_on_demand(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.get_collection("mine").include("x")
    hook.export_collections()
    hook.close()
    assert collections(out_dir)["mine"]["include_regex"] == ["x"]


def test_a_nan_starts_saving(out_dir: Path, messages: Messages) -> None:
    config = SaveConfig(save_interval=100, when_nan=["loss"])
    hook = Hook(out_dir, save_config=config, include_regex="w")
    for number in range(10):
        hook.step()
        loss = np.nan if number in (4, 5) else 1.0
        hook._core.save("loss", np.array([loss]))
        hook._core.save("w", ONE * number)
    hook.close()
    assert recorded.steps(out_dir) == [0, 4, 5]
    assert recorded.names(out_dir, 4) == ["loss", "smdebug/when_nan", "w"]
    assert recorded.value(out_dir, "smdebug/when_nan", 4).tolist() == ["loss"]
    assert len(messages.containing("holds a NaN")) == 1


def test_a_watched_name_that_never_comes_is_reported(out_dir: Path, messages: Messages) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(when_nan=["los"]))
    hook.step()
    hook._core.save("loss", ONE)
    hook.step()
    hook.close()
    (message,) = messages.containing("'los'")
    assert "'loss'" in message


def test_whether_something_is_saved_can_be_asked(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=2))
    assert not hook.should_save_tensor_or_collection("loss", "losses")
    hook.step()
    assert hook.should_save_tensor_or_collection("loss", "nothing")
    assert hook.should_save_tensor_or_collection("x", "losses")
    assert not hook.should_save_tensor_or_collection("x", "nothing")
    hook.step()
    assert not hook.should_save_tensor_or_collection("loss", "losses")
    hook.close()


# ---- the end


def test_a_finished_run_has_collections_and_an_end_marker(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.step()
    hook.close()
    hook.close()
    files = sorted(str(p.relative_to(out_dir)) for p in out_dir.rglob("*") if p.is_file())
    assert files == ["collections/000000000/worker_0_collections.json", "training_job_end.ts"]


def test_a_closed_hook_saves_nothing_any_more(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.close()
    for call in (
        hook.step,
        hook.end_step,
        lambda: hook.save_tensor("w", ONE),
        lambda: hook.save_scalar("s", 1),
        hook.export_collections,
    ):
        with pytest.raises(SMDebugRuntimeError, match="closed"):
            call()


def test_closing_twice_does_not_make_a_deleted_directory_again(out_dir: Path) -> None:
    hook = Hook(out_dir)
    hook.close()
    out_dir.rename(out_dir.with_name("moved"))
    hook.close()
    assert not out_dir.exists()


def test_a_with_block_closes_the_hook_and_passes_the_exception(out_dir: Path) -> None:
    with pytest.raises(KeyError, match="mine"), Hook(out_dir, save_config=EVERY_STEP) as hook:
        hook.step()
        hook.save_tensor("w", ONE)
        raise KeyError("mine")
    assert recorded.names(out_dir) == ["w"]
    assert (out_dir / "training_job_end.ts").exists()


def test_an_exception_in_a_step_block_passes_and_ends_the_step(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    with pytest.raises(KeyError), hook.step():
        hook.save_tensor("w", ONE)
        raise KeyError
    hook.step()
    hook.close()
    assert recorded.names(out_dir) == ["w"]


def test_a_dry_run_writes_nothing(out_dir: Path, messages: Messages) -> None:
    hook = Hook(out_dir, dry_run=True, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", ONE)
    hook.save_tensor("s", ["a"])
    hook.save_scalar("s", 1)
    hook.export_collections()
    hook.close()
    assert not out_dir.exists()
    assert messages.containing("'w' would be saved")


def test_a_tensor_before_the_first_step_is_dropped_with_a_warning(
    out_dir: Path, messages: Messages
) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.save_tensor("early", ONE)
    hook.step()
    hook.close()
    assert recorded.steps(out_dir) == []
    assert messages.containing("early")


def test_a_resumed_job_goes_on_where_it_was(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    hook = Hook(out_dir)
    hook.set_mode(modes.TRAIN)
    for _ in range(3):
        hook.step()
    (checkpoints / "model.pt").write_text("weights")
    deadline = time.monotonic() + recorded.TIMEOUT_SECS
    while not (checkpoints / "metadata.json").exists():  # it looks from time to time
        assert time.monotonic() < deadline
        hook.step()
    hook.close()
    (out_dir / "training_job_end.ts").unlink()
    (state,) = json.loads((checkpoints / "metadata.json").read_text())
    seen = state["latest-global-step-seen"]
    assert seen >= 2
    assert state["latest-mode-step"] == {"TRAIN": seen, "GLOBAL": seen}
    again = Hook(out_dir)
    assert (again.step, again.training_run) == (seen, 1)
    again.set_mode(modes.EVAL)
    again.step()
    assert (again.step, again.mode_steps[modes.EVAL]) == (seen + 1, 0)
    again.close()


# ---- the hook of the process


def test_get_hook_makes_a_hook_from_the_file_of_the_job(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "absent.json"))
    assert smdebug.get_hook() is None
    assert smdebug.get_hook(create_if_not_exists=True) is None
    (tmp_path / "hook.json").write_text(json.dumps({"LocalPath": str(out_dir)}))
    made = smdebug.get_hook(str(tmp_path / "hook.json"), create_if_not_exists=True)
    assert isinstance(made, Hook)
    assert made.out_dir == str(out_dir)
    assert smdebug.get_hook(str(tmp_path / "absent.json"), create_if_not_exists=True) is made
    made.close()


def test_a_hook_of_another_framework_is_forgotten(out_dir: Path) -> None:
    class Other(Hook):
        pass

    hook = Hook(out_dir)
    assert singleton.hook_of(Hook, None) is hook
    assert singleton.hook_of(Other, None) is None
    assert smdebug.get_hook() is None
    hook.close()


@pytest.mark.parametrize("word", ["0", "no", "False", "OFF", "f", "n"])
def test_use_smdebug_switches_every_get_hook_off_but_no_hook(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("USE_SMDEBUG", word)
    singleton.reset_enabled()
    (tmp_path / "hook.json").write_text(json.dumps({"LocalPath": str(out_dir)}))
    assert smdebug.get_hook(str(tmp_path / "hook.json"), create_if_not_exists=True) is None
    hook = Hook(out_dir, save_config=EVERY_STEP)
    assert smdebug.get_hook() is None
    assert singleton.hook_of(Hook, Hook) is None
    hook.step()
    hook.save_scalar("x", 1)
    hook.close()
    assert recorded.steps(out_dir) == [0]


# ---- as a Python object


def test_hooks_can_be_subclassed(out_dir: Path) -> None:
    class Mine(Hook):
        saved: list[str]

        def save_tensor(
            self, tensor_name: str, tensor_value: Any, collections_to_write: Any = "default"
        ) -> None:
            self.saved = [*getattr(self, "saved", []), tensor_name]
            super().save_tensor("my/" + tensor_name, tensor_value, collections_to_write)

        def _identify(self) -> tuple[str, str, int]:
            return "worker_3", "worker_3", 1

    hook = Mine(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", ONE)
    hook.close()
    assert hook.saved == ["w"]
    assert recorded.names(out_dir, worker="worker_3") == ["my/w"]
    assert isinstance(smdebug.get_hook(), Mine)


def test_nothing_of_a_hook_that_is_gone_stays_in_memory(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, save_all=True)
    hook.get_collection("mine").include("w")
    with hook.step():
        hook.save("w", ONE)
    hook.close()
    parts = [hook, hook._core, hook.collection_manager]
    alive = [weakref.ref(part) for part in parts]
    singleton.del_hook()
    del hook, parts
    gc.collect()
    assert [part() for part in alive] == [None, None, None]


def test_a_pickled_or_copied_hook_is_inert(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.note = object  # anything may hang on it
    hook.step()
    for inert in (pickle.loads(pickle.dumps(hook)), copy.deepcopy(hook)):
        assert type(inert) is Hook
        with inert.step():
            inert.save_tensor("w", ONE)
            inert.save_scalar("s", 1)
        inert.set_mode(modes.EVAL)
        assert inert.step == -1
        assert not inert.should_save_tensor_or_collection("loss", "losses")
        inert.get_collection("x").include("y")
        inert.collection_manager = CollectionManager()
        assert inert.mode_steps
        assert repr(inert)
        inert.close()
    hook.close()
    assert recorded.steps(out_dir) == []


def test_the_newest_hook_is_the_hook_of_the_process(out_dir: Path, tmp_path: Path) -> None:
    assert smdebug.get_hook() is None
    first = Hook(out_dir)
    assert smdebug.get_hook() is first
    second = Hook(tmp_path / "other")
    assert smdebug.get_hook() is second
    smdebug.set_hook(first)
    assert smdebug.get_hook() is first
    with pytest.raises(SMDebugTypeError):
        smdebug.set_hook("hook")
    smdebug.del_hook()
    assert smdebug.get_hook() is None
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("word", "enabled"), [("0", False), ("FALSE", False), ("no", False), ("on", True), ("1", True)]
)
def test_use_smdebug_decides_what_get_hook_gives(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, word: str, enabled: bool
) -> None:
    monkeypatch.setenv("USE_SMDEBUG", word)
    hook = Hook(out_dir, save_config=EVERY_STEP)
    assert (smdebug.get_hook() is hook) is enabled
    monkeypatch.setenv("USE_SMDEBUG", "0" if enabled else "1")
    assert (smdebug.get_hook() is hook) is enabled, "it is read once"
    hook.step()
    hook.save_tensor("w", ONE)
    hook.close()
    assert recorded.names(out_dir) == ["w"], "a hook made by hand always works"


def test_use_smdebug_must_be_a_truth_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_SMDEBUG", "perhaps")
    with pytest.raises(SMDebugValueError, match="USE_SMDEBUG"):
        smdebug.get_hook()


# ---- offered tensors and loose arguments


def test_an_offered_tensor_is_saved_as_its_collections_want(out_dir: Path) -> None:
    with Hook(
        out_dir,
        include_collections=["weights"],
        save_config=EVERY_STEP,
        reduction_config=ReductionConfig(norms=["l2"]),
    ) as hook:
        hook.step()
        hook.save("fc.weight", np.array([3.0, 4.0]))
        hook.save("unrelated", ONE)
    assert recorded.names(out_dir) == ["smdebug/reductions/l2/fc.weight"]
    assert recorded.value(out_dir, "smdebug/reductions/l2/fc.weight") == 5.0


def test_an_offered_text_is_refused_with_advice(out_dir: Path) -> None:
    with Hook(out_dir, save_all=True, save_config=EVERY_STEP) as hook:
        hook.step()
        with pytest.raises(SMDebugTypeError, match=r"save_tensor\(\)"):
            hook.save("words", ["a", "b"])


@pytest.mark.parametrize(
    ("given", "meant"), [("False", False), ("true", True), (["true"], True), (0, False), (1, True)]
)
def test_flags_are_read_as_people_write_them(out_dir: Path, given: Any, meant: bool) -> None:
    with Hook(out_dir, save_all=given) as hook:
        assert hook.save_all is meant


def test_a_flag_that_says_neither_is_refused(out_dir: Path) -> None:
    with pytest.raises(SMDebugValueError, match="save_all must be True or False, not 'perhaps'"):
        Hook(out_dir, save_all="perhaps")  # type: ignore[arg-type]


def test_paths_are_accepted_for_directories(out_dir: Path, tmp_path: Path) -> None:
    with Hook(out_dir, tensorboard_dir=tmp_path / "tb") as hook:
        assert hook.tensorboard_dir == str(tmp_path / "tb")


@pytest.mark.parametrize("name", [None, 3, b"w"])
def test_a_name_that_is_no_string_is_named_in_the_error(out_dir: Path, name: Any) -> None:
    with Hook(out_dir, save_all=True, save_config=EVERY_STEP) as hook:
        hook.step()
        for save in (hook.save, hook.save_tensor, hook.save_scalar):
            with pytest.raises(SMDebugTypeError, match="must be a string, not"):
                save(name, 1.0)
        with pytest.raises(SMDebugValueError, match="must not be empty"):
            hook.save_scalar("", 1.0)


def test_a_step_number_must_be_whole(out_dir: Path) -> None:
    with Hook(out_dir) as hook, pytest.raises(SMDebugValueError, match=r"not 1\.5"):
        hook.step(1.5)  # type: ignore[arg-type]


def test_readers_in_the_process_find_every_step_that_has_ended(out_dir: Path) -> None:
    with Hook(out_dir, save_all=True, save_config=EVERY_STEP) as hook:
        for step in range(20):
            with hook.step():
                hook.save_tensor("weight", ONE)
            time.sleep(0.002 * (step % 4))  # the writer thread is busy, or about to sleep
            trial = smdebug.create_trial(out_dir)
            assert trial.steps() == list(range(step + 1))
        hook.step()
        hook.end_step()
        hook.step(30)
        hook.save_tensor("weight", ONE)
        hook.end_step()
        assert trial.steps() == [*range(20), 30]
