"""The table of a run, as other libraries read it."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import writing
from smdebug import Hook, ReductionConfig, SaveConfig, _core, modes
from smdebug.exceptions import (
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.frame import Frame
from smdebug.trials import create_trial

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
RUNS = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["runs"]
KEYS = ["tensor", "mode", "step", "mode_step", "worker"]

Row = dict[str, Any]


def frame(path: Path, **options: Any) -> Frame:
    return create_trial(path).frame(**options)


def rows(table: pa.Table) -> list[Row]:
    """The rows as dicts without what is null."""
    return [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]


def is_single(value: Any) -> bool:
    return value.size == 1 and value.dtype.kind in "biuf"


def expected(path: Path) -> list[Row]:
    """The rows that the event files hold, told by reading each record by itself."""
    found: dict[tuple[int, str, str], Row] = {}
    for index_path in sorted(path.glob("index/*/*.json")):
        index = _core.parse_index(index_path.read_text(encoding="utf-8"), "")
        place = _core.parse_step_file_name(str(index_path))
        if index["event_file"] is None or place is None:
            continue
        step, worker = place
        for name, offset, length in index["tensors"]:
            record = _core.read_record(str(path / index["event_file"]), offset, length)
            column, tensor = "value", name
            if parts := _core.parse_reduction_name(name):
                op, absolute, tensor = parts
                column = f"abs_{op}" if absolute else op
            if not is_single(record.value):
                continue
            row = found.setdefault(
                (step, worker, tensor),
                {
                    "tensor": tensor,
                    "mode": record.mode.name,
                    "step": step,
                    "mode_step": record.mode_step,
                    "worker": worker,
                },
            )
            row[column] = float(record.value.ravel()[0])
    return [found[key] for key in sorted(found)]


def same(a: list[Row], b: list[Row]) -> bool:
    """Equal, with NaN equal to itself."""
    return repr([sorted(r.items()) for r in a]) == repr([sorted(r.items()) for r in b])


def record(path: Path, layout: str) -> Path:
    """Two modes, reductions, scalars, raw values."""
    hook = Hook(
        path,
        layout=layout,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean", "max"], abs_reductions=["min"]),
        save_all=True,
    )
    rng = np.random.default_rng(0)
    for step in range(6):
        hook.set_mode(modes.EVAL if step % 3 == 2 else modes.TRAIN)
        hook.step()
        hook.save("layer/weight", rng.normal(size=(4, 3)).astype(np.float32))
        hook.save("layer/bias", rng.normal(size=3))
        hook.save_scalar("loss", 1 / (step + 1))
        if step == 4:
            hook.save("rare", np.array([np.nan, 1.0]))
    hook.close()
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in the original layout."""
    return record(tmp_path / "run", "original")


@pytest.fixture
def workers(tmp_path: Path) -> Path:
    """Two workers, one of which misses a step; a raw value for everything."""
    path = tmp_path / "workers"
    for step, worker in [(0, "worker_0"), (0, "worker_1"), (10, "worker_1")]:
        file = _core.StepFile(str(path), step, worker)
        for i, name in enumerate(["b", "a"]):
            value = np.arange(4, dtype=np.float64) * (step + i + 1)
            file.tensor(name, value, modes.TRAIN, step, 0.0)
        file.tensor("loss", np.float32(step), modes.TRAIN, step, 0.0)
        file.close()
        writing.collections(path, worker, 2)
    return path


def test_rows_are_what_the_event_files_hold(run: Path) -> None:
    wanted = expected(run)
    assert len(wanted) == 6 * 3 + 1
    assert same(rows(pa.table(frame(run))), wanted)


def test_both_layouts_make_the_same_table(run: Path, tmp_path: Path) -> None:
    packed = record(tmp_path / "packed", "packed")
    assert (packed / "v2").is_dir()
    assert same(rows(pa.table(frame(packed))), rows(pa.table(frame(run))))


@pytest.mark.parametrize("name", RUNS)
def test_golden_runs_are_read(name: str) -> None:
    table = pa.table(frame(GOLDEN / name))
    assert table.column_names[:5] == KEYS
    assert same(rows(table), expected(GOLDEN / name))


def test_golden_runs_have_many_numbers() -> None:
    assert sum(pa.table(frame(GOLDEN / name)).num_rows for name in RUNS) > 50


