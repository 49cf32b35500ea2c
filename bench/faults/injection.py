"""How faults enter a training: objects that are called at fixed places of the loop.

`Injection` does nothing at all places; each fault that cannot be put into the settings overrides one.
Steps are steps of TRAIN; `run` is the training, of which everything may be changed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from faults.layer import Array

if TYPE_CHECKING:
    from faults.training import Training

Grads = dict[str, Array]


class Injection:
    """Does nothing."""

    def start(self, run: Training) -> None:
        """After models and data were made."""

    def before(self, run: Training, step: int) -> None:
        """Before the forward pass of a step."""

    def batch(self, run: Training, step: int, rank: int, x: Array, y: Array) -> tuple[Array, Array]:
        """The batch of a rank."""
        return x, y

    def reduce(self, run: Training, step: int, local: list[Grads]) -> list[Grads]:
        """What the optimizers of the ranks get, made from the gradients of the ranks."""
        return run.mean_of(local)

    def update(self, run: Training, step: int, rank: int, grads: Grads) -> None:
        """The step of a rank's optimizer."""
        run.update(rank, grads)

    def after(self, run: Training, step: int) -> None:
        """After all updates of a step."""


@dataclass
class Ascend(Injection):
    """Goes up the gradient instead of down."""

    onset: int

    def update(self, run: Training, step: int, rank: int, grads: Grads) -> None:
        sign = -1 if step >= self.onset else 1
        run.update(rank, {name: sign * g for name, g in grads.items()})


@dataclass
class Constant(Injection):
    """All weights begin with one value."""

    value: float

    def start(self, run: Training) -> None:
        for model in run.models:
            for name, param in model.params.items():
                if "weight" in name:
                    param[...] = self.value


@dataclass
class Scaled(Injection):
    """Parameters with a name in them are multiplied once."""

    names: tuple[str, ...]
    factor: float
    onset: int = 0

    def before(self, run: Training, step: int) -> None:
        if step != self.onset:
            return
        for model in run.models:
            for name, param in model.params.items():
                if any(part in name for part in self.names) and "weight" in name:
                    param *= np.float32(self.factor)


@dataclass
class DeadBias(Injection):
    """Biases of a layer take one bad step; its units never fire again."""

    layer: str
    value: float
    onset: int

    def before(self, run: Training, step: int) -> None:
        if step == self.onset:
            for model in run.models:
                model.params[f"{self.layer}.bias"][...] = self.value


class ShuffledLabels(Injection):
    """Labels of the training set no longer belong to their samples."""

    def start(self, run: Training) -> None:
        x, y = run.data.train
        run.data.train = x, run.rng.permutation(y)


@dataclass
class SwappedClasses(Injection):
    """Two classes have each other's labels, in the training set only."""

    pair: tuple[int, int] = (0, 1)

    def start(self, run: Training) -> None:
        x, y = run.data.train
        a, b = self.pair
        run.data.train = x, np.where(y == a, b, np.where(y == b, a, y))


@dataclass
class SkippedLayer(Injection):
    """Parameters of a layer have gradients and are never updated."""

    layer: str

    def update(self, run: Training, step: int, rank: int, grads: Grads) -> None:
        run.update(rank, {n: g for n, g in grads.items() if not n.startswith(self.layer)})


class StaleCopy(Injection):
    """The optimizer changes copies of the parameters that the model no longer uses."""

    def start(self, run: Training) -> None:
        run.updated = [{n: p.copy() for n, p in m.params.items()} for m in run.models]


class NeverReset(Injection):
    """Gradients of all steps add up."""

    def __init__(self) -> None:
        self.sums: list[Grads] = []

    def reduce(self, run: Training, step: int, local: list[Grads]) -> list[Grads]:
        if not self.sums:
            self.sums = [{n: np.zeros_like(g) for n, g in grads.items()} for grads in local]
        for kept, grads in zip(self.sums, local, strict=True):
            for name, g in grads.items():
                kept[name] += g
                # What is recorded as the gradient is the accumulated one, as in any framework.
                grads[name] = kept[name].copy()
        return run.mean_of(local)


@dataclass
class LogOfZero(Injection):
    """From a step on, one element of a layer's output is 0 · log 0."""

    layer: str
    onset: int

    def before(self, run: Training, step: int) -> None:
        if step == self.onset:
            for model in run.models:
                model.layer(self.layer).tamper = self._tamper

    @staticmethod
    def _tamper(y: Array) -> Array:
        share = np.ones_like(y)
        share[(0,) * y.ndim] = 0
        return y + (1 - share) * np.log(share)


