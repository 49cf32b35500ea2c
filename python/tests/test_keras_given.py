"""What programs and forks of frameworks tell the hook for Keras themselves, on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import smdebug.tensorflow as smd
from keras_models import (
    BATCH,
    GRADIENTS,
    OPTIMIZER,
    data,
    fit,
    generation,
    k1,
    make_hook,
    trial_of,
    value,
)
from smdebug.exceptions import SMDebugValueError
from smdebug.tensorflow import Collection, SaveConfig, modes

EVERY_STEP = SaveConfig(save_interval=1)

pytestmark = pytest.mark.usefixtures("strict")


def telling(keras: Any, tell: Any) -> Any:
    """A callback that calls tell(batch) in the middle of each step, before the hook ends it."""

    class Telling(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            tell(batch)

    return Telling()


def test_values_of_the_program_belong_to_the_step(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir)
    model = k1(keras)

    def tell(batch: int) -> None:
        hook.save_scalar("seen", batch, sm_metric=True)
        hook.record_tensor_value("old", np.float32(batch))
        hook.save_tensor("own", [1.0, float(batch)], ["metrics", "losses"])

    fit(model, None, callbacks=[telling(keras, tell), hook])
    hook.close()
    trial = trial_of(out_dir)
    assert trial.tensor("scalar/seen").steps(mode=modes.TRAIN) == list(range(10))
    assert trial.tensor("old").steps(mode=modes.TRAIN) == [0, 3, 6, 9]
    assert value(out_dir, "own", 6).tolist() == [1.0, 6.0]
    for collection in ("metrics", "losses"):
        assert "own" in trial.tensor_names(collection=collection)


def test_a_variable_can_be_saved_by_hand(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["weights"])
    model = k1(keras)
    kernel = model.layers[0].weights[0]
    tell = telling(keras, lambda batch: hook.save_tensor("kernel", kernel, "metrics"))
    fit(model, None, callbacks=[tell, hook])
    hook.close()
    for step in (0, 9):
        np.testing.assert_array_equal(
            value(out_dir, "kernel", step), value(out_dir, "d1/weights/d1/kernel:0", step)
        )


def test_what_forks_tell_is_saved_under_the_names_of_fit(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True, save_config=EVERY_STEP)
    model = k1(keras)
    fit(model, batches=1)  # its optimizer has its variables then
    hook.register_model(model)
    x, _ = data(1)
    hook.set_mode(modes.TRAIN)
    hook.begin_step()
    hook.save_tape_logs(model_inputs=x, outputs=x[:, :2])
    gradients = [np.full(v.shape, 2.0, "f4") for v in model.trainable_variables]
    hook.set_gradients(gradients)
    variables = model.optimizer.variables
    hook.set_optimizer_variables(variables() if callable(variables) else variables)
    assert hook.should_save_layer("d1")
    assert hook.should_save_tensor_or_collection("nothing", "gradients")
    hook.close()
    trial = trial_of(out_dir)
    np.testing.assert_array_equal(value(out_dir, "inputs", 0), x)
    np.testing.assert_array_equal(value(out_dir, "predictions", 0), x[:, :2])
    assert sorted(trial.tensor_names(collection="gradients")) == sorted(GRADIENTS)
    assert value(out_dir, GRADIENTS[1], 0).tolist() == [2.0] * 3
    state = set(trial.tensor_names(collection="optimizer_variables"))
    assert OPTIMIZER[generation(keras)][0] in state


def test_a_hook_that_saves_nothing_says_so(out_dir: Path) -> None:
    hook = make_hook(out_dir, save_config=SaveConfig(start_step=10**9))
    hook.begin_step()
    assert not hook.should_save_layer("d1")
    assert not hook.should_save_tensor_or_collection("loss", "losses")
    hook.close()


def test_the_hook_of_the_process_is_the_one_that_is_asked_for(
    out_dir: Path, tmp_path: Path
) -> None:
    assert smd.get_hook() is None
    hook = make_hook(out_dir)
    assert isinstance(hook.get_collection("losses"), Collection)
    assert smd.get_hook() is smd.get_hook("keras") is hook
    with pytest.raises(SMDebugValueError, match="'kerras' is no kind of hook"):
        smd.get_hook("kerras")
    hook.close()
    smd.del_hook()
    file = tmp_path / "hook.json"
    file.write_text(
        '{"LocalPath": "%s", "HookParameters": {"save_interval": 2}}' % (tmp_path / "j")
    )
    made = smd.get_hook("keras", json_config_path=str(file), create_if_not_exists=True)
    assert type(made).__name__ == "KerasHook" and made.out_dir == str(tmp_path / "j")
    made.close()


def test_compiled_and_eager_runs_save_the_same(keras: Any, out_dir: Path) -> None:
    shown = []
    for name, options in (("compiled", {}), ("eager", {"run_eagerly": True})):
        keras.utils.set_random_seed(3)
        hook = make_hook(out_dir / name, save_all=True)
        fit(k1(keras, **options), hook)
        hook.close()
        trial = trial_of(out_dir / name)
        tensors = {n: trial.tensor(n).value(6, mode=modes.TRAIN) for n in trial.tensor_names()}
        shown.append(tensors)
    compiled, eager = shown
    assert set(compiled) == set(eager)
    assert compiled["inputs"].shape == (BATCH, 4)
    for name, tensor in compiled.items():
        np.testing.assert_allclose(tensor, eager[name], atol=1e-5, err_msg=name)
