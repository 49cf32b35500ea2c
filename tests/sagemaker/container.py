"""The files that a training container finds, written from a request as the documentation says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "DebugHookConfig": ("debughookconfig.json", "SMDEBUG_CONFIG_FILE_PATH"),
    "TensorBoardOutputConfig": ("tensorboardoutputconfig.json", "TENSORBOARD_CONFIG_FILE_PATH"),
    "CheckpointConfig": ("checkpointconfig.json", "CHECKPOINT_CONFIG_FILE_PATH"),
}


def write(request: dict[str, Any], folder: Path) -> dict[str, str]:
    """Writes the files; the variables that lead to them. Local paths become folders beside them."""
    variables = {"TRAINING_JOB_NAME": request.get("TrainingJobName", "job")}
    folder.mkdir(parents=True, exist_ok=True)
    for key, (name, variable) in FILES.items():
        if key not in request:
            continue
        local = folder / {"DebugHookConfig": "tensors"}.get(key, key)
        (folder / name).write_text(json.dumps({**request[key], "LocalPath": str(local)}))
        variables[variable] = str(folder / name)
    variables["SAGEMAKER_METRICS_DIRECTORY"] = str(folder / "metrics")
    return variables
