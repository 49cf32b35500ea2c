"""Times one way of reading a run and prints JSON. The same script serves both packages.

    PYTHONPATH=python .venvs/dev/bin/python bench/reading.py SCENARIO RUN
    tools/venv.sh original -- python bench/reading.py SCENARIO RUN

SCENARIO: open, first_value, series, mean, rule, raw. Each runs in a process of its own, so that memory can be
told apart.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"

with contextlib.redirect_stdout(sys.stderr):
    import numpy as np
    from smdebug.rules import Rule
    from smdebug.trials import create_trial

logging.disable(logging.CRITICAL)


def memory_mb() -> float:
    """The resident size of this process."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def open_run(path: str) -> dict:
    before = memory_mb()
    start = time.perf_counter()
    trial = create_trial(path)
    steps = len(trial.steps())
    secs = time.perf_counter() - start
    return {"secs": secs, "memory_mb": memory_mb() - before, "steps": steps}


def first_value(path: str) -> dict:
    start = time.perf_counter()
    trial = create_trial(path)
    tensor = trial.tensor(trial.tensor_names()[0])
    value = tensor.reduction_value(tensor.steps()[-1], "min")
    return {"secs": time.perf_counter() - start, "value": float(np.asarray(value).reshape(-1)[0])}


def series(path: str) -> dict:
    trial = create_trial(path)
    names = trial.tensor_names()
    start = time.perf_counter()
    total = 0.0
    count = 0
    for name in names:
        tensor = trial.tensor(name)
        if hasattr(tensor, "series"):
            _, values = tensor.series("min")
            total += float(values.sum())
            count += len(values)
        else:
            for step in tensor.steps():
                total += float(np.asarray(tensor.reduction_value(step, "min")).reshape(-1)[0])
                count += 1
    return {"secs": time.perf_counter() - start, "values": count, "total": total}


def mean(path: str) -> dict:
    """One statistic, number by number."""
    trial = create_trial(path)
    count = 0
    start = time.perf_counter()
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in tensor.steps():
            tensor.reduction_value(step, "mean")
            count += 1
    return {"secs": time.perf_counter() - start, "values": count}


class TooSmall(Rule):
    """A rule as people write them: names what it needs, and looks at a number of each tensor."""

    def __init__(self, base_trial: object) -> None:
        super().__init__(base_trial, action_str="")
        self.seen = 0

    def set_required_tensors(self, step: int) -> None:
        for name in self.base_trial.tensor_names():
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step: int) -> bool:
        for tensor in self.req_tensors.get():
            self.seen += 1
            if tensor.reduction_value(step, "mean", abs=True) < 1e-7:
                return True
        return False


def rule(path: str) -> dict:
    """One rule, written in Python, over all steps."""
    trial = create_trial(path)
    start = time.perf_counter()
    judge = TooSmall(trial)
    for step in trial.steps():
        judge.invoke(step)
    return {"secs": time.perf_counter() - start, "values": judge.seen}


def raw(path: str) -> dict:
    trial = create_trial(path)
    name = trial.tensor_names()[0]
    tensor = trial.tensor(name)
    step = tensor.steps()[0]
    plain = os.path.join(path, "plain.bin")
    ours = []
    theirs = []
    for _ in range(7):
        start = time.perf_counter()
        value = tensor.value(step)
        ours.append(time.perf_counter() - start)
        del value
        start = time.perf_counter()
        value = np.fromfile(plain, np.float32)
        theirs.append(time.perf_counter() - start)
        del value
    return {"secs": min(ours), "fromfile_secs": min(theirs)}


if __name__ == "__main__":
    scenarios = {
        "open": open_run,
        "first_value": first_value,
        "series": series,
        "mean": mean,
        "rule": rule,
        "raw": raw,
    }
    scenario, run = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        result = scenarios[scenario](run)
    print(json.dumps(result))
