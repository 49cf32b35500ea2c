"""Asks the released package what it sees in a run, from tests that live in another environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venvs/original/bin/python"
SCRIPT = ROOT / "tests/interop/read_with_original.py"
REDUCTIONS = "smdebug/reductions/"

Key = tuple[str, str, int, str]


def is_available() -> bool:
    """Whether `tools/venv.sh original` has been run."""
    return PYTHON.exists()


def read_run(run_dir: Path | str, timeout_secs: int = 60) -> dict:
    """The document read_with_original.py prints for the directory."""
    return _document([str(PYTHON)], run_dir, timeout_secs, dict(os.environ))


def read_run_with_ours(run_dir: Path | str, timeout_secs: int = 60) -> dict:
    """The document that the same script prints when it runs with our package."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return _document([sys.executable], run_dir, timeout_secs, environment)


def _document(
    python: list[str], run_dir: Path | str, timeout_secs: int, environment: dict[str, str]
) -> dict:
    command = [*python, str(SCRIPT), "--timeout", str(timeout_secs), str(run_dir)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_secs + 30, env=environment
    )
    if not done.stdout:
        raise RuntimeError(f"The reader printed nothing; its errors were: {done.stderr}")
    return json.loads(done.stdout)


def entries(document: dict) -> dict[Key, dict]:
    """All entries by (tensor, mode, mode step, worker)."""
    return {
        (name, entry["mode"], entry["mode_step"], entry["worker"]): entry
        for name, tensor in document["tensors"].items()
        for entry in tensor["entries"]
    }


def worker_name(file_part: str) -> str:
    """The worker a file name stands for: device names are spelled with _ and -."""
    if not file_part.startswith("_"):
        return file_part
    return file_part.replace("_", "/").replace("-", ":")


def differences(expected_run: dict, document: dict) -> dict[str, str]:
    """Where the released package disagrees with an expected run: tensor name → what it saw."""
    seen = entries(document)
    wrong: dict[str, str] = {}
    for file in expected_run["files"]:
        place = (file["mode"], file["mode_step"], worker_name(file["worker"]))
        last = {tensor["name"]: tensor for tensor in file["tensors"]}
        for name, tensor in last.items():
            found = _find(seen, name, place)
            if any(found.get(k) != tensor.get(k) for k in ("dtype", "shape", "hex", "strings")):
                wrong[name] = found.get("error") or found.get("dtype", "absent")
        for shape in file["shapes"]:
            if seen.get((shape["name"], *place), {}).get("shape") != shape["shape"]:
                wrong[shape["name"]] = "shape"
    return wrong


def _find(seen: dict[Key, dict], name: str, place: tuple[str, int, str]) -> dict:
    if not name.startswith(REDUCTIONS):
        return seen.get((name, *place), {}).get("value", {})
    operation, tensor = name.removeprefix(REDUCTIONS).split("/", 1)
    wanted = (operation.removeprefix("abs_"), operation.startswith("abs_"))
    stored = seen.get((tensor, *place), {}).get("reductions", [])
    return next((r for r in stored if (r["name"], r["abs"]) == wanted), {})