def test_columns_and_their_types(run: Path) -> None:
    table = frame(run)
    assert table.columns == [*KEYS, "max", "mean", "abs_min", "value"]
    schema = table.to_arrow().schema
    assert schema.names == table.columns
    text = [pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())]
    assert schema.types[:5] == [text[0], text[1], pa.int64(), pa.int64(), text[0]]
    assert schema.types[5:] == [pa.float64()] * 4
    assert [field.nullable for field in schema] == [False] * 5 + [True] * 4
    assert "layer" not in repr(table)
    assert "abs_min" in repr(table)
    assert str(run) in repr(table)


def test_missing_numbers_are_null_and_nan_is_not(run: Path) -> None:
    table = frame(run).to_arrow()
    assert table["value"].null_count == table.num_rows - 6
    [rare] = [row for row in table.to_pylist() if row["tensor"] == "rare"]
    assert math.isnan(rare["max"])
    assert rare["value"] is None


def test_pandas_reads_it(run: Path) -> None:
    data = frame(run).to_pandas()
    assert list(data.columns) == [*KEYS, "max", "mean", "abs_min", "value"]
    assert isinstance(data["tensor"].dtype, pd.CategoricalDtype)
    loss = data[data.tensor == "scalar/loss"]
    np.testing.assert_array_equal(loss.value, [1 / (i + 1) for i in range(6)])
    assert loss["max"].isna().all()
    assert pd.DataFrame.from_arrow(frame(run)).equals(data)


def test_polars_reads_it(run: Path) -> None:
    data = frame(run).to_polars()
    assert data.filter(pl.col("tensor") == "scalar/loss")["value"].to_list() == [
        1 / (i + 1) for i in range(6)
    ]
    assert data["value"].null_count() == data.height - 6
    assert same(
        [{k: v for k, v in r.items() if v is not None} for r in data.to_dicts()], expected(run)
    )


def test_duckdb_reads_it(run: Path) -> None:
    numbers = frame(run).to_arrow()
    found = duckdb.sql(
        "select mode, count(*), max(value) from numbers where tensor = 'scalar/loss' group by mode order by 1"
    ).fetchall()
    assert found == [("EVAL", 2, 1 / 3), ("TRAIN", 4, 1.0)]
    assert numbers.num_rows == 19


def test_duckdb_queries_the_frame_itself(run: Path) -> None:
    numbers = frame(run)
    query = "select count(*) from numbers where value is not null"
    assert duckdb.sql(query).fetchall() == [(6,)]
    assert numbers.columns


def test_a_frame_is_read_any_number_of_times(run: Path) -> None:
    table = frame(run)
    assert same(rows(table.to_arrow()), rows(table.to_arrow()))


def test_several_workers(workers: Path) -> None:
    everything = rows(frame(workers).to_arrow())
    assert same(everything, expected(workers))
    assert [(r["step"], r["worker"]) for r in everything] == [
        (0, "worker_0"),
        (0, "worker_1"),
        (10, "worker_1"),
    ]
    assert len(rows(frame(workers, worker="worker_0").to_arrow())) == 1


def test_reductions_are_computed_when_named(workers: Path) -> None:
    found = rows(frame(workers, reductions=["mean", "abs_max", "l2_norm"]).to_arrow())
    assert [r["tensor"] for r in found[:3]] == ["a", "b", "loss"]
    value = np.arange(4) * 2.0
    assert found[0]["mean"] == value.mean()
    assert found[0]["abs_max"] == value.max()
    assert found[0]["l2"] == np.linalg.norm(value)
    assert "value" not in found[0]
    assert found[2]["value"] == found[2]["mean"] == 0


def test_modes_and_steps_narrow_it(run: Path) -> None:
    def steps(**options: Any) -> list[tuple[int, int]]:
        table = frame(run, tensors=["scalar/loss"], **options).to_arrow()
        return list(zip(table["step"].to_pylist(), table["mode_step"].to_pylist(), strict=True))

    assert steps(mode=modes.EVAL) == [(2, 0), (5, 1)]
    assert steps(mode=modes.TRAIN, start=1, end=3) == [(1, 1), (3, 2)]
    assert steps(start=4) == [(4, 3), (5, 1)]


def test_listed_tensors_come_in_their_order(run: Path) -> None:
    table = frame(run, tensors=["scalar/loss", "layer/bias"], end=1).to_arrow()
    assert table["tensor"].to_pylist() == ["scalar/loss", "layer/bias"]


