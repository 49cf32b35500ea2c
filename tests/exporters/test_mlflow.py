"""What MLflow's own client reads back from a store in a SQLite file."""

from __future__ import annotations

import math

import pytest
import smdebug
from conftest import LOSSES, STEPS, WORKERS, loss, wall_secs, weight
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.utils import validation
from smdebug import modes
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from smdebug.exporters import create_exporter
from smdebug.exporters import mlflow as mlflow_exporter
from smdebug.exporters.mlflow import MLflowExporter, allowed_name


@pytest.fixture
def client(store: str) -> MlflowClient:
    return MlflowClient(tracking_uri=store)


def history(client: MlflowClient, run_id: str, name: str) -> list[tuple[int, int, float]]:
    """(step, milliseconds, value), in the order of the steps."""
    found = client.get_metric_history(run_id, name)
    return sorted((m.step, m.timestamp, m.value) for m in found)


def same(value: float, expected: float) -> bool:
    return value == expected or (math.isnan(value) and math.isnan(expected))


def test_a_run_is_carried_over_with_its_steps_times_modes_and_workers(
    run, store, client, in_thread, capfd
):
    exporter = create_exporter(
        "mlflow",
        tracking_uri=store,
        experiment="carried",
        run_name="first",
        reductions=["mean", "abs_max"],
        include_regex="weight",
    )

    def carry():
        with exporter:
            carried = smdebug.create_trial(run).export_to(exporter)
            assert (carried.steps, carried.names, carried.numbers) == (4, 3, 24)

    in_thread(carry)
    assert capfd.readouterr() == ("", "")

    about = client.get_run(exporter.run_id)
    assert about.info.run_name == "first"
    assert about.info.status == "FINISHED"
    assert about.info.end_time is not None
    assert client.get_experiment(about.info.experiment_id).name == "carried"
    assert set(about.data.metrics) == {
        f"{mode}/{worker}{name}"
        for mode in ("train", "eval")
        for worker in ("", "worker_1/")
        for name in ("scalar/loss", "fc/weight/mean", "fc/weight/abs_max")
    }
    for worker in WORKERS:
        prefix = "" if worker == "worker_0" else "worker_1/"
        for mode in (modes.TRAIN, modes.EVAL):
            steps = [number for number, (m, _) in STEPS.items() if m == mode]
            name = f"{mode.name.lower()}/{prefix}"
            losses = history(client, exporter.run_id, f"{name}scalar/loss")
            assert [(s, t) for s, t, _ in losses] == [
                (s, int(wall_secs(s, worker) * 1000)) for s in steps
            ]
            for number, _, value in losses:
                if math.isinf(LOSSES[number]):
                    assert value > 1e308  # the largest double: MLflow's databases hold no more
                else:
                    assert same(value, loss(number, worker))
            means = history(client, exporter.run_id, f"{name}fc/weight/mean")
            assert [v for _, _, v in means] == [weight(s).mean() for s in steps]


def test_thousands_of_metrics_per_step_go_in_requests_of_a_thousand(store, client, step):
    exporter = MLflowExporter(tracking_uri=store)
    numbers = {f"layer{i}/weight/mean": float(i) for i in range(2500)}
    exporter.export(step(3, numbers=numbers))
    exporter.export(step(4, numbers={"scalar/loss": 1.0}))
    sizes = []
    real = exporter._client.log_batch
    exporter._client.log_batch = lambda run_id, metrics: (
        sizes.append(len(metrics)),
        real(run_id, metrics=metrics),
    )
    exporter.export(step(5, numbers=numbers))
    exporter.close()
    assert max(sizes) == 1000
    assert sum(sizes) + 2500 >= 5001
    metrics = client.get_run(exporter.run_id).data.metrics
    assert len(metrics) == 2501
    assert metrics["train/layer2499/weight/mean"] == 2499
    assert [s for s, _, _ in history(client, exporter.run_id, "train/layer7/weight/mean")] == [3, 5]


