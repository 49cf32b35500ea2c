"""The hook for PyTorch: names, steps, values and registration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded
import smdebug
import torch
from conftest import Messages
from smdebug.exceptions import (
    InvalidCollectionConfiguration,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.pytorch import (
    Collection,
    Hook,
    ReductionConfig,
    SaveConfig,
    create_trial,
    del_hook,
    get_hook,
    modes,
    set_hook,
)
from smdebug.pytorch import optimizer as torch_optimizer
from smdebug.pytorch import tensors as torch_tensors
from torch import nn
from torch_training import (
    EVERY_STEP,
    SMALL_NAMES,
    SMALL_PARAMETERS,
    Net,
    NoHook,
    Small,
    assert_value,
    batches,
    callbacks_of,
    record,
    saved,
    step,
    train_small,
)

pytestmark = pytest.mark.usefixtures("strict")


def losses_of(out_dir: Path) -> list[str]:
    path = out_dir / "collections/000000000/worker_0_collections.json"
    return sorted(json.loads(path.read_text())["collections"]["losses"]["tensor_names"])


# ---- names, steps and values of a whole model

PARAMETERS = [
    *("Net_fc1.weight", "Net_fc1.bias", "Net_seq.0.weight", "Net_seq.0.bias"),
    *("Net_seq.1.weight", "Net_seq.1.bias", "Net_lstm.weight_ih_l0", "Net_lstm.weight_hh_l0"),
    *("Net_lstm.bias_ih_l0", "Net_lstm.bias_hh_l0", "Net_fc2.weight", "Net_fc2.bias"),
]
UNUSED = ["Net_unused.weight", "Net_unused.bias"]
TENSORS = [
    *(
        f"{m}_{k}_0"
        for m in ("Net", "fc1", "fc2", "seq", "seq.0", "seq.1")
        for k in ("input", "output")
    ),
    *("lstm_input_0", "lstm_output_0", "lstm_output_1", "lstm_output_2"),
    *("relu_input_0", "relu_input_1", "relu_output_0", "relu_output_1"),
    *("CrossEntropyLoss_input_0", "CrossEntropyLoss_input_1", "CrossEntropyLoss_output_0"),
]
ALL_NAMES = sorted(PARAMETERS + UNUSED + [f"gradient/{name}" for name in PARAMETERS] + TENSORS)


def train_and_evaluate(hook: Any, seen: dict[int, dict[str, Any]] | None = None) -> nn.Module:
    """Three batches in each mode; `seen` gets weights before forward and gradients by step."""
    model, loss = Net(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook.set_mode(modes.TRAIN)
    for i, (x, y) in enumerate(batches(3)):
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        step(model, loss, optimizer, x, y)
        if seen is not None:
            grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
            seen[i] = {"weights": before, "gradients": grads, "x": x, "y": y}
    hook.set_mode(modes.EVAL)
    for x, y in batches(3):
        with torch.no_grad():
            loss(model(x, 2.0), y)
    return model


def test_a_model_is_recorded_with_all_its_names(out_dir: Path) -> None:
    trial = record(
        train_and_evaluate, out_dir, save_all=True, save_config=SaveConfig(save_interval=2)
    )
    assert len(ALL_NAMES) == 49
    assert trial.tensor_names() == ALL_NAMES
    assert trial.steps() == [0, 2, 3, 5]
    assert trial.steps(mode=modes.TRAIN) == trial.steps(mode=modes.EVAL) == [0, 2]
    for name in PARAMETERS:
        assert trial.tensor(f"gradient/{name}").steps() == [0, 2]
    assert saved(trial, "CrossEntropyLoss_output_0").shape == ()
    assert saved(trial, "CrossEntropyLoss_input_1").dtype == np.int64


def test_values_are_those_of_the_moment_of_the_callback(out_dir: Path) -> None:
    seen: dict[int, dict[str, Any]] = {}

    def job(hook: Any) -> nn.Module:
        return train_and_evaluate(hook, None if isinstance(hook, NoHook) else seen)

    trial = record(job, out_dir, save_all=True, save_config=SaveConfig(save_interval=2))
    for at in (0, 2):
        for name, value in seen[at]["weights"].items():
            assert_value(saved(trial, f"Net_{name}", at), value)
        for name, value in seen[at]["gradients"].items():
            assert_value(saved(trial, f"gradient/Net_{name}", at), value)
        assert_value(saved(trial, "Net_input_0", at), seen[at]["x"])
        assert_value(saved(trial, "CrossEntropyLoss_input_1", at), seen[at]["y"])
        # The module changed its input before the callback saw it; the layer before did not.
        np.testing.assert_array_equal(
            saved(trial, "relu_input_0", at), saved(trial, "relu_output_0", at)
        )
        assert (saved(trial, "fc1_output_0", at) < 0).any()
        assert (saved(trial, "relu_output_0", at) >= 0).all()


def test_by_default_only_losses_are_recorded(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model, loss = Small(), nn.MSELoss()
        hook.register_module(model)
        hook.register_loss(loss)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches(5):
            step(model, loss, optimizer, x, torch.zeros(5, 2))
            if isinstance(hook, Hook):
                # Root and loss; losses need no callbacks of modules or parameters.
                assert callbacks_of(model) == 1 and callbacks_of(loss) == 1
        return model

    trial = record(job, out_dir, save_config=EVERY_STEP)
    assert trial.tensor_names() == ["MSELoss_output_0"]
    assert trial.steps() == [0, 1, 2, 3, 4]
    assert trial.tensor_names(collection="losses") == ["MSELoss_output_0"]
    assert losses_of(out_dir) == ["MSELoss_output_0"]


def test_values_recorded_by_hand_count_up_within_a_step(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            hook.record_tensor_value("a_loss", loss)
            hook.record_tensor_value("a_loss", tensor_value=loss * 2)
            loss.backward()
            optimizer.step()
        return model

    trial = record(job, out_dir, save_config=EVERY_STEP)
    assert trial.tensor_names() == ["a_loss_output_0", "a_loss_output_1"]
    assert losses_of(out_dir) == ["a_loss_output_0", "a_loss_output_1"]
    np.testing.assert_array_equal(
        saved(trial, "a_loss_output_1", 1), 2 * saved(trial, "a_loss_output_0", 1)
    )


def test_a_value_recorded_before_the_first_forward_belongs_to_step_0(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    value = torch.ones(())
    hook.record_tensor_value("my_loss", value)
    value += 1  # a copy was kept
    train_small(hook)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor("my_loss_output_0").steps() == [0]
    assert saved(trial, "my_loss_output_0") == 1


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x))


def test_a_gradient_is_the_contribution_of_one_backward(out_dir: Path) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = Tied()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = iter(batches(4))
        for _ in range(2):
            optimizer.zero_grad()
            total = torch.zeros(3, 3)
            for _ in range(2):
                model(next(data)[0]).square().sum().backward()
                if isinstance(hook, Hook):
                    seen.append(model.a.weight.grad - total)
                total = model.a.weight.grad.clone()
            optimizer.step()
        return model

    trial = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.tensor_names(regex="weight") == ["Tied_a.weight", "gradient/Tied_a.weight"]
    assert trial.steps() == [0, 1, 2, 3]
    for at, gradient in enumerate(seen):
        np.testing.assert_allclose(
            saved(trial, "gradient/Tied_a.weight", at), gradient.numpy(), rtol=1e-5, atol=1e-6
        )


def test_each_forward_is_a_step_and_losses_belong_to_the_last(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model, loss = Small(), nn.MSELoss()
        hook.register_module(model)
        hook.register_loss(loss)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches(2):
            first, second = model(x), model(x * 2)
            optimizer.zero_grad()
            (loss(first, torch.zeros(5, 2)) + loss(second, torch.ones(5, 2))).backward()
            optimizer.step()
        return model

    trial = record(job, out_dir, save_config=EVERY_STEP)
    assert trial.tensor_names() == ["MSELoss_output_0", "MSELoss_output_1"]
    assert trial.steps() == [1, 3]
    assert losses_of(out_dir) == ["MSELoss_output_0", "MSELoss_output_1"]


class Activations(nn.Module):
    """Names of which one ends with the other."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.relu1 = nn.ReLU()
        self.prelu1 = nn.PReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.prelu1(self.relu1(self.fc(x)))


