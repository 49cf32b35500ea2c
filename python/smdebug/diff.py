"""What differs between two runs, for people."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from smdebug import _core

_MOST_ROWS = 12  # so that all of it fits a screen
_MOST_LISTED = 4
_MOST_NAME = 44
_HEADER = ("tensor", "step", "what", "differing", "max abs", "max rel", "in A", "in B", "times")


class Diff:
    """What differs between the runs A and B.

    Steps are matched by mode and mode step, workers by name. `str()` tells the most important part on
    one screen; in notebooks it is a table.
    """

    def __init__(self, core: _core.Diff) -> None:
        self._core = core

    @property
    def equal(self) -> bool:
        """Whether the runs hold the same, within the tolerance."""
        return self._core.equal

    @property
    def first(self) -> _core.Difference | None:
        """The first difference: the smallest global step of A, there in the order of writing."""
        return self._core.first

    @property
    def table(self) -> list[_core.Difference]:
        """The worst difference of each tensor, the largest relative ones first."""
        return list(self._core.table)

    @property
    def only_in_a(self) -> _core.OnlyThere:
        """`tensors`, `steps`, `workers` and `records` that run B lacks; false if there are none."""
        return self._core.only_in_a

    @property
    def only_in_b(self) -> _core.OnlyThere:
        """The same that run A lacks."""
        return self._core.only_in_b

    @property
    def compared(self) -> dict[str, int]:
        """How many steps, tensors, values, elements, reductions and shapes were compared."""
        return dict(self._core.compared)

    @property
    def differing_tensors(self) -> int:
        """How many tensors differ; the table may have fewer."""
        return self._core.differing_tensors

    @property
    def stopped(self) -> bool:
        """The comparison was stopped before its end."""
        return self._core.stopped

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"A: {self._core.name_a}", f"B: {self._core.name_b}", *self._summary()]
        rows = [_cells(row) for row in self.table[:_MOST_ROWS]]
        if rows:
            lines += ["", *_columns([_HEADER, *rows])]
            if self.differing_tensors > len(rows):
                lines.append(f"… and {self.differing_tensors - len(rows)} more tensors")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def cells(tag: str, texts: Sequence[str]) -> str:
            return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)

        head = f"A: {self._core.name_a}", f"B: {self._core.name_b}", *self._summary()
        text = "".join(f"<div>{html.escape(line)}</div>" for line in head)
        rows = "".join(f"<tr>{cells('td', _cells(row))}</tr>" for row in self.table)
        if not rows:
            return text
        return f"{text}<table><tr>{cells('th', _HEADER)}</tr>{rows}</table>"

    def _summary(self) -> list[str]:
        counts = self.compared
        lines = []
        if self.equal:
            lines.append("The runs are equal.")
        elif self.first is None:
            lines.append("No difference in what both runs hold.")
        else:
            lines.append(f"First difference: {_sentence(self.first)}")
        for name, only in (("A", self.only_in_a), ("B", self.only_in_b)):
            if only:
                lines.append(f"Only in {name}: {'; '.join(_listed(only))}")
        lines.append(
            f"Compared: {counts['steps']} steps, {counts['tensors']} tensors, "
            f"{counts['values']} values ({counts['elements']:,} elements), "
            f"{counts['reductions']} reductions, {counts['shapes']} shapes"
            + (" (stopped before the end)" if self.stopped else "")
        )
        return lines


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _step(step: int, mode: _core.ModeKeys, mode_step: int) -> str:
    return f"{step} ({mode.name} {mode_step})"


def _what(difference: _core.Difference) -> str:
    return difference.reduction or difference.kind


def _sentence(difference: _core.Difference) -> str:
    place = (
        f"step {_step(difference.step, difference.mode, difference.mode_step)}, "
        f"{difference.tensor}, {difference.worker}: "
    )
    if difference.kind in ("dtype", "shape"):
        return f"{place}{difference.a} in A, {difference.b} in B"
    values = f"{_number(difference.a)} in A, {_number(difference.b)} in B"
    if difference.kind == "reduction":
        return f"{place}{difference.reduction} is {values}"
    return (
        f"{place}{difference.differing:,} of {difference.elements:,} elements, the first at "
        f"{difference.first_element}, the worst at {difference.worst_element}: {values}"
    )


def _cells(row: _core.Difference) -> tuple[str, ...]:
    has_elements = row.kind not in ("dtype", "shape")
    is_number = row.kind in ("value", "reduction")
    return (
        _short(row.tensor),
        _step(row.step, row.mode, row.mode_step),
        _what(row),
        f"{row.differing:,}/{row.elements:,}" if has_elements else "",
        _number(row.max_absolute) if is_number else "",
        _number(row.max_relative) if is_number else "",
        _short(_number(row.a) if is_number else str(row.a)),
        _short(_number(row.b) if is_number else str(row.b)),
        str(row.occurrences),
    )


def _short(text: str) -> str:
    """Keeps both ends: names differ there."""
    if len(text) <= _MOST_NAME:
        return text
    half = (_MOST_NAME - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    # The tensor's name from the left, everything else below its header.
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _listed(only: _core.OnlyThere) -> list[str]:
    parts = [
        _counted("tensor", [_short(name) for name in only.tensors]),
        _counted("step", [_step(*step) for step in only.steps]),
        _counted("worker", only.workers),
        _counted(
            "tensor at some steps",
            [f"{_short(name)} from step {step} on, {count}×" for name, step, count in only.records],
        ),
    ]
    return [part for part in parts if part]


def _counted(noun: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    first, _, rest = noun.partition(" ")
    plural = f"{first}s" if len(names) > 1 else first
    shown = ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")
    return f"{len(names)} {plural}{' ' + rest if rest else ''} ({shown})"
