"""The hook for PyTorch beside everything that programs do with their models."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import threading
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import recorded
import torch
from conftest import Messages
from smdebug import _core
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugRuntimeError
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial
from smdebug.pytorch import tensors as torch_tensors
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_training import (
    EVERY_STEP,
    SMALL_NAMES,
    Small,
    assert_value,
    batches,
    callbacks_of,
    record,
    saved,
    step,
    train_small,
)

ALL = {"save_all": True, "save_config": EVERY_STEP}

pytestmark = pytest.mark.usefixtures("strict")


# ---- values of every kind


def test_a_sparse_gradient_is_saved_as_a_dense_one(out_dir: Path) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = nn.Sequential(nn.Embedding(10, 3, sparse=True), nn.Linear(3, 2))
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for tokens in ([1, 2, 1], [4, 4, 9]):
            optimizer.zero_grad()
            model(torch.tensor(tokens)).square().sum().backward()
            if isinstance(hook, Hook):
                seen.append(model[0].weight.grad.to_dense())
            optimizer.step()
        return model

    trial = record(job, out_dir, **ALL)
    for at in (0, 1):
        assert_value(saved(trial, "gradient/Sequential_0.weight", at), seen[at])


def test_a_sparse_gradient_too_large_to_be_dense_is_saved_in_parts(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = nn.Sequential(nn.Embedding(1000, 3, sparse=True))
        hook.register_module(model)
        model(torch.tensor([5, 7, 5])).sum().backward()
        return model

    trial = record(job, out_dir, sparse_dense_limit=1000, **ALL)
    np.testing.assert_array_equal(saved(trial, "gradient/Sequential_0.weight/indices"), [[5, 7]])
    np.testing.assert_array_equal(
        saved(trial, "gradient/Sequential_0.weight/values"), [[2, 2, 2], [1, 1, 1]]
    )


def test_bfloat16_is_saved_exactly(out_dir: Path) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = Small().bfloat16()
        hook.register_module(model)
        seen.append(model.a.weight.detach().clone())
        model(torch.ones(2, 3, dtype=torch.bfloat16)).sum().backward()
        return model

    trial = record(job, out_dir, **ALL)
    value = saved(trial, "Small_a.weight")
    np.testing.assert_array_equal(value, seen[-1].float().numpy())
    np.testing.assert_array_equal(value, value.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert saved(trial, "gradient/Small_a.weight").shape == (4, 3)


def test_autocast_gives_small_activations_and_wide_gradients(out_dir: Path) -> None:
    kinds: dict[str, torch.dtype] = {}

    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for x, y in batches(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                output = model(x)
            kinds["output"] = output.dtype
            scaler.scale(nn.functional.cross_entropy(output.float(), y)).backward()
            if isinstance(hook, Hook) and "gradient" not in kinds:
                kinds["gradient"] = model.a.weight.grad.clone()
            scaler.step(optimizer)
            scaler.update()
        return model

    trial = record(job, out_dir, **ALL)
    assert kinds["output"] == torch.bfloat16
    value = saved(trial, "Small_output_0")
    np.testing.assert_array_equal(value, value.astype(ml_dtypes.bfloat16).astype(np.float32))
    # Still scaled, as backward gave it.
    assert_value(saved(trial, "gradient/Small_a.weight"), kinds["gradient"])


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...] | None = None


class Structured(nn.Module):
    """Takes keywords and gives a structure of its argument."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.fc = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, mask: Any = None, *, scale: Any = None) -> Any:
        y = self.fc(x)
        parts = [y.sum(), y, y + 1]
        if self.kind == "dict":
            return OrderedDict(loss=parts[0], logits=parts[1], hidden=[parts[2], None, "text"])
        if self.kind == "dataclass":
            return Output(parts[0], parts[1], (parts[2],))
        return parts[0], Pair(parts[1], parts[2])


