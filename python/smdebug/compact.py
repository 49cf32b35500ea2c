"""The numbers of a run as Parquet tables, sorted by tensor.

Memory is bounded: tensors are read in groups whose numbers take `GROUP_BYTES`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug import _core
from smdebug._core import ModeKeys
from smdebug.collection import CollectionManager
from smdebug.exceptions import SMDebugValueError
from smdebug.frame import _appearing, _import

FILES = ("statistics.parquet", "tensors.parquet", "steps.parquet", "pyramid.parquet")
ROW_GROUP_ROWS = 1 << 20
GROUP_BYTES = 256 << 20
# Of which a pyramid is made at a time.
PYRAMID_NUMBERS = 1 << 20
# Points of a level that are one point of the next.
FACTOR = 16

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]

_MODULE_VALUE = re.compile(r"_(?:in|out)put_\d+$")


def layer_of(name: str) -> str:
    """The module that a tensor belongs to, as far as its name tells; empty: none.

    `gradient/encoder.0.weight` belongs to `encoder.0`, and `encoder.0_output_1` does, too.
    """
    name = name.removeprefix("gradient/")
    if name.startswith("scalar/"):
        return ""
    if found := _MODULE_VALUE.search(name):
        return name[: found.start()]
    return name[: max(name.rfind("/"), name.rfind("."), 0)]


@dataclass
class _Group:
    """The numbers of some tensors and workers at all steps."""

    first_tensor: int
    first_worker: int
    tensors: int
    workers: int
    # By reduction: numbers and which of them are there, [tensor × worker, step].
    numbers: dict[str, tuple[Floats, Bools]]


class _Run:
    """What all tables need to know of a run."""

    def __init__(self, trial: _core.Trial) -> None:
        self.trial = trial
        catalog: Any = _core.read_catalog(trial)
        self.tensors: list[tuple[str, str | None, list[int] | None]] = catalog[0]
        self.step_rows: list[tuple[Any, ...]] = catalog[1]
        self.numbers: list[tuple[str, bool]] = catalog[2]
        self.workers: list[str] = catalog[3]
        self.names = [name for name, _, _ in self.tensors]
        self.steps = np.array([row[0] for row in self.step_rows], np.int64)
        self.modes = np.array([row[1].name for row in self.step_rows], object)

    def groups(self) -> Iterator[_Group]:
        """All tensors, in the order of the tables."""
        width = sum(5 if float32 else 9 for _, float32 in self.numbers)
        rows = max(1, GROUP_BYTES // max(1, width * len(self.steps)))
        workers = min(len(self.workers), rows)
        tensors = max(1, rows // max(1, workers))
        for tensor in range(0, len(self.names), tensors):
            names = self.names[tensor : tensor + tensors]
            for worker in range(0, len(self.workers), workers):
                chosen = self.workers[worker : worker + workers]
                numbers = {name: self._read(name, names, chosen) for name, _ in self.numbers}
                yield _Group(tensor, worker, len(names), len(chosen), numbers)

    def _read(self, number: str, names: list[str], workers: list[str]) -> tuple[Floats, Bools]:
        dtype = np.float32 if dict(self.numbers)[number] else np.float64
        shape = (len(names), len(workers), len(self.steps))
        values = np.full(shape, np.nan, dtype)
        there = np.zeros(shape, np.bool_)
        for w, worker in enumerate(workers):
            matrix: Any = _core.read_matrix(
                self.trial, number, names, ModeKeys.GLOBAL, worker, None, None, True, False
            )
            found, present, _, steps = matrix
            at: Any = np.searchsorted(self.steps, steps)
            if len(steps) and at[-1] - at[0] + 1 == len(steps):
                at = slice(at[0], at[-1] + 1)
            values[:, w, at] = found
            there[:, w, at] = True if present is None else present
        flat = (len(names) * len(workers), len(self.steps))
        return values.reshape(flat), there.reshape(flat)


def compact(trial: _core.Trial, directory: str | os.PathLike[str]) -> dict[str, int]:
    """Writes the tables of what the trial knows now; how many rows each has.

    The files get their names when all of them are complete.
    """
    if "://" in os.fspath(directory):
        raise SMDebugValueError(f"The tables are written to a local directory, not to {directory}.")
    pa = _import("pyarrow", "compact()")
    parquet = _import("pyarrow.parquet", "compact()")
    target = Path(directory).expanduser()
    target.mkdir(parents=True, exist_ok=True)
    run = _Run(trial)
    schemas = {
        "statistics.parquet": _statistics_schema(pa, run),
        "pyramid.parquet": _pyramid_schema(pa),
    }
    rows = dict.fromkeys(FILES, 0)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_appearing(target / name)) for name in FILES}
        for name, table in (
            ("tensors.parquet", _tensors_table(pa, run)),
            ("steps.parquet", _steps_table(pa, run)),
        ):
            parquet.write_table(table, files[name], compression="zstd")
            rows[name] = table.num_rows
        with (
            _Writer(parquet, files["statistics.parquet"], schemas["statistics.parquet"]) as numbers,
            _Writer(parquet, files["pyramid.parquet"], schemas["pyramid.parquet"]) as pyramid,
        ):
            for group in run.groups():
                for table in _statistics(pa, run, group, schemas["statistics.parquet"]):
                    numbers.write(table)
                for table in _pyramid(pa, run, group, schemas["pyramid.parquet"]):
                    pyramid.write(table)
        rows["statistics.parquet"] = numbers.rows
        rows["pyramid.parquet"] = pyramid.rows
    return rows


class _Writer:
    """A Parquet file whose row groups have the same size, however the rows arrive."""

    def __init__(self, parquet: Any, file: Any, schema: Any) -> None:
        self.rows = 0
        self._pending: list[Any] = []
        self._pending_rows = 0
        self._concat = _import("pyarrow", "compact()").concat_tables
        self._writer = parquet.ParquetWriter(file, schema, compression="zstd")

    def __enter__(self) -> _Writer:
        return self

    def write(self, table: Any) -> None:
        self.rows += table.num_rows
        while table.num_rows:
            piece = table.slice(0, ROW_GROUP_ROWS - self._pending_rows)
            table = table.slice(piece.num_rows)
            self._pending.append(piece)
            self._pending_rows += piece.num_rows
            if self._pending_rows == ROW_GROUP_ROWS:
                self._flush()

    def _flush(self) -> None:
        if self._pending_rows:
            whole = self._concat(self._pending).unify_dictionaries()
            self._writer.write_table(whole, row_group_size=ROW_GROUP_ROWS)
        self._pending, self._pending_rows = [], 0

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._flush()
        self._writer.close()


def _dictionary(pa: Any) -> Any:
    return pa.dictionary(pa.int32(), pa.string())


def _coded(pa: Any, codes: npt.NDArray[Any], names: list[str]) -> Any:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names, pa.string()))


def _tensors_table(pa: Any, run: _Run) -> Any:
    members: dict[str, list[str]] = {name: [] for name in run.names}
    manager = CollectionManager.load_from_string(run.trial.collections_json())
    for collection in sorted(manager.all(), key=lambda c: c.name):
        for name in run.trial.tensor_names(ModeKeys.GLOBAL, None, None, collection):
            members[name].append(collection.name)
    return pa.table(
        {
            "id": pa.array(range(len(run.names)), pa.int32()),
            "name": pa.array(run.names, pa.string()),
            "layer": pa.array([layer_of(name) for name in run.names], pa.string()),
            "dtype": pa.array([dtype for _, dtype, _ in run.tensors], pa.string()),
            "shape": pa.array([shape for _, _, shape in run.tensors], pa.list_(pa.int64())),
            "collections": pa.array([members[n] for n in run.names], pa.list_(pa.string())),
        }
    )


def _steps_table(pa: Any, run: _Run) -> Any:
    _, _, mode_steps, times, workers, complete = (
        zip(*run.step_rows, strict=True) if run.step_rows else [()] * 6
    )
    micros = [None if secs is None else round(secs * 1e6) for secs in times]
    return pa.table(
        {
            "step": pa.array(run.steps, pa.int64()),
            "mode": pa.array(run.modes.tolist(), pa.string()),
            "mode_step": pa.array(mode_steps, pa.int64()),
            "wall_time": pa.array(micros, pa.timestamp("us", tz="UTC")),
            "workers": pa.array(workers, pa.int32()),
            "complete": pa.array(complete, pa.bool_()),
        }
    )


def _statistics_schema(pa: Any, run: _Run) -> Any:
    keys = [
        pa.field("tensor", pa.int32(), nullable=False),
        pa.field("worker", _dictionary(pa), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
    ]
    return pa.schema(
        keys
        + [
            pa.field(name, pa.float32() if float32 else pa.float64())
            for name, float32 in run.numbers
        ]
    )


def _statistics(pa: Any, run: _Run, group: _Group, schema: Any) -> Iterator[Any]:
    """The rows of a group that have at least one number."""
    width = len(run.steps)
    there = np.zeros(group.tensors * group.workers * width, np.bool_)
    for _, present in group.numbers.values():
        there |= present.ravel()
    places = np.flatnonzero(there)
    for first in range(0, len(places), ROW_GROUP_ROWS):
        at = places[first : first + ROW_GROUP_ROWS]
        series = at // width
        columns = [
            pa.array(group.first_tensor + series // group.workers, pa.int32()),
            _coded(pa, group.first_worker + series % group.workers, run.workers),
            pa.array(run.steps[at % width]),
        ]
        for values, present in group.numbers.values():
            columns.append(pa.array(values.ravel()[at], mask=~present.ravel()[at]))
        yield pa.Table.from_arrays(columns, schema=schema)


def _pyramid_schema(pa: Any) -> Any:
    types = {
        "tensor": pa.int32(),
        "worker": _dictionary(pa),
        "reduction": _dictionary(pa),
        "mode": _dictionary(pa),
        "level": pa.int8(),
        "start_step": pa.int64(),
        "end_step": pa.int64(),
    }
    counts = dict.fromkeys(("count", "nans", "infs"), pa.int64())
    return pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in types.items()]
        + [pa.field(name, pa.float64()) for name in ("min", "max", "mean")]
        + [pa.field(name, kind, nullable=False) for name, kind in counts.items()]
    )


@dataclass
class _Points:
    """One level of a pyramid: [series, point]. Numbers that are not finite are only counted."""

    least: Floats  # inf where there is none
    most: Floats  # -inf where there is none
    mean: Floats
    count: npt.NDArray[np.int64]
    nans: npt.NDArray[np.int64]
    infs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats, there: Bools) -> _Points:
        finite = there & np.isfinite(values)
        wide = values.astype(np.float64)
        return cls(
            np.where(finite, wide, np.inf),
            np.where(finite, wide, -np.inf),
            np.where(finite, wide, 0.0),
            finite.astype(np.int64),
            (there & np.isnan(values)).astype(np.int64),
            (there & np.isinf(values)).astype(np.int64),
        )

    def next(self) -> _Points:
        """FACTOR points become one."""
        starts = np.arange(0, self.count.shape[1], FACTOR)
        count = np.add.reduceat(self.count, starts, axis=1)
        # Divided before they are added: sums could be beyond what a number can hold.
        share = (
            self.count / np.repeat(np.maximum(count, 1), FACTOR, axis=1)[:, : self.count.shape[1]]
        )
        return _Points(
            np.minimum.reduceat(self.least, starts, axis=1),
            np.maximum.reduceat(self.most, starts, axis=1),
            np.add.reduceat(self.mean * share, starts, axis=1),
            count,
            np.add.reduceat(self.nans, starts, axis=1),
            np.add.reduceat(self.infs, starts, axis=1),
        )


def _pyramid(pa: Any, run: _Run, group: _Group, schema: Any) -> Iterator[Any]:
    """All levels of all series of a group, a few series at a time."""
    together = max(1, PYRAMID_NUMBERS // max(1, len(run.steps)))
    for first in range(0, group.tensors * group.workers, together):
        yield _pyramid_of(pa, run, group, slice(first, first + together), schema)


def _pyramid_of(pa: Any, run: _Run, group: _Group, chosen: slice, schema: Any) -> Any:
    """All levels of some series, up to the one point that is the whole series."""
    modes = sorted(set(run.modes))
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    for r, (values, there) in enumerate(group.numbers.values()):
        for m, mode in enumerate(modes):
            inside = run.modes == mode
            steps = run.steps[inside]
            points = _Points.of(values[chosen][:, inside], there[chosen][:, inside])
            level, size = 0, 1
            while points.count.shape[1] > 1 or level == 0:
                points = points.next()
                level, size = level + 1, size * FACTOR
                starts = np.arange(0, len(steps), size)
                found = points.count + points.nans + points.infs
                series, point = np.nonzero(found)
                last = np.minimum(starts + size, len(steps)) - 1
                for name, column in {
                    "series": series,
                    "reduction": np.full(len(series), r),
                    "mode": np.full(len(series), m),
                    "level": np.full(len(series), level, np.int8),
                    "start_step": steps[starts][point],
                    "end_step": steps[last][point],
                    "min": points.least[series, point],
                    "max": points.most[series, point],
                    "mean": points.mean[series, point],
                    "count": points.count[series, point],
                    "nans": points.nans[series, point],
                    "infs": points.infs[series, point],
                }.items():
                    parts.setdefault(name, []).append(column)
    if not parts:
        return schema.empty_table()
    whole = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    keys = ("start_step", "level", "mode", "reduction", "series")
    order = np.lexsort([whole[key] for key in keys])
    whole = {name: column[order] for name, column in whole.items()}
    series = whole["series"] + chosen.start
    nothing = whole["count"] == 0
    columns = [
        pa.array(group.first_tensor + series // group.workers, pa.int32()),
        _coded(pa, group.first_worker + series % group.workers, run.workers),
        _coded(pa, whole["reduction"], list(group.numbers)),
        _coded(pa, whole["mode"], modes),
        *(pa.array(whole[name]) for name in ("level", "start_step", "end_step")),
        *(pa.array(whole[name], mask=nothing) for name in ("min", "max", "mean")),
        *(pa.array(whole[name]) for name in ("count", "nans", "infs")),
    ]
    return pa.Table.from_arrays(columns, schema=schema)
