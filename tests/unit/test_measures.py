"""What a role shows of its place in the log and of its machine, and what is counted of requests, models and upkeep."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from streams.archive import maintenance
from streams.archive.maintenance import Maintained
from streams.http.answering import RequestMeasures, ServedRoute
from streams.http.health import Api
from streams.inference.llm_client import count_usage
from streams.kafka.records import ShownPartitions, event_time_of
from streams.observe.telemetry import Metrics, counted_apart, memory_limit_bytes, metrics
from streams.settings import TelemetrySettings
from streams.settings.archive import ArchiveSettings

WRITTEN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def record(ce_time: bytes | None, at_ms: int = int(WRITTEN.timestamp() * 1000)) -> ConsumerRecord:
    """A record as somebody else's producer may write it."""
    headers = (("other", None), ("ce_time", ce_time))
    return ConsumerRecord("t", 0, 7, at_ms, 0, b"k", b"v", None, 1, 1, headers)


@pytest.mark.parametrize("ce_time", [None, b"", b"\xff\xfe", b"yesterday"])
def test_a_record_is_dated_by_itself_where_its_header_says_nothing(ce_time: bytes | None) -> None:
    """Headers are anybody's: one that is no time stops no role."""
    assert event_time_of(record(ce_time)) == WRITTEN


def test_a_header_counts_first_and_nonsense_is_now() -> None:
    """A time without a zone is UTC; a number beyond any calendar is no lag."""
    began = datetime.now(UTC)

    assert event_time_of(record(b"2026-01-05T08:00:00")) == WRITTEN.replace(hour=8)
    for at_ms in (2**63 - 1, -(2**63), -1):
        assert began <= event_time_of(record(None, at_ms=at_ms)) <= datetime.now(UTC)


