"""Asks the rule engine about many runs: the program `smdebug diagnose`, some runs per call.

Answers are kept beside the runs and asked for again when the program or the question changed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.judge import findings
from faults.judge.alarm import Alarm

RUNS_PER_CALL = 16
# The rules of the original, by their names there. CreateXgboostReport never fires.
ORIGINAL_RULES = (
    *("VanishingGradient", "ExplodingTensor", "PoorWeightInitialization", "SaturatedActivation"),
    *("DeadRelu", "WeightUpdateRatio", "TensorVariance", "UnchangedTensor", "AllZero"),
    *("LossNotDecreasing", "Overfit", "Overtraining", "StalledTrainingRule", "ClassImbalance"),
    *("Confusion", "NLPSequenceRatio", "CheckInputImages", "FeatureImportanceOverweight"),
    *("TreeDepth", "CreateXgboostReport"),
)
# SimilarAcrossRuns, the 21st, compares with another run and has nothing to do here.


@dataclass(frozen=True)
class Question:
    """Which rules are asked, with which parameters."""

    name: str
    originals_only: bool
    parameters: tuple[str, ...] = ()


# What the documentation of the original gives to rules that demand a selector.
SELECTORS = (
    "AllZero.collection_names=gradients",
    "UnchangedTensor.collection_names=weights",
    "TensorVariance.collection_names=weights",
    "TensorVariance.max_threshold=10",
    "TensorVariance.min_threshold=0.00001",
)
COMPAT = ("DeadRelu.compat=true", "FeatureImportanceOverweight.compat=true")
# Chosen on even seeds only.
TUNED: tuple[str, ...] = (
    "AllZero.collection_names=gradients",
    "UnchangedTensor.collection_names=weights",
    # Without bounds it looks and says nothing.
    "TensorVariance.collection_names=weights",
)
# Pauses of the bench last half a second instead of minutes.
SCALED = ("TrainingPause.least_secs=0.45",)

QUESTIONS = (
    Question("21 rules, original defaults", True, (*SELECTORS, *COMPAT)),
    Question("all rules", True, TUNED),
    Question("diagnose as it is", False, SCALED),
)


@dataclass
class Answers:
    """Alarms by run, and what it took."""

    alarms: dict[Path, list[Alarm]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    asked: int = 0


class Engine:
    """The program at a path; `is_there` says whether it can diagnose."""

    def __init__(self, program: Path, cache: Path) -> None:
        self._program = program
        self._cache = cache
        self._rules: set[str] = set()

    def probe(self, run: Path) -> str:
        """Asks about one run. The reason why the engine cannot be used, or nothing."""
        if not self._program.exists():
            return f"There is no program at {self._program}."
        done = self._call([], [run])
        if done.returncode not in (0, 1):
            lines = done.stderr.strip().splitlines()
            return f"The program does not diagnose: {lines[0] if lines else 'no message'}"
        self._rules = findings.known_rules(next(findings.documents(done.stdout)))
        return ""

    def refusal(self, question: Question, run: Path) -> str:
        """Why the program does not take a question at all, such as an unknown parameter, or nothing."""
        done = self._call(self._arguments(question), [run])
        return "" if done.returncode in (0, 1) else done.stderr.strip() or "no message"

    @property
    def rules(self) -> set[str]:
        return self._rules

    @property
    def lacking(self) -> list[str]:
        """Rules of the original that the engine does not know."""
        known = {findings.plain(rule) for rule in self._rules}
        return [rule for rule in ORIGINAL_RULES if findings.plain(rule) not in known]

    def ask(self, question: Question, runs: list[Path], processes: int) -> Answers:
        arguments = self._arguments(question)
        store = self._cache / f"{self._hash(arguments)}.json"
        known: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
        missing = [run for run in runs if str(run) not in known]
        answers = Answers(asked=len(missing))
        start = time.perf_counter()
        calls = [missing[i : i + RUNS_PER_CALL] for i in range(0, len(missing), RUNS_PER_CALL)]
        with ThreadPoolExecutor(processes) as pool:
            for batch in pool.map(lambda some: self._documents(arguments, some), calls):
                known.update(batch)
        answers.seconds = time.perf_counter() - start
        if missing:
            store.parent.mkdir(parents=True, exist_ok=True)
            store.write_text(json.dumps(known))
        for run in runs:
            document = known[str(run)]
            if "error" in document:
                answers.problems.append(f"{run.parent.name}: {document['error']}")
                answers.alarms[run] = []
                continue
            answers.alarms[run] = findings.alarms(document)
            answers.problems += [
                f"{run.parent.name}: {rule} failed" for rule in findings.failures(document)
            ]
        return answers

    def _arguments(self, question: Question) -> list[str]:
        known = {findings.plain(rule): rule for rule in self._rules}
        wanted = [known[r] for r in map(findings.plain, ORIGINAL_RULES) if r in known]
        chosen = ["--rules", ",".join(wanted)] if question.originals_only else []
        for parameter in question.parameters:
            if findings.plain(parameter.split(".")[0]) in known:
                chosen += ["--param", parameter]
        return chosen

    def _documents(self, arguments: list[str], runs: list[Path]) -> dict[str, Any]:
        done = self._call(arguments, runs)
        if done.returncode in (0, 1):
            return dict(zip(map(str, runs), findings.documents(done.stdout), strict=True))
        if len(runs) == 1:
            return {str(runs[0]): {"error": done.stderr.strip() or f"exit {done.returncode}"}}
        # One run spoils the call: find out which.
        return {k: v for run in runs for k, v in self._documents(arguments, [run]).items()}

    def _call(self, arguments: list[str], runs: list[Path]) -> subprocess.CompletedProcess[str]:
        command = [str(self._program), "diagnose", "--json", *arguments, *map(str, runs)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _hash(self, arguments: list[str]) -> str:
        digest = hashlib.sha256(self._program.read_bytes())
        digest.update("\0".join(arguments).encode())
        return digest.hexdigest()[:16]
