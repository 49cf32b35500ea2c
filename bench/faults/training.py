"""The training loop of all models: batches, gradients, updates, validation, recording.

A training on several ranks keeps one replica of the model per rank in one process. The ranks take
their turns, and their gradients are averaged as an all-reduce would do it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from smdebug import modes

from faults import loss as losses
from faults.data import make_data
from faults.injection import Grads, Injection, clipped, norm_of
from faults.layer import Array
from faults.model import Model, make_model
from faults.optimizer import Adam, Optimizer, Sgd
from faults.pace import Pace
from faults.recorder import Recorder
from faults.settings import Settings

EVAL_BATCH = 64


class Training:
    """One training; `run` records it. Everything follows from the settings and the seed."""

    def __init__(self, settings: Settings, injection: Injection, seed: int) -> None:
        self.settings = settings
        self.injection = injection
        self.rng = np.random.default_rng([seed, 1])
        self.data = make_data(settings, np.random.default_rng([seed, 2]))
        # Replicas begin alike.
        self.models = [
            make_model(settings, self.data.classes, np.random.default_rng([seed, 3]))
            for _ in range(settings.ranks)
        ]
        self.optimizers: list[Optimizer] = [self._make_optimizer() for _ in self.models]
        # What the optimizers change; a fault may let it be something else than the model's own.
        self.updated = [model.params for model in self.models]
        self.weight_type = ""
        # Trainings in half precision scale the loss for the backward pass; 0: no scaling.
        self.loss_scale = 0.0
        self.lr = settings.lr
        self._order = np.zeros(0, np.int64)
        self.loss_function, self.loss_name = losses.LOSSES[settings.loss]
        injection.start(self)

    def _make_optimizer(self) -> Optimizer:
        if self.settings.optimizer == "adam":
            return Adam(self.settings.eps, self.settings.decay)
        return Sgd(self.settings.momentum, self.settings.decay)

    def run(
        self, out_dir: Path, make_recorder: Callable[..., Recorder] = Recorder
    ) -> dict[str, object]:
        """Trains and records; gives what is known about the run without reading it."""
        ranks = range(self.settings.ranks)
        recorders = [make_recorder(out_dir, self.settings, rank) for rank in ranks]
        pace = Pace()
        with np.errstate(all="ignore"):
            for step in range(self.settings.steps):
                self._step(step, recorders)
                pace.tick()
                if (step + 1) % self.settings.eval_interval == 0:
                    self._validate(recorders)
        for recorder in recorders:
            recorder.close()
        return {"train_steps": recorders[0].train_steps, **pace.summary()}

    def _step(self, step: int, recorders: list[Recorder]) -> None:
        self.lr = self.settings.lr * self._schedule(step)
        self.injection.before(self, step)
        local: list[Grads] = []
        indices = self._next_indices()
        seen = []
        for rank, model in enumerate(self.models):
            x, y = self._batch(indices, rank)
            x, y = self.injection.batch(self, step, rank, x, y)
            outputs = model.forward(x)
            value, upstream, shown = self.loss_of(outputs, y)
            local.append(self._trainable(self._gradients(model, upstream)))
            seen.append((x, y, outputs, value, shown))
        reduced = self.injection.reduce(self, step, local)
        if self.settings.clip:
            reduced = [clipped(grads, self.settings.clip) for grads in reduced]
        for rank, recorder in enumerate(recorders):
            recorder.begin(modes.TRAIN)
            self._record(recorder, rank, seen[rank], local[rank], reduced[rank])
        for rank, grads in enumerate(reduced):
            self.injection.update(self, step, rank, grads)
        self.injection.after(self, step)

    def _gradients(self, model: Model, upstream: Array) -> Grads:
        if not self.loss_scale:
            return model.backward(upstream)
        scale = np.float32(self.loss_scale)
        return {n: g / scale for n, g in model.backward(upstream * scale).items()}

    def train_unrecorded(self, steps: int) -> None:
        """Trains without faults and without a trace."""
        for _ in range(steps):
            indices = self._next_indices()
            local = []
            for rank, model in enumerate(self.models):
                x, y = self._batch(indices, rank)
                _, upstream, _ = self.loss_of(model.forward(x), y)
                local.append(self._trainable(model.backward(upstream)))
            for rank, grads in enumerate(self.mean_of(local)):
                self.update(rank, grads)

    def loss_of(self, outputs: Array, y: Array) -> tuple[float, Array, Array]:
        if self.settings.task == "grammar":
            return losses.of_positions(self.loss_function, outputs, y)
        return self.loss_function(outputs, y)

    @staticmethod
    def mean_of(local: list[Grads]) -> list[Grads]:
        """An all-reduce: every rank gets the mean."""
        if len(local) == 1:
            return [dict(local[0])]
        names = local[0]
        mean = {n: sum(grads[n] for grads in local) / np.float32(len(local)) for n in names}
        return [{n: g.copy() for n, g in mean.items()} for _ in local]

    def update(self, rank: int, grads: Grads) -> None:
        self.optimizers[rank].step(self.updated[rank], grads, self.lr)

    def _schedule(self, step: int) -> float:
        if self.settings.schedule == "warmup":
            return min(1.0, (step + 1) / 30)
        if self.settings.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * step / (self.settings.steps - 1)))
        return 1.0

    def _next_indices(self) -> Array:
        """Samples of the next step for all ranks; an epoch has every sample once."""
        wanted = self.settings.batch * self.settings.ranks
        while len(self._order) < wanted:
            epoch = self.rng.permutation(len(self.data.train[0]))
            self._order = np.concatenate([self._order, epoch])
        indices, self._order = self._order[:wanted], self._order[wanted:]
        return indices

    def _batch(self, indices: Array, rank: int) -> tuple[Array, Array]:
        size = self.settings.batch
        own = indices[rank * size : (rank + 1) * size]
        return self.data.train[0][own], self.data.train[1][own]

    def _trainable(self, grads: Grads) -> Grads:
        """Frozen parameters have no gradient."""
        if not self.settings.frozen:
            return grads
        return {n: g for n, g in grads.items() if not n.startswith(self.settings.frozen)}

    def _record(
        self,
        recorder: Recorder,
        rank: int,
        seen: tuple[Array, Array, Array, float, Array],
        local: Grads,
        reduced: Grads,
    ) -> None:
        x, y, outputs, value, shown = seen
        model, optimizer = self.models[rank], self.optimizers[rank]
        if model.input_name is not None:
            recorder.tensors([(model.input_name, x)])
        for layer in model.layers:
            recorder.tensors(layer.taps.items())
        recorder.tensors(
            [
                (f"{self.loss_name}_input_0", shown),
                (f"{self.loss_name}_output_0", np.float32(value)),
            ]
        )
        recorder.tensors((f"gradient/{n}", g) for n, g in reversed(local.items()))
        if self.settings.ranks > 1:
            recorder.tensors((f"reduced_gradient/{n}", g) for n, g in reduced.items())
        recorder.tensors(
            (f"optimizer/{n}", s)
            for n, s in optimizer.state.items()
            if not n.startswith("exp_avg/")
        )
        recorder.tensors((n, self._stored(p)) for n, p in model.params.items())
        recorder.scalars(
            lr=self.lr, gradient_norm=norm_of(reduced), optimizer_step=float(optimizer.count)
        )
        if self.loss_scale:
            recorder.scalars(loss_scale=self.loss_scale)
        if isinstance(optimizer, Adam):
            recorder.scalars(adam_eps=optimizer.eps)
        if self.data.classes > 1:
            recorder.outcome(y, outputs)

    def _stored(self, param: Array) -> Array:
        """A parameter in the type in which it is kept."""
        if self.weight_type == "bfloat16":
            import ml_dtypes

            return param.astype(ml_dtypes.bfloat16)
        return param

    def _validate(self, recorders: list[Recorder]) -> None:
        x, y = self.data.validation
        for start in range(0, len(x), EVAL_BATCH):
            part = slice(start, start + EVAL_BATCH)
            for model, recorder in zip(self.models, recorders, strict=True):
                outputs = model.forward(x[part])
                value, _, _ = self.loss_of(outputs, y[part])
                recorder.begin(modes.EVAL)
                recorder.tensors([(f"{self.loss_name}_output_0", np.float32(value))])
                if self.data.classes > 1:
                    recorder.outcome(y[part], outputs)
