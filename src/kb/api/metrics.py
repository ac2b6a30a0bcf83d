"""Metrics for Prometheus: how much is stored, what is in progress, how long answers take."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kb.api.limits import Slots
from kb.engine.engine import Engine

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """One registry for one application."""

    def __init__(self, engine: Engine, *, streams: Slots, uploads: Slots) -> None:
        self._registry = CollectorRegistry()
        self._answers = Counter("kb_http_requests", "Requests answered.", ["method", "status"], registry=self._registry)
        self._seconds = Histogram(
            "kb_http_request_seconds", "Time to the end of an answer.", buckets=SECONDS, registry=self._registry
        )
        self._registry.register(Gauges(engine, streams, uploads))

    def answered(self, method: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS") else "other"
        self._answers.labels(known, str(status)).inc()
        self._seconds.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Gauges(Collector):
    """Values that are read when Prometheus asks for them."""

    def __init__(self, engine: Engine, streams: Slots, uploads: Slots) -> None:
        self._engine = engine
        self._streams = streams
        self._uploads = uploads

    def collect(self) -> Iterable[Metric]:
        for name, about, value in self._engine.monitor.gauges():
            yield GaugeMetricFamily(f"kb_{name}", about, value=value)
        yield GaugeMetricFamily("kb_event_streams", "Event streams that are open.", value=self._streams.taken)
        yield GaugeMetricFamily("kb_uploads", "Files that are being received.", value=self._uploads.taken)

    def describe(self) -> Iterable[Metric]:
        """Describe nothing ahead: registering must not ask the engine."""
        return ()
