"""F13: clocks jump an hour: a producer's, or the worker's own. Event time and the broker's time decide alone."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from models.events.topics import DEAD_LETTERS, EPISODES
from streams.roles import sessions
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role, until

pytestmark = pytest.mark.fault("F13")
HOUR = timedelta(hours=1)


async def has_letter(settings: Settings) -> bool:
    """Whether a dead letter is written."""
    return bool(await events(settings, DEAD_LETTERS))


async def episodes_of(settings: Settings, session_id: str) -> list[str]:
    """Why the session was closed, each time that it was."""
    return [event.reason for event in await events(settings, EPISODES) if event.session_id == session_id]


class JumpedClock:
    """`datetime` of a worker whose wall clock is wrong."""

    ahead = HOUR

    @classmethod
    def now(cls, zone: object) -> datetime:
        """An hour from now."""
        assert zone is UTC
        return datetime.now(UTC) + cls.ahead


async def test_a_future_dated_turn_times_out_nobody(settings: Settings) -> None:
    """It becomes a dead letter with the distance; the other sessions of its partition stay open."""
    now = datetime.now(UTC)
    ahead = recorded(said(5, session_id="ahead", at=now + HOUR))
    others = [recorded(said(n, session_id=f"s-{n % 3}")) for n in range(9)]
    await send(settings, [*others[:6], ahead, *others[6:]], partition=0)
    async with sessions_role(settings):
        await until(partial(has_letter, settings), "a dead letter")
        settled = await assert_equal_to_replay(settings)
    (letter,) = await events(settings, DEAD_LETTERS)

    assert (letter.reason, letter.offset, letter.key) == ("future_timestamp", 6, b"ahead")
    assert await events(settings, EPISODES) == []
    assert settled.oracle.turns == 9


async def test_a_worker_whose_clock_is_an_hour_ahead_times_out_nobody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It thinks the silent partition due and writes a tick; what counts is the broker's time of that record."""
    monkeypatch.setattr(sessions, "datetime", JumpedClock)
    monkeypatch.setattr(sessions, "IDLE_BEFORE_TICK", timedelta(seconds=1))
    now = datetime.now(UTC)
    await send(settings, [recorded(said(0, session_id="open", at=now - timedelta(minutes=5)))], partition=0)
    await send(settings, [recorded(said(0, session_id="over", at=now - 2 * HOUR))], partition=1)
    async with sessions_role(settings):
        await until(partial(episodes_of, settings, "over"), "the session that is over is closed")
    monkeypatch.undo()  # its ticks would let the log grow while it is compared
    async with sessions_role(settings):
        await assert_equal_to_replay(settings)

    assert await episodes_of(settings, "over") == ["timed_out"]
    assert await episodes_of(settings, "open") == []
    assert await events(settings, DEAD_LETTERS) == []