@pytest.mark.parametrize("kind", ["dict", "dataclass", "tuple"])
def test_structures_and_keywords_are_walked_in_order(out_dir: Path, kind: str) -> None:
    def job(hook: Any) -> nn.Module:
        model = Structured(kind)
        hook.register_module(model)
        x = torch.ones(2, 3)
        # By keyword, in another order than that of the signature.
        output = model(scale=torch.full((1,), 3.0), mask=torch.zeros(4), x=x)
        first = output[0] if kind == "tuple" else next(torch_tensors.tensors_in(output))
        first.backward()
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.tensor_names(regex="^Structured_(in|out)put") == [
        *(f"Structured_input_{i}" for i in range(3)),
        *(f"Structured_output_{i}" for i in range(3)),
    ]
    assert [saved(trial, f"Structured_input_{i}").shape for i in range(3)] == [(2, 3), (4,), (1,)]
    assert [saved(trial, f"Structured_output_{i}").shape for i in range(3)] == [(), (2, 2), (2, 2)]
    losses = trial.tensor_names(collection="losses")
    assert losses == ([] if kind == "tuple" else ["Structured_output_0"])


class Views(nn.Module):
    """Gives views that exist only as a promise."""

    def forward(self, x: torch.Tensor) -> Any:
        z = torch.complex(x, 2 * x)
        return z.conj(), z.conj().imag, z.resolve_conj(), x.T[:, ::2], x.expand(2, *x.shape)


def test_conjugated_negated_and_strided_views_have_their_values(out_dir: Path) -> None:
    x = torch.arange(12.0).reshape(3, 4)

    def job(hook: Any) -> nn.Module:
        model = Views()
        hook.register_module(model)
        model(x)
        return model

    trial = record(job, out_dir, **ALL)
    for i, expected in enumerate(Views()(x)):
        assert_value(saved(trial, f"Views_output_{i}"), expected.resolve_conj().resolve_neg())


def test_tensors_of_vmap_are_dropped_and_counted(out_dir: Path, messages: Messages) -> None:
    dropped: dict[str, int] = {}

    def job(hook: Any) -> Any:
        model = Small()
        hook.register_module(model)
        result = torch.vmap(model)(torch.ones(6, 3))
        if isinstance(hook, Hook):
            dropped.update(hook.dropped_tensors)
        return [model, result]

    trial = record(job, out_dir, **ALL)
    assert "Small_input_0" in dropped and dropped["Small_input_0"] == 1
    assert len(messages.containing("'Small_input_0' cannot be saved")) == 1
    assert "Small_a.weight" in trial.tensor_names()


