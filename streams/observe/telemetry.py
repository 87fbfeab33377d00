"""Telemetry of a role: metrics by the catalogue of `models.metrics`, and logs. Traces: `streams.observe.tracing`.

Memory limit of this process.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from time import monotonic, perf_counter, process_time
from typing import Any, Literal, TypeVar, cast

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client import Metric as Family
from prometheus_client.registry import Collector
from structlog.typing import EventDict, Processor, WrappedLogger

from models.errors import ConfigurationError
from models.metrics import METRICS, Metric, MetricKind
from streams.observe.tracing import tracing
from streams.settings import TelemetrySettings

_CGROUP = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Of a container, as version 2 and version 1 of control groups have them."""


def memory_limit_bytes(cgroup: Path = _CGROUP) -> int:
    """The container's limit, or else all of the machine's memory."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _LIMITS:
        try:
            said = (cgroup / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if said.isdecimal():  # `max` is no limit
            return min(int(said), machine)
    return machine


PREFIX = "turntide_"

_Collector = Counter | Gauge | Histogram
_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)
_QUIET = (
    *("aiokafka", "faust", "httpcore", "httpx", "kafka", "mcp", "mode", "openai", "qdrant_client", "uvicorn"),
    *("opentelemetry", "wordllama"),
)
_STARTING_S = 60.0
_WAITS = ("aiokafka.consumer.group_coordinator", "Group Coordinator Request failed: %s")
_SAY_AGAIN_S, _MOST_SAID = 10.0, 1_000
_WITHHELD_KEYS = frozenset({"content", "query", "summary", "text"})


def _collector(metric: Metric, registry: CollectorRegistry) -> _Collector:
    name, documentation = PREFIX + metric.name, f"{metric.help} {metric.what_to_do}"
    if metric.kind is MetricKind.HISTOGRAM:
        return Histogram(name, documentation, metric.labels, registry=registry, buckets=metric.buckets)
    made = Counter if metric.kind is MetricKind.COUNTER else Gauge
    return made(name, documentation, metric.labels, registry=registry)


class _Silent:
    """Counts, shows and observes nothing."""

    def inc(self, _amount: float = 1) -> None: ...

    set = observe = inc


_SILENT: Any = _Silent()


class _BeforeScrape(Collector):
    """Brings up to date what is read rather than counted; comes first in its registry and has no family itself."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        self._refresh = refresh

    def describe(self) -> Iterable[Family]:
        return ()

    def collect(self) -> Iterable[Family]:
        self._refresh()
        return ()


class Metrics:
    """The catalogue's metrics in a registry of their own.

    `metrics.counter("dead_letters_total", reason="not_json").inc()`: a name, kind or label that the catalogue does
    not have is refused.

    Args:
        of_process: Whether the process's own figures, memory and energy, are among them.

    Attributes:
        registry: What is scraped.
        settings: Prices, and whether anything is counted.
    """

    def __init__(self, *, of_process: bool = True) -> None:
        self.registry = CollectorRegistry()
        self.settings = TelemetrySettings()
        self._silent = False
        self._known: dict[tuple[object, ...], _Collector] = {}
        """What was asked for before: checked once, since some are asked for with every turn."""
        self._cpu_s = 0.0
        if of_process:
            self.registry.register(_BeforeScrape(self._refresh))
            ProcessCollector(registry=self.registry)
        self._collectors = {metric.name: (metric, _collector(metric, self.registry)) for metric in METRICS}
        self.gauge("build_info", version=metadata.version("turntide")).set(1)
        self.gauge("memory_limit_bytes").set(memory_limit_bytes())

    def configure(self, settings: TelemetrySettings) -> None:
        """Take the settings over; once, before anything is counted."""
        self.settings = settings
        self._silent = not settings.metrics

    def _refresh(self) -> None:
        before_s, self._cpu_s = self._cpu_s, process_time()
        self.counter("energy_joules_total").inc((self._cpu_s - before_s) * self.settings.watts_per_core)

    def counter(self, name: str, **labels: str) -> Counter:
        """Return the counter with these labels.

        Raises:
            ConfigurationError: No such counter, or other labels.
        """
        return self._child(Counter, name, labels)

    def gauge(self, name: str, **labels: str) -> Gauge:
        """Return the gauge with these labels (`counter`)."""
        return self._child(Gauge, name, labels)

    def histogram(self, name: str, **labels: str) -> Histogram:
        """Return the histogram with these labels (`counter`)."""
        return self._child(Histogram, name, labels)

    def forget_partition(self, partition: int) -> None:
        """Drop the gauges of a partition that was revoked: its new owner reports them now."""
        for metric, collector in self._collectors.values():
            if metric.kind is MetricKind.GAUGE and "partition" in metric.labels:
                collector.remove_by_labels({"partition": str(partition)})
        self._known.clear()

    def _child(self, kind: type[_Kind], name: str, labels: dict[str, str]) -> _Kind:
        if self._silent:
            silent: _Kind = _SILENT
            return silent
        asked = (name, *labels.items())
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._checked(name, labels)
        if not isinstance(known, kind):
            raise ConfigurationError(f"metric {name} is not a {kind.__name__.lower()}: see models/metrics/")
        return known

    def _checked(self, name: str, labels: dict[str, str]) -> _Collector:
        try:
            metric, collector = self._collectors[name]
        except KeyError:
            raise ConfigurationError(f"metric {name!r} is not in the catalogue: add it to models/metrics/") from None
        if set(labels) != set(metric.labels):
            raise ConfigurationError(f"metric {name} takes the labels {metric.labels}, got {tuple(labels)}")
        return collector.labels(**labels) if labels else collector