def test_tensors_of_a_module_are_exactly_its_own(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Activations()
        if isinstance(hook, Hook):  # the module is named before it is registered
            hook.get_collection("relus").add_module_tensors(model.relu1, inputs=True, outputs=True)
        return train_small(hook, model=model)

    trial = record(job, out_dir, include_collections=["relus"], save_config=EVERY_STEP)
    assert trial.tensor_names() == ["relu1_input_0", "relu1_output_0"]


def test_a_collection_made_by_hand_learns_names_when_it_is_added(out_dir: Path) -> None:
    model = Activations()
    own = Collection("own")
    own.add_module_tensors(model.prelu1)
    hook = Hook(out_dir, include_collections=["own"], save_config=EVERY_STEP)
    hook.register_module(model)
    hook.add_collection(own)
    assert own.include_regex == [r"^prelu1_output_\d+$"]
    hook.add_to_collection("own", model.fc)
    hook.add_to_collection("own", [model.fc.weight, "ct"])
    assert own.tensor_names == {"Activations_fc.weight", "ct"}
    with pytest.raises(SMDebugTypeError, match=r"torch.nn.Module"):
        own.add_module_tensors("relu1")
    with pytest.raises(SMDebugValueError, match="no parameter"):
        hook.add_to_collection("own", torch.ones(1))
    model(torch.ones(1, 3))
    hook.close()
    names = create_trial(str(out_dir)).tensor_names()
    assert names == ["Activations_fc.weight", "fc_output_0", "prelu1_output_0"]


def test_reductions_have_one_definition(out_dir: Path) -> None:
    config = ReductionConfig(["min", "std", "variance"], ["mean"], ["l1", "l2"])
    seen: dict[str, torch.Tensor] = {}

    def job(hook: Any) -> nn.Module:
        if isinstance(hook, Hook):
            hook.get_collection("weights").reduction_config = config
        torch.manual_seed(3)
        model, loss = Net(), nn.CrossEntropyLoss()
        seen.update({n: p.detach().clone() for n, p in model.named_parameters()})
        hook.register_loss(loss)
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(1):
            step(model, loss, optimizer, x, y)
        return model

    trial = record(job, out_dir, include_collections=["weights"], save_config=EVERY_STEP)
    tensor = trial.tensor("Net_fc1.weight")
    w = seen["fc1.weight"].double().numpy()
    expected = {
        ("min", False): w.min(),
        ("std", False): w.std(),
        ("variance", False): w.var(),
        ("mean", True): np.abs(w).mean(),
        ("l1", False): np.abs(w).sum(),
        ("l2", False): np.sqrt((w * w).sum()),
    }
    for (name, absolute), value in expected.items():
        assert tensor.reduction_value(0, name, abs=absolute) == pytest.approx(value, rel=1e-6)
    with pytest.raises(TensorUnavailableForStep):
        tensor.value(0)
    assert saved(trial, "CrossEntropyLoss_output_0").shape == ()


def test_tensors_and_scalars_saved_by_hand_keep_their_steps(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        for i, (x, _) in enumerate(batches(5)):
            y = model(x)
            hook.save_tensor("ct", [i])
            hook.save_tensor("grown", y, "brand_new")  # requires grad
            hook.save_scalar("sc", torch.tensor(float(i), requires_grad=True))
        return model

    trial = record(job, out_dir, save_config=SaveConfig(save_interval=2))
    assert {k: int(v[0]) for k, v in trial.tensor("ct").values().items()} == {0: 0, 2: 2, 4: 4}
    scalars = {k: float(v[0]) for k, v in trial.tensor("scalar/sc").values().items()}
    assert scalars == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
    assert recorded.names(out_dir, 1) == recorded.names(out_dir, 3) == ["scalar/sc"]
    assert trial.tensor_names(collection="brand_new") == ["grown"]
    assert trial.tensor("grown").steps() == [0, 2, 4]


# ---- modes and steps


def test_the_mode_follows_the_model_if_asked(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(3):
            step(model, nn.functional.cross_entropy, optimizer, x, y)
        model.eval()
        with torch.no_grad():
            for x, _ in batches(3):
                model(x)
        return model

    trial = record(
        job, out_dir, auto_mode=True, save_all=True, save_config=SaveConfig(save_interval=2)
    )
    assert trial.steps() == [0, 2, 3, 5]
    assert trial.steps(mode=modes.TRAIN) == trial.steps(mode=modes.EVAL) == [0, 2]


def test_a_mode_that_was_given_wins_until_the_model_changes(out_dir: Path) -> None:
    hook = Hook(out_dir, auto_mode=True)
    model = Small()
    hook.register_module(model)
    x = torch.ones(1, 3)
    found = []
    hook.set_mode(modes.PREDICT)
    for change in (None, None, model.eval, lambda: hook.set_mode(modes.PREDICT), None, model.train):
        if change is not None:
            change()
        model(x)
        found.append(hook.mode)
    hook.close()
    predict, evaluate = modes.PREDICT, modes.EVAL
    assert found == [predict, predict, evaluate, predict, predict, modes.TRAIN]


def test_steps_can_be_begun_by_hand(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            with hook.step():
                for part, label in ((x[:2], y[:2]), (x[2:], y[2:])):
                    nn.functional.cross_entropy(model(part), label).backward()
                optimizer.step()
                optimizer.zero_grad()
        return model

    trial = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0, 1]
    assert trial.tensor_names(regex="^a_") == [
        *("a_input_0", "a_input_1", "a_output_0", "a_output_1")
    ]


def test_a_step_can_last_until_the_optimizer_updates(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(batches(6)):
            nn.functional.cross_entropy(model(x), y).backward()
            if i % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            for x, _ in batches(2):
                model(x)
        return model

    trial = record(job, out_dir, step_on="optimizer", save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0, 1, 2, 3]  # two updates, two forwards without gradients
    assert trial.tensor_names(step=0, regex="^a_input") == ["a_input_0", "a_input_1", "a_input_2"]
    assert trial.tensor_names(step=3, regex="^a_input") == ["a_input_0"]


def test_a_resumed_job_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    config = tmp_path / "checkpoint.json"
    config.write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    saving = SaveConfig(
        save_interval=1000, start_step=1000, save_steps=[*range(10, 15), 40, 50, 60, 70, 80]
    )

    def train(hook: Any, count: int) -> None:
        model = Small()
        hook.register_module(model)
        hook.set_mode(modes.TRAIN)
        for x, _ in batches(count):
            model(x)
            if count == 40:
                torch.save(model.state_dict(), checkpoints / "model.pt")
        hook.close()

    train(Hook(tmp_path / "first", save_all=True, save_config=EVERY_STEP), 40)
    train(Hook(tmp_path / "second", save_all=True, save_config=saving), 50)
    assert create_trial(str(tmp_path / "first")).steps() == list(range(40))
    assert create_trial(str(tmp_path / "second")).steps() == [40, 50, 60, 70, 80]


# ---- registration


def test_what_cannot_be_registered_is_refused_and_training_goes_on(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    model, loss = Small(), nn.MSELoss()
    hook.register_module(model)
    hook.register_loss(loss)
    with pytest.raises(SMDebugValueError, match="registered already"):
        hook.register_module(model)
    with pytest.raises(SMDebugValueError, match="'a'"):
        hook.register_hook(nn.Sequential(model.a))
    with pytest.raises(SMDebugValueError, match="registered already"):
        hook.register_loss(loss)
    with pytest.raises(SMDebugTypeError, match=r"torch.nn.Module"):
        hook.register_loss(nn.functional.mse_loss)
    with pytest.raises(SMDebugTypeError, match=r"torch.nn.Module"):
        hook.register_module([model])
    with pytest.raises(SMDebugTypeError, match=r"torch.Tensor"):
        hook.record_tensor_value("x", 3)
    with pytest.raises(SMDebugValueError, match="not registered"):
        hook.unregister(Small())
    model(torch.ones(1, 3))
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0]
    with pytest.raises(SMDebugRuntimeError, match="finished job"):
        Hook(out_dir)


@pytest.mark.parametrize(
    "arguments", [{"step_on": "batch"}, {"gradient_source": "hook"}, {"include_workers": "some"}]
)
def test_wrong_arguments_are_refused(out_dir: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(SMDebugValueError):
        Hook(out_dir, **arguments)
    assert not out_dir.exists()


def test_an_empty_collection_is_an_error_of_the_first_step(out_dir: Path) -> None:
    hook = Hook(out_dir, include_collections=["mine"], save_config=EVERY_STEP)
    hook.get_collection("mine")
    model = Small()
    hook.register_module(model)
    with pytest.raises(InvalidCollectionConfiguration, match="mine"):
        model(torch.ones(1, 3))
    with pytest.raises(SMDebugRuntimeError, match="mine"):
        hook.close()


def test_any_module_can_be_a_loss(out_dir: Path) -> None:
    class Distance(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return (a - b).abs().sum()

    def job(hook: Any) -> nn.Module:
        model, loss = Small(), Distance()
        hook.register_module(model)
        hook.register_loss(loss)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches(2):
            step(model, loss, optimizer, x, torch.zeros(5, 2))
        return model

    trial = record(job, out_dir, save_config=EVERY_STEP)
    assert trial.tensor_names() == ["Distance_output_0"]
    assert losses_of(out_dir) == ["Distance_output_0"]
    assert trial.tensor("Distance_output_0").steps() == [0, 1]


def test_several_models_share_the_steps_of_the_first(out_dir: Path) -> None:
    def job(hook: Any) -> list[nn.Module]:
        generator, critic, third = Small(), Tied(), Small()
        for model in (generator, critic, third):
            hook.register_module(model)
        for x, _ in batches(2):
            generator(x).sum().backward()
            critic(x).sum().backward()
            third(x).sum().backward()
        return [generator, critic, third]

    trial = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0, 1]
    names = trial.tensor_names()
    assert {"Small_a.weight", "Tied_a.weight", "Small_1_a.weight", "Small_1_output_0"} <= set(names)
    assert {"gradient/Tied_a.weight", "gradient/Small_1_b.bias"} <= set(names)
    # Submodules have no prefix: equal paths of several models count up.
    assert {"a_input_0", "a_input_1", "a_input_2"} <= set(names)


def test_wrappers_can_be_left_out_of_names(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        return train_small(hook, model=nn.DataParallel(Small()))

    plain = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert "DataParallel_module.a.weight" in plain.tensor_names()
    assert {"module.a_input_0", "module_input_0", "DataParallel_input_0"} <= set(
        plain.tensor_names()
    )
    short = record(
        job, out_dir / "short", save_all=True, canonical_names=True, save_config=EVERY_STEP
    )
    assert short.tensor_names() == SMALL_NAMES


# ---- the hook of the process


def test_the_hook_of_the_process_is_made_from_json_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "LocalPath": str(tmp_path / "run"),
                "HookParameters": {"save_interval": 1},
                "CollectionConfigurations": [{"CollectionName": "weights"}],
            }
        )
    )
    assert get_hook() is None
    assert get_hook(str(tmp_path / "none.json"), create_if_not_exists=True) is None
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    hook = get_hook(create_if_not_exists=True)
    assert hook is get_hook() and isinstance(hook, Hook)
    train_small(hook)
    hook.close()
    assert create_trial(str(tmp_path / "run")).tensor_names() == [
        "Small_a.weight",
        "Small_b.weight",
    ]
    del_hook()
    assert get_hook() is None
    set_hook(hook)
    assert get_hook() is hook
    smdebug.Hook(tmp_path / "plain").close()
    assert get_hook() is None  # of another kind


def test_use_smdebug_switches_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_SMDEBUG", "0")
    Hook(tmp_path / "run").close()
    assert get_hook(create_if_not_exists=True) is None


def test_defaults_are_those_of_the_framework(out_dir: Path) -> None:
    hook = Hook(out_dir)
    assert hook.include_collections == ["losses"]
    assert hook.has_default_hook_configuration()
    assert list(hook.get_collections()) == [
        *("all", "default", "weights", "biases", "gradients", "losses")
    ]
    assert hook.get_collection("losses").include_regex == ["[Ll]oss_(?!input).*output"]
    assert isinstance(hook.get_collection("mine"), Collection)
    hook.close()


# ---- failures


def test_a_failure_of_ours_never_stops_training(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "0")
    monkeypatch.setattr(torch_tensors, "EXCHANGE_API", None)  # everything goes through Python
    broken = 0

    def fail(*args: Any) -> Any:
        nonlocal broken
        broken += 1
        raise KeyError("planted")

    def job(hook: Any) -> nn.Module:
        if isinstance(hook, Hook):
            hook._recorder.save = fail
        return train_small(hook, count=4)

    record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert broken > 4
    assert len(messages.containing("planted")) == 3  # beginning, forward, gradient: once each


def test_a_failure_while_reading_gradients_of_an_update_never_stops_training(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "0")

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("planted")

    monkeypatch.setattr(torch_optimizer, "Update", fail)
    trial = record(
        train_small, out_dir, gradient_source="optimizer", save_all=True, save_config=EVERY_STEP
    )
    assert trial.steps() == [0, 1, 2] and not trial.tensor_names(regex="^gradient")
    assert len(messages.containing("Reading gradients failed")) == 1


def test_a_nan_that_is_watched_starts_saving(out_dir: Path, messages: Messages) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        for i, (x, _) in enumerate(batches(5)):
            model(x * float("nan") if i == 2 else x).sum().backward()
        return model

    saving = SaveConfig(save_interval=100, start_step=100, when_nan=["a_output_0"])
    trial = record(job, out_dir, save_all=True, save_config=saving)
    assert trial.steps() == [2, 3]
    assert messages.containing("'a_output_0' holds a NaN at step 2")
    # Parameters at once, and what comes later in the step; the next step whole.
    assert {*SMALL_PARAMETERS, "b_output_0", "gradient/Small_b.weight"} <= set(
        trial.tensor_names(step=2)
    )
    assert set(SMALL_NAMES) <= set(trial.tensor_names(step=3))


def test_import_paths_of_old_scripts() -> None:
    from smdebug.pytorch import constants, utils

    assert Hook.default_collections == constants.DEFAULT_INCLUDE_COLLECTIONS
    x = torch.ones(2)
    assert [t is x for t in utils.tensors_in({"a": [x]})] == [True]
