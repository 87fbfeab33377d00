"""The live page after its broker was away: it follows the log again, by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from models.events import SessionName
from models.events.topics import PROFILES
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.api.live.board import LiveBoard
from streams.api.live.feed import LiveFeed
from streams.kafka.producer import Record
from streams.settings import Settings, load_settings
from tests.support.fault_driver import until, write
from tests.support.live_made import profile

BEFORE, AFTER = SessionName("a", "before"), SessionName("a", "after")


async def emit(settings: Settings, session_id: str) -> None:
    """Write a session's profile."""
    event = profile(session_id)
    await write(settings, PROFILES, [Record(b"k", encode(event), headers_for(event))])


@pytest.mark.slow
@pytest.mark.kafka
async def test_the_page_goes_on_after_its_broker_was_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is away the feed fails and tries again; what comes after its return is shown."""
    monkeypatch.setattr("streams.api.live.feed.LOOK_AROUND_S", 1.0)
    monkeypatch.setattr("streams.api.live.feed.LONGEST_RETRY_S", 1.0)
    board = LiveBoard()
    with LocalKafka(tmp_path / "broker") as broker, capture_logs() as logs:
        settings = load_settings(kafka={"bootstrap": broker.bootstrap, "partitions": 1}, data_dir=tmp_path)
        await apply_topics(settings)
        following = asyncio.create_task(LiveFeed(settings, board).run())
        await emit(settings, "before")
        await until(lambda: board.row(BEFORE), "a session on the board")
        await asyncio.to_thread(broker.kill)
        await until(
            lambda: following.done() or any(each["event"] == "live_feed_failed" for each in logs), "a feed that fails"
        )
        await asyncio.to_thread(broker.restart)
        await emit(settings, "after")
        await until(lambda: following.done() or board.row(AFTER), "the session that came after the outage")
        ended = following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    assert not ended
    assert board.row(BEFORE) is not None