_counting: ContextVar[Metrics] = ContextVar("metrics", default=Metrics())  # noqa: B039 - a process has one


class _OfTask:
    """The metrics of the role that asks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_counting.get(), name)


metrics = cast("Metrics", _OfTask())
"""This process's metrics; within `counted_apart` those of the role."""


@contextmanager
def counted_apart(*, of_process: bool) -> Iterator[None]:
    """Give a role of several in one process metrics of its own: its tasks, and their threads, count there.

    Args:
        of_process: Whether the process's figures are shown by this role; by one of them, or they would be added up.
    """
    made = Metrics(of_process=of_process)
    made.configure(metrics.settings)
    before = _counting.set(made)
    try:
        yield
    finally:
        _counting.reset(before)


def start_telemetry(settings: TelemetrySettings, role: str) -> None:
    """Metrics and traces as the settings want them. Call before a role counts anything.

    Raises:
        ConfigurationError: Traces are wanted and the extra `otel` is not installed.
    """
    metrics.configure(settings)
    tracing.start(settings, role, counted=lambda spans, of: metrics.counter("trace_spans_total", result=of).inc(spans))


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Time one stage of a batch (`models.metrics.STAGES`); of a traced batch it is a span too."""
    started_s = perf_counter()
    with tracing.stage(name):
        yield
    metrics.histogram("stage_seconds", stage=name).observe(perf_counter() - started_s)


def _withhold_turn_text(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A last guard: what a conversation said is nobody's log line."""
    return {key: "<withheld>" if key in _WITHHELD_KEYS else value for key, value in event.items()}


class _Calm(logging.Filter):
    """Kafka's client says the same hundreds of times a second while its broker is away: once in ten seconds will do.

    What it says of a group whose cluster has no coordinator yet, as every new one for some seconds, is no error in the
    first minute: it asks again. What cannot pass by itself is told at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._began_s = monotonic()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("aiokafka"):
            return True
        what, now_s = (record.name, str(record.msg)), monotonic()
        if what == _WAITS and now_s - self._began_s < _STARTING_S and isinstance(record.args, tuple):
            return not all(getattr(error, "retriable", False) for error in record.args)
        last_s, held_back = self._said.get(what, (-_SAY_AGAIN_S, 0))
        if now_s - last_s < _SAY_AGAIN_S:
            self._said[what] = last_s, held_back + 1
            return False
        if len(self._said) >= _MOST_SAID:
            self._said.clear()
        self._said[what] = now_s, 0
        if held_back:
            record.msg = f"{record.msg} (and {held_back} more since)"
        return True


def _hosts_alone(record: logging.LogRecord) -> bool:
    """Of addresses that httpx asks, at level debug: the path of a sink's may be its secret."""
    if record.name == "httpx" and isinstance(record.args, tuple):
        record.args = tuple(getattr(each, "host", each) for each in record.args)
    return True


def _renderer(log_format: Literal["console", "json"]) -> list[Processor]:
    # Plain tracebacks in both: the fancy ones print local variables, and those hold turns.
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]


def configure_logging(
    log_format: Literal["console", "json"] = "console",
    level: Literal["debug", "info", "warning", "error"] = "info",
) -> None:
    """Send structlog and stdlib logging (Faust, aiokafka, uvicorn) to standard error, in one form.

    Libraries speak from `warning` up, except at level `debug`. May be called again; the last call counts.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _withhold_turn_text,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer(log_format)],
    )
    handler: logging.StreamHandler[Any] = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_Calm())
    handler.addFilter(_hosts_alone)
    # Replaced, not added to: importing wordllama gives the root logger a handler of its own.
    logging.root.handlers = [handler]
    logging.root.setLevel(level.upper())
    for library in _QUIET:
        logger = logging.getLogger(library)
        logger.handlers = []
        logger.propagate = True
        logger.setLevel(level.upper() if level in ("debug", "error") else "WARNING")
