"""The hook for Keras on every backend and generation: names, steps, values, untouched training."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Messages
from keras_models import (
    BACKEND,
    BATCH,
    DATA,
    GRADIENTS,
    LAYERS,
    NUMBERS,
    OPTIMIZER,
    WEIGHTS,
    compiled,
    data,
    fit,
    generation,
    k1,
    make_hook,
    trained_twice,
    trial_of,
    value,
    weights,
)
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.tensorflow import ReductionConfig, SaveConfig, modes

EVERY_STEP = SaveConfig(save_interval=1)


pytestmark = pytest.mark.usefixtures("strict")


def test_scripts_find_the_hook_under_both_of_its_paths(keras: Any) -> None:
    import smdebug.tensorflow as smd
    import smdebug.tensorflow.keras as package
    from smdebug.tensorflow.keras import KerasHook

    assert KerasHook is smd.KerasHook
    assert issubclass(KerasHook, keras.callbacks.Callback)
    assert "KerasHook" in dir(package)
    assert pickle.loads(pickle.dumps(KerasHook)) is KerasHook
    with pytest.raises(AttributeError, match="KerasHok"):
        _ = package.KerasHok


# ---- names and steps


def test_defaults_save_losses_and_metrics(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir)
    fit(k1(keras), hook)
    hook.close()
    trial = trial_of(out_dir)
    assert sorted(trial.tensor_names()) == sorted(NUMBERS)
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6, 9]
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert sorted(trial.tensor_names(collection="metrics")) == ["batch", "mae"]
    assert value(out_dir, "batch", 6).tolist() == [6]


def test_fit_evaluate_and_predict_have_steps_of_their_own(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["weights"])
    model = k1(keras)
    x, y = data()
    fit(model, hook)
    model.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[hook])
    model.predict(x[: 4 * BATCH], batch_size=BATCH, verbose=0, callbacks=[hook])
    fit(model, hook)
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6, 9, 12, 15, 18, 19]
    assert trial.steps(mode=modes.EVAL) == [0, 3, 6, 9]
    assert trial.steps(mode=modes.PREDICT) == [0, 3]
    loss = trial.tensor("loss")
    counts = [len(loss.steps(mode=mode)) for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT)]
    assert counts == [8, 4, 0]
    assert value(out_dir, "batch", 19).tolist() == [0], "the epoch"


def test_save_all_names_everything_once(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    fit(k1(keras), hook, batches=1)
    hook.close()
    trial = trial_of(out_dir)
    expected = WEIGHTS + GRADIENTS + LAYERS + DATA + NUMBERS + OPTIMIZER[generation(keras)]
    assert sorted(trial.tensor_names(step=0)) == sorted(expected)
    assert len(expected) == {3: 22, 2: 26}[generation(keras)]
    names = {
        name: sorted(trial.tensor_names(collection=name))
        for name in ("weights", "biases", "gradients", "layers", "inputs", "outputs")
    }
    assert names == {
        "weights": sorted(w for w in WEIGHTS if "bias" not in w),
        "biases": sorted(w for w in WEIGHTS if "bias" in w),
        "gradients": sorted(GRADIENTS),
        "layers": sorted(LAYERS),
        "inputs": ["inputs"],
        "outputs": ["labels", "predictions"],
    }
    optimizer = trial.tensor_names(collection="optimizer_variables")
    assert sorted(optimizer) == sorted(OPTIMIZER[generation(keras)])


# ---- values

COMPILED = [{}, {"run_eagerly": True}]


@pytest.mark.parametrize("options", COMPILED, ids=["compiled", "eager"])
def test_values_are_those_of_the_step(keras: Any, out_dir: Path, options: Any) -> None:
    hook = make_hook(out_dir, save_all=True, save_config=EVERY_STEP)
    model, _ = trained_twice(keras, lambda: k1(keras, **options), hook)
    hook.close()
    trial = trial_of(out_dir)

    def at(name: str, step: int) -> Any:
        return trial.tensor(name).value(step, mode=modes.TRAIN)

    x, y = data()
    for step in range(10):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        np.testing.assert_array_equal(at("inputs", step), x[rows])
        np.testing.assert_array_equal(at("labels", step), y[rows])
        np.testing.assert_allclose(at("do/inputs", step), at("d1/outputs", step), atol=1e-7)
        np.testing.assert_allclose(at("predictions", step), at("d2/outputs", step), atol=1e-7)
        np.testing.assert_array_equal(at("d1/inputs", step), x[rows])
    for step in range(1, 10):
        for weight, gradient in zip(WEIGHTS, GRADIENTS, strict=True):
            moved = at(weight, step - 1) - at(weight, step)
            np.testing.assert_allclose(moved, 0.1 * at(gradient, step), atol=1e-6)
    for weight, now in zip(WEIGHTS, weights(model), strict=True):
        np.testing.assert_array_equal(at(weight, 9), now)


def test_compiled_by_xla_gives_the_same_names(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, lambda: k1(keras, jit_compile=True), hook)
    hook.close()
    trial = trial_of(out_dir)
    expected = WEIGHTS + GRADIENTS + LAYERS + DATA + NUMBERS + OPTIMIZER[generation(keras)]
    assert sorted(trial.tensor_names(step=0)) == sorted(expected)
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6, 9]
    x, _ = data()
    np.testing.assert_array_equal(value(out_dir, "inputs", 3), x[3 * BATCH : 4 * BATCH])
    np.testing.assert_allclose(
        value(out_dir, "predictions", 3), value(out_dir, "d2/outputs", 3), atol=1e-6
    )


@pytest.mark.keras_only(backends=("tensorflow", "jax"))  # PyTorch refuses several steps at once
def test_steps_that_run_as_one_are_saved_with_the_last(
    keras: Any, out_dir: Path, messages: Messages
) -> None:
    hook = make_hook(out_dir, save_all=True)
    model = k1(keras, steps_per_execution=5)
    fit(model, hook)
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [4, 9]
    x, _ = data()
    for step in (4, 9):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        np.testing.assert_array_equal(value(out_dir, "inputs", step), x[rows])
    assert len(messages.containing("5 steps run at once")) == 1
    expected = WEIGHTS + GRADIENTS + NUMBERS + OPTIMIZER[generation(keras)] + ["inputs", "labels"]
    expected += [] if BACKEND == "jax" else [*LAYERS, "predictions"]
    assert sorted(trial.tensor_names(step=4)) == sorted(expected)


# ---- what is left of it in the model


def function_watch(keras: Any, model: Any) -> Any:
    """A callback that notes the train function of each batch, as (batch, function)."""

    class Watch(keras.callbacks.Callback):
        seen: list[tuple[int, Any]] = []

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.seen.append((batch, model.train_function))

    return Watch()


def leftovers(model: Any) -> list[str]:
    owners = [model, *model.layers, model.optimizer]
    names = ("train_step", "test_step", "predict_step", "call", "apply", "apply_gradients")
    return [f"{o.name}.{n}" for o in owners for n in (*names, "stateless_apply") if n in vars(o)]


def test_steps_that_save_nothing_run_the_function_of_keras(keras: Any, out_dir: Path) -> None:
    model = k1(keras)
    fit(model)
    made = model.train_function
    hook = make_hook(out_dir, save_all=True)
    watch = function_watch(keras, model)
    fit(model, None, callbacks=[hook, watch])
    assert model.train_function is made
    assert [batch for batch, found in watch.seen if found is not made] == [0, 3, 6, 9]
    assert leftovers(model) == []
    capture = hook._fit.capture
    functions = dict(capture._functions)
    fit(model, hook)
    assert {k: id(f) for k, (_, f) in capture._functions.items()} == {
        k: id(f) for k, (_, f) in functions.items()
    }, "a second fit makes no new function"
    compiled(keras, model)
    fit(model, hook)
    hook.close()
    assert model.train_function is not made
    assert leftovers(model) == []
    trial = trial_of(out_dir)
    assert trial.tensor(GRADIENTS[0]).steps(mode=modes.TRAIN)[-1] == 27


def test_a_model_is_recorded_that_is_not_built_yet(keras: Any, out_dir: Path) -> None:
    def make() -> Any:
        layers = [keras.layers.Dense(3, "relu", name="d1"), keras.layers.Dense(2, name="d2")]
        return compiled(keras, keras.Sequential(layers, name="seq"))

    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, make, hook)
    hook.close()
    names = trial_of(out_dir).tensor_names(step=0)
    assert set(WEIGHTS) | set(GRADIENTS) <= set(names)
    assert {"d1/inputs", "d2/outputs", "predictions"} <= set(names)


def test_an_error_of_the_step_reaches_the_program(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    model = k1(keras)
    x, y = data()
    with pytest.raises(Exception):  # noqa: B017  (each backend has its own)
        model.fit(x[:, :3], y, batch_size=BATCH, verbose=0, callbacks=[hook])
    assert leftovers(model) == []
    fit(model, hook)
    hook.close()
    assert trial_of(out_dir).steps(mode=modes.TRAIN)[0] == 0


# ---- structures


def test_dictionaries_are_numbered(keras: Any, out_dir: Path) -> None:
    inputs = {"b": keras.Input((4,), name="b")}
    outputs = {"o": keras.layers.Dense(2, name="o")(inputs["b"])}
    model = keras.Model(inputs, outputs)
    model.compile(optimizer="sgd", loss={"o": "mse"})
    hook = make_hook(out_dir, include_collections=["inputs", "outputs"])
    x, y = data(2)
    model.fit({"b": x}, {"o": y}, batch_size=BATCH, verbose=0, callbacks=[hook], shuffle=False)
    hook.close()
    names = set(trial_of(out_dir).tensor_names())
    assert {"inputs_0", "labels_0", "predictions_0"} <= names
    np.testing.assert_array_equal(value(out_dir, "inputs_0", 0), x[:BATCH])


def test_equal_inputs_of_a_layer_are_stacked(keras: Any, out_dir: Path) -> None:
    first = keras.Input((4,))
    left = keras.layers.Dense(3, name="left")(first)
    right = keras.layers.Dense(3, name="right")(first)
    both = keras.layers.Concatenate(name="both")([left, right])
    model = compiled(keras, keras.Model(first, keras.layers.Dense(2, name="top")(both)))
    hook = make_hook(out_dir, include_collections=["layers"])
    fit(model, hook)
    hook.close()
    assert value(out_dir, "both/inputs", 3).shape == (2, BATCH, 3)
    np.testing.assert_array_equal(
        value(out_dir, "both/inputs", 3)[1], value(out_dir, "right/outputs", 3)
    )


def test_a_layer_that_is_called_twice_is_numbered(keras: Any, out_dir: Path) -> None:
    first = keras.Input((4,))
    shared = keras.layers.Dense(4, name="shared")
    model = compiled(keras, keras.Model(first, keras.layers.Dense(2)(shared(shared(first)))))
    hook = make_hook(out_dir, include_collections=["layers"])
    fit(model, hook)
    hook.close()
    np.testing.assert_array_equal(
        value(out_dir, "shared/outputs_0", 0), value(out_dir, "shared/inputs_1", 0)
    )


def subclassed(keras: Any, **options: Any) -> Any:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="net")
            self.first = keras.layers.Dense(3, "relu", name="d1")
            self.last = keras.layers.Dense(2, name="d2")

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    return compiled(keras, Net(), **options)


@pytest.mark.parametrize("options", COMPILED, ids=["compiled", "eager"])
def test_a_subclassed_model_is_recorded(keras: Any, out_dir: Path, options: Any) -> None:
    hook = make_hook(out_dir, save_all=True)

    def run(model: Any, callback: Any) -> Any:
        if callback is not None:
            callback.register_model(model)
        return fit(model, callback)

    trained_twice(keras, lambda: subclassed(keras, **options), hook, run)
    hook.close()
    trial = trial_of(out_dir)
    assert sorted(trial.tensor_names(collection="layers")) == [
        "d1/inputs",
        "d1/outputs",
        "d2/inputs",
        "d2/outputs",
    ]
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert trial.tensor_names(collection="inputs") == ["inputs"]
    assert sorted(trial.tensor_names(collection="outputs")) == ["labels", "predictions"]
    assert "d1/weights/net/d1/kernel:0" in trial.tensor_names(collection="weights")
    assert "gradients/net/d1/kernelGrad" in trial.tensor_names(collection="gradients")


# ---- collections


def test_a_pattern_takes_everything_that_matches(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_regex=["d1"])
    fit(k1(keras), hook)
    hook.close()
    names = [n for n in trial_of(out_dir).tensor_names(step=0) if n not in NUMBERS]
    expected = [n for n in WEIGHTS + GRADIENTS + LAYERS + OPTIMIZER[generation(keras)] if "d1" in n]
    assert sorted(names) == sorted(expected)
    for name in names:
        assert value(out_dir, name, 0).size


def test_layers_and_variables_can_be_added_to_collections(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["mine", "those"])
    model = k1(keras)
    hook.get_collection("mine").add_keras_layer(model.layers[0], inputs=True)
    hook.add_to_collection("those", [model.layers[-1].weights[1], model.layers[-1]])
    fit(model, hook)
    hook.close()
    trial = trial_of(out_dir)
    assert sorted(trial.tensor_names(collection="mine")) == ["d1/inputs", "d1/outputs"]
    names = set(trial.tensor_names(step=0)) - set(NUMBERS)
    assert names == {"d1/inputs", "d1/outputs", "d2/weights/d2/bias:0", "d2/outputs"}


def test_reductions_leave_losses_raw(keras: Any, out_dir: Path) -> None:
    wanted = ["min", "max", "mean", "std", "variance", "sum", "prod", "median"]
    config = ReductionConfig(reductions=wanted, norms=["l1", "l2"])
    hook = make_hook(out_dir, include_collections=["weights"], reduction_config=config)
    model = k1(keras)
    fit(model, hook)
    hook.close()
    tensor = trial_of(out_dir).tensor(WEIGHTS[0])
    with pytest.raises(TensorUnavailableForStep):
        tensor.value(9, mode=modes.TRAIN)
    kernel = weights(model)[0]
    for name in (*wanted, "l1", "l2"):
        assert np.isfinite(tensor.reduction_value(9, name, mode=modes.TRAIN)), name
    assert tensor.reduction_value(9, "max", mode=modes.TRAIN) == kernel.max()
    assert value(out_dir, "loss", 9).size == 1


def test_end_step_zero_switches_a_default_off(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_config=EVERY_STEP)
    hook.get_collection("metrics").save_config = SaveConfig(end_step=0)
    fit(k1(keras), hook)
    hook.close()
    assert trial_of(out_dir).tensor_names() == ["loss"]


# ---- evaluation inside of fit


def test_numbers_of_the_validation_belong_to_it(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["layers", "outputs"])
    x, y = data(4, seed=9)

    def run(model: Any, callback: Any) -> Any:
        return fit(model, callback, epochs=2, validation_data=(x, y), validation_batch_size=BATCH)

    model, history = trained_twice(keras, lambda: k1(keras), hook, run)
    plain = k1(keras)
    plain.set_weights(model.get_weights())
    ours = model.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[hook])
    theirs = plain.evaluate(x, y, batch_size=BATCH, verbose=0)
    assert ours == theirs
    given = model.predict(x, batch_size=BATCH, verbose=0, callbacks=[hook])
    np.testing.assert_array_equal(given, plain.predict(x, batch_size=BATCH, verbose=0))
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6, 9, 12, 15, 18, 19]
    assert trial.steps(mode=modes.EVAL) == [0, 3, 6, 7, 9]
    loss = trial.tensor("val_loss")
    assert loss.steps(mode=modes.TRAIN) == []
    assert loss.steps(mode=modes.EVAL) == [3, 7]
    np.testing.assert_allclose(
        loss.value(7, mode=modes.EVAL), history.history["val_loss"][-1], rtol=1e-6
    )
    np.testing.assert_allclose(value(out_dir, "loss", 19), history.history["loss"][-1], rtol=1e-6)
    for mode, step in ((modes.TRAIN, 3), (modes.EVAL, 6), (modes.PREDICT, 3)):
        shown = trial.tensor("d2/outputs").value(step, mode=mode)
        assert shown.shape == (BATCH, 2)
    np.testing.assert_allclose(
        trial.tensor("predictions").value(3, mode=modes.PREDICT), given[3 * BATCH :], atol=1e-7
    )
    from smdebug.tensorflow.keras.capture import Swap, TestDispatcher

    assert not isinstance(model.test_function, Swap | TestDispatcher)
    assert leftovers(model) == []


def test_data_of_unknown_length_counts_no_step_too_many(keras: Any, out_dir: Path) -> None:
    x, y = data(4)

    def batches() -> Any:
        for i in range(4):
            yield x[i * BATCH : (i + 1) * BATCH], y[i * BATCH : (i + 1) * BATCH]

    if BACKEND == "tensorflow":
        import tensorflow as tf

        shapes = (tf.TensorSpec((None, 4)), tf.TensorSpec((None, 2)))
        source: Any = tf.data.Dataset.from_generator(batches, output_signature=shapes)
        runs: list[Any] = [(source, 2), (source, 2)]
    else:  # a generator has one epoch
        runs = [(batches(), 1) for _ in range(4)]
    hook = make_hook(out_dir, save_all=True, save_config=EVERY_STEP)
    held = data(2, seed=5)
    model = k1(keras)
    for i, (source, epochs) in enumerate(runs):
        validation = {"validation_data": held} if i >= len(runs) // 2 else {}
        model.fit(source, epochs=epochs, verbose=0, callbacks=[hook], **validation)
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == list(range(16))
    assert trial.tensor("inputs").steps(mode=modes.TRAIN) == list(range(16))
    assert len(trial.steps()) == 16 + len(trial.steps(mode=modes.EVAL))
