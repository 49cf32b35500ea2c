"""The rows of the table about training with MXNet, beside the original on the same net."""

from __future__ import annotations

from pathlib import Path

from training_rows import ROOT, Line, Text, Trainer, compare, spread, times

# (label, hook, aim)
CASES = [
    ("at a step that saves nothing", "idle", "≤ 50 µs"),
    ("with the loss of every step", "loss", "≥ 5×"),
    ("with 5 reductions of weights and gradients, every step", "reductions", "≥ 5×"),
    ("with raw weights and gradients every 10 steps", "raw", "≥ 5×"),
]
COUNT = 10  # steps in a block: one of them saves raw tensors


def lines(base: Path, quick: bool, text: Text) -> list[Line]:
    """All rows; `text` shows seconds."""
    ours = Trainer("mxnet", str(ROOT / "python"), base / "gluon-ours", "gluon.py")
    theirs = Trainer("original_mxnet", "", base / "gluon-original", "gluon.py")
    rows: list[Line] = []
    try:
        for label, hook, aim in CASES:
            rounds = (6, 3) if quick else (20, 8)
            mine, other = compare(ours, theirs, rounds, COUNT, hook=hook)
            rows.append(
                (
                    f"Gluon: a step of {text(mine.base)} {label}",
                    spread(mine, text),
                    spread(other, text),
                    times(mine.added, other.added),
                    aim,
                )
            )
        files = [trainer.ask("close") for trainer in (ours, theirs)]
        # A hook that failed quietly must not look fast.
        for run, count in files[1].items():
            assert run == "idle" or (files[0][run] > 0 and count > 0), (run, files)
        return rows
    finally:
        ours.end()
        theirs.end()