ODD = {
    "sparse_csr": lambda: torch.eye(3).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8),
    "meta": lambda: torch.ones(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors_are_saved_or_dropped_without_an_error(out_dir: Path, kind: str) -> None:
    hook = Hook(out_dir, **ALL)
    with hook.step():
        hook.save("odd", ODD[kind]())
        hook.save("fine", torch.ones(2))
        is_dropped = "odd" in hook.dropped_tensors
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.has_tensor("fine")
    assert is_dropped == (kind in ("meta", "nested"))
    assert trial.has_tensor("odd") != is_dropped
    if not is_dropped:
        dense = ODD[kind]()
        dense = dense.dequantize() if kind == "quantized" else dense.to_dense()
        assert_value(saved(trial, "odd"), dense)


# ---- reading memory: the exchange API and plain DLPack

DTYPES = [
    *(torch.float16, torch.float32, torch.float64, torch.bfloat16),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.complex128, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
]
LAYOUTS = {
    "plain": lambda t: t,
    "transposed": lambda t: t.T,
    "sliced": lambda t: t[1:, ::2],
    "expanded": lambda t: t[0].expand(3, t.shape[1]),
    "scalar": lambda t: t[1, 1],
    "empty": lambda t: t[:0],
}


def saved_through(out_dir: Path, exchange: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(torch_tensors, "EXCHANGE_API", exchange)
    hook = Hook(
        out_dir, reduction_config=ReductionConfig(save_raw_tensor=True, save_shape=True), **ALL
    )
    with hook.step():
        for dtype in DTYPES:
            base = torch.arange(20).reshape(4, 5).to(dtype)
            for layout, change in LAYOUTS.items():
                hook.save(f"{dtype}/{layout}", change(base))
        parameter = nn.Parameter(torch.ones(2, 2))
        hook.save("parameter", parameter)
        hook.save("graph", (parameter * 2).sum())
        assert hook.dropped_tensors == {}
    hook.close()
    trial = create_trial(str(out_dir))
    found = {}
    for dtype in DTYPES:
        for layout, change in LAYOUTS.items():
            tensor = trial.tensor(f"{dtype}/{layout}")
            expected = change(torch.arange(20).reshape(4, 5).to(dtype))
            assert tensor.shape(0) == tuple(expected.shape)
            if layout != "empty":
                found[tensor.name] = tensor.value(0)
                wide = expected.float() if expected.dtype in DTYPES[3:6] else expected
                np.testing.assert_array_equal(found[tensor.name], wide.numpy())
    assert saved(trial, "graph") == 8 and saved(trial, "parameter").shape == (2, 2)
    return found


def test_both_ways_to_read_memory_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torch_tensors.EXCHANGE_API is not None
    fast = saved_through(tmp_path / "fast", torch_tensors.EXCHANGE_API, monkeypatch)
    plain = saved_through(tmp_path / "plain", None, monkeypatch)
    assert len(fast) == len(DTYPES) * (len(LAYOUTS) - 1)
    for name, value in fast.items():
        assert value.dtype == plain[name].dtype and value.tobytes() == plain[name].tobytes()


@pytest.mark.parametrize("exchange", [True, False])
def test_tensors_without_memory_are_refused_without_a_crash(
    out_dir: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    if not exchange:
        monkeypatch.setattr(torch_tensors, "EXCHANGE_API", None)
    with FakeTensorMode():
        fake = torch.ones(3)
        fake_part = torch.ones(9)[3:6]
    released = torch.ones(3)
    released_part = torch.ones(9)[3:6]
    for tensor in (released, released_part):
        tensor.untyped_storage().resize_(0)
    hook = Hook(out_dir, **ALL)
    with hook.step():
        hook.save("fake", fake)
        hook.save("fake_part", fake_part)
        hook.save("released", released)
        hook.save("released_part", released_part)
        hook.save("lazy", nn.LazyLinear(3).weight)
        refused = {"fake", "fake_part", "released", "released_part"}
        assert set(hook.dropped_tensors) == refused
    hook.close()
    assert create_trial(str(out_dir)).tensor_names() == []


def test_lists_that_do_not_fit_and_wrong_tables_are_refused(out_dir: Path) -> None:
    hook = Hook(out_dir, **ALL)
    with hook.step():
        with pytest.raises(ValueError, match="2 names do not fit 1 tensors"):
            _core.save_all(hook._core, ["a", "b"], [torch.ones(1)])
        with pytest.raises(SMDebugNotImplementedError, match="PyCapsule"):
            _core.save_all(hook._core, ["a"], [torch.ones(1)], _core.Kind.automatic, "nothing")
    hook.close()


# ---- copies and files of models


def test_copies_and_files_of_a_model_are_without_the_hook(tmp_path: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(batches(3)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            # Inside a saved step: callbacks are attached.
            for twin in copies(model, tmp_path / f"{i}.pt"):
                nn.functional.cross_entropy(twin(x), y).backward()
            loss.backward()
            optimizer.step()
            copies(model, tmp_path / f"{i}-after.pt")[0](x)
        return model

    trial = record(job, tmp_path / "run", **ALL)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor_names() == SMALL_NAMES


def copies(model: nn.Module, path: Path) -> list[nn.Module]:
    torch.save(model, path)
    return [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(path, weights_only=False),
    ]


def test_a_copied_hook_is_inert(out_dir: Path) -> None:
    hook = Hook(out_dir, **ALL)
    twin = pickle.loads(pickle.dumps(hook))
    model = Small()
    twin.register_module(model)
    twin.save_tensor("a", torch.ones(1))
    twin.record_tensor_value("a", torch.ones(1))
    model(torch.ones(1, 3))
    twin.close()
    hook.close()
    with pytest.raises(SMDebugRuntimeError, match="closed"):
        hook.register_module(Small())
    assert create_trial(str(out_dir)).steps() == []


def test_nothing_is_kept_alive(out_dir: Path) -> None:
    hook = Hook(out_dir, gradient_source="optimizer", **ALL)
    model = train_small(hook)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    hook.close()
    unused = Hook(out_dir / "second", gradient_source="optimizer", step_on="optimizer")
    unused.register_module(Small())
    alive = weakref.ref(unused)
    import smdebug

    smdebug.del_hook()
    del unused
    gc.collect()
    assert alive() is None


# ---- unusual forwards


class Checkpointed(nn.Module):
    """Computes one part again in backward."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.a = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh())
        self.b = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(checkpoint(self.a, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_in_backward_is_not_saved_again(
    out_dir: Path, reentrant: bool
) -> None:
    def job(hook: Any) -> nn.Module:
        model = Checkpointed(reentrant)
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            step(model, nn.functional.cross_entropy, optimizer, x.requires_grad_(), y)
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == [0, 1]
    parts = ["a", "a.0", "a.1", "a.2", "a.3"]
    assert trial.tensor_names(regex=r"^a[._]") == sorted(
        f"{part}_{kind}_0" for part in parts for kind in ("input", "output")
    )
    assert trial.tensor("gradient/Checkpointed_a.0.weight").steps() == [0, 1]


class Failing(nn.Module):
    """Raises what it is told between its two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 2)
        self.error: type[BaseException] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        if self.error is not None:
            raise self.error("planted")
        return self.b(x)


def test_a_failed_forward_leaves_nothing_behind(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Failing()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        errors = [None, ValueError, KeyboardInterrupt, None, None]
        for (x, y), error in zip(batches(5), errors, strict=True):
            model.error = error
            try:
                step(model, nn.functional.cross_entropy, optimizer, x, y)
            except (ValueError, KeyboardInterrupt) as raised:
                assert "planted" in str(raised)
        hook.close()
        assert callbacks_of(model) == 0
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == [0, 1, 2, 3, 4]
    names = trial.tensor_names()
    assert not [name for name in names if name.endswith("_1")]
    for at in (1, 2):
        found = trial.tensor_names(step=at)
        assert "a_output_0" in found and "b_output_0" not in found
        assert not [name for name in found if name.startswith("gradient")]
    assert trial.tensor("b_output_0").steps() == [0, 3, 4]
    assert trial.tensor("gradient/Failing_a.weight").steps() == [0, 3, 4]


class Growing(nn.Module):
    """A lazy layer, a frozen one, and one that gets a parameter later."""

    def __init__(self) -> None:
        super().__init__()
        self.lazy = nn.LazyLinear(4)
        self.frozen = nn.Linear(4, 2).requires_grad_(False)
        self.adapter: nn.Parameter | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.frozen(self.lazy(x))
        return y if self.adapter is None else y * self.adapter


def test_parameters_may_come_and_thaw_during_training(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        torch.manual_seed(1)
        model = Growing()
        hook.register_module(model)
        for i, (x, y) in enumerate(batches(5)):
            if i == 2:
                model.frozen.requires_grad_(True)
            if i == 3:
                model.adapter = nn.Parameter(torch.ones(2))
            nn.functional.cross_entropy(model(x), y).backward()
        return model

    trial = record(job, out_dir, **ALL)
    steps = {name: trial.tensor(name).steps() for name in trial.tensor_names(regex="^gradient")}
    assert steps == {
        "gradient/Growing_lazy.weight": [0, 1, 2, 3, 4],
        "gradient/Growing_lazy.bias": [0, 1, 2, 3, 4],
        "gradient/Growing_frozen.weight": [2, 3, 4],
        "gradient/Growing_frozen.bias": [2, 3, 4],
        "gradient/Growing_adapter": [3, 4],
    }
    assert trial.tensor("Growing_lazy.weight").steps() == [1, 2, 3, 4]  # no value before forward
    assert trial.tensor("Growing_adapter").steps() == [3, 4]


def test_gradients_of_lazy_parameters_alone_are_seen_from_the_start(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        torch.manual_seed(1)
        model = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
        hook.register_module(model)
        for x, y in batches(2):
            nn.functional.cross_entropy(model(x), y).backward()
        return model

    trial = record(job, out_dir, include_collections=["gradients"], save_config=EVERY_STEP)
    assert trial.tensor("gradient/Sequential_0.weight").steps() == [0, 1]
    assert not [name for name in trial.tensor_names() if not name.startswith("gradient")]


def test_tools_that_look_at_a_model_do_not_count_as_steps(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        x = torch.ones(2, 3)
        model(x).sum().backward()  # step 0
        torch.export.export(model, (x,))
        torch.jit.trace(model, (x,), check_trace=False)
        weights = dict(model.named_parameters())
        changed = {name: value.detach() * 2 for name, value in weights.items()}
        torch.func.functional_call(model, changed, (x,))  # step 1
        torch.autograd.grad(model(x).sum(), list(weights.values()))  # step 2
        torch.func.grad(lambda p: torch.func.functional_call(model, p, (x,)).sum())(changed)  # 3
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor("gradient/Small_a.weight").steps() == [0, 2]
    np.testing.assert_array_equal(
        saved(trial, "Small_a.weight", 1), 2 * saved(trial, "Small_a.weight", 0)
    )


def test_a_model_can_be_scripted_after_it_is_unregistered(out_dir: Path) -> None:
    hook = Hook(out_dir, **ALL)
    model = Small()
    hook.register_module(model)
    model(torch.ones(1, 3))
    hook.unregister(model)
    assert callbacks_of(model) == 0
    torch.jit.script(model)(torch.ones(1, 3))
    hook.register_module(model)  # again
    model(torch.ones(1, 3))
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 1]


def test_of_a_scripted_model_parameters_and_gradients_are_seen(
    out_dir: Path, messages: Messages
) -> None:
    def job(hook: Any) -> nn.Module:
        model = torch.jit.script(Small())
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            with hook.step():
                step(model, nn.functional.cross_entropy, optimizer, x, y)
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == [0, 1]
    prefix = "RecursiveScriptModule_"
    assert trial.tensor_names() == sorted(
        f"{start}{prefix}{path}"
        for start in ("", "gradient/")
        for path in ("a.weight", "a.bias", "b.weight", "b.bias")
    )
    assert messages.containing("TorchScript module")


def test_of_a_traced_model_the_root_is_seen(out_dir: Path) -> None:
    model = torch.jit.trace(Small(), (torch.ones(1, 3),))
    hook = Hook(out_dir, **ALL)
    hook.register_module(model)
    model(torch.ones(1, 3)).sum().backward()
    model(torch.ones(1, 3)).sum().backward()
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1]
    names = trial.tensor_names()
    assert len([n for n in names if n.startswith("gradient/")]) == 4
    assert len([n for n in names if n.endswith("_output_0")]) == 1


def test_callbacks_that_the_program_removes_are_missed_and_nothing_else(out_dir: Path) -> None:
    hook = Hook(out_dir, **ALL)
    model = Small()
    hook.register_module(model)
    model(torch.ones(1, 3)).sum().backward()
    model.a._forward_hooks.clear()
    model.b.weight._backward_hooks.clear()
    model(torch.ones(1, 3)).sum().backward()
    model._forward_pre_hooks.clear()
    model(torch.ones(1, 3)).sum().backward()
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 1]


def test_backward_hooks_of_the_program_run_as_before(out_dir: Path) -> None:
    def job(hook: Any) -> list[torch.Tensor]:
        calls: list[torch.Tensor] = []
        model = Small()
        model.a.register_full_backward_hook(lambda m, gi, go: calls.append(go[0].clone()))
        model.a.weight.register_hook(lambda g: g * 2)
        hook.register_module(model)
        for x, y in batches(2):
            nn.functional.cross_entropy(model(x), y).backward()
        return [*calls, model.a.weight.grad]

    trial = record(job, out_dir, **ALL)
    assert trial.tensor("gradient/Small_a.weight").steps() == [0, 1]


# ---- optimizers


def test_gradients_can_be_those_that_the_optimizer_sees(out_dir: Path) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            if isinstance(hook, Hook):
                seen.append(model.a.weight.grad.clone())
            optimizer.step()
        return model

    trial = record(job, out_dir, gradient_source="optimizer", **ALL)
    for at in (0, 1):
        assert_value(saved(trial, "gradient/Small_a.weight", at), seen[at])


@pytest.mark.parametrize("fused", [False, True])
def test_scaled_gradients_are_unscaled_for_the_optimizer(out_dir: Path, fused: bool) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.Adam(model.parameters(), fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for i, (x, y) in enumerate(batches(3)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            if i == 1:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            if isinstance(hook, Hook):
                seen.append(model.a.weight.grad / scaler.get_scale())
            scaler.step(optimizer)
            scaler.update()
        return model

    trial = record(job, out_dir, gradient_source="optimizer", **ALL)
    assert trial.tensor("gradient/Small_a.weight").steps() == [0, 2]  # the update was skipped
    for at in (0, 2):
        np.testing.assert_allclose(
            saved(trial, "gradient/Small_a.weight", at), seen[at].numpy(), rtol=1e-6
        )


def test_with_a_closure_gradients_are_those_of_the_update(out_dir: Path) -> None:
    seen: list[torch.Tensor] = []

    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
        for x, y in batches(2):

            def closure(x: Any = x, y: Any = y) -> torch.Tensor:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
            if isinstance(hook, Hook):
                seen.append(model.a.weight.grad.clone())
        return model

    trial = record(job, out_dir, gradient_source="optimizer", **ALL)
    steps = trial.tensor("gradient/Small_a.weight").steps()
    assert len(steps) == 2 and steps[-1] == trial.steps()[-1]
    for at, expected in zip(steps, seen, strict=True):
        assert_value(saved(trial, "gradient/Small_a.weight", at), expected)


# ---- threads and processes


class Threaded(nn.Module):
    """Runs replicas of its model in threads, as DataParallel does."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        replicas = []
        for _ in range(4):
            replica = copy.copy(self.module)
            replica.__dict__ = dict(self.module.__dict__)
            replica._is_replica = True
            replicas.append(replica)
        outputs: list[Any] = [None] * 4
        parts = x.chunk(4)

        def run(i: int) -> None:
            outputs[i] = replicas[i](parts[i])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return torch.cat(outputs)


def test_replicas_in_threads_count_up(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Threaded()
        hook.register_module(model)
        for x, _ in batches(20, size=400, width=64):
            model(x).sum().backward()
        return model

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == list(range(20))
    names = [f"module.0_output_{i}" for i in range(4)]
    assert trial.tensor_names(regex=r"^module\.0_output") == names
    for name in names:
        assert trial.tensor(name).steps() == list(range(20))
        assert saved(trial, name, 19).shape == (100, 64)


class Echo(nn.Module):
    """Works on every device, with and without memory."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def test_replicas_of_a_registered_model_share_a_step(out_dir: Path) -> None:
    hook = Hook(out_dir, **ALL)
    model = Echo()
    hook.register_module(model)
    for i in range(3):
        # As DataParallel does: new replicas for each forward, one per device, in any order.
        devices = ["cpu", "meta"] if i % 2 else ["meta", "cpu"]
        for device in devices:
            replica = model._replicate_for_data_parallel()
            replica(torch.ones(2, device=device))
    copied = copy.copy(model)  # shares the callbacks, but is no replica
    copied(torch.ones(2))
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 1, 2]


class Data(torch.utils.data.Dataset[torch.Tensor]):
    """Uses the model in the processes of the loader."""

    def __init__(self, model: nn.Module, hook: Any) -> None:
        self.model, self.hook = model, hook

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        with torch.no_grad():
            self.model(torch.ones(1, 3))
            self.hook.save_tensor("in_child", torch.ones(1))
            self.hook.save_scalar("in_child", 1.0)
        return torch.full((3,), float(index))


def test_the_hook_is_inert_in_processes_of_data_loaders(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        torch.set_num_threads(1)
        model = Small()
        hook.register_module(model)
        if isinstance(hook, Hook):
            model(torch.ones(2, 3)).sum().backward()
        loader = torch.utils.data.DataLoader(
            Data(model, hook), batch_size=2, num_workers=2, multiprocessing_context="fork"
        )
        for x in loader:
            with torch.no_grad():
                model(x)
        return model.state_dict()

    trial = record(job, out_dir, **ALL)
    assert trial.steps() == [0, 1, 2]
    assert "in_child" not in trial.tensor_names()
    assert not trial.has_tensor("scalar/in_child")


RIVAL = """
import sys, torch
from smdebug.pytorch import Hook, SaveConfig
hook = Hook(sys.argv[1], save_all=True, save_config=SaveConfig(save_interval=1))
model = torch.nn.Linear(3, 2)
hook.register_module(model)
for _ in range(3):
    model(torch.ones(1, 3)).sum().backward()
print("trained", flush=True)
sys.stdin.readline()
hook.close()
"""


def test_of_two_processes_with_one_directory_one_records(out_dir: Path) -> None:
    first = recorded.start(RIVAL, out_dir, SMDEBUG_STRICT="0")
    assert first.stdout is not None and first.stdin is not None
    lines = [first.stdout.readline()]
    second = recorded.start(RIVAL, out_dir, SMDEBUG_STRICT="0")
    out, err = second.communicate("\n", timeout=60)
    assert second.returncode == 0 and "trained" in out
    # While training, when closing, or both.
    assert (out + err).count("Another process") in (1, 2), out + err
    out, err = first.communicate("\n", timeout=60)
    assert first.returncode == 0 and "ERROR" not in "".join(lines) + out + err
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1, 2]
    assert len(trial.tensor_names()) == 6


# ---- what a step costs


def test_a_step_that_saves_nothing_attaches_nothing(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=SaveConfig(save_interval=3))
    model = Small()
    hook.register_module(model)
    counts = []
    for x, y in batches(6):
        nn.functional.cross_entropy(model(x), y).backward()
        counts.append(callbacks_of(model))
    hook.close()
    idle, busy = 1, 1 + 3 + 4  # the root; modules and parameters
    assert counts == [busy, idle, idle, busy, idle, idle]
    assert callbacks_of(model) == 0


def test_callbacks_are_attached_only_where_a_collection_can_match(out_dir: Path) -> None:
    hook = Hook(out_dir, include_regex="^b_output_1$|gradient/Small_a.bias", save_config=EVERY_STEP)
    model = Small()
    hook.register_module(model)
    model(torch.ones(1, 3)).sum().backward()
    assert len(model.b._forward_hooks) == 1 and len(model.a._forward_hooks) == 0
    assert model.a.bias._backward_hooks and not model.a.weight._backward_hooks
    model.b(torch.ones(1, 4))
    hook.close()
    names = create_trial(str(out_dir)).tensor_names()
    assert names == ["b_output_1", "gradient/Small_a.bias"]
