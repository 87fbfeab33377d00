"""Telemetry: the catalogue of metrics is complete, logs have one form and hold no conversation."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError
from prometheus_client import generate_latest

from jobs.operate.metrics import as_markdown
from models.errors import ConfigurationError
from models.metrics import LABELS, METRICS, Metric, MetricKind
from streams.observe import telemetry
from streams.observe.telemetry import Metrics, _Calm, configure_logging
from streams.settings import TelemetrySettings

SAID = "what the user really said"


@pytest.fixture
def fresh() -> Metrics:
    """Metrics that no other test has counted in."""
    return Metrics()


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Give pytest its handlers and structlog its defaults back."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers, logging.root.level = handlers, level
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Log lines written so far."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_every_metric_is_exposed_with_its_advice(fresh: Metrics) -> None:
    """The catalogue reaches Prometheus, prefixed."""
    text = generate_latest(fresh.registry).decode()

    missing = [m.name for m in METRICS if f"# HELP turntide_{m.name} {m.help} {m.what_to_do}\n" not in text]
    assert missing == []


def test_unknown_names_kinds_and_labels_are_refused(fresh: Metrics) -> None:
    """A typing error is found by the first test that runs the line, not in a dashboard."""
    with pytest.raises(ConfigurationError, match="'turns_total' is not in the catalogue"):
        fresh.counter("turns_total")
    with pytest.raises(ConfigurationError, match="ready is not a counter"):
        fresh.counter("ready")
    with pytest.raises(ConfigurationError, match="turns_folded_total is not a gauge"):
        fresh.gauge("turns_folded_total")
    with pytest.raises(ConfigurationError, match="ready is not a histogram"):
        fresh.histogram("ready")
    with pytest.raises(ConfigurationError, match=r"takes the labels \('reason',\)"):
        fresh.counter("dead_letters_total", session_id="s")
    with pytest.raises(ConfigurationError, match="takes the labels"):
        fresh.counter("dead_letters_total")


def test_energy_is_of_the_time_since_the_last_scrape(fresh: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time by what a core draws; none counts twice, however often it is scraped."""
    used_s = iter((2.0, 3.0, 3.0))
    monkeypatch.setattr(telemetry, "process_time", lambda: next(used_s))
    fresh.configure(TelemetrySettings(watts_per_core=10))
    for _ in range(3):
        fresh._refresh()

    assert fresh.counter("energy_joules_total")._value.get() == 30.0


@pytest.mark.usefixtures("logging_restored")
def test_lines_have_one_form_and_libraries_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    """What Faust or aiokafka says can be searched like our own events; httpx would log each address at info."""
    configure_logging("json", "info")
    structlog.get_logger("streams.x").info("batch_folded", partition=3)
    structlog.get_logger("streams.x").debug("detail")
    logging.getLogger("aiokafka.conn").warning("lost %s", "broker-1")
    logging.getLogger("httpx").info("HTTP Request: GET /")
    logging.getLogger("faust.worker").info("ready")
    configure_logging("json", "debug")
    structlog.get_logger("streams.x").debug("detail")
    logging.getLogger("httpx").info("HTTP Request: GET /")
    ours, theirs, *detailed = lines(capsys)

    assert (ours["event"], ours["partition"], ours["level"], ours["logger"]) == ("batch_folded", 3, "info", "streams.x")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("lost broker-1", "warning", "aiokafka.conn")
    assert ours["timestamp"].endswith("Z")
    assert [line["event"] for line in detailed] == ["detail", "HTTP Request: GET /"]


