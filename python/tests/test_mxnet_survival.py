"""Odd models and odd programs of MXNet: what the hook must survive."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from conftest import Messages
from mxnet import autograd, gluon, nd, npx
from mxnet.gluon import nn
from mxnet_training import (
    EVERY_STEP,
    callbacks_of,
    parameters_of,
    record,
    rows,
    small,
    step,
    train,
    trainer_of,
    value,
)
from smdebug.mxnet import Hook, SaveConfig, create_trial, modes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Failures of ours are failures of the test, unless it is about them."""
    if "lenient" not in request.fixturenames:
        monkeypatch.setenv("SMDEBUG_STRICT", "1")


@pytest.fixture
def lenient() -> None:
    """Failures of ours do what they do in a real job."""


def test_gradients_that_are_added_up_grow_and_frozen_parameters_have_none(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = nn.Dense(1, in_units=2, use_bias=True)
        net.initialize(mx.init.One())
        net.weight.grad_req = "add"
        net.bias.grad_req = "null"
        hook.register_block(net)
        for _ in range(3):
            with autograd.record():
                output = net(nd.ones((1, 2)))
            output.backward()
        return parameters_of(net)

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert "gradient/dense0_bias" not in trial.tensor_names()
    for at in range(3):
        np.testing.assert_array_equal(value(trial, "gradient/dense0_weight", at), [[at + 1] * 2])


def test_statistics_of_batch_normalisation_have_no_gradient(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = nn.HybridSequential()
        net.add(nn.Dense(4, in_units=3), nn.BatchNorm(), nn.Dense(2))
        net.initialize()
        return train(hook, net, rows(3))

    trial, seen = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    names = trial.tensor_names(regex="batchnorm0")
    assert {"batchnorm0_running_mean", "batchnorm0_running_var", "batchnorm0_gamma"} <= set(names)
    assert {n for n in names if n.startswith("gradient/")} == {
        "gradient/batchnorm0_gamma",
        "gradient/batchnorm0_beta",
    }
    np.testing.assert_array_equal(
        value(trial, "batchnorm0_running_mean", 1), seen[1][0]["batchnorm0_running_mean"]
    )


def test_sparse_gradients_are_saved_dense(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = nn.HybridSequential()
        net.add(nn.Embedding(6, 2, sparse_grad=True), nn.Dense(2, in_units=4))
        net.initialize()
        hook.register_block(net)
        trainer = trainer_of(net)
        for _ in range(2):
            with autograd.record():
                error = net(nd.array([[1, 4]])).sum()
            error.backward()
            trainer.step(1)
        return parameters_of(net)

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    gradient = value(trial, "gradient/embedding0_weight")
    assert gradient.shape == (6, 2)
    assert (gradient[[0, 2, 3, 5]] == 0).all() and (gradient[[1, 4]] != 0).all()


class Scale(nn.HybridBlock):
    """Multiplies; dense layers have no half precision on CPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.params.get("weight", shape=(3,), dtype="float16")

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.broadcast_mul(x, weight.reshape((1, 3)))


def test_small_floats_are_saved(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = Scale()
        net.initialize(mx.init.One())
        hook.register_block(net)
        trainer = trainer_of(net)
        for x, _ in rows(2):
            with autograd.record():
                error = net(x.astype("float16")).sum()
            error.backward()
            trainer.step(5)
        return parameters_of(net)

    trial, after = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    for name in ("scale0_weight", "gradient/scale0_weight", "scale0_output_0"):
        assert value(trial, name, 1).dtype == np.float16
    np.testing.assert_array_equal(value(trial, "scale0_weight", 1), after["scale0_weight"])


def test_bfloat16_is_saved_as_float32(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["default"])
    with hook.step():
        bits = np.dtype([("bfloat16", np.uint16)])
        hook.save_tensor("small", nd.array([1.5, -2]).astype(bits))
    hook.close()
    found = value(create_trial(str(out_dir)), "small")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1.5, -2])


def test_arrays_with_the_semantics_of_numpy_are_saved(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        npx.set_np()
        try:
            net = nn.Dense(2, in_units=3)
            net.initialize()
            loss = gluon.loss.L2Loss()
            hook.register_block(net)
            hook.register_block(loss)
            trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            for x, _ in rows(2):
                data = x.as_np_ndarray()
                with autograd.record():
                    error = loss(net(data), mx.np.ones((5, 2)))
                error.backward()
                trainer.step(5)
            hook.save_tensor("scalar", mx.np.array(2.5))
            return parameters_of(net)
        finally:
            npx.reset_np()

    trial, after = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert {"dense0_input_0", "dense0_output_0", "l2loss0_output_0"} <= set(trial.tensor_names())
    np.testing.assert_array_equal(value(trial, "dense0_weight", 1), after["dense0_weight"])
    assert value(trial, "scalar", 1).shape == ()


@pytest.mark.parametrize("hybrid", [False, True])
def test_copies_of_a_net_and_its_files_record_nothing(
    out_dir: Path, tmp_path: Path, hybrid: bool
) -> None:
    def job(hook: Any) -> Any:
        net = small()
        hook.register_block(net)
        trainer = trainer_of(net)
        if hybrid:
            net.hybridize()
        for x, y in rows(3):
            step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, x, y)
            net.save_parameters(str(tmp_path / "net.params"))
            net(mx.sym.var("data"))
            if hybrid:
                net.export(str(tmp_path / "net"))
            else:
                copy.deepcopy(net)(x).wait_to_read()
        return parameters_of(net)

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor_names(regex="_1$") == []


def test_a_hook_can_be_pickled_with_what_holds_it(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    other = pickle.loads(pickle.dumps(hook))
    net = small()
    other.register_block(net)
    net(nd.ones((1, 3)))
    assert callbacks_of(net) == 0
    hook.close()


def test_a_registered_net_can_be_pickled_as_before(out_dir: Path) -> None:
    net = small()
    x = nd.ones((1, 3))
    expected = net(x).asnumpy()
    pickle.dumps(net)
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    hook.register_block(net)
    net(x)
    other = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(other(x).asnumpy(), expected)
    assert int(hook.step) == 0
    hook.close()


def test_a_block_inside_a_net_that_is_traced_is_no_step(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        inner = small()
        hook.register_block(inner)
        outer = nn.HybridSequential()
        outer.add(inner)
        outer.hybridize()
        for x, _ in rows(2):
            outer(x).wait_to_read()
        inner.hybridize(False)
        return inner(nd.ones((1, 3))).asnumpy()

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0]
    assert value(trial, "hybridsequential0_input_0").shape == (1, 3)


def test_parameters_that_share_a_name_get_names_of_their_own(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        nets = [nn.Dense(1, in_units=2, prefix="same_") for _ in range(2)]
        nets.append(nn.Dense(1, in_units=2, prefix=""))
        for i, net in enumerate(nets):
            net.initialize(mx.init.Constant(i))
            hook.register_block(net)
        for net in nets:
            net(nd.ones((1, 2))).wait_to_read()
        return [parameters_of(net) for net in nets]

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.tensor_names(regex="weight") == ["same_weight", "same_weight_1", "weight"]
    np.testing.assert_array_equal(value(trial, "same_weight_1"), [[1, 1]])
    assert trial.tensor_names(regex="output") == [
        "dense_output_0",
        "same_output_0",
        "same_output_1",
    ]


def test_structures_of_arrays_are_looked_into(out_dir: Path) -> None:
    class Pair(nn.Block):
        def forward(self, pair: Any, more: Any) -> Any:
            return {"sum": pair[0] + pair[1], "rest": [more["x"], None, "text"]}

    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    net = Pair(prefix="pair_")
    hook.register_block(net)
    net((nd.ones(2), nd.zeros(2)), {"x": nd.arange(3)})
    hook.close()
    trial = create_trial(str(out_dir))
    names = [f"pair_input_{i}" for i in range(3)] + ["pair_output_0", "pair_output_1"]
    assert trial.tensor_names() == names
    np.testing.assert_array_equal(value(trial, "pair_output_1"), [0, 1, 2])


def test_parameters_without_a_value_are_left_out_with_one_message(
    out_dir: Path, messages: Messages
) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3))
    unused = nn.Dense(2)  # its shape is never known
    net.initialize()
    unused.initialize()
    net.register_child(unused, "unused")
    net.forward = lambda x: net[0](x)
    hook = Hook(out_dir, include_collections=["weights"], save_config=EVERY_STEP)
    hook.register_block(net)
    for x, _ in rows(3):
        net(x)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor_names() == [net[0].weight.name]
    assert len(messages.containing(f"'{unused.weight.name}' cannot be saved")) == 1
    assert hook.dropped_tensors == {unused.weight.name: 3}


def test_a_failure_of_ours_does_not_reach_the_training(
    out_dir: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, lenient: None
) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)

    def broken(*args: Any) -> None:
        raise ZeroDivisionError("ours")

    net = small()
    hook.register_block(net)
    monkeypatch.setattr(hook._recorder, "save", broken)
    for x, _ in rows(3):
        net(x)
    hook.close()
    assert len(messages.containing("training goes on. ZeroDivisionError: ours")) == 3


def test_a_failure_of_the_program_reaches_the_program(out_dir: Path, lenient: None) -> None:
    class Broken(nn.Block):
        def forward(self, x: Any) -> Any:
            return nd.random.normal(loc=0, scale=-1, shape=(2, 2))  # fails when it is computed

    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    net = Broken()
    hook.register_block(net)
    with pytest.raises(mx.MXNetError):
        net(nd.ones(1)).wait_to_read()
    hook.close()


def test_a_nan_that_is_waited_for_makes_the_step_a_saved_one(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net, loss = small(), gluon.loss.L2Loss()
        hook.register_block(net)
        hook.register_block(loss)
        for i, (x, _) in enumerate(rows(4)):
            loss(net(x), nd.ones((5, 2)) * (np.nan if i == 2 else 1)).wait_to_read()
        return parameters_of(net)

    trial, _ = record(
        job,
        out_dir,
        include_collections=["weights"],
        save_config=SaveConfig(
            save_interval=1000, start_step=1000, save_steps=[], when_nan=["l2loss0_output_0"]
        ),
    )
    assert trial.tensor("dense0_weight").steps() == [2, 3]  # from the NaN on


def test_modes_that_the_program_chooses_hold_against_the_automatic_one(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = small()
        hook.register_block(net)
        hook.set_mode(modes.PREDICT)
        for x, _ in rows(2):
            net(x).wait_to_read()
        with autograd.train_mode():
            net(nd.ones((1, 3))).wait_to_read()
        return parameters_of(net)

    trial, _ = record(job, out_dir, save_all=True, save_config=EVERY_STEP, auto_mode=True)
    assert trial.steps(mode=modes.PREDICT) == [0, 1]
    assert trial.steps(mode=modes.TRAIN) == [0]


def in_process(code: str, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **variables}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_adapter_does_not_import_mxnet(out_dir: Path) -> None:
    code = """
import sys
import smdebug.mxnet as smd
hook = smd.Hook(sys.argv[1])
hook.register_block("no block")
hook.save_scalar("x", 1)
hook.close()
assert "mxnet" not in sys.modules
"""
    done = in_process(code, str(out_dir), SMDEBUG_STRICT="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["smdebug", "mxnet"])
def test_the_last_step_is_whole_without_close(out_dir: Path, first: str) -> None:
    code = """
import sys
if sys.argv[2] == "smdebug":
    import smdebug.mxnet as smd
import mxnet as mx
import smdebug.mxnet as smd
hook = smd.Hook(sys.argv[1], save_all=True, save_config=smd.SaveConfig(save_interval=1))
net = mx.gluon.nn.Dense(2, in_units=3)
net.initialize(mx.init.One())
hook.register_block(net)
for _ in range(2):
    net(mx.nd.ones((1, 3)))
"""
    done = in_process(code, str(out_dir), first, SMDEBUG_STRICT="1")
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(out_dir))
    assert trial.tensor("dense0_weight").steps() == [0, 1]
    np.testing.assert_array_equal(value(trial, "dense0_weight", 1), np.ones((2, 3)))


def test_a_forked_child_records_nothing(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    net = small()
    hook.register_block(net)
    x = nd.ones((1, 3))
    net(x).wait_to_read()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            net(nd.ones((1, 3))).wait_to_read()
            status = 0 if int(hook.step) == 0 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    net(x).wait_to_read()
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 1]