def test_numbers_wait_for_others_unless_told_not_to(store, client, step):
    waiting = MLflowExporter(tracking_uri=store, batch_secs=3600)
    waiting.export(step(0, scalar__loss=1.0))  # the first one goes at once: the run is seen
    waiting.export(step(1, scalar__loss=2.0))
    assert len(history(client, waiting.run_id, "train/scalar/loss")) == 1
    waiting.close()
    assert len(history(client, waiting.run_id, "train/scalar/loss")) == 2

    hasty = MLflowExporter(tracking_uri=store, batch_secs=0)
    for number in range(3):
        hasty.export(step(number, scalar__loss=1.0))
        assert len(history(client, hasty.run_id, "train/scalar/loss")) == number + 1
    hasty.close()


def test_metrics_join_a_run_that_somebody_else_ends(store, client, step):
    run = client.create_run("0")
    client.log_metric(run.info.run_id, "theirs", 1.0)
    with MLflowExporter(tracking_uri=store, run_id=run.info.run_id) as exporter:
        exporter.export(step(0, modes.GLOBAL, scalar__loss=1.0))
    found = client.get_run(run.info.run_id)
    assert found.data.metrics == {"theirs": 1.0, "scalar/loss": 1.0}
    assert found.info.status == "RUNNING"


def test_a_run_that_is_not_there_is_an_error(store, step):
    exporter = MLflowExporter(tracking_uri=store, run_id="0" * 32)
    with pytest.raises(MlflowException, match="not found"):
        exporter.export(step(0, scalar__loss=1.0))
    exporter.close()


def test_nothing_is_made_without_a_step_and_nothing_taken_after_the_end(store, client, step):
    before = len(client.search_runs(["0"]))
    exporter = MLflowExporter(tracking_uri=store)
    exporter.close()
    exporter.close()
    assert exporter.run_id is None
    assert len(client.search_runs(["0"])) == before
    with pytest.raises(SMDebugRuntimeError, match="is closed"):
        exporter.export(step(0, scalar__loss=1.0))


NAMES = [
    "module.layer[0].weight",
    "module.layer(0).weight",
    "/absolute//path/",
    "../up/./here/..",
    "..hidden/x",
    "Größe des Gradienten: α",
    "tab\tand\nnewline",
    "long/" * 80,
    "x" * 300,
    "x" * 300 + "y",
    ".",
    "",
]


def test_names_become_what_mlflow_allows_and_stay_different(store, client, step):
    with MLflowExporter(tracking_uri=store) as exporter:
        exporter.export(step(0, modes.GLOBAL, numbers={n: i for i, n in enumerate(NAMES)}))
    metrics = client.get_run(exporter.run_id).data.metrics
    assert sorted(metrics.values()) == list(range(len(NAMES)))
    assert metrics["module.layer_0_.weight"] == 0
    assert metrics["Größe des Gradienten: α"] == 5
    assert all(len(name) <= 250 for name in metrics)


@pytest.mark.parametrize("name", NAMES)
def test_an_allowed_name_stays(name):
    assert allowed_name(allowed_name(name)) == allowed_name(name)


def test_making_a_new_store_prints_nothing(tmp_path, step, in_thread, capfd):
    exporter = MLflowExporter(tracking_uri=f"sqlite:///{tmp_path}/new.db")
    in_thread(lambda: exporter.export(step(0, scalar__loss=1.0)))
    in_thread(exporter.close)
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "new.db").exists()


def test_the_limits_are_those_of_mlflow(client):
    assert mlflow_exporter._MAX_METRICS == validation.MAX_METRICS_PER_BATCH
    assert mlflow_exporter._MAX_NAME == validation.MAX_ENTITY_KEY_LENGTH
    with pytest.raises(MlflowException, match="Names may only contain"):
        client.log_metric(client.create_run("0").info.run_id, "a[0]", 0)


def test_wrong_settings_are_explained(store):
    with pytest.raises(SMDebugError, match="run_id or run_name, not both"):
        create_exporter("mlflow", run_id="a", run_name="b")
    with pytest.raises(SMDebugError, match=r"batch_secs must be a number of seconds .* 'soon'"):
        create_exporter("mlflow", batch_secs="soon")
    with pytest.raises(SMDebugError, match=r"Did you mean 'tracking_uri'\?"):
        create_exporter("mlflow", tracking_url=store)