@dataclass
class HalfOverflow(Injection):
    """A layer's output is kept in half precision and grows until it overflows.

    What follows divides by the same factor, so that the loss shows nothing before.
    """

    layer: str
    rescale: str
    onset: int
    growth: float = 1.12
    loss_scale: float = 1024.0

    def start(self, run: Training) -> None:
        run.loss_scale = self.loss_scale

    def before(self, run: Training, step: int) -> None:
        factor = self.growth ** max(0, step - self.onset + 1)
        for model in run.models:
            layer, rescale = model.layer(self.layer), model.layer(self.rescale)
            layer.tamper = lambda y: (y * np.float32(factor)).astype(np.float16)
            rescale.factor = factor  # type: ignore[attr-defined]


class RoundedWeights(Injection):
    """Weights are kept in bfloat16, without a finer copy."""

    def start(self, run: Training) -> None:
        run.weight_type = "bfloat16"
        self.after(run, -1)

    def after(self, run: Training, step: int) -> None:
        for model in run.models:
            for param in model.params.values():
                param[...] = round_to_bfloat16(param)


def round_to_bfloat16(x: Array) -> Array:
    """The nearest bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.astype(np.uint32).view(np.float32)


@dataclass
class PoisonedBatch(Injection):
    """One batch is large and wrong; with `harm` it also drives the weights away."""

    onset: int
    scale: float
    harm: bool

    def batch(self, run: Training, step: int, rank: int, x: Array, y: Array) -> tuple[Array, Array]:
        if step != self.onset:
            return x, y
        if x.dtype.kind == "i":
            return run.rng.integers(1, run.settings.vocabulary, x.shape), run.rng.permutation(y)
        return x * np.float32(self.scale), run.rng.permutation(y)

    def update(self, run: Training, step: int, rank: int, grads: Grads) -> None:
        if self.harm or step != self.onset:
            run.update(rank, grads)


@dataclass
class SkippedReduction(Injection):
    """From a step on every rank uses its own gradients."""

    onset: int

    def reduce(self, run: Training, step: int, local: list[Grads]) -> list[Grads]:
        return local if step >= self.onset else run.mean_of(local)


@dataclass
class ClippedRank(Injection):
    """One rank alone clips its gradients, after they were reduced."""

    rank: int
    limit: float
    onset: int

    def reduce(self, run: Training, step: int, local: list[Grads]) -> list[Grads]:
        reduced = run.mean_of(local)
        if step >= self.onset:
            reduced[self.rank] = clipped(reduced[self.rank], self.limit)
        return reduced


def norm_of(grads: Grads) -> float:
    return float(np.sqrt(sum(float(np.vdot(g, g)) for g in grads.values())))


def clipped(grads: Grads, limit: float) -> Grads:
    factor = min(1.0, limit / (norm_of(grads) + 1e-12))
    return {n: np.float32(factor) * g for n, g in grads.items()}


class SameBatch(Injection):
    """All ranks get the batch of the first."""

    def batch(self, run: Training, step: int, rank: int, x: Array, y: Array) -> tuple[Array, Array]:
        if rank == 0:
            self.first = x, y
        return self.first


@dataclass
class Sleep(Injection):
    """Training stands still for a while."""

    onset: int
    seconds: float

    def before(self, run: Training, step: int) -> None:
        if step == self.onset:
            time.sleep(self.seconds)


@dataclass
class BitFlip(Injection):
    """One bit of one weight of one rank flips."""

    name: str
    bit: int
    onset: int
    rank: int = 0

    def before(self, run: Training, step: int) -> None:
        if step != self.onset:
            return
        param = run.models[self.rank].params[self.name]
        flat = param.reshape(-1)
        # The largest weight: a flip in one that plays no role is no fault that anybody could see.
        at = int(np.abs(flat).argmax())
        flat[at : at + 1].view(np.uint32)[...] ^= np.uint32(1 << self.bit)


@dataclass
class LostState(Injection):
    """The job is resumed with its weights and without the state of its optimizer."""

    onset: int

    def before(self, run: Training, step: int) -> None:
        if step == self.onset:
            for optimizer in run.optimizers:
                optimizer.reset()


@dataclass
class Trained(Injection):
    """Begins with weights that were trained before, on the same data."""

    steps: int

    def start(self, run: Training) -> None:
        run.train_unrecorded(self.steps)
        for optimizer in run.optimizers:
            optimizer.reset()
