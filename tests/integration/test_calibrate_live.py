"""Shadow mode over a real broker: what is said from now on is judged, and nothing is written."""

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec import structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import judge, watched
from jobs.shared.sending import send_to_turns
from models.errors import ConfigurationError
from models.events.topics import ALERTS, TURNS
from models.policy import Policy
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.support.backtest_sessions import LOUD, conversation
from tests.support.fault_driver import recorded, records_on
from tests.support.zero_embedder import ZeroEmbedder


def said_now(*session_ids: str) -> list[Record]:
    """Conversations that alert, said at this moment."""
    now = datetime.now(UTC)
    events = [structs.replace(event, timestamp=now) for each in session_ids for event in conversation(each, LOUD)]
    return [recorded(event) for event in events]


async def test_live_traffic_is_judged_and_nothing_is_written(settings: Settings) -> None:
    """Sessions from before are not seen, those said meanwhile alert here, and no alert reaches a topic.

    Silence is said, rather than a threshold of nothing.
    """
    with pytest.raises(ConfigurationError, match="no record arrived within 1 s"):
        await asyncio.to_thread(watched, settings, 1.0)
    await send_to_turns(settings, said_now("before"))
    watching = asyncio.create_task(asyncio.to_thread(watched, settings, 4.0))
    sent = 1
    while not watching.done():
        await send_to_turns(settings, said_now(*(f"live-{n}" for n in range(sent, sent + 4))))
        sent += 4
        await asyncio.sleep(0.2)  # four sessions five times a second: one time within the four seconds will do
    opening = await watching

    with opening() as traffic:
        (judging,) = judge(traffic, [Contender(Policy())], ZeroEmbedder())
    # The first and the last one may have been said while watching began or ended.
    whole = [each for each in judging.judged() if each.turns == len(LOUD)]
    assert 3 <= len(whole) < sent
    assert all(each.session_id.startswith("live-") and each.alerts for each in whole)
    turns, alerts = await records_on(settings, TURNS), await records_on(settings, ALERTS)
    assert (len(turns), len(alerts)) == (sent * len(LOUD), 0)
