"""What people do without rules: three detectors that look at the loss alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from faults.case import Case
from faults.evidence import Evidence
from faults.judge.alarm import Alarm
from faults.library import Library

Baseline = Callable[[Evidence], list[Alarm]]

PATIENCE = 5
WINDOW, LEAST_WINDOW, DEVIATIONS = 50, 20, 6.0


def nan_stop(run: Evidence) -> list[Alarm]:
    """Stops at the first loss that is no number."""
    bad = ~np.isfinite(run.loss)
    return _at(run, "NaN stop", int(bad.argmax())) if bad.any() else []


def early_stopping(run: Evidence) -> list[Alarm]:
    """Stops when the validation loss has not improved for a few validations."""
    best, since = np.inf, 0
    for step, value in zip(*run.validation, strict=True):
        since = 0 if value < best else since + 1
        best = min(best, value) if np.isfinite(value) else best
        if since >= PATIENCE:
            return _at(run, "early stopping", int(step))
    return []


def loss_deviation(run: Evidence) -> list[Alarm]:
    """Alarms when the loss is many standard deviations above its recent mean."""
    loss = run.loss
    for step in range(LEAST_WINDOW, len(loss)):
        window = loss[max(0, step - WINDOW) : step]
        if not np.isfinite(window).all():
            break
        if not loss[step] <= window.mean() + DEVIATIONS * window.std() + 1e-12:
            return _at(run, "z-score on the loss", step)
    return []


def _at(run: Evidence, rule: str, train_step: int) -> list[Alarm]:
    return [Alarm(rule, "warning", run.truth.train_steps[train_step], (run.loss_name,))]


BASELINES: dict[str, Baseline] = {
    "NaN-only stop": nan_stop,
    "early stopping": early_stopping,
    "z-score on the loss": loss_deviation,
}


def alarms_of(cases: list[Case], library: Library) -> dict[str, list[list[Alarm]]]:
    """By baseline, the alarms of each case. They are kept beside the runs."""
    code = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    store = library.root / "answers" / f"baselines-{code}.json"
    known: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    missing = [case for case in cases if library.folder(case).name not in known]
    for case in missing:
        run = library.evidence(case)
        known[library.folder(case).name] = {
            name: [asdict(alarm) for alarm in baseline(run)] for name, baseline in BASELINES.items()
        }
    if missing:
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(known))
    return {
        name: [
            [Alarm.from_json(alarm) for alarm in known[library.folder(case).name][name]]
            for case in cases
        ]
        for name in BASELINES
    }
