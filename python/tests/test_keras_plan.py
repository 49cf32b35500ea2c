"""`smdebug plan` for scripts of Keras and TensorFlow: fit, loops and sessions, with nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_keras_run import BOTH, FIT, ROOT, TAPE, write

TRACED = TAPE.replace(
    "for i in range(5):",
    """
@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for i in range(5):
    train(x_train[8 * i : 8 * i + 8], y_train[8 * i : 8 * i + 8])
for i in ():""",
)


def plan_of(script: Path, out_dir: Path, legacy: bool = False, *words: str) -> Any:
    """What the command says, as JSON."""
    python = str(ROOT / "python")
    variables = {**os.environ, "PYTHONPATH": python, "SMDEBUG_STRICT": "1"}
    if legacy:
        variables["TF_USE_LEGACY_KERAS"] = "1"
    command = ["plan", "--json", "--out", str(out_dir), "--interval", "5", *words, str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "smdebug.cli", *command],
        env=variables,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not out_dir.exists()
    return json.loads(done.stdout)


@BOTH
def test_a_plan_tells_what_fit_would_save(tmp_path: Path, out_dir: Path, legacy: bool) -> None:
    plan = plan_of(write(tmp_path, FIT), out_dir, legacy, "--save", "all")
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    assert tensors["d1/weights/d1/kernel:0"]["shape"] == [4, 5]
    assert tensors["d1/weights/d1/kernel:0"]["dtype"] == "float32"
    assert {"weights", "all"} >= set(tensors["d1/weights/d1/kernel:0"]["collections"])
    assert tensors["d2/outputs"]["shape"] == [8, 3]
    assert tensors["gradients/d2/biasGrad"]["collections"]
    assert {"loss", "accuracy", "inputs", "labels", "predictions"} <= set(tensors)
    assert plan["models"] == ["seq"]
    assert plan["steps_run"] == 3
    collections = {collection["name"]: collection for collection in plan["collections"]}
    assert collections["weights"]["when"] == "every 5th step"
    assert collections["weights"]["tensors"] == 2


def test_collections_hold_what_their_names_say_unless_something_is_chosen(
    tmp_path: Path, out_dir: Path
) -> None:
    plan = plan_of(write(tmp_path, FIT), out_dir, False)
    found: dict[str, set[str]] = {}
    for tensor in plan["tensors"]:
        for collection in tensor["collections"]:
            found.setdefault(collection, set()).add(tensor["name"])
    assert found["weights"] == {f"{layer}/weights/{layer}/kernel:0" for layer in ("d1", "d2")}
    assert found["biases"] == {f"{layer}/weights/{layer}/bias:0" for layer in ("d1", "d2")}
    assert found["outputs"] == {"d1/outputs", "d2/outputs", "labels", "predictions"}
    assert len(found["gradients"]) == 4
    assert found["losses"] == {"loss"}
    assert plan["unmatched"] == []


def test_a_misspelt_pattern_is_told_with_what_is_near(tmp_path: Path, out_dir: Path) -> None:
    plan = plan_of(write(tmp_path, FIT), out_dir, False, "--include", "^d1/weight/d1/kernel")
    (unmatched,) = plan["unmatched"]
    assert unmatched["near"][0] == "d1/weights/d1/kernel:0"


@pytest.mark.parametrize("text", [TAPE, TRACED], ids=["eager", "traced"])
def test_a_plan_tells_what_a_loop_would_save(tmp_path: Path, out_dir: Path, text: str) -> None:
    plan = plan_of(write(tmp_path, text), out_dir, False, "--save", "all")
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    assert tensors["weights/d1/kernel:0"]["shape"] == [4, 5]
    assert {"loss", "gradients/d2/biasGrad"} <= set(tensors)
    assert plan["steps_run"] == 3


def test_a_plan_tells_what_a_session_would_save(tmp_path: Path, out_dir: Path) -> None:
    script = ROOT / "python/tests/session_scripts/plain.py"
    plan = plan_of(script, out_dir, False, "--save", "all")
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    assert plan["steps_run"] == 3
    assert any("weights" in tensor["collections"] for tensor in tensors.values())
    assert any("gradients" in tensor["collections"] for tensor in tensors.values())
