"""Trains a CNN of Keras with and without a hook and says what a step takes, as JSON.

bench/keras_training.py DIRECTORY [--quick]. Blocks of steps run in turns, without and with each
kind of hook. TensorFlow runs in a process of its own and uses one thread of the processor.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("SMDEBUG_STRICT", "1")

with contextlib.redirect_stdout(sys.stderr):
    import keras
    import numpy as np
    import smdebug.tensorflow as smd
    import tensorflow as tf
    from smdebug.logger import get_logger

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
get_logger().setLevel(logging.ERROR)

BATCH = 32
NEVER = 10**9


def model() -> Any:
    """Three convolutions and two dense layers, 0.4 million parameters."""
    layers = keras.layers
    made = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(optimizer=keras.optimizers.SGD(0.01), loss=loss)
    return made


class Times(keras.callbacks.Callback):
    """The seconds of each step, from the end of the one before: [wall, processor]."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[float, float]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._last = time.perf_counter(), time.process_time()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.perf_counter(), time.process_time()
        self.steps.append((now[0] - self._last[0], now[1] - self._last[1]))
        self._last = now


def hooks(base: Path) -> dict[str, Any]:
    """The kinds of recording that are measured."""
    return {
        "defaults": smd.KerasHook(str(base / "defaults")),
        "idle": smd.KerasHook(
            str(base / "idle"), save_all=True, save_config=smd.SaveConfig(start_step=NEVER)
        ),
        "everything": smd.KerasHook(
            str(base / "everything"),
            include_collections=["weights", "biases", "gradients"],
            include_regex=["/outputs$"],
            save_config=smd.SaveConfig(save_interval=1),
        ),
        "tensorboard": keras.callbacks.TensorBoard(
            str(base / "board"), histogram_freq=1, write_graph=False, update_freq=1
        ),
    }


def measure(base: Path, rounds: int, count: int) -> dict[str, Any]:
    """Medians of step times by kind, and what a saved step copies."""
    rng = np.random.default_rng(0)
    x = rng.random((BATCH * count, 28, 28, 1), dtype=np.float32)
    y = rng.integers(0, 10, BATCH * count)
    trained = model()
    kinds: dict[str, Any] = {"bare": None, **hooks(base)}
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    epochs: dict[str, list[float]] = {kind: [] for kind in kinds}
    for i in range(rounds + 1):
        for kind, callback in kinds.items():
            watch = Times()
            callbacks = [watch] if callback is None else [callback, watch]
            # Histograms of TensorBoard are written at the end of an epoch: one step each.
            steps = 1 if kind == "tensorboard" else count
            begun = time.process_time()
            trained.fit(
                x[: BATCH * steps],
                y[: BATCH * steps],
                batch_size=BATCH,
                verbose=0,
                shuffle=False,
                callbacks=callbacks,
            )
            if i > 0:  # the first round traces
                times[kind] += watch.steps
                epochs[kind].append(time.process_time() - begun)
    calls = {kind: call_secs(kinds[kind], trained) for kind in ("defaults", "idle")}
    saved = kinds["everything"].bill()
    for callback in kinds.values():
        if hasattr(callback, "close"):
            callback.close()
    steps_saved = max(saved["saved_steps"], 1)
    return {
        "steps": {kind: statistics.median(p for _, p in found) for kind, found in times.items()},
        "wall": {kind: statistics.median(w for w, _ in found) for kind, found in times.items()},
        "epochs": {kind: statistics.median(found) for kind, found in epochs.items()},
        "calls": calls,
        "bytes": saved["bytes"] / steps_saved,
        "copy": copy_secs(int(saved["bytes"] / steps_saved)),
    }


def call_secs(hook: Any, trained: Any) -> float:
    """Seconds of all that a hook does for a step, called as Keras calls it."""
    count = 20000
    logs = {"loss": 0.5}
    hook.set_model(trained)
    hook.on_train_begin()
    begun = time.process_time()
    for i in range(count):
        hook.on_train_batch_begin(i)
        hook.on_train_batch_end(i, logs)
    spent = time.process_time() - begun
    hook.on_train_end()
    return spent / count


def copy_secs(size: int) -> float:
    """Seconds to copy so many bytes once."""
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    found = []
    for _ in range(20):
        begun = time.process_time()
        np.copyto(target, source)
        found.append(time.process_time() - begun)
    return min(found)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    print(json.dumps(measure(Path(sys.argv[1]), 3 if quick else 8, 20 if quick else 40)))
