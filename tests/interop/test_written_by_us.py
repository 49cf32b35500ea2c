"""The released package reads the runs that we write, value by value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import original_view
import pytest
from smdebug import Collection, Hook, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.core.writer import FileWriter

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

EVERY_STEP = SaveConfig(save_interval=1)
READABLE = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool", "complex128"]
REDUCTIONS = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
NAMES = ["plain", "ünï/çødé 日本 🎉", 'it\'s "quoted"', "a/b/c", "loss:0", "back\\slash", " space "]


def describe(array: np.ndarray) -> dict[str, Any]:
    """An array as original_view shows it."""
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "hex": np.ascontiguousarray(array).tobytes().hex(),
    }


def read(out_dir: Path) -> dict[str, Any]:
    """What the released package sees; it must open the run."""
    document = original_view.read_run(out_dir)
    assert "error" not in document, document
    return document


def value(
    document: dict[str, Any],
    name: str,
    mode: str = "GLOBAL",
    step: int = 0,
    worker: str = "worker_0",
) -> dict[str, Any]:
    return original_view.entries(document)[(name, mode, step, worker)]["value"]


def reductions(document: dict[str, Any], name: str) -> dict[tuple[str, bool], dict[str, Any]]:
    entry = original_view.entries(document)[(name, "GLOBAL", 0, "worker_0")]
    return {(r.pop("name"), r.pop("abs")): r for r in entry["reductions"]}


def test_every_readable_type_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    given = {}
    for dtype in READABLE:
        for shape in ((), (1,), (7,), (3, 4), (2, 1, 3)):
            base = np.asarray(rng.standard_normal(shape) * 50)
            given[f"{dtype}/{shape}"] = np.asarray(
                np.abs(base) if dtype == "uint8" else base
            ).astype(dtype)
    given["strided"] = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-1]
    given["swapped"] = np.arange(4, dtype=">i4")
    given["special"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    with Hook(tmp_path, save_config=EVERY_STEP) as hook:
        hook.step()
        for name, array in given.items():
            hook.save_tensor(name, array)
    document = read(tmp_path)
    assert document["tensor_names"] == sorted(given)
    for name, array in given.items():
        assert value(document, name) == describe(array.astype(array.dtype.newbyteorder("="))), name
    assert document["ended"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_are_read_as_float32(tmp_path: Path, dtype: str) -> None:
    array = np.linspace(-3, 3, 50).astype(getattr(ml_dtypes, dtype))
    with Hook(tmp_path, save_config=EVERY_STEP) as hook:
        hook.step()
        hook.save_tensor("narrow", array)
    assert value(read(tmp_path), "narrow") == describe(array.astype(np.float32))


def test_strings_numbers_and_scalars_come_back(tmp_path: Path) -> None:
    with Hook(tmp_path) as hook:
        hook.step()
        hook.save_tensor("words", ["a", "ü 日本", ""])
        hook.save_tensor("word", "one")
        hook.save_tensor("int", 3)
        hook.save_tensor("float", 2.5)
        hook.save_tensor("flag", True)
        hook.save_scalar("loss", 0.5)
        hook.save_scalar("count", 7)
        hook.step()
        hook.save_scalar("loss", 0.25)
    document = read(tmp_path)
    assert value(document, "words") == {
        "dtype": "string",
        "shape": [3],
        "strings": ["a", "ü 日本", ""],
    }
    assert value(document, "word")["strings"] == ["one"]
    assert value(document, "int") == describe(np.array([3]))
    assert value(document, "float") == describe(np.array([2.5]))
    assert value(document, "flag") == describe(np.array([True]))
    assert value(document, "scalar/loss") == describe(np.array([0.5]))
    assert value(document, "scalar/count") == describe(np.array([7]))
    assert value(document, "scalar/loss", step=1) == describe(np.array([0.25]))
    assert document["collections"]["scalars"]["tensor_names"] == ["scalar/count", "scalar/loss"]


def test_names_are_read_as_they_were_given(tmp_path: Path) -> None:
    with Hook(tmp_path, save_config=EVERY_STEP) as hook:
        hook.step()
        for number, name in enumerate(NAMES):
            hook.save_tensor(name, [number])
    document = read(tmp_path)
    assert document["tensor_names"] == sorted(NAMES)
    for number, name in enumerate(NAMES):
        assert value(document, name) == describe(np.array([number]))


def test_a_tensor_with_several_names_is_read_under_each(tmp_path: Path) -> None:
    names = ["full/a", "full/b", "other"]
    for array in (np.arange(6.0).reshape(2, 3), np.arange(50_000, dtype=np.float32)):
        out_dir = tmp_path / str(array.size)
        hook = Hook(out_dir, include_regex="^full", save_config=EVERY_STEP)
        hook.step()
        hook._core.save_named(names, array)
        hook.close()
        document = read(out_dir)
        for name in names[:2]:
            assert value(document, name) == describe(array)
        assert not any("other" in key for key in original_view.entries(document))


@pytest.mark.parametrize("raw", [True, False])
def test_reductions_come_back(tmp_path: Path, raw: bool) -> None:
    config = ReductionConfig(
        REDUCTIONS, REDUCTIONS, ["l1", "l2"], ["l1", "l2"], save_raw_tensor=raw
    )
    array = np.array([[1, -2], [3, -4.5]])
    with Hook(tmp_path, save_config=EVERY_STEP, reduction_config=config) as hook:
        hook.step()
        hook.save_tensor("w", array)
    document = read(tmp_path)
    assert document["tensor_names"] == ["w"]
    found = reductions(document, "w")
    assert set(found) == {(n, a) for n in [*REDUCTIONS, "l1", "l2"] for a in (False, True)}
    for absolute in (False, True):
        x = np.abs(array) if absolute else array
        wanted = {
            "min": x.min(),
            "max": x.max(),
            "median": np.median(x),
            "mean": x.mean(),
            "sum": x.sum(),
            "prod": x.prod(),
            "l1": np.abs(x).sum(),
        }
        for name, number in wanted.items():
            assert found[(name, absolute)] == describe(np.array([number])), name
        for name, number in {
            "std": x.std(),
            "variance": x.var(),
            "l2": np.linalg.norm(x.ravel()),
        }.items():
            (got,) = np.frombuffer(bytes.fromhex(found[(name, absolute)]["hex"]))
            assert got == pytest.approx(number, rel=1e-12), name
    stored = value(document, "w")
    assert stored == describe(array) if raw else stored["error"] == "TensorUnavailableForStep"


def test_shapes_come_back(tmp_path: Path) -> None:
    """A shape beside a value hides the value from the released package; that is its own flaw."""
    shapes = ReductionConfig(save_shape=True)
    with Hook(tmp_path, save_config=EVERY_STEP, reduction_config=shapes) as hook:
        hook.add_collection(
            Collection(
                "both", reduction_config=ReductionConfig(save_shape=True, save_raw_tensor=True)
            )
        )
        hook.step()
        hook.save_tensor("w", np.zeros((2, 3, 4)))
        hook.save_tensor("empty", np.zeros((0, 5)))
        hook.save_tensor("scalar", np.array(1.5))
        hook.save_tensor("with_value", np.zeros((3, 2)), "both")
    seen = original_view.entries(read(tmp_path))
    for name, shape in {
        "w": [2, 3, 4],
        "empty": [0, 5],
        "scalar": [],
        "with_value": [3, 2],
    }.items():
        assert seen[(name, "GLOBAL", 0, "worker_0")]["shape"] == shape


def test_modes_and_large_steps_come_back(tmp_path: Path) -> None:
    hook = Hook(tmp_path, save_config=EVERY_STEP)
    places = []
    for number, (mode, step) in enumerate(
        zip([*modes, *modes], [0, 1, 2, 999, 1000, 1001, 12345, 123456789], strict=True)
    ):
        hook.set_mode(mode)
        hook.begin_step(step)
        hook.save_tensor("w", np.full(3, number, dtype=np.int32))
        places.append((mode, hook.mode_steps[mode], step))
    hook.close()
    document = read(tmp_path)
    assert document["known_steps"] == [step for _, _, step in places]
    assert document["own_steps"] == {str(g): [m.name, s] for m, s, g in places}
    assert document["modes"] == ["EVAL", "PREDICT", "TRAIN"]  # it never names GLOBAL
    for number, (mode, mode_step, _) in enumerate(places):
        found = value(document, "w", mode.name, mode_step)
        assert found == describe(np.full(3, number, dtype=np.int32))


WORKER = """
import sys
import numpy as np
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1), include_workers="all")
print("ready", flush=True)
sys.stdin.readline()
for step in range(3):
    hook.step()
    hook.save_tensor("w", np.full(2, 10 * step + int(hook.worker[-1])))
