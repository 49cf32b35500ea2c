"""A case: one training to be recorded, with what is known about it."""

from __future__ import annotations

import functools
import json
import re
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from faults.catalogue import FAULTS
from faults.clean import VARIANTS, Variant
from faults.fault import Fault, Form
from faults.injection import Injection
from faults.settings import TRAINERS, Settings, settings_of
from faults.training import Training
from faults.trees import TreeTraining

TRUTH = "truth.json"


@dataclass(frozen=True)
class Case:
    """A trainer with a form of a fault, or with a variant of health, and a seed."""

    trainer: str
    seed: int
    fault: Fault | None = None
    form: Form | None = None
    variant: Variant | None = None

    @property
    def what(self) -> str:
        """The name of the fault or the variant, with its number and form."""
        if self.fault is None or self.form is None:
            return f"clean {self.variant.name if self.variant else 'plain'}"
        return f"{self.fault.number:02} {self.fault.name}" + (
            f" ({self.form.name})" if self.form.name else ""
        )

    @property
    def key(self) -> str:
        """A name for files."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.what} {self.trainer} {self.seed}".lower())

    @property
    def is_tuning(self) -> bool:
        """Even seeds are for choosing thresholds; odd ones for the score that is told."""
        return self.seed % 2 == 0

    @property
    def onset(self) -> int:
        return self.form.onset if self.form else 0

    @functools.cached_property
    def settings(self) -> Settings:
        source = self.form or self.variant
        settings = settings_of(self.trainer, self.seed, source.settings if source else {})
        factors = source.factors if source else {}
        return replace(settings, **{k: getattr(settings, k) * f for k, f in factors.items()})

    def make_injection(self) -> Injection:
        source = self.form or self.variant
        return source.injection() if source else Injection()

    def make_training(self) -> Training | TreeTraining:
        kind = TreeTraining if self.trainer == "trees" else Training
        return kind(self.settings, self.make_injection(), self.seed)


@dataclass(frozen=True)
class Truth:
    """What is known of a recorded run without reading it."""

    train_steps: list[int]
    longest_pause_secs: float
    seconds: float
    bytes_written: int

    def train_step(self, step: int) -> int:
        """The step of TRAIN that a global step belongs to, or comes after."""
        return max(0, sum(1 for s in self.train_steps if s <= step) - 1)

    @staticmethod
    def read(folder: Path) -> Truth:
        return Truth(**json.loads((folder / TRUTH).read_text()))


def record(case: Case, folder: Path) -> Truth:
    """Trains and records into `folder`/run; the truth appears when all is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    info: dict[str, Any] = case.make_training().run(folder / "run")
    size = sum(f.stat().st_size for f in (folder / "run").rglob("*") if f.is_file())
    truth = Truth(**info, bytes_written=size)
    (folder / TRUTH).write_text(json.dumps(asdict(truth)))
    return truth


def faulty_cases(seed: int) -> list[Case]:
    return [
        Case(trainer, seed, fault, form)
        for fault in FAULTS
        for form in fault.forms
        for trainer in form.trainers
    ]


def clean_cases(seed: int, at_least: int) -> list[Case]:
    """Every variant on its trainers, with further seeds of the same parity until there are enough."""
    cases: list[Case] = []
    for extra in range(0, 1000, 10):
        cases += [
            Case(trainer, seed + extra, variant=variant)
            for variant in VARIANTS
            for trainer in variant.trainers
        ]
        if len(cases) >= at_least:
            return cases
    return cases


def plain_case(trainer: str, seed: int) -> Case:
    """The healthy twin of faulty cases."""
    assert trainer in TRAINERS
    return Case(trainer, seed, variant=VARIANTS[0])
