"""Carries numbers to OpenTelemetry as gauges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from smdebug._core import VERSION
from smdebug.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from smdebug.exporters import Exporter, StepNumbers, import_package
from smdebug.exporters.batch import Batch

_SCOPE = "smdebug"
# What each gauge holds, by its name.
_GAUGES = {
    "smdebug.scalar": "A tensor that is a single number.",
    "smdebug.reduction": "A reduction of a tensor.",
    "smdebug.step": "The global step that was recorded last.",
    "smdebug.mode_step": "The same, counted in its mode.",
    "smdebug.not_finite": "How many numbers of that step are NaN or infinite.",
}
# A point takes about 200 bytes, and receivers refuse requests of several megabytes.
_MAX_POINTS = 5000


@dataclass(frozen=True, slots=True)
class _Point:
    gauge: str
    value: float
    attributes: dict[str, str]
    unix_nanos: int


class OpenTelemetryExporter(Exporter):
    """Gauges `smdebug.scalar` and `smdebug.reduction`, and three that tell of the step.

    Attributes are `smdebug.mode`, `smdebug.worker`, `smdebug.tensor` and `smdebug.reduction`. The step
    is the gauge `smdebug.step`, in its mode `smdebug.mode_step`, since every new value of an attribute
    would be a new series for ever. `smdebug.not_finite` counts NaN and infinities of the step.

    With a `meter_provider`, or the global one, gauges are set and its readers collect them when they
    want: they see the newest step, at the time of collecting, without what is not finite, which gauges of
    the SDK refuse. With an `endpoint`, such as
    `http://localhost:4318/v1/metrics`, every step is sent there with the time of its recording, in the
    protocol OTLP; numbers wait up to `batch_secs` for others to be sent with.
    """

    def __init__(
        self,
        meter_provider: Any = None,
        endpoint: str | None = None,
        batch_secs: float = 1.0,
        *,
        reductions: str | Iterable[str] = (),
        include_regex: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(reductions=reductions, include_regex=include_regex)
        api = _import("opentelemetry.metrics")
        self._is_closed = False
        self._attributes: dict[tuple[str, str, str], tuple[str, dict[str, str]]] = {}
        self._way: _Endpoint | _Gauges
        if endpoint is not None:
            if meter_provider is not None:
                raise SMDebugValueError("Give meter_provider or endpoint, not both.")
            self._way = _Endpoint(endpoint, batch_secs)
        else:
            if meter_provider is not None and not isinstance(meter_provider, api.MeterProvider):
                raise SMDebugTypeError(
                    f"meter_provider must be a MeterProvider, not {meter_provider!r}."
                )
            self._way = _Gauges(api, meter_provider)

    def export(self, step: StepNumbers) -> None:
        if self._is_closed:
            raise SMDebugRuntimeError("The exporter to OpenTelemetry is closed.")
        self._way.take(self._points(step))

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._way.close()

    def _points(self, step: StepNumbers) -> Iterator[_Point]:
        nanos = int(step.wall_secs * 1e9)
        mode = step.mode.name.lower()
        who = {"smdebug.mode": mode, "smdebug.worker": step.worker}
        not_finite = 0
        for name, number in step.numbers.items():
            not_finite += not math.isfinite(number)
            key = (mode, step.worker, name)
            known = self._attributes.get(key)
            if known is None:
                known = self._attributes[key] = self._describe(name, who)
            yield _Point(known[0], number, known[1], nanos)
        yield _Point("smdebug.step", step.step, who, nanos)
        yield _Point("smdebug.mode_step", step.mode_step, who, nanos)
        yield _Point("smdebug.not_finite", not_finite, who, nanos)

    def _describe(self, name: str, who: dict[str, str]) -> tuple[str, dict[str, str]]:
        tensor, reduction = self.choice.parts(name)
        if reduction is None:
            return "smdebug.scalar", {**who, "smdebug.tensor": tensor}
        attributes = {**who, "smdebug.tensor": tensor, "smdebug.reduction": reduction}
        return "smdebug.reduction", attributes


class _Gauges:
    """Instruments of a meter provider, whose readers send them."""

    def __init__(self, api: Any, provider: Any) -> None:
        self._api = api
        self._provider = provider
        self._gauges: dict[str, Any] = {}

    def take(self, points: Iterable[_Point]) -> None:
        if not self._gauges:
            self._make()
        for point in points:
            if math.isfinite(point.value):
                self._gauges[point.gauge].set(point.value, point.attributes)

    def close(self) -> None:
        pass  # the provider belongs to the program

    def _make(self) -> None:
        provider = self._provider or self._api.get_meter_provider()
        # What stands in as long as the program has set none: everything would be lost.
        if type(provider).__name__ in ("NoOpMeterProvider", "_ProxyMeterProvider"):
            raise SMDebugRuntimeError(
                "The program has set no global MeterProvider, so the numbers would go nowhere; set "
                "one, or give meter_provider or endpoint."
            )
        meter = provider.get_meter(_SCOPE, VERSION)
        self._gauges = {
            name: meter.create_gauge(name, description=about) for name, about in _GAUGES.items()
        }


class _Endpoint:
    """Points that are sent to a receiver of OTLP over HTTP."""

    def __init__(self, endpoint: str, batch_secs: float) -> None:
        http = import_package(
            "opentelemetry.exporter.otlp.proto.http.metric_exporter",
            "opentelemetry-exporter-otlp-proto-http",
            "opentelemetry",
        )
        if not endpoint.startswith(("http://", "https://")):
            raise SMDebugValueError(
                "endpoint must be a URL such as http://localhost:4318/v1/metrics, not "
                f"{endpoint!r}."
            )
        self._endpoint = endpoint
        self._sdk = _import("opentelemetry.sdk.metrics.export")
        self._resource = _import("opentelemetry.sdk.resources").Resource.create()
        self._scope = _import("opentelemetry.sdk.util.instrumentation").InstrumentationScope(
            _SCOPE, VERSION
        )
        self._exporter = http.OTLPMetricExporter(endpoint=endpoint)
        self._batch: Batch[_Point] = Batch(self._send, _MAX_POINTS, batch_secs)

    def take(self, points: Iterable[_Point]) -> None:
        self._batch.add(points)

    def close(self) -> None:
        try:
            self._batch.flush()
        finally:
            self._exporter.shutdown()

    def _send(self, points: list[_Point]) -> None:
        sdk = self._sdk
        by_gauge: dict[str, list[Any]] = {}
        for point in points:
            by_gauge.setdefault(point.gauge, []).append(
                sdk.NumberDataPoint(
                    attributes=point.attributes,
                    start_time_unix_nano=0,
                    time_unix_nano=point.unix_nanos,
                    value=point.value,
                )
            )
        metrics = [
            sdk.Metric(
                name=name, description=_GAUGES[name], unit="", data=sdk.Gauge(data_points=found)
            )
            for name, found in by_gauge.items()
        ]
        scope = sdk.ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        resource = sdk.ResourceMetrics(
            resource=self._resource, scope_metrics=[scope], schema_url=""
        )
        result = self._exporter.export(sdk.MetricsData(resource_metrics=[resource]))
        if result is not sdk.MetricExportResult.SUCCESS:
            raise SMDebugRuntimeError(
                f"{len(points)} numbers could not be sent to OpenTelemetry: {self._endpoint}"
            )


def _import(module: str) -> Any:
    return import_package(module, "opentelemetry-sdk", "opentelemetry")
