"""Which erasure is tried next, and what is shown of those that wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from models.errors import StoreUnavailable
from models.events import EraseRequested
from models.policy import IntakePolicy
from streams.erase import executor
from streams.erase.executor import TRY_AGAIN_AFTER_S, Executor
from streams.erase.record import key_of
from streams.observe.telemetry import metrics
from streams.settings import load_settings


def requested(name: str, hours_ago: int) -> EraseRequested:
    """A request."""
    asked_at = datetime.now(UTC) - timedelta(hours=hours_ago)
    return EraseRequested(request_id=name, timestamp=asked_at, scope="user", user_id="anna")


async def followed(monkeypatch: pytest.MonkeyPatch, looks: list[tuple[float, list[EraseRequested]]]) -> list[str]:
    """Which erasures are tried, when these are pending at these times; all of them fail."""
    tried: list[str] = []
    coming = iter(looks)
    records = MagicMock(refresh=AsyncMock(), proved={}, names=list)
    now_s, records.pending = next(coming)

    def erasure(request: EraseRequested, **_: Any) -> Any:
        tried.append(request.request_id)
        return AsyncMock(run=AsyncMock(side_effect=StoreUnavailable("a role is away")))

    async def sleep(_seconds: float) -> None:
        nonlocal now_s
        if (later := next(coming, None)) is None:
            raise asyncio.CancelledError
        now_s, records.pending = later

    monkeypatch.setattr(executor, "ErasureRecords", lambda: records)
    monkeypatch.setattr(executor, "restore", AsyncMock())
    monkeypatch.setattr(executor, "IdlePartitions", lambda _: AsyncMock())
    monkeypatch.setattr(executor, "Erasure", erasure)
    monkeypatch.setattr(executor, "monotonic", lambda: now_s)
    monkeypatch.setattr("asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await Executor(load_settings(), IntakePolicy(), AsyncMock())._follow(MagicMock())
    return tried


async def test_what_failed_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try writes anew to the logs, and waits anew for a role that is away."""
    times = [100.0, 101.0, 100.0 + TRY_AGAIN_AFTER_S, 101.0 + TRY_AGAIN_AFTER_S]

    assert await followed(monkeypatch, [(time, [requested("r", 1)]) for time in times]) == ["r", "r"]


async def test_an_erasure_that_was_not_tried_yet_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails for ever holds up no other; shown is how long the oldest has waited."""
    fails, new = requested("fails", 2), requested("new", 1)
    looks = [(100.0, [fails]), (100.0 + TRY_AGAIN_AFTER_S, [fails, new])]

    assert await followed(monkeypatch, looks) == ["fails", "new", "fails"]
    assert metrics.registry.get_sample_value("turntide_erasures_pending") == 2
    assert metrics.registry.get_sample_value("turntide_erasure_oldest_pending_seconds") == pytest.approx(7200, abs=600)


async def test_a_request_is_out_of_the_log_once_no_record_of_it_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the subject; a null record may stay, for its key does not, and other requests are their own."""
    mine, other = key_of("r", EraseRequested), key_of("other", EraseRequested)
    held: list[list[tuple[bytes, bytes | None]]] = [
        [(mine, b"{}")],
        [(mine, b"{}"), (mine, None)],
        [(mine, None), (other, b"{}")],
        [],
    ]
    clean: list[bool] = []

    async def read(_: Any) -> AsyncIterator[Any]:
        for key, value in held[len(clean)]:
            yield SimpleNamespace(key=key, value=value)

    async def purge(*given: Any) -> None:
        while len(clean) < len(held):
            clean.append(await given[-1]())

    monkeypatch.setattr(executor, "purge", purge)
    logs: Any = SimpleNamespace(name=lambda topic: topic.name, extents=AsyncMock(), read=read)
    await Executor(load_settings(), IntakePolicy(), AsyncMock())._purge_requests(logs, MagicMock(), "r")

    assert clean == [False, False, True, True]
