"""The rows of the table about boosting, beside the original on the same data and XGBoost.

Both packages run in processes of their own, which are asked in turns; each measures its own base,
the same training without a hook.
"""

from __future__ import annotations

from pathlib import Path

from training_rows import MIB, ROOT, Cost, Line, Text, Trainer, cost, spread, times

ROUNDS = 100
# (label, hook, interval, aim)
CASES = [
    ("metrics and importance every 10 rounds", "importance", 10, "≥ 5×"),
    ("metrics of every round", "metrics", 1, "≥ 5×"),
]


def measure(trainer: Trainer, other: Trainer, repeats: int, **question: object) -> list[Cost]:
    """What 100 rounds take more with a hook, for both, in turns."""
    found: list[list] = [[], []]
    for _ in range(repeats):
        for one, pairs in zip((trainer, other), found, strict=True):
            pairs.append(one.ask("pair", **question))
    return [cost(pairs, 1) for pairs in found]


def lines(base: Path, quick: bool, text: Text) -> list[Line]:
    """All rows; `text` shows seconds."""
    ours = Trainer("xgboost17", str(ROOT / "python"), base / "boosting-ours", "boosting.py")
    theirs = Trainer("original_xgboost", "", base / "boosting-original", "boosting.py")
    rows: list[Line] = []
    try:
        for label, hook, interval, aim in CASES:
            mine, other = measure(ours, theirs, 3 if quick else 9, hook=hook, interval=interval)
            rows.append(
                (
                    f"boosting: {ROUNDS} rounds with {label}, with close",
                    f"{spread(mine, text)} to {text(mine.base)}",
                    f"{spread(other, text)} to {text(other.base)}",
                    times(mine.added, other.added),
                    aim,
                )
            )
        sizes = [one.ask("size", hook="shap", interval=20) for one in (ours, theirs)]
        rows.append(
            (
                "boosting: SHAP values of 200 rows and 30 features, 5 times, on the disk",
                *(f"{size / MIB:.2f} MiB" for size in sizes),
                f"{sizes[1] / sizes[0]:.0f}×",
                "stored once",
            )
        )
        # A hook that failed quietly must not look fast.
        assert min(ours.ask("stored"), theirs.ask("stored")) > 0
        return rows
    finally:
        ours.end()
        theirs.end()