hook.close()
"""


def test_two_workers_are_read_as_two(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path)],
            env={
                **os.environ,
                "PYTHONPATH": str(original_view.ROOT / "python"),
                "SMDEBUG_LOG_LEVEL": "off",
                "RANK": str(rank),
                "WORLD_SIZE": "2",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    document = read(tmp_path)
    assert document["num_workers"] == 2
    assert document["workers"] == ["worker_0", "worker_1"]
    assert document["steps"]["GLOBAL"] == [0, 1, 2]
    for step in range(3):
        for rank in range(2):
            wanted = describe(np.full(2, 10 * step + rank))
            assert value(document, "w", step=step, worker=f"worker_{rank}") == wanted


def test_collections_and_their_configs_are_read(tmp_path: Path) -> None:
    partial = SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=3, save_steps=[1])})
    hook = Hook(
        tmp_path,
        save_config=SaveConfig(save_interval=2, when_nan=["loss"]),
        include_regex="w",
        exclude_regex="skip",
        include_collections=["mine", "nan"],
    )
    hook.add_collection(
        Collection(
            "mine", ["^m"], ["listed"], ReductionConfig(["median", "max"]), partial, False, ["no"]
        )
    )
    hook.add_collection(Collection("nan", ["x"], save_config=SaveConfig(when_nan=["a", "b"])))
    hook.get_collection("unused").include("nothing")
    hook.step()
    hook._core.save("w1", np.ones(2))
    hook._core.save("w_skip", np.ones(2))
    hook._core.save("m1", np.ones(2))
    hook.close()
    document = read(tmp_path)
    assert document["tensor_names"] == ["m1", "w1"]
    found = document["collections"]
    assert found["mine"]["include_regex"] == ["^m"]
    assert found["mine"]["tensor_names"] == ["listed", "m1"]
    assert found["mine"]["reduction_config"]["reductions"] == "max"
    assert found["mine"]["save_histogram"] is False
    train = {"save_interval": 3, "save_steps": [1], "start_step": 0, "end_step": None}
    evaluation = {"save_interval": 2, "save_steps": [], "start_step": 0, "end_step": None}
    assert found["mine"]["save_config"] == {
        "TRAIN": train,
        "EVAL": evaluation,
        "PREDICT": evaluation,
        "GLOBAL": evaluation,
    }
    assert found["default"]["save_config"]["GLOBAL"] == evaluation
    assert found["unused"]["save_config"] is None
    assert reductions(document, "m1") == {
        ("max", False): describe(np.array([1.0])),
        ("median", False): describe(np.array([1.0])),
    }


def test_a_step_saved_because_of_a_nan_is_read(tmp_path: Path) -> None:
    hook = Hook(tmp_path, save_config=SaveConfig(save_interval=100, when_nan=["loss"]))
    for number in range(4):
        hook.step()
        hook._core.save("loss", np.array([np.nan if number == 2 else 1.0]))
    hook.close()
    document = read(tmp_path)
    assert document["known_steps"] == [0, 2, 3]
    assert value(document, "smdebug/when_nan", step=2)["strings"] == ["loss"]


def test_a_run_without_steps_opens(tmp_path: Path) -> None:
    Hook(tmp_path).close()
    document = read(tmp_path)
    assert document["known_steps"] == []
    assert document["tensor_names"] == []


def test_the_writer_of_single_files_is_read(tmp_path: Path) -> None:
    Hook(tmp_path).close()
    for step, mode in ((0, modes.TRAIN), (5, modes.EVAL)):
        writer = FileWriter(str(tmp_path), "worker_0", step=step)
        for dtype in READABLE:
            writer.write_tensor(np.ones((2, 2), dtype), dtype, mode=mode, mode_step=step // 5)
        writer.write_shape("shape", (4, 5), mode=mode, mode_step=step // 5)
        writer.close()
    document = read(tmp_path)
    for mode, mode_step in (("TRAIN", 0), ("EVAL", 1)):
        for dtype in READABLE:
            assert value(document, dtype, mode, mode_step) == describe(np.ones((2, 2), dtype))
        entry = original_view.entries(document)[("shape", mode, mode_step, "worker_0")]
        assert entry["shape"] == [4, 5]
