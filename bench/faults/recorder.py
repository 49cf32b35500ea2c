"""Records a training with the framework-free hook, under the names that a hook for modules gives.

| name | collection | when |
|---|---|---|
| `head.weight`, `head.bias` | `weights`, `biases` | statistics at every step, whole at the raw interval |
| `gradient/head.weight` | `gradients` | the same; as the backward pass of this rank gave it |
| `reduced_gradient/head.weight` | `reduced_gradients` | with several ranks: as the optimizer got it |
| `optimizer/exp_avg_sq/head.weight` | `optimizer_variables` | the same |
| `layers.0.relu_input_0`, `layers.0.relu_output_0` | `activations` | the same |
| `Net_input_0`, `embedding0_input_0` | `inputs` | the same, whole at the input interval |
| `CrossEntropyLoss_output_0` | `losses` | every step, TRAIN and EVAL |
| `CrossEntropyLoss_input_0` | `activations` | what the loss saw of the model |
| `labels`, `predictions` | `labels`, `predictions` | class numbers, whole, every fifth step and in EVAL |
| `scalar/lr`, `scalar/gradient_norm`, `scalar/accuracy`, `scalar/loss_scale`, … | `scalars` | every step |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import smdebug
from smdebug import modes

from faults.layer import Array
from faults.settings import Settings

STATISTICS = ["min", "max", "mean", "std", "variance", "sum"]
REDUCTIONS = smdebug.ReductionConfig(
    reductions=STATISTICS,
    abs_reductions=STATISTICS,
    norms=["l1", "l2"],
    abs_norms=["l1", "l2"],
    save_shape=True,
)
RAW = smdebug.ReductionConfig(save_raw_tensor=True)
# Tensors of which rules need elements.
ELEMENTS = r"relu_output|tanh_input|sigmoid_input|softmax|mask_output|weight|bias|Loss_input"
LABEL_INTERVAL = 5


def _every(interval: int, also: Iterable[int] = ()) -> smdebug.SaveConfig:
    train = smdebug.SaveConfigMode(save_interval=interval, save_steps=list(also))
    each = smdebug.SaveConfigMode(save_interval=1)
    return smdebug.SaveConfig({modes.TRAIN: train, modes.EVAL: each, modes.GLOBAL: each})


def make_hook(out_dir: Path, settings: Settings) -> smdebug.Hook:
    """A hook that saves what rules need and little more."""
    hook = smdebug.Hook(
        out_dir=out_dir,
        save_config=smdebug.SaveConfig(save_interval=1),
        reduction_config=REDUCTIONS,
        include_collections=[
            *("weights", "biases", "gradients", "reduced_gradients", "optimizer_variables"),
            *("activations", "inputs", "elements", "whole_inputs", "labels", "predictions"),
        ],
        include_workers="all",
        layout="packed",
    )
    for name in ("weights", "biases"):
        hook.get_collection(name).exclude(["^optimizer/", "^reduced_gradient/"])
    inputs = r"^(Net|hybridsequential0|embedding0)_input_0$"
    hook.get_collection("reduced_gradients").include("^reduced_gradient/")
    hook.get_collection("optimizer_variables").include("^optimizer/")
    activations = hook.get_collection("activations")
    activations.include(r"_(in|out)put_\d+$")
    activations.exclude([inputs, "Loss_output"])
    hook.get_collection("inputs").include(inputs)
    collections = [
        smdebug.Collection(
            "elements",
            include_regex=ELEMENTS,
            save_config=_every(settings.raw_interval, (1, 2)),
            reduction_config=RAW,
        ),
        smdebug.Collection(
            "whole_inputs",
            include_regex=inputs,
            save_config=_every(settings.input_interval),
            reduction_config=RAW,
        ),
    ]
    for name in ("labels", "predictions"):
        collections.append(
            smdebug.Collection(
                name,
                include_regex=f"^{name}$",
                save_config=_every(LABEL_INTERVAL),
                reduction_config=RAW,
            )
        )
    for collection in collections:
        hook.add_collection(collection)
    return hook


@contextmanager
def _launched_as(rank: int, ranks: int) -> Iterator[None]:
    """The environment of a process that a launcher started."""
    before = dict(os.environ)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    try:
        yield
    finally:
        for name in ("RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
        os.environ.update(before)


class Recorder:
    """The hook of one rank. Knows at which global step each step of TRAIN was recorded."""

    def __init__(self, out_dir: Path, settings: Settings, rank: int) -> None:
        # A hook reads from the environment who it is, once, when it is made.
        with _launched_as(rank, settings.ranks):
            self._hook = make_hook(out_dir, settings)
        self.train_steps: list[int] = []

    def begin(self, mode: modes) -> None:
        self._hook.set_mode(mode)
        self._hook.step()
        if mode == modes.TRAIN:
            self.train_steps.append(int(self._hook.step))

    def tensors(self, named: Iterable[tuple[str, Array]]) -> None:
        save = self._hook.save
        for name, value in named:
            save(name, value)

    def outcome(self, labels: Array, outputs: Array) -> None:
        """Labels and predicted classes, and how often they agree."""
        predictions = outputs.argmax(axis=-1)
        self.tensors([("labels", labels), ("predictions", predictions)])
        self.scalars(accuracy=float(np.mean(labels == predictions)))

    def scalars(self, **values: float) -> None:
        for name, value in values.items():
            self._hook.save_scalar(name, value)

    def close(self) -> None:
        self._hook.close()


class NoRecorder(Recorder):
    """Records nothing, to see what recording costs."""

    def __init__(self, out_dir: Path, settings: Settings, rank: int) -> None:
        self.train_steps = []

    def begin(self, mode: modes) -> None:
        if mode == modes.TRAIN:
            self.train_steps.append(len(self.train_steps))

    def tensors(self, named: Iterable[tuple[str, Array]]) -> None:
        pass

    def scalars(self, **values: float) -> None:
        pass

    def close(self) -> None:
        pass
