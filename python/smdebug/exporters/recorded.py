"""The numbers of a recorded run, step by step, as exporters take them."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from smdebug import _core
from smdebug._core import ModeKeys
from smdebug.exporters import Choice, Exporter, StepNumbers, reduction_name
from smdebug.frame import Frame


@dataclass(frozen=True, slots=True)
class Carried:
    """How much of a run an exporter was given."""

    steps: int
    numbers: int
    names: int  # of tensors, once for each of their reductions


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a run is carried over; steps are those of the mode."""

    tensors: Sequence[str] | None = None  # None: all
    mode: ModeKeys = ModeKeys.GLOBAL
    worker: str | None = None  # None: all
    start: int | None = None
    end: int | None = None  # exclusive


def carry(trial: _core.Trial, exporter: Exporter, selection: Selection) -> Carried:
    """Gives an exporter the steps of a run, in their order. Does not close it."""
    steps: set[int] = set()
    names: set[str] = set()
    numbers = 0
    for step in recorded_steps(trial, exporter.choice, selection):
        exporter.export(step)
        steps.add(step.step)
        names.update(step.numbers)
        numbers += len(step.numbers)
    return Carried(len(steps), numbers, len(names))


def recorded_steps(
    trial: _core.Trial, choice: Choice, selection: Selection
) -> Iterator[StepNumbers]:
    """What each worker saved at each step, in the order of the steps.

    Numbers come in batches through a frame, so memory does not grow with the run. A reduction that
    was not stored is computed where the value was saved.
    """
    tensors = selection.tensors
    if tensors is None:
        tensors = trial.tensor_names(selection.mode, None, None, None)
    # Nothing is computed for tensors whose reductions nobody wants.
    reduced = [name for name in tensors if choice.reductions_of(name)]
    wanted = set(reduced)
    others = [name for name in tensors if name not in wanted]
    frames = [
        _frame(trial, names, reductions, selection)
        for names, reductions in ((reduced, list(choice.reductions)), (others, ["value"]))
        if names
    ]
    step_of = attrgetter("step")
    merged = heapq.merge(*(_parts(frame) for frame in frames), key=step_of)
    for _, parts in itertools.groupby(merged, step_of):
        workers: dict[str, _Part] = {}
        for part in parts:
            workers.setdefault(part.worker, part).numbers.update(part.numbers)
        for worker, part in sorted(workers.items()):
            secs = trial.wall_secs(part.step, worker)
            yield StepNumbers(
                step=part.step,
                mode=part.mode,
                mode_step=part.mode_step,
                wall_secs=time.time() if secs is None else secs,
                worker=worker,
                numbers=part.numbers,
            )


@dataclass(frozen=True, slots=True)
class _Part:
    """Numbers of one step and worker that stand beside each other in a frame."""

    step: int
    mode: ModeKeys
    mode_step: int
    worker: str
    numbers: dict[str, float]


def _frame(
    trial: _core.Trial, tensors: list[str], reductions: list[str], selection: Selection
) -> Frame:
    return Frame(
        _core.make_frame(
            trial,
            tensors=tensors,
            reductions=reductions,
            mode=selection.mode,
            worker=selection.worker,
            start=selection.start,
            end=selection.end,
        )
    )


def _parts(frame: Frame) -> Iterator[_Part]:
    part: _Part | None = None
    for batch in frame.batches():
        columns = dict(zip(batch.schema.names, map(_plain, batch.columns), strict=True))
        keys = [columns.pop(key) for key in ("tensor", "mode", "step", "mode_step", "worker")]
        values = columns.pop("value")
        for row, (tensor, mode, step, mode_step, worker) in enumerate(zip(*keys, strict=True)):
            if part is None or (part.step, part.worker) != (step, worker):
                if part is not None:
                    yield part
                part = _Part(step, ModeKeys[mode], mode_step, worker, {})
            if values[row] is not None:
                # Its reductions would say the same again.
                part.numbers[tensor] = values[row]
                continue
            for reduction, numbers in columns.items():
                if numbers[row] is not None:
                    part.numbers[reduction_name(tensor, reduction)] = numbers[row]
    if part is not None:
        yield part


def _plain(column: Any) -> list[Any]:
    """The column as Python objects; each name of a dictionary is made once."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    names = column.dictionary.to_pylist()
    return [names[code] for code in column.indices.to_pylist()]
