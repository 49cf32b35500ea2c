"""The Parquet tables of a run, asked by DuckDB and Polars and held against the trial."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import writing
from smdebug import Hook, ReductionConfig, SaveConfig, cli, modes
from smdebug import compact as module
from smdebug.compact import FACTOR, FILES, layer_of
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugRuntimeError
from smdebug.trial import Trial
from smdebug.trials import create_trial

STEPS = 70


def record(path: Path | str, layout: str) -> Trial:
    hook = Hook(
        path,
        layout=layout,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean", "max"], abs_reductions=["min"]),
        save_all=True,
    )
    hook.get_collection("biases").include("bias")
    hook.get_collection("raw").include("^raw")
    hook.get_collection("raw").reduction_config = ReductionConfig(save_raw_tensor=True)
    rng = np.random.default_rng(1)
    for step in range(STEPS):
        hook.set_mode(modes.EVAL if step % 5 == 4 else modes.TRAIN)
        hook.step()
        weight = rng.normal(size=(2, 3)).astype(np.float32)
        if step in (3, 20):
            weight[0, 0] = np.nan
        if step == 21:
            weight[0, 0] = np.inf
        hook.save("encoder.0.weight", weight)
        hook.save("gradient/encoder.0.bias", rng.normal(size=3))
        hook.save_scalar("loss", 1e308 if step < 20 else -1.0)
        if step % 10 == 0:
            hook.save("raw/input", rng.normal(size=(5, 2)).astype(np.float16))
    hook.close()
    return create_trial(path)


@pytest.fixture(params=["original", "packed"])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Trial:
    return record(tmp_path / "run", request.param)


@pytest.fixture
def tables(trial: Trial, tmp_path: Path) -> Path:
    trial.compact(tmp_path / "tables")
    return tmp_path / "tables"


def equal(a: float | None, b: float | None) -> bool:
    return a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))


def test_every_number_of_the_run_is_in_the_table(trial: Trial, tables: Path) -> None:
    found = duckdb.sql(
        f"select t.name, s.* from '{tables}/statistics.parquet' s"
        f" join '{tables}/tensors.parquet' t on s.tensor = t.id"
    ).pl()
    expected = trial.frame().to_polars()
    columns = ["max", "mean", "abs_min", "value"]
    assert found.columns == ["name", "tensor", "worker", "step", *columns]
    key = {(r["name"], r["worker"], r["step"]): r for r in found.iter_rows(named=True)}
    assert len(key) == found.height == expected.height > 2 * STEPS
    for row in expected.iter_rows(named=True):
        other = key[row["tensor"], row["worker"], row["step"]]
        assert all(equal(row[name], other[name]) for name in columns), (row, other)


def test_rows_are_sorted_by_tensor_worker_and_step(tables: Path) -> None:
    table = pl.read_parquet(tables / "statistics.parquet")
    keys = list(zip(table["tensor"], table["worker"], table["step"], strict=True))
    assert keys == sorted(keys)
    names = pl.read_parquet(tables / "tensors.parquet")["name"].to_list()
    assert names == sorted(names)


def test_polars_finds_a_series_without_the_rest(trial: Trial, tables: Path) -> None:
    [number] = pl.read_parquet(tables / "tensors.parquet").filter(name="scalar/loss")["id"]
    loss = pl.scan_parquet(tables / "statistics.parquet").filter(tensor=number).collect()
    steps, values = trial.tensor("scalar/loss").series()
    assert loss["step"].to_list() == steps.tolist()
    assert loss["value"].to_list() == values.tolist()


def test_tensors_tell_what_they_are(tables: Path) -> None:
    rows = {r["name"]: r for r in pq.read_table(tables / "tensors.parquet").to_pylist()}
    assert [r["id"] for r in rows.values()] == list(range(len(rows)))
    raw = rows["raw/input"]
    assert (raw["dtype"], raw["shape"], raw["layer"]) == ("float16", [5, 2], "raw")
    assert "raw" in raw["collections"]
    bias = rows["gradient/encoder.0.bias"]
    assert bias["layer"] == "encoder.0"
    assert "biases" in bias["collections"]
    assert bias["shape"] is None
    assert rows["scalar/loss"]["dtype"] == "float64"


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("gradient/encoder.0.weight", "encoder.0"),
        ("encoder.0.weight", "encoder.0"),
        ("block1/conv/kernel:0", "block1/conv"),
        ("encoder.0_output_1", "encoder.0"),
        ("encoder.attention_input_0", "encoder.attention"),
        ("weight", ""),
        ("scalar/loss", ""),
        ("", ""),
    ],
)
def test_layers_come_from_names(name: str, layer: str) -> None:
    assert layer_of(name) == layer


def test_steps_tell_modes_times_and_workers(trial: Trial, tables: Path) -> None:
    table = pq.read_table(tables / "steps.parquet").to_pylist()
    assert [r["step"] for r in table] == list(range(STEPS))
    assert [r["mode"] for r in table] == [trial.mode(s).name for s in range(STEPS)]
    assert [r["mode_step"] for r in table] == [trial.mode_step(s) for s in range(STEPS)]
    assert all(r["workers"] == 1 and r["complete"] for r in table)
    times = [r["wall_time"] for r in table]
    assert times == sorted(times)
    assert times[0].year >= 2024


def test_the_pyramid_is_what_its_numbers_say(trial: Trial, tables: Path) -> None:
    pyramid = duckdb.sql(
        f"select t.name, p.* from '{tables}/pyramid.parquet' p"
        f" join '{tables}/tensors.parquet' t on p.tensor = t.id"
    ).pl()
    assert pyramid.height > 50
    seen = 0
    for (name, number, mode), rows in pyramid.group_by(["name", "reduction", "mode"]):
        steps = [s for s in trial.steps() if trial.mode(s).name == mode]
        matrix = trial.matrix(number, [name])
        numbers = dict(zip(matrix.steps.tolist(), matrix.values[0].tolist(), strict=True))
        for level in range(1, rows["level"].max() + 1):
            size = FACTOR**level
            buckets = {r["start_step"]: r for r in rows.filter(pl.col("level") == level).to_dicts()}
            for first in range(0, len(steps), size):
                inside = steps[first : first + size]
                values = [numbers[s] for s in inside if s in numbers]
                if not values:
                    assert inside[0] not in buckets
                    continue
                row = buckets.pop(inside[0])
                finite = [v for v in values if math.isfinite(v)]
                assert row["end_step"] == inside[-1]
                assert row["count"] == len(finite)
                assert row["nans"] == sum(map(math.isnan, values))
                assert row["infs"] == sum(map(math.isinf, values))
                assert row["min"] == (min(finite) if finite else None)
                assert row["max"] == (max(finite) if finite else None)
                if finite:
                    mean = sum(v / len(finite) for v in finite)
                    assert row["mean"] == pytest.approx(mean, rel=1e-12)
                seen += 1
            assert buckets == {}
        top = rows.filter(pl.col("level") == rows["level"].max())
        assert top.height == 1
    assert seen == pyramid.height
    # Both kinds were met.
    assert pyramid["nans"].max() >= 1
    assert pyramid["infs"].max() == 1
    assert np.isfinite(pyramid.filter(pl.col("name") == "scalar/loss")["mean"].to_numpy()).all()


def test_groups_and_row_groups_change_nothing(
    trial: Trial, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_BYTES", 1)
    monkeypatch.setattr(module, "ROW_GROUP_ROWS", 50)
    monkeypatch.setattr(module, "PYRAMID_NUMBERS", 1)
    trial.compact(tmp_path / "small")
    for name in FILES:
        assert pq.read_table(tmp_path / "small" / name).to_pydict().__repr__() == (
            pq.read_table(tables / name).to_pydict().__repr__()
        )
    groups = pq.ParquetFile(tmp_path / "small/statistics.parquet").metadata
    assert groups.row_group(0).num_rows == 50
    assert groups.num_row_groups == math.ceil(groups.num_rows / 50)


@pytest.fixture(params=["original", "packed"])
def workers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Trial:
    """Three workers, of which one misses steps."""
    monkeypatch.setenv("SMDEBUG_LAYOUT", request.param)
    path = tmp_path / "workers"
    for step in range(20):
        for w in range(3):
            if w == 1 and step % 4 == 0:
                continue
            writing.step(path, step, f"worker_{w}", a=np.float32(step + w / 4), b=np.float64(w))
    for w in range(3):
        writing.collections(path, f"worker_{w}", 3)
    return create_trial(path)


@pytest.mark.parametrize("group_bytes", [1, 200, 1 << 20])
def test_workers_have_rows_of_their_own(
    workers: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_bytes: int
) -> None:
    monkeypatch.setattr(module, "GROUP_BYTES", group_bytes)
    workers.compact(tmp_path / "tables")
    table = pl.read_parquet(tmp_path / "tables/statistics.parquet")
    a = table.filter(pl.col("tensor") == 0)
    assert [(r["worker"], r["step"], r["value"]) for r in a.to_dicts()] == [
        (f"worker_{w}", step, step + w / 4)
        for w in range(3)
        for step in range(20)
        if w != 1 or step % 4
    ]
    steps = pl.read_parquet(tmp_path / "tables/steps.parquet")
    assert steps["workers"].to_list() == [2 if step % 4 == 0 else 3 for step in range(20)]
    pyramid = pl.read_parquet(tmp_path / "tables/pyramid.parquet")
    assert pyramid.filter(pl.col("level") == 2)["count"].to_list() == [20, 15, 20] * 2


def test_a_second_call_replaces_the_tables(trial: Trial, tables: Path) -> None:
    before = {name: (tables / name).read_bytes() for name in FILES}
    (tables / FILES[0]).write_bytes(b"old")
    trial.compact(tables)
    assert sorted(p.name for p in tables.iterdir()) == sorted(FILES)
    assert {name: (tables / name).read_bytes() for name in FILES} == before


def test_a_failure_leaves_the_old_tables(trial: Trial, tables: Path, tmp_path: Path) -> None:
    before = {name: (tables / name).read_bytes() for name in FILES}
    for file in [*tmp_path.glob("run/events/*/*"), *tmp_path.glob("run/v2/seg/*/*/*")]:
        file.write_bytes(file.read_bytes()[:10])
    with pytest.raises(SMDebugRuntimeError):
        create_trial(trial.path).compact(tables)
    assert {p.name: p.read_bytes() for p in tables.iterdir()} == before


def test_pyarrow_is_asked_for(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SMDebugNotImplementedError, match="pip install pyarrow"):
        trial.compact(tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_the_command_writes_the_same(
    trial: Trial, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert cli.main(["compact", trial.path, "--parquet", str(other), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {p.name: p.read_bytes() for p in other.iterdir()} == {
        p.name: p.read_bytes() for p in tables.iterdir()
    }
    assert told["rows"]["steps.parquet"] == STEPS
    assert cli.main(["compact", trial.path, "--parquet", str(other)]) == 0
    assert "steps.parquet: 70 rows" in capsys.readouterr().out
