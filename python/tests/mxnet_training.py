"""Small models and loops for the tests of the hook for MXNet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from smdebug.mxnet import Hook, SaveConfig, create_trial

EVERY_STEP = SaveConfig(save_interval=1)
LENET_PARAMETERS = [
    f"{layer}_{kind}"
    for layer in ("conv0", "conv1", "dense0", "dense1", "dense2")
    for kind in ("bias", "weight")
]
LENET_BLOCKS = ["conv0", "conv0_relu", "pool0", "conv1", "conv1_relu", "pool1", "flatten0"]
LENET_BLOCKS += ["dense0", "dense0_relu", "dense1", "dense1_relu", "dense2", "hybridsequential0"]
LENET_NAMES = sorted(
    LENET_PARAMETERS
    + [f"gradient/{name}" for name in LENET_PARAMETERS]
    + [f"{block}_{kind}_0" for block in LENET_BLOCKS for kind in ("input", "output")]
)


def only(*steps: int) -> SaveConfig:
    """These steps and no others."""
    return SaveConfig(save_interval=1000, start_step=1000, save_steps=list(steps))


class NoHook:
    """Takes the place of a hook and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: contextlib.nullcontext()


def lenet() -> Any:
    """A model whose parameters get their shapes in its first forward."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(channels=6, kernel_size=5, activation="relu"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Conv2D(channels=16, kernel_size=3, activation="relu"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Flatten(),
        nn.Dense(120, activation="relu"),
        nn.Dense(84, activation="relu"),
        nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    return net


def small(width: int = 3) -> Any:
    """Two layers, with their shapes."""
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh", in_units=width), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Xavier())
    return net


def images(count: int, size: int = 4) -> Iterator[tuple[Any, Any]]:
    """Inputs and labels for lenet() that depend on nothing but the arguments."""
    random = np.random.RandomState(17)
    for _ in range(count):
        x = nd.array(random.randn(size, 1, 14, 14))
        yield x, nd.array(random.randint(0, 10, size))


def rows(count: int, size: int = 5, width: int = 3) -> Iterator[tuple[Any, Any]]:
    """Inputs and labels for small()."""
    random = np.random.RandomState(17)
    for _ in range(count):
        yield nd.array(random.randn(size, width)), nd.array(random.randint(0, 2, size))


def trainer_of(net: Any, **arguments: Any) -> Any:
    """Plain SGD with momentum."""
    options = {"learning_rate": 0.1, "momentum": 0.9}
    return gluon.Trainer(net.collect_params(), "sgd", options, **arguments)


def step(net: Any, loss: Any, trainer: Any, x: Any, y: Any) -> Any:
    """One step of training; its loss."""
    with autograd.record():
        value = loss(net(x), y)
    value.backward()
    trainer.step(x.shape[0])
    return value


def parameters_of(net: Any) -> dict[str, np.ndarray]:
    """All values of now."""
    return {name: p.list_data()[0].asnumpy() for name, p in net.collect_params().items()}


def train(hook: Any, net: Any, data: Any, loss: Any = None, register_loss: bool = False) -> Any:
    """Trains a registered net; (parameters after each step, losses)."""
    loss = loss or gluon.loss.SoftmaxCrossEntropyLoss()
    hook.register_block(net)
    if register_loss:
        hook.register_block(loss)
    trainer = trainer_of(net)
    seen = []
    for x, y in data:
        value = step(net, loss, trainer, x, y)
        seen.append((parameters_of(net), value.asnumpy()))
    return seen


Job = Callable[[Any], Any]


def record(job: Job, out_dir: Path, **arguments: Any) -> tuple[Any, Any]:
    """(run, result) of job(hook). Its result must be, bit for bit, that of a job without hook."""
    plain = run(job, NoHook())
    hook = Hook(out_dir, **arguments)
    recorded = run(job, hook)
    hook.close()
    assert_same(plain, recorded)
    assert (out_dir / "training_job_end.ts").exists()
    return create_trial(str(out_dir)), recorded


def run(job: Job, hook: Any) -> Any:
    """Runs a job with its own seed, and with names that begin with 0."""
    mx.random.seed(7)
    np.random.seed(7)
    with mx.name.NameManager():
        return job(hook)


def assert_same(plain: Any, recorded: Any) -> None:
    """The same bits."""
    assert type(plain) is type(recorded)
    if isinstance(plain, dict):
        assert list(plain) == list(recorded)
        plain, recorded = list(plain.values()), list(recorded.values())
    if isinstance(plain, list | tuple):
        assert len(plain) == len(recorded)
        for left, right in zip(plain, recorded, strict=True):
            assert_same(left, right)
    elif isinstance(plain, np.ndarray):
        assert plain.dtype == recorded.dtype and plain.shape == recorded.shape
        assert plain.tobytes() == recorded.tobytes()
    else:
        assert plain == recorded


def callbacks_of(net: Any) -> int:
    """How many callbacks the blocks of a net hold."""
    return (
        len(net._forward_hooks)
        + len(net._forward_pre_hooks)
        + sum(callbacks_of(child) for child in net._children.values())
    )


def value(trial: Any, name: str, at: int = 0, **arguments: Any) -> np.ndarray:
    """A recorded value."""
    return trial.tensor(name).value(at, **arguments)
