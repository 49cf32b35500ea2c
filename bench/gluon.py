"""Trains a net of Gluon with and without a hook and answers questions about the time it takes.

Runs in one of two environments, with our package or with the original's, whose interfaces agree:
bench/gluon.py DIRECTORY. Each line of standard input is a question in JSON, each line of standard
output the answer; nets and hooks stay from one question to the next.

MXNet computes on the training thread and on no other, so that the time of this thread is all of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from desk import serve

os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"
os.environ["OMP_NUM_THREADS"] = "1"

with contextlib.redirect_stdout(sys.stderr):
    import mxnet
    from mxnet import autograd, gluon, nd
    from smdebug.mxnet import Hook, ReductionConfig, SaveConfig

# The original cannot compute the standard deviation of MXNet's arrays.
FIVE = {"reductions": ["min", "max", "mean"], "norms": ["l1", "l2"]}
OF_PARAMETERS = ["weights", "biases", "gradients"]
EVERY = SaveConfig(save_interval=1)
HOOKS = {
    "idle": lambda place: Hook(place, save_all=True, save_config=SaveConfig(start_step=10**9)),
    "loss": lambda place: Hook(place, save_config=EVERY),
    "reductions": lambda place: Hook(
        place,
        save_config=EVERY,
        reduction_config=ReductionConfig(**FIVE),
        include_collections=OF_PARAMETERS,
    ),
    "raw": lambda place: Hook(
        place, save_config=SaveConfig(save_interval=10), include_collections=OF_PARAMETERS
    ),
}


class Training:
    """Convolutions and dense layers, their data, and perhaps a hook."""

    def __init__(self, hook: Hook | None) -> None:
        mxnet.random.seed(0)
        self.net = gluon.nn.HybridSequential()
        self.net.add(
            gluon.nn.Conv2D(6, 5, activation="relu"),
            gluon.nn.MaxPool2D(2, 2),
            gluon.nn.Conv2D(16, 3, activation="relu"),
            gluon.nn.MaxPool2D(2, 2),
            gluon.nn.Flatten(),
            gluon.nn.Dense(120, activation="relu"),
            gluon.nn.Dense(84, activation="relu"),
            gluon.nn.Dense(10),
        )
        self.net.initialize()
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.01})
        self.images = nd.random.uniform(shape=(16, 1, 28, 28))
        self.labels = nd.array(list(range(10)) + list(range(6)))
        self.hook = hook
        if hook is not None:
            hook.register_hook(self.net)
            hook.register_hook(self.loss)
        self.step()  # sets up

    def step(self) -> None:
        with autograd.record():
            loss = self.loss(self.net(self.images), self.labels)
        loss.backward()
        self.trainer.step(16)
        nd.waitall()


def timed(training: Training, count: int) -> list[float]:
    """[wall, processor] seconds of some steps."""
    wall, processor = time.perf_counter(), time.thread_time()
    for _ in range(count):
        training.step()
    return [time.perf_counter() - wall, time.thread_time() - processor]


class Desk:
    """Answers questions."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.known: dict[str, Training] = {}

    def training(self, hook: str) -> Training:
        """A net with that hook; made once."""
        if hook not in self.known:
            made = HOOKS[hook](str(self.base / hook)) if hook else None
            self.known[hook] = Training(made)
        return self.known[hook]

    def pairs(self, hook: str, count: int) -> list[list[float]]:
        """Seconds of `count` steps without and with the hook, in turns."""
        trainings = [self.training(""), self.training(hook)]
        found = [[timed(training, 1) for training in trainings] for _ in range(count)]
        return [
            [sum(column) for column in zip(*steps, strict=True)]
            for steps in zip(*found, strict=True)
        ]

    def close(self) -> dict[str, int]:
        """Ends all hooks; how many files each run has."""
        found = {}
        for name, training in self.known.items():
            if training.hook is not None:
                training.hook.close()
                found[name] = sum(len(files) for _, _, files in os.walk(self.base / name))
        return found


def main() -> None:
    serve(Desk(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
