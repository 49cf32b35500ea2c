"""The recorded runs of all cases, kept in a folder and made again only when they would differ.

A run is kept under the hash of everything that it follows from: the code of the trainers, settings,
injected fault and seed. What is said *about* faults, such as who should notice them, is not part of
it. Several processes may fill one library: a run appears whole.
"""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import smdebug

from faults import symptom
from faults.case import Case, Truth, plain_case, record
from faults.evidence import Evidence

HERE = Path(__file__).resolve().parent
# What runs do not follow from, apart from what concerns a case itself.
NO_PART = {"catalogue.py", "clean.py", "library.py", "run.py", "conftest.py"}
VERDICT = "is_real.json"


@functools.cache
def _code() -> bytes:
    digest = hashlib.sha256(smdebug.__version__.encode())
    for file in sorted(HERE.glob("*.py")):
        if file.name not in NO_PART and not file.name.startswith("test_"):
            digest.update(file.read_bytes())
    return digest.digest()


def _hash(case: Case) -> str:
    injection = case.make_injection()
    form = case.form
    content = (
        case.settings,
        case.seed,
        type(injection).__name__,
        sorted(vars(injection).items()),
        (form.onset, form.tensor, form.symptom) if form else None,
        case.fault.symptom if case.fault else case.variant and case.variant.is_converged,
    )
    return hashlib.sha256(_code() + repr(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Library:
    """A folder of runs."""

    root: Path

    def folder(self, case: Case) -> Path:
        return self.root / f"{case.key}-{_hash(case)}"

    def run(self, case: Case) -> Path:
        return self.folder(case) / "run"

    def evidence(self, case: Case) -> Evidence:
        """The run of a case; it is recorded if it is not there."""
        folder = self.folder(case)
        if not (folder / VERDICT).exists():
            self._record(case, folder)
        return Evidence(case, folder)

    def truth(self, case: Case) -> Truth:
        """What is known of a recorded run."""
        return Truth.read(self.folder(case))

    def is_real(self, case: Case) -> bool:
        """Whether the fault shows in the run, or the healthy run is healthy."""
        return bool(json.loads((self.folder(case) / VERDICT).read_text()))

    def _record(self, case: Case, folder: Path) -> None:
        making = self.root / f"{folder.name}.{os.getpid()}.tmp"
        record(case, making)
        evidence = Evidence(case, making)
        if case.fault is None:
            real = symptom.trains(evidence)
        else:
            real = symptom.shows(evidence, self.evidence(plain_case(case.trainer, case.seed)))
        (making / VERDICT).write_text(json.dumps(real))
        shutil.rmtree(folder, ignore_errors=True)
        try:
            making.rename(folder)
        except OSError:
            # Another process was faster, with the same run.
            shutil.rmtree(making, ignore_errors=True)

    def fill(self, cases: Iterable[Case], processes: int) -> int:
        """Records what is missing; says how many that were."""
        missing = [case for case in cases if not (self.folder(case) / VERDICT).exists()]
        if not missing:
            return 0
        self.root.mkdir(parents=True, exist_ok=True)
        _use_one_thread()
        # Twins first, so that no two processes make the same one.
        twins = {
            (case.trainer, case.seed): plain_case(case.trainer, case.seed)
            for case in missing
            if case.fault is not None
        }
        wanted = [c for c in twins.values() if not (self.folder(c) / VERDICT).exists()]
        # Fresh processes: NumPy reads the number of its threads when it is loaded.
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, fresh) as pool:
            for some in (wanted, missing):
                list(pool.map(_fill_one, [self] * len(some), map(_identity, some), chunksize=4))
        return len(missing)


def _use_one_thread() -> None:
    """Small products gain nothing from threads, and sums come out alike everywhere."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    # Runs are finished when they are read.
    os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
    # What hooks say of these trainings, hundreds of times, is not the output of a bench.
    os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")


# Cases hold functions and do not travel between processes; their keys do.
Identity = tuple[str, int]


def _identity(case: Case) -> Identity:
    return case.key, case.seed


def _fill_one(library: Library, identity: Identity) -> None:
    key, seed = identity
    library.evidence(_cases_of(seed)[key])


@functools.lru_cache(maxsize=64)
def _cases_of(seed: int) -> dict[str, Case]:
    from faults.case import clean_cases, faulty_cases

    return {case.key: case for case in [*faulty_cases(seed), *clean_cases(seed, 0)]}
