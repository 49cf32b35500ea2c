"""Small models of Keras 2 and 3 for the tests of its hook, and what was recorded of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The Keras packages of this environment; one backend in each process.
PACKAGES = [name for name in ("keras", "tf_keras") if importlib.util.find_spec(name) is not None]
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
if BACKEND != "tensorflow":
    PACKAGES = [name for name in PACKAGES if name != "tf_keras"]
GENERATIONS = {name: int(importlib.metadata.version(name).partition(".")[0]) for name in PACKAGES}

BATCH = 8
PARAMETERS = ["d1/kernel", "d1/bias", "d2/kernel", "d2/bias"]
WEIGHTS = [f"{name.split('/')[0]}/weights/{name}:0" for name in PARAMETERS]
GRADIENTS = [f"gradients/{name}Grad" for name in PARAMETERS]
LAYERS = [f"{layer}/{part}" for layer in ("d1", "do", "d2") for part in ("inputs", "outputs")]
DATA = ["inputs", "labels", "predictions"]
NUMBERS = ["loss", "mae", "batch"]
OPTIMIZER = {
    3: ["opt/iteration:0", "opt/learning_rate:0"],
    2: ["iteration:0", "learning_rate:0", *(f"opt/m/{name}:0" for name in PARAMETERS)],
}


def generation(keras: Any) -> int:
    """2 or 3."""
    return GENERATIONS[keras.__name__]


def is_meant_for(package: str | None, backends: Any = (), generations: Any = ()) -> bool:
    """Whether a test for these backends and generations of Keras runs here with this package."""
    here = [GENERATIONS[package]] if package is not None else GENERATIONS.values()
    return (not backends or BACKEND in backends) and (
        not generations or any(number in generations for number in here)
    )


def make_hook(out_dir: Path, **options: Any) -> Any:
    """A hook that saves every third step, unless told otherwise."""
    import smdebug.tensorflow as smd

    chosen = {"save_config": smd.SaveConfig(save_interval=3)}
    return smd.KerasHook(str(out_dir), **(chosen | options))


def load(package: str) -> Any:
    """The package, with few threads and two virtual devices."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        if not tf.config.threading.get_intra_op_parallelism_threads():
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
            cpu = tf.config.list_physical_devices("CPU")[0]
            virtual = [tf.config.LogicalDeviceConfiguration()] * 2
            tf.config.set_logical_device_configuration(cpu, virtual)
    return importlib.import_module(package)


def sequential(keras: Any, layers: list[Any], name: str = "seq", inputs: int = 4) -> Any:
    """A Sequential model with declared inputs."""
    first = keras.Input((inputs,)) if hasattr(keras, "ops") else keras.layers.InputLayer((inputs,))
    return keras.Sequential([first, *layers], name=name)


def k1(keras: Any, rate: float = 0.0, **options: Any) -> Any:
    """Dense, Dropout, Dense; compiled with SGD(0.1)."""
    layers = keras.layers
    model = sequential(
        keras,
        [
            layers.Dense(3, "relu", name="d1"),
            layers.Dropout(rate, name="do"),
            layers.Dense(2, name="d2"),
        ],
    )
    return compiled(keras, model, **options)


def compiled(keras: Any, model: Any, **options: Any) -> Any:
    """The model with SGD(0.1), mean squared error and mean absolute error."""
    chosen = {
        "optimizer": keras.optimizers.SGD(0.1, name="opt"),
        "loss": "mse",
        "metrics": ["mae"],
    }
    model.compile(**(chosen | options))
    return model


def data(batches: int = 10, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with four columns and labels with two."""
    rng = np.random.default_rng(seed)
    x = rng.random((batches * BATCH, 4), dtype=np.float32)
    y = rng.random((batches * BATCH, 2), dtype=np.float32)
    return x, y


def fit(model: Any, hook: Any = None, batches: int = 10, **options: Any) -> Any:
    """Trains on batches in order."""
    x, y = data(batches)
    callbacks = [] if hook is None else [hook]
    chosen = {"batch_size": BATCH, "shuffle": False, "verbose": 0, "callbacks": callbacks}
    return model.fit(x, y, **(chosen | options))


def weights(model: Any) -> list[np.ndarray]:
    """All weights, as arrays."""
    return [np.asarray(w) for w in model.get_weights()]


def assert_same(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """Equal to the last bit."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def trained_twice(
    keras: Any, make: Callable[[], Any], hook: Any, run: Callable[[Any, Any], Any] = fit
) -> tuple[Any, Any]:
    """Trains with and without the hook from the same seed: weights and history are identical."""
    results = []
    for callback in (None, hook):
        keras.utils.set_random_seed(3)
        model = make()
        history = run(model, callback)
        results.append((model, history))
    (plain, before), (model, after) = results
    assert_same(weights(model), weights(plain))
    assert after.history == before.history
    return model, after


def trial_of(out_dir: Path) -> Any:
    """The run, read back."""
    import smdebug

    return smdebug.create_trial(str(out_dir))


def value(out_dir: Path, name: str, step: int, mode: Any = None) -> np.ndarray:
    """The value of a tensor at a step."""
    from smdebug import modes

    return trial_of(out_dir).tensor(name).value(step, mode=mode or modes.TRAIN)