def test_wrong_names_are_told(run: Path) -> None:
    with pytest.raises(
        SMDebugValueError, match=r"no tensor 'scalar/los'\. Did you mean 'scalar/loss'"
    ):
        frame(run, tensors=["scalar/los"])
    with pytest.raises(SMDebugValueError, match="meann"):
        frame(run, reductions=["meann"])
    with pytest.raises(SMDebugValueError, match="worker_7"):
        frame(run, worker="worker_7")


def test_only_trials_have_frames() -> None:
    with pytest.raises(SMDebugTypeError, match="not 'run'"):
        _core.make_frame("run")


def test_an_empty_table_has_its_columns(run: Path, tmp_path: Path) -> None:
    table = frame(run, start=100).to_arrow()
    assert table.num_rows == 0
    assert table.column_names == [*KEYS, "value"]
    assert frame(run, start=100).to_polars().height == 0
    writing.collections(tmp_path / "nothing")
    assert frame(tmp_path / "nothing").to_arrow().num_rows == 0
    frame(run, start=100).export(tmp_path / "empty.parquet")
    assert pa.parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


class SmallBatches:
    """A frame whose batches hold a few rows."""

    def __init__(self, table: Frame, batch_rows: int) -> None:
        self.table = table
        self.batch_rows = batch_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table._core.stream(self.batch_rows)


def test_a_consumer_may_stop_early(run: Path) -> None:
    reader = pa.RecordBatchReader.from_stream(SmallBatches(frame(run), 2))
    first = reader.read_next_batch()
    second = reader.read_next_batch()
    column = first.column("mean")
    reader.close()
    del reader, first
    wanted = [row.get("mean") for row in expected(run)]
    assert column.to_pylist() == wanted[: len(column)]
    assert second.column("step").to_pylist() == [1] * 3


def test_an_unused_stream_is_released(run: Path) -> None:
    table = frame(run)
    for _ in range(3):
        capsule = table.__arrow_c_stream__()
        del capsule


def test_small_batches_join_to_the_same_table(run: Path) -> None:
    table = frame(run)
    joined = pa.table(SmallBatches(table, 1))
    assert joined["value"].num_chunks == 6
    assert same(rows(joined), rows(table.to_arrow()))


def test_a_damaged_file_is_told(run: Path) -> None:
    table = frame(run)
    path = run / _core.event_file_name(3, "worker_0")
    path.unlink()
    with pytest.raises(SMDebugRuntimeError, match=path.name):
        table.to_arrow()


READERS = {
    ".parquet": lambda path: pa.parquet.read_table(path),
    ".arrow": lambda path: pa.ipc.open_file(path).read_all(),
    ".feather": lambda path: pa.feather.read_table(path),
    ".csv": lambda path: pa.csv.read_csv(
        path, convert_options=pa.csv.ConvertOptions(null_values=[""])
    ),
}


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_exports_come_back(run: Path, tmp_path: Path, suffix: str, batch_rows: int) -> None:
    path = tmp_path / f"table{suffix}"

    class Small(Frame):
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self._core.stream(batch_rows)

    Small(frame(run)._core).export(path)
    table = READERS[suffix](path)
    assert table.column_names == frame(run).columns
    assert same(rows(table), expected(run))


def test_lines_of_json_come_back(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    frame(run).export(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = expected(run)
    for row in wanted:
        row.update({k: "NaN" for k, v in row.items() if isinstance(v, float) and math.isnan(v)})
    assert same(lines, wanted)


def test_unknown_formats_are_refused_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SMDebugValueError, match=r"\.xlsx.*\.csv, .*\.parquet"):
        frame(run).export(tmp_path / "table.xlsx")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("suffix", [*READERS, ".jsonl"])
def test_a_failed_export_leaves_what_was_there(run: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_text("older")
    table = frame(run)
    (run / _core.event_file_name(3, "worker_0")).unlink()
    with pytest.raises(SMDebugRuntimeError):
        table.export(path)
    assert path.read_text() == "older"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", path.name]


def test_a_missing_library_is_named(run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    table = frame(run)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SMDebugNotImplementedError, match="pip install pyarrow") as caught:
        table.export(tmp_path / "table.csv")
    assert isinstance(caught.value, SMDebugError)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