@pytest.mark.usefixtures("logging_restored")
async def test_no_line_holds_the_secret_in_a_sinks_address(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has the address of a Teams workflow can post there: at level debug, too, its host alone is told."""
    configure_logging("json", "debug")
    transport = httpx.MockTransport(lambda _: httpx.Response(202))
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post("https://flows.example.org/top-secret?sig=top-secret")
    written = capsys.readouterr().err

    assert "POST flows.example.org" in written
    assert "top-secret" not in written


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_line_holds_a_turns_text(capsys: pytest.CaptureFixture[str], log_format: Any) -> None:
    """Neither as a field nor as a local variable of a traceback."""
    configure_logging(log_format, "info")
    log = structlog.get_logger("streams.x")
    log.info("turn_seen", content=SAID, text=SAID, query=SAID, summary=SAID, turn=3)
    try:
        content = SAID
        len(content) / 0
    except ZeroDivisionError:
        log.exception("fold_failed")
        logging.getLogger("faust").exception("crashed")
    written = capsys.readouterr().err

    assert SAID not in written
    assert "Traceback" in written
    assert "withheld" in written


@pytest.mark.parametrize(
    ("error", "at_s", "told"),
    [
        (GroupCoordinatorNotAvailableError(), 0.0, False),
        (GroupCoordinatorNotAvailableError(), 59.0, False),
        (GroupCoordinatorNotAvailableError(), 61.0, True),
        (GroupAuthorizationFailedError(), 0.0, True),
    ],
)
def test_a_group_that_waits_for_its_first_coordinator_is_no_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception, at_s: float, *, told: bool
) -> None:
    """A new cluster needs seconds to choose one. What lasts, or cannot pass, is told as ever."""
    now = [0.0]
    monkeypatch.setattr("streams.observe.telemetry.monotonic", lambda: now[0])
    calm = _Calm()
    now[0] = at_s
    name, text = "aiokafka.consumer.group_coordinator", "Group Coordinator Request failed: %s"
    said = logging.LogRecord(name, logging.ERROR, "", 0, text, (error,), None)

    assert calm.filter(said) is told


def test_kafkas_client_repeats_itself_once_in_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With how often it was; what others say is never held back."""
    now = [0.0]
    monkeypatch.setattr("streams.observe.telemetry.monotonic", lambda: now[0])
    calm, said = _Calm(), []

    def say(name: str, message: str) -> None:
        record = logging.LogRecord(name, logging.ERROR, "", 0, message, ("b1:9092",), None)
        if calm.filter(record):
            said.append(record.getMessage())

    for at_s in (0.0, 0.1, 9.9, 10.0, 10.1):
        now[0] = at_s
        say("aiokafka.conn", "no broker at %s")
        say("turntide", "mine, %s")
    say("aiokafka.conn", "something else of %s")

    assert [each for each in said if "mine" not in each] == [
        "no broker at b1:9092",
        "no broker at b1:9092 (and 2 more since)",
        "something else of b1:9092",
    ]
    assert len([each for each in said if "mine" in each]) == 5


def test_no_label_can_hold_an_id() -> None:
    """Each id would be a time series for ever, and ids are personal data."""
    forbidden = ("session", "user", "app", "project", "turn", "alert", "key", "id", "content")

    assert [label for label in LABELS if any(word in label for word in forbidden)] == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_follows_the_rules_of_the_catalogue(metric: Metric) -> None:
    """Labels of the closed list, whole sentences for whoever is paged at night, Prometheus' names, ascending bounds.

    Counters end in `_total`, others do not; seconds and bytes stand in the name; histograms alone have buckets.
    """
    assert set(metric.labels) <= LABELS
    assert metric.help.endswith(".")
    assert metric.what_to_do.endswith(".")
    assert metric.unit
    assert metric.name.endswith("_total") is (metric.kind is MetricKind.COUNTER)
    assert metric.unit not in ("seconds", "bytes") or metric.unit in metric.name
    assert bool(metric.buckets) is (metric.kind is MetricKind.HISTOGRAM)
    assert sorted(set(metric.buckets)) == list(metric.buckets)


def test_the_reference_is_of_this_catalogue() -> None:
    """Mended by `turntide ops metrics --output markdown > deploy/metrics.md`."""
    written = Path(__file__).parents[2] / "deploy" / "metrics.md"

    assert as_markdown() == written.read_text(encoding="utf-8")
