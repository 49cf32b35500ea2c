"""What readers of OpenTelemetry collect, and what a receiver of OTLP is sent."""

from __future__ import annotations

import gzip
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import smdebug
from conftest import STEPS, WORKERS, loss, wall_secs, weight
from opentelemetry import metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from smdebug import modes
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from smdebug.exporters import create_exporter
from smdebug.exporters.opentelemetry import OpenTelemetryExporter

Key = tuple[str, str, str, str | None, str | None]


def key(name: str, attributes: dict[str, str]) -> Key:
    """(gauge, mode, worker, tensor, reduction)"""
    names = ("mode", "worker", "tensor", "reduction")
    assert set(attributes) <= {f"smdebug.{name}" for name in names}
    mode, worker, tensor, reduction = (attributes.get(f"smdebug.{name}") for name in names)
    return name, str(mode), str(worker), tensor, reduction


def collected(reader: InMemoryMetricReader) -> dict[Key, float]:
    data = reader.get_metrics_data()
    found = {}
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            assert (scope.scope.name, scope.scope.version) == ("smdebug", smdebug.__version__)
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    found[key(metric.name, dict(point.attributes))] = point.value
    return found


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader) -> Iterator[MeterProvider]:
    made = MeterProvider(metric_readers=[reader])
    yield made
    made.shutdown()


def test_gauges_hold_the_newest_step_of_each_mode_and_worker(
    run, reader, provider, in_thread, capfd
):
    exporter = create_exporter(
        "opentelemetry", meter_provider=provider, reductions=["l2"], include_regex="weight$"
    )

    def carry():
        with exporter:
            smdebug.create_trial(run).export_to(exporter)

    in_thread(carry)
    assert capfd.readouterr() == ("", "")
    expected: dict[Key, float] = {}
    for number, (mode, mode_step) in STEPS.items():  # later ones replace earlier ones
        for worker in WORKERS:
            who = (mode.name.lower(), worker)
            norm = math.sqrt(float((weight(number).astype(float) ** 2).sum()))
            if math.isfinite(loss(number, worker)):
                expected["smdebug.scalar", *who, "scalar/loss", None] = loss(number, worker)
            expected["smdebug.not_finite", *who, None, None] = int(number == 2)
            expected["smdebug.reduction", *who, "fc/weight", "l2"] = norm
            expected["smdebug.step", *who, None, None] = number
            expected["smdebug.mode_step", *who, None, None] = mode_step
    assert collected(reader) == pytest.approx(expected)


def test_many_steps_do_not_make_many_series(reader, provider, step, caplog):
    exporter = OpenTelemetryExporter(provider, reductions=["mean"])
    for number in range(100):
        exporter.export(step(number, scalar__loss=math.nan, scalar__mean=3.0, w__mean=1.0))
    found = collected(reader)
    assert len(found) == 5
    assert found["smdebug.not_finite", "train", "worker_0", None, None] == 1
    # Called like a reduction, but saved as a scalar.
    assert found["smdebug.scalar", "train", "worker_0", "scalar/mean", None] == 3.0
    assert found["smdebug.reduction", "train", "worker_0", "w", "mean"] == 1.0
    assert found["smdebug.step", "train", "worker_0", None, None] == 99
    assert caplog.records == []


def test_the_global_provider_is_used_once_there_is_one(reader, provider, step, monkeypatch):
    exporter = create_exporter("opentelemetry")
    with pytest.raises(SMDebugRuntimeError, match="has set no global MeterProvider"):
        exporter.export(step(0, scalar__loss=1.0))
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    create_exporter("opentelemetry").export(step(0, modes.GLOBAL, scalar__loss=1.0))
    assert collected(reader)["smdebug.scalar", "global", "worker_0", "scalar/loss", None] == 1.0


class Receiver(ThreadingHTTPServer):
    """A receiver of OTLP over HTTP that keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReceiverRequest)
        self.status = 200
        self.requests: list[ExportMetricsServiceRequest] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/metrics"

    def points(self) -> list[tuple[Key, int, float]]:
        """(key, unix nanoseconds, value)"""
        return [
            (
                key(metric.name, {a.key: a.value.string_value for a in point.attributes}),
                point.time_unix_nano,
                point.as_int if point.HasField("as_int") else point.as_double,
            )
            for request in self.requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.gauge.data_points
        ]


class ReceiverRequest(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/metrics" and self.server.status == 200:
            self.server.requests.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_endpoint_is_sent_every_step_with_the_time_of_its_recording(
    run, receiver, in_thread, capfd
):
    exporter = create_exporter("opentelemetry", endpoint=receiver.url, reductions="mean")

    def carry():
        with exporter:
            smdebug.create_trial(run).export_to(exporter)

    in_thread(carry)
    assert capfd.readouterr() == ("", "")
    points = {(found, nanos): value for found, nanos, value in receiver.points()}
    assert len(points) == len(receiver.points()) == len(STEPS) * len(WORKERS) * 6
    for number, (mode, mode_step) in STEPS.items():
        for worker in WORKERS:
            nanos = int(wall_secs(number, worker) * 1e9)
            who = (mode.name.lower(), worker)
            found = points[("smdebug.scalar", *who, "scalar/loss", None), nanos]
            assert found == pytest.approx(loss(number, worker), nan_ok=True)
            mean = points[("smdebug.reduction", *who, "fc/weight", "mean"), nanos]
            assert mean == weight(number).mean()
            assert points[("smdebug.step", *who, None, None), nanos] == number
            assert points[("smdebug.mode_step", *who, None, None), nanos] == mode_step
            not_finite = points[("smdebug.not_finite", *who, None, None), nanos]
            assert not_finite == (not math.isfinite(loss(number, worker)))


def test_thousands_of_numbers_per_step_arrive_in_a_few_requests(receiver, step):
    with OpenTelemetryExporter(endpoint=receiver.url, reductions="mean") as exporter:
        for number in range(3):
            exporter.export(step(number, numbers={f"w{i}/mean": i for i in range(4000)}))
    assert len(receiver.points()) == 3 * 4003
    assert len(receiver.requests) <= 4
    assert len({(found, nanos) for found, nanos, _ in receiver.points()}) == 3 * 4003


def test_a_receiver_that_refuses_is_an_error(receiver, step):
    receiver.status = 400
    exporter = OpenTelemetryExporter(endpoint=receiver.url)
    with pytest.raises(SMDebugRuntimeError, match=r"4 numbers could not be sent.*/v1/metrics"):
        exporter.export(step(0, scalar__loss=1.0))
    exporter.close()
    with pytest.raises(SMDebugRuntimeError, match="is closed"):
        exporter.export(step(1, scalar__loss=1.0))


def test_wrong_settings_are_explained(provider):
    with pytest.raises(SMDebugError, match="must be a MeterProvider, not 'global'"):
        create_exporter("opentelemetry", meter_provider="global")
    with pytest.raises(SMDebugError, match="meter_provider or endpoint, not both"):
        create_exporter("opentelemetry", meter_provider=provider, endpoint="http://x")
    with pytest.raises(SMDebugError, match=r"endpoint must be a URL .* 'localhost:4318'"):
        create_exporter("opentelemetry", endpoint="localhost:4318")
    with pytest.raises(SMDebugError, match=r"Did you mean 'endpoint'\?"):
        create_exporter("opentelemetry", endpont="http://x")
