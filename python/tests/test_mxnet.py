"""The hook for MXNet Gluon, with the real framework: what is recorded, when, and under which name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from conftest import Messages
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet_training import (
    EVERY_STEP,
    LENET_NAMES,
    LENET_PARAMETERS,
    callbacks_of,
    images,
    lenet,
    only,
    parameters_of,
    record,
    rows,
    run,
    small,
    step,
    train,
    trainer_of,
    value,
)
from smdebug.mxnet import (
    Hook,
    ReductionConfig,
    SaveConfig,
    SaveConfigMode,
    create_trial,
    get_hook,
    modes,
)

pytestmark = pytest.mark.usefixtures("strict")


def test_everything_of_a_net_with_deferred_initialisation(out_dir: Path) -> None:
    trial, seen = record(
        lambda hook: train(hook, lenet(), images(4)),
        out_dir,
        save_all=True,
        save_config=EVERY_STEP,
    )
    assert trial.tensor_names() == LENET_NAMES
    assert len(LENET_NAMES) == 46
    assert trial.steps() == [0, 1, 2, 3]
    for name in LENET_NAMES:
        assert trial.tensor(name).steps() == [0, 1, 2, 3], name
    for at, (x, _) in enumerate(images(4)):
        np.testing.assert_array_equal(value(trial, "hybridsequential0_input_0", at), x.asnumpy())
        for name in LENET_PARAMETERS:
            np.testing.assert_array_equal(value(trial, name, at), seen[at][0][name])
    assert trial.tensor_names(collection="weights") == sorted(
        n for n in LENET_PARAMETERS if "weight" in n
    )
    assert len(trial.tensor_names(collection="gradients")) == 10


def test_without_a_configuration_only_the_loss_is_saved(out_dir: Path) -> None:
    trial, seen = record(
        lambda hook: train(hook, lenet(), images(3), register_loss=True),
        out_dir,
        save_config=EVERY_STEP,
    )
    (name,) = trial.tensor_names()
    assert name == "softmaxcrossentropyloss0_output_0"
    assert trial.tensor_names(collection="losses") == [name]
    for at in range(3):
        np.testing.assert_array_equal(value(trial, name, at), seen[at][1])
        assert value(trial, name, at).shape == (4,)


def alternate(hook: Any, choose: bool) -> Any:
    """Three steps of training, each followed by one of evaluation."""
    net, loss = small(), gluon.loss.SoftmaxCrossEntropyLoss()
    hook.register_block(net)
    trainer = trainer_of(net)
    for x, y in rows(3):
        if choose:
            hook.set_mode(modes.TRAIN)
        step(net, loss, trainer, x, y)
        if choose:
            hook.set_mode(modes.EVAL)
        net(x).wait_to_read()
    return parameters_of(net)


@pytest.mark.parametrize("automatic", [False, True])
def test_gradients_are_saved_in_training_only(out_dir: Path, automatic: bool) -> None:
    trial, _ = record(
        lambda hook: alternate(hook, choose=not automatic),
        out_dir,
        include_collections=["weights", "gradients"],
        save_config=EVERY_STEP,
        auto_mode=automatic,
    )
    weights = trial.tensor("dense0_weight")
    gradient = trial.tensor("gradient/dense0_weight")
    assert trial.steps() == [0, 1, 2, 3, 4, 5]
    assert weights.steps(mode=modes.TRAIN) == weights.steps(mode=modes.EVAL) == [0, 1, 2]
    assert gradient.steps(mode=modes.TRAIN) == [0, 1, 2]
    assert gradient.steps(mode=modes.EVAL) == []
    np.testing.assert_array_equal(
        weights.value(1, mode=modes.TRAIN), weights.value(1, mode=modes.EVAL)
    )


def test_a_forward_that_is_not_recorded_has_no_gradients_even_if_all_is_saved(
    out_dir: Path,
) -> None:
    trial, _ = record(
        lambda hook: alternate(hook, choose=False), out_dir, save_all=True, save_config=EVERY_STEP
    )
    assert trial.tensor("gradient/dense1_bias").steps() == [0, 2, 4]
    assert trial.tensor("dense1_bias").steps() == [0, 1, 2, 3, 4, 5]


def test_steps_of_modes_are_chosen_by_the_save_config(out_dir: Path) -> None:
    config = SaveConfig(
        {modes.TRAIN: SaveConfigMode(save_interval=2), modes.EVAL: SaveConfigMode(save_interval=3)}
    )
    trial, _ = record(
        lambda hook: alternate(hook, choose=True),
        out_dir,
        include_collections=["weights"],
        save_config=config,
    )
    assert trial.steps(mode=modes.TRAIN) == [0, 2]
    assert trial.steps(mode=modes.EVAL) == [0]


def test_weights_are_those_after_the_update_and_gradients_those_before_it(out_dir: Path) -> None:
    gradients: list[np.ndarray] = []

    def job(hook: Any) -> Any:
        gradients.clear()
        net, loss = small(), gluon.loss.L2Loss()
        hook.register_block(net)
        trainer = trainer_of(net)
        seen = []
        for x, _ in rows(3):
            with autograd.record():
                error = loss(net(x), nd.ones((5, 2)))
            error.backward()
            gradients.append(net[0].weight.grad().asnumpy())
            trainer.step(5)
            seen.append(parameters_of(net))
        return seen

    trial, seen = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    for at in range(3):
        np.testing.assert_array_equal(value(trial, "dense0_weight", at), seen[at]["dense0_weight"])
        np.testing.assert_array_equal(value(trial, "gradient/dense0_weight", at), gradients[at])


def test_collections_have_patterns_steps_and_reductions_of_their_own(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        if isinstance(hook, Hook):
            relu = hook.get_collection("ReluActivation")
            relu.include(["relu*", "input_*"])
            relu.save_config = only(4, 5, 6)
            relu.reduction_config = ReductionConfig(reductions=["min"], abs_reductions=["max"])
        return train(hook, lenet(), images(9))

    trial, _ = record(
        job,
        out_dir,
        save_config=only(0, 1, 2, 3),
        include_collections=["ReluActivation", "weights", "biases", "gradients", "default"],
        include_regex=["dense2_output"],
    )
    assert trial.steps() == [0, 1, 2, 3, 4, 5, 6]
    assert trial.tensor("conv0_relu_input_0").steps() == [4, 5, 6]
    assert trial.tensor("conv0_weight").steps() == [0, 1, 2, 3]
    assert trial.tensor("dense2_output_0").steps() == [0, 1, 2, 3]
    relu = trial.tensor("conv1_relu_input_0")
    assert set(relu.reduction_values(5)) == {("min", False), ("max", True)}
    assert relu.reduction_value(5, "min") < 0 < relu.reduction_value(5, "max", abs=True)


@pytest.mark.parametrize("first", ["hybridize", "register"])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.filterwarnings("ignore:.*is being hybridized while still having forward hook")
def test_a_hybridised_net_shows_its_outside_at_every_step(
    out_dir: Path, first: str, static: bool
) -> None:
    def job(hook: Any) -> Any:
        net = lenet()
        if first == "hybridize":
            net.hybridize(static_alloc=static, static_shape=static)
        hook.register_block(net)
        if first == "register":
            net.hybridize(static_alloc=static, static_shape=static)
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        loss.hybridize()
        hook.register_block(loss)
        trainer = trainer_of(net)
        seen = []
        for x, y in images(3):
            error = step(net, loss, trainer, x, y)
            seen.append((parameters_of(net), error.asnumpy()))
        return seen

    trial, seen = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    outside = {"hybridsequential0_input_0", "hybridsequential0_output_0"}
    outside |= {f"softmaxcrossentropyloss0_{n}" for n in ("input_0", "input_1", "output_0")}
    parameters = {*LENET_PARAMETERS, *(f"gradient/{name}" for name in LENET_PARAMETERS)}
    assert set(trial.tensor_names()) == outside | parameters
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == [0, 1, 2], name
    np.testing.assert_array_equal(value(trial, "softmaxcrossentropyloss0_output_0", 2), seen[2][1])
    np.testing.assert_array_equal(value(trial, "conv0_weight", 2), seen[2][0]["conv0_weight"])


def test_operators_of_a_hybridised_net_are_seen_if_asked_for(out_dir: Path) -> None:
    def job(hook: Any, hybrid: bool) -> Any:
        net = lenet()
        if hybrid:
            net.hybridize()
        return train(hook, net, images(2))

    eager, _ = record(
        lambda hook: job(hook, False), out_dir, include_regex=["relu"], save_config=EVERY_STEP
    )
    hybrid, _ = record(
        lambda hook: job(hook, True),
        out_dir.with_name("hybrid"),
        include_regex=["fwd_output"],
        save_config=EVERY_STEP,
        op_hook=True,
    )
    for at in range(2):
        np.testing.assert_allclose(
            value(hybrid, "conv0_relu_fwd_output", at),
            value(eager, "conv0_relu_output_0", at),
            rtol=1e-6,
        )


def test_all_losses_are_in_losses_whatever_they_are_called(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = small()
        hook.register_block(net)
        losses = [gluon.loss.L2Loss() for _ in range(12)] + [gluon.loss.L1Loss(prefix="my_")]
        for loss in losses:
            hook.register_block(loss)
        trainer = trainer_of(net)
        for x, _ in rows(2):
            with autograd.record():
                output = net(x)
                total = sum(loss(output, nd.ones((5, 2))) for loss in losses)
            total.backward()
            trainer.step(5)
        return parameters_of(net)

    trial, _ = record(job, out_dir, save_config=EVERY_STEP)
    expected = {f"l2loss{i}_output_0" for i in range(12)} | {"my_output_0"}
    assert set(trial.tensor_names(collection="losses")) == expected == set(trial.tensor_names())


def test_a_resumed_job_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"LocalPath": str(checkpoints)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))

    def job(hook: Any, count: int, checkpoint: str) -> None:
        net, loss = small(), gluon.loss.SoftmaxCrossEntropyLoss()
        hook.register_block(net)
        hook.register_block(loss)
        trainer = trainer_of(net)
        for x, y in rows(count):
            step(net, loss, trainer, x, y)
        net.save_parameters(str(checkpoints / checkpoint))
        hook.close()

    first = Hook(tmp_path / "one", save_config=SaveConfig(save_interval=10))
    run(lambda hook: job(hook, 40, "a.params"), first)
    assert create_trial(str(tmp_path / "one")).steps() == [0, 10, 20, 30]
    steps = only(*range(10, 15), 40, 50, 60, 70, 80)
    second = Hook(tmp_path / "two", save_config=steps)
    run(lambda hook: job(hook, 45, "b.params"), second)
    assert create_trial(str(tmp_path / "two")).steps() == [40, 50, 60, 70, 80]


def test_calls_on_several_contexts_are_one_step(out_dir: Path) -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    gradients: list[np.ndarray] = []

    def job(hook: Any) -> Any:
        gradients.clear()
        net, loss = small(), gluon.loss.SoftmaxCrossEntropyLoss()
        net.collect_params().reset_ctx(contexts)
        hook.register_block(net)
        hook.register_block(loss)
        trainer = trainer_of(net)
        for x, y in rows(3, size=6):
            parts = [gluon.utils.split_and_load(part, contexts) for part in (x, y)]
            with autograd.record():
                losses = [loss(net(a), b) for a, b in zip(*parts, strict=True)]
            for part in losses:
                part.backward()
            gradients.append(net[0].weight.list_grad()[0].asnumpy())
            trainer.step(6)
        return parameters_of(net)

    trial, after = record(job, out_dir, save_all=True, save_config=EVERY_STEP)
    assert trial.steps() == [0, 1, 2]
    calls = trial.tensor_names(regex="^hybridsequential0_input")
    assert calls == ["hybridsequential0_input_0", "hybridsequential0_input_1"]
    whole = next(iter(rows(1, size=6)))[0].asnumpy()
    np.testing.assert_array_equal(value(trial, calls[0]), whole[:3])
    np.testing.assert_array_equal(value(trial, calls[1]), whole[3:])
    assert trial.tensor_names(regex="loss0_output") == [
        "softmaxcrossentropyloss0_output_0",
        "softmaxcrossentropyloss0_output_1",
    ]
    assert trial.tensor_names(regex="^dense0_weight") == ["dense0_weight"]
    np.testing.assert_array_equal(value(trial, "dense0_weight", 2), after["dense0_weight"])
    for at in range(3):
        np.testing.assert_array_equal(value(trial, "gradient/dense0_weight", at), gradients[at])


def test_a_block_can_be_named_by_itself(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net = lenet()
        if isinstance(hook, Hook):
            hook.get_collection("chosen").add_block_tensors(net[0], inputs=True, outputs=False)
            hook.get_collection("chosen").add_block_tensors(net[5])
        return train(hook, net, images(2))

    trial, _ = record(job, out_dir, include_collections=["chosen"], save_config=EVERY_STEP)
    assert trial.tensor_names() == ["conv0_input_0", "dense0_output_0"]


def test_tensors_are_saved_by_hand(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP, include_collections=["default"])
    with hook.step():
        hook.save_tensor("array", nd.arange(3))
        hook.save_scalar("number", nd.array([2.5]))
        hook.save_tensor("plain", np.arange(2))
    hook.close()
    trial = create_trial(str(out_dir))
    np.testing.assert_array_equal(value(trial, "array"), [0, 1, 2])
    assert value(trial, "scalar/number") == 2.5
    np.testing.assert_array_equal(value(trial, "plain"), [0, 1])


def test_steps_can_be_begun_by_hand(out_dir: Path) -> None:
    def job(hook: Any) -> Any:
        net, loss = small(), gluon.loss.SoftmaxCrossEntropyLoss()
        hook.register_block(net)
        trainer = trainer_of(net)
        seen = []
        for x, y in rows(4):
            with hook.begin_step():
                step(net, loss, trainer, x, y)
                net(x).wait_to_read()
            seen.append(parameters_of(net))
        return seen

    trial, seen = record(job, out_dir, save_all=True, save_config=SaveConfig(save_interval=2))
    assert trial.steps() == [0, 2]
    assert trial.tensor_names(regex="^dense0_output") == ["dense0_output_0", "dense0_output_1"]
    np.testing.assert_array_equal(value(trial, "dense0_bias", 2), seen[2]["dense0_bias"])


def test_blocks_hold_callbacks_in_saved_steps_only(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=only(1, 2))
    net = lenet()
    hook.register_block(net)
    held = []
    for x, _ in images(5):
        net(x)
        held.append(callbacks_of(net))
    assert held == [1, 14, 14, 1, 1]
    hook.close()
    assert callbacks_of(net) == 0


def test_the_hook_of_the_process_comes_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "hook.json"
    config.write_text(
        json.dumps(
            {
                "LocalPath": str(tmp_path / "run"),
                "CollectionConfigurations": [{"CollectionName": "weights"}],
                "HookParameters": {"save_interval": "1"},
            }
        )
    )
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    hook = get_hook()
    assert isinstance(hook, Hook) and get_hook() is hook
    run(lambda hook: train(hook, small(), rows(2)), hook)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor_names() == ["dense0_weight", "dense1_weight"]


def test_bad_input_is_one_message_and_training_goes_on(out_dir: Path, messages: Messages) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    net = small()
    for wrong in ("net", None, nn.Dense, print):
        hook.register_block(wrong)
    hook.register_block(net)
    hook.register_block(net)
    hook.register_hook(net[0])
    for x, _ in rows(2):
        net(x)
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 1]
    errors = [text for level, text in messages.lines if level == "ERROR"]
    assert len(errors) == 4
    assert errors[0] == "Only a gluon Block can be registered, not 'net'."
    warnings = [text for level, text in messages.lines if level == "WARNING"]
    assert len(warnings) == 2 and all("is registered already" in text for text in warnings)
