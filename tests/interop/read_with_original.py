"""Reads a run directory with the released package and prints what it saw as one JSON document.

Run it inside the released package's environment: read_with_original.py [--timeout SECS] RUN_DIR
Exit status: 0 when the trial opened, 1 when it did not, 3 on timeout. `error` then says why.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# Read when the package is imported: do not sleep at the end of a job, do not wait for lost files.
os.environ.setdefault("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
os.environ.setdefault("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "0")


class TimeoutReached(BaseException):
    """Not an Exception, so that nothing below swallows it."""


def keep_stdout() -> int:
    """Sends everything printed to stderr; returns the descriptor of the real stdout."""
    real = os.dup(1)
    os.dup2(2, 1)
    return real


def raise_timeout(signum: int, frame: Any) -> None:
    """Signal handler."""
    raise TimeoutReached


def failure(error: BaseException) -> dict:
    """An error as its class name and text."""
    return {"error": type(error).__name__, "message": str(error)}


def attempt(action: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of the call, or its error as a document."""
    try:
        return action(*args, **options)
    except Exception as error:
        return failure(error)


def describe(value: Any) -> dict:
    """An array as dtype, shape and raw bytes, or its strings."""
    import numpy as np

    array = np.asarray(value)
    head = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.dtype.kind in "UO":
        return {**head, "dtype": "string", "strings": array.ravel().tolist()}
    return {**head, "hex": array.tobytes().hex()}


def describe_value(tensor: Any, step: int, mode: Any, worker: str) -> dict:
    """The raw value of one tensor at one step."""
    return describe(tensor.value(step, mode=mode, worker=worker))


def describe_reductions(tensor: Any, step: int, mode: Any, worker: str) -> list[dict]:
    """The stored reductions of one tensor at one step."""
    values = tensor.reduction_values(step, mode=mode, worker=worker)
    return [
        {"name": name, "abs": absolute, **describe(value)}
        for (name, absolute), value in sorted(values.items())
    ]


def stored_shape(tensor: Any, step: int, mode: Any, worker: str) -> list[int]:
    """The shape, from the index or else from the value."""
    return list(tensor.shape(step, mode=mode, worker=worker))


def describe_tensor_step(tensor: Any, step: int, mode: Any) -> list[dict]:
    """One entry for each worker that has the tensor at this step of this mode."""
    workers = attempt(tensor.workers, step, mode=mode)
    if isinstance(workers, dict):
        return [{"mode": mode.name, "mode_step": step, "worker": None, **workers}]
    return [
        {
            "mode": mode.name,
            "mode_step": step,
            "worker": worker,
            "value": attempt(describe_value, tensor, step, mode, worker),
            "shape": attempt(stored_shape, tensor, step, mode, worker),
            "reductions": attempt(describe_reductions, tensor, step, mode, worker),
        }
        for worker in workers
    ]


def describe_tensor(trial: Any, name: str, own_steps: list[tuple[Any, int]]) -> dict:
    """Everything known of one tensor, at the steps of the modes they were written in."""
    tensor = trial.tensor(name)
    entries: list[dict] = []
    for mode, step in own_steps:
        held = attempt(tensor.steps, mode=mode, show_incomplete_steps=True)
        if isinstance(held, list) and step in held:
            entries += describe_tensor_step(tensor, step, mode)
    return {"steps": attempt(tensor.steps), "entries": entries}


def state_name(trial: Any, step: int, mode: Any) -> str:
    """What the trial says of a step."""
    return trial.has_passed_step(step, mode).name


def describe_trial(path: str) -> dict:
    """Opens the directory and walks all of it."""
    from smdebug.core.modes import ModeKeys
    from smdebug.trials import create_trial

    trial = create_trial(path)
    known = trial.steps(show_incomplete_steps=True)
    own_steps = [(trial.mode(g), trial.mode_step(g)) for g in known]
    names = trial.tensor_names()
    return {
        "num_workers": trial.num_workers,
        "workers": trial.workers(),
        "ended": trial.loaded_all_steps,
        "last_complete_step": trial.last_complete_step,
        "modes": sorted(mode.name for mode in trial.modes()),
        "steps": {mode.name: attempt(trial.steps, mode=mode) for mode in ModeKeys},
        "known_steps": known,
        "own_steps": {str(g): [m.name, s] for g, (m, s) in zip(known, own_steps, strict=True)},
        "collections": {n: c.to_json_dict() for n, c in sorted(trial.collections().items())},
        "tensor_names": names,
        "states": {
            mode.name: [attempt(state_name, trial, step, mode) for step in range(-1, 12)]
            for mode in ModeKeys
        },
        "names_by_pattern": {
            pattern: sorted(trial.tensor_names(regex=pattern))
            for pattern in ("w", "^layer", "loss|weight", "[0-9]$", "^$")
        },
        "names_by_collection": {
            collection: sorted(trial.tensor_names(collection=collection))
            for collection in sorted(trial.collections())
        },
        "tensors": {name: describe_tensor(trial, name, own_steps) for name in names},
    }


def read(path: str, timeout_secs: int) -> tuple[int, dict]:
    """The exit status and the document."""
    signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(timeout_secs)
    try:
        return 0, describe_trial(path)
    except TimeoutReached:
        return 3, {"error": "Timeout", "message": f"Not finished after {timeout_secs} s."}
    except Exception as error:
        return 1, failure(error)
    finally:
        signal.alarm(0)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Reads a run with the released package.")
    parser.add_argument("run_dir")
    parser.add_argument("--timeout", type=int, default=60, metavar="SECS")
    options = parser.parse_args()
    stdout = keep_stdout()
    status, document = read(options.run_dir, options.timeout)
    with os.fdopen(stdout, "w", encoding="utf-8") as out:
        json.dump(document, out, ensure_ascii=False, sort_keys=True)
        out.write("\n")
    sys.stderr.flush()
    os._exit(status)  # Whatever threads the package left behind must not hold us up.


if __name__ == "__main__":
    main()
