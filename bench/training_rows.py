"""The rows of the table about training with PyTorch, beside the original on the same models.

Both packages run in processes of their own, which are asked in turns; each measures its own base,
the same training without a hook. Times are those of the training thread on the processor, as wall
time says little on a machine with other work; the wall time is shown where it matters.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20

# The C library gives memory back when a step frees it, or does not, as it comes: between no and
# 17,000 page faults in a step of the transformer, which are 20 ms.
KEPT_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 * MIB),
}

RAW = "training: raw weights and gradients every 10 steps"
PACKAGES = {"torch": str(ROOT / "python"), "original_torch": ""}  # by environment

Line = tuple[str, str, str, str, str]
Text = Callable[[float], str]


class Trainer:
    """A process of bench/training.py, or of another script that is asked in the same way."""

    def __init__(
        self,
        environment: str,
        package: str,
        directory: Path,
        script: str = "training.py",
        variables: Mapping[str, str] = KEPT_MEMORY,
    ) -> None:
        directory.mkdir(parents=True)
        self._script = script
        self._process = subprocess.Popen(
            [
                str(ROOT / ".venvs" / environment / "bin/python"),
                str(ROOT / "bench" / script),
                str(directory),
            ],
            env={**os.environ, **variables, "PYTHONPATH": package, "SMDEBUG_STRICT": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, what: str, **question: object):
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps({"ask": what, **question}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"bench: bench/{self._script} failed at {what} {question}.")
        return json.loads(answer)

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass
class Cost:
    """What a hook adds to one step, and the step without it, in seconds."""

    added: float
    low: float  # quartiles of what it added
    high: float
    wall: float
    base: float

    @property
    def share(self) -> float:
        return self.added / self.base


def cost(pairs: list[list[list[float]]], count: int) -> Cost:
    """From blocks of `count` steps, without and with the hook in turns."""
    walls = [(hooked[0] - base[0]) / count for base, hooked in pairs]
    added = [(hooked[1] - base[1]) / count for base, hooked in pairs]
    base = statistics.median(base[1] for base, _ in pairs) / count
    low, middle, high = statistics.quantiles(added, n=4, method="inclusive")
    return Cost(middle, low, high, statistics.median(walls), base)


def compare(
    ours: Trainer, theirs: Trainer, rounds: tuple[int, int], count: int, **question: object
) -> tuple[Cost, Cost]:
    """Both, block after block, the slower one in fewer rounds."""
    found: list[list] = [[], []]
    for i in range(max(rounds)):
        for trainer, pairs, wanted in zip((ours, theirs), found, rounds, strict=True):
            if i < wanted:
                pairs.append(trainer.ask("pairs", count=count, **question))
    return cost(found[0], count), cost(found[1], count)


def spread(cost: Cost, text: Text) -> str:
    """The median with its quartiles."""
    return f"+{text(max(cost.added, 0))} [{signed(cost.low, text)} … {signed(cost.high, text)}]"


def signed(seconds: float, text: Text) -> str:
    return text(seconds) if seconds >= 0 else f"-{text(-seconds)}"


def times(ours: float, theirs: float) -> str:
    return f"{theirs / ours:.0f}×" if ours > 0 else "no cost seen"


def idle(ours: Trainer, theirs: Trainer, quick: bool, text: Text) -> list[Line]:
    """Steps at which nothing is saved."""
    lines: list[Line] = []
    for layers in (4, 100):
        count = (2000 if quick else 5000) // layers
        question = {"model": f"chain{layers}", "part": "forward"}
        mine, other = compare(ours, theirs, (30, 10), count, hook="idle", **question)
        asked = [ours.ask("pairs", count=count, hook="empty", **question) for _ in range(30)]
        empty = cost(asked, count)
        lines.append(
            (
                f"training: forward and loss at a step that saves nothing, {layers} layers",
                f"{spread(mine, text)}, empty callbacks {spread(empty, text)}",
                spread(other, text),
                times(mine.added, other.added),
                "≤ 2 µs beyond empty callbacks",
            )
        )
    return lines


def losses(ours: Trainer, theirs: Trainer, step: float, quick: bool, text: Text) -> list[Line]:
    """Defaults and the loss of every step, on 12 layers so thin that the difference shows."""
    count = 5 if quick else 20
    question = {"model": "thin", "part": "forward"}
    mine, other = compare(ours, theirs, (30, 15), count, hook="defaults", **question)
    every, other_every = compare(ours, theirs, (30, 15), count, hook="loss", **question)
    clocked, other_clocked = (
        trainer.ask("callbacks", model="thin", hook="loss", count=10 * count)
        for trainer in (ours, theirs)
    )
    return [
        (
            "training: defaults, of the transformer's step",
            f"{max(mine.added, 0) / step:.2%} ({spread(mine, text)})",
            f"{max(other.added, 0) / step:.2%} ({spread(other, text)})",
            times(mine.added, other.added),
            "≤ 0.2 %",
        ),
        (
            "training: the loss of every step, in callbacks on the training thread",
            text(clocked),
            text(other_clocked),
            times(clocked, other_clocked),
            "≤ 50 µs",
        ),
        (
            "training: the loss of every step, as a difference of steps",
            spread(every, text),
            spread(other_every, text),
            times(every.added, other_every.added),
            "",
        ),
    ]


def reductions(ours: Trainer, theirs: Trainer, quick: bool, text: Text) -> tuple[float, list[Line]]:
    """Six numbers of everything, at every step; also the seconds of a step without hook."""
    rounds = (6, 2) if quick else (24, 6)
    model, hook = "transformer", "reductions"
    mine, other = compare(ours, theirs, rounds, 1, model=model, hook=hook)
    # The same without the noise of the step itself, which is forty times as long.
    floors, spent = [], []
    for _ in range(rounds[0]):
        floors.append(ours.ask("floor", model=model))
        spent.append(ours.ask("callbacks", model=model, hook=hook, count=1, part="step"))
    asked = [
        ours.ask("pairs", model="thin", hook="empty everywhere", count=5) for _ in range(rounds[0])
    ]
    calls = cost(asked, 5)
    floor = statistics.median(one["seconds"] for one in floors)
    inside = statistics.median(spent)
    total = inside + calls.added
    label = "training: 6 reductions of weights, gradients and outputs, every step"
    return mine.base, [
        (
            f"{label}, of a step of {text(mine.base)}",
            f"{mine.share:+.1%} ({spread(mine, text)})",
            f"{other.share:+.0%} ({spread(other, text)})",
            times(mine.added, other.added),
            "≤ 5 %",
        ),
        (
            f"{label}, beside reading {floors[0]['bytes'] / MIB:.0f} MiB once",
            f"{text(total)}: callbacks {text(inside)}, calling them {spread(calls, text)}",
            f"{text(floor)} (one thread reading)",
            f"{total / floor:.2f} of it",
            "≤ 1.5",
        ),
    ]


def raw(ours: Trainer, theirs: Trainer, quick: bool, text: Text) -> list[Line]:
    """Whole weights and gradients, every tenth step; of the transformer with one sequence only, as
    what is saved is the same and the difference of two steps says more when they are short."""
    rounds = 2 if quick else 12
    question = {"model": "short", "hook": "raw"}
    compare(ours, theirs, (2, 2), 10, **question)  # memory for snapshots is made once
    mine, other = compare(ours, theirs, (rounds, rounds), 10, **question)
    return [
        (
            f"{RAW}, a step",
            f"{spread(mine, text)}, wall {signed(mine.wall, text)}",
            f"{spread(other, text)}, wall {signed(other.wall, text)}",
            f"wall {times(mine.wall, other.wall)}, processor {times(mine.added, other.added)}",
            "≥ 10×",
        )
    ]


def peaks(base: Path) -> list[Line]:
    """Memory of raw values, with a C library that gives back what it can."""
    found = []
    for environment, package in PACKAGES.items():
        trainer = Trainer(environment, package, base / f"peak-{environment}", variables={})
        for _ in range(2):  # memory for snapshots is made once
            trainer.ask("pairs", model="short", hook="raw", count=10)
        found.append(trainer.ask("peak", model="short", hook="raw", count=10))
        trainer.end()
    return [
        (
            f"{RAW}, extra memory at the peak",
            f"{found[0] / MIB:.0f} MiB",
            f"{found[1] / MIB:.0f} MiB",
            f"{found[1] / found[0]:.1f}×" if min(found) > 0 else "within what training takes",
            "",
        ),
    ]


def lines(base: Path, quick: bool, text: Text) -> list[Line]:
    """All rows; `text` shows seconds."""
    ours, theirs = (
        Trainer(environment, package, base / f"training-{environment}")
        for environment, package in PACKAGES.items()
    )
    try:
        step, found = reductions(ours, theirs, quick, text)
        found = idle(ours, theirs, quick, text) + losses(ours, theirs, step, quick, text) + found
        found += raw(ours, theirs, quick, text) + peaks(base)
        files = [trainer.ask("close") for trainer in (ours, theirs)]
        # A hook that failed quietly must not look fast.
        for run, count in files[1].items():
            assert files[0][run] > 0 and count > 0, (run, files)
        return found
    finally:
        ours.end()
        theirs.end()