def test_a_containers_limit_counts_before_the_machines_memory(tmp_path: Path) -> None:
    """Both versions of control groups; `max` is none."""
    machine = memory_limit_bytes(tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("4096\n")
    old = memory_limit_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("1024\n")
    new = memory_limit_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")

    assert (old, new) == (4096, 1024)
    assert memory_limit_bytes(tmp_path) == machine > 2**20


def test_gauges_of_a_partition_that_moved_are_dropped() -> None:
    """Else the lag that it had here would say for ever that this worker stands still; counters stay."""
    value, lag, heals = (
        metrics.registry.get_sample_value,
        "turntide_offset_lag_records",
        "turntide_rebalance_heals_total",
    )
    shown = ShownPartitions()
    shown.keep([901, 902])
    for partition in ("901", "902"):
        metrics.gauge("offset_lag_records", partition=partition).set(5)
        metrics.counter("rebalance_heals_total", partition=partition).inc()
    shown.keep([902])
    moved = value(lag, {"partition": "901"})
    metrics.gauge("offset_lag_records", partition="901").set(3)  # it was given back

    assert (moved, value(lag, {"partition": "901"}), value(lag, {"partition": "902"})) == (None, 3, 5)
    assert value(heals, {"partition": "901"}) == 1
    for number in (901, 902):
        metrics.forget_partition(number)


def test_one_of_each_kind_is_counted_or_none_at_all() -> None:
    """Counting can be switched off, for measuring what it costs: the same calls, and nothing moves."""
    shown = []
    for counts in (True, False):
        counted = Metrics()
        counted.configure(TelemetrySettings(metrics=counts))
        counted.counter("dead_letters_total", reason="not_json").inc(3)
        counted.gauge("ready").set(1)
        counted.histogram("stage_seconds", stage="fold").observe(0.002)
        value = counted.registry.get_sample_value
        letters = value("turntide_dead_letters_total", {"reason": "not_json"})
        below = value("turntide_stage_seconds_bucket", {"stage": "fold", "le": "0.0025"})
        shown.append((letters, value("turntide_ready"), below))

    assert shown == [(3, 1, 1), (None, 0, None)]


def value_of(name: str, **labels: str) -> float:
    """Of this process."""
    return metrics.registry.get_sample_value(f"turntide_{name}", labels) or 0


async def test_requests_are_counted_by_route() -> None:
    """Under the template, so that no id becomes a label; a stream's length is not a time of ours."""

    async def turns(request: Request) -> Response:
        if (session_id := request.path_params["session_id"]) == "broken":
            raise ValueError
        if session_id == "unknown":
            raise HTTPException(404)
        return PlainTextResponse(session_id)

    async def stream(_request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b": ping\n\n"

        return StreamingResponse(pieces(), media_type="text/event-stream")

    routes = [
        ServedRoute("/test/{session_id:path}/turns", turns, ["GET"]),
        ServedRoute("/test-stream", stream, ["GET"]),
    ]
    app = Api(routes, [Middleware(RequestMeasures)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    asked = [
        "/test/a/b/turns",
        "/test/c/turns",
        "/test/unknown/turns",
        "/test/broken/turns",
        "/test-stream",
        "/no/such",
    ]
    others = value_of("http_requests_total", route="other", status="4xx")
    async with httpx.AsyncClient(transport=transport, base_url="http://role") as client:
        for path in asked:
            await client.get(path)
    route = "/test/{session_id:path}/turns"

    assert [value_of("http_requests_total", route=route, status=f"{n}xx") for n in (2, 4, 5)] == [2, 1, 1]
    assert value_of("http_request_seconds_count", route=route) == 4
    assert value_of("http_requests_total", route="/test-stream", status="2xx") == 1
    assert value_of("http_request_seconds_count", route="/test-stream") == 0
    assert value_of("http_requests_total", route="other", status="4xx") == others + 1


def test_tokens_have_their_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """By direction; a count that is none, or none at all, costs nothing and raises nothing."""
    prices = TelemetrySettings(price_in_per_million=2, price_out_per_million=10)
    monkeypatch.setattr(metrics, "settings", prices)
    for usage in (b'{"prompt_tokens":500000,"completion_tokens":100000,"total_tokens":600000}', b"null", b"[1]", b"{}"):
        count_usage("priced", msgspec.Raw(usage))

    assert value_of("llm_tokens_total", service="priced", direction="in") == 500_000
    assert value_of("llm_tokens_total", service="priced", direction="out") == 100_000
    assert value_of("llm_cost_total", service="priced") == 2.0


async def test_an_upkeep_that_does_not_settle_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one does."""
    ends = iter([False, True])

    def maintain(*_: object, **__: object) -> Maintained:
        return Maintained(0, 0, 0, 0, next(ends))

    monkeypatch.setattr(maintenance, "maintain", maintain)
    upkeep = maintenance.ArchiveUpkeep(cast("Any", None), ArchiveSettings(merge_every=timedelta(seconds=0)))
    before = value_of("archive_upkeep_total", result="not_settled")
    await upkeep.maintain()
    unsettled = value_of("archive_unsettled")
    await upkeep.maintain()

    assert (unsettled, value_of("archive_unsettled")) == (1, 0)
    assert value_of("archive_upkeep_total", result="not_settled") == before + 1
    assert value_of("archive_upkeep_timestamp_seconds") > 0


async def test_roles_of_one_process_count_apart_also_in_their_threads() -> None:
    """And the process's own figures are shown by one of them."""

    async def role(turns: int, *, of_process: bool) -> tuple[float | None, bool]:
        with counted_apart(of_process=of_process):
            await asyncio.to_thread(lambda: metrics.counter("turns_folded_total").inc(turns))
            await asyncio.sleep(0)
            folded = metrics.registry.get_sample_value("turntide_turns_folded_total")
            return folded, metrics.registry.get_sample_value("process_resident_memory_bytes") is not None

    before = metrics.registry.get_sample_value("turntide_turns_folded_total")

    assert [*await asyncio.gather(role(3, of_process=True), role(5, of_process=False))] == [(3, True), (5, False)]
    assert metrics.registry.get_sample_value("turntide_turns_folded_total") == before
