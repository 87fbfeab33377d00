"""Users' memory on the real broker: turns in; facts, episodes and what readers find of them out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.events import EpisodeCompressed, FactChanged, Role, UserMemoryChanged
from models.events.topics import FACTS, USER_EPISODES, Topic
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.fault_driver import events as all_events
from tests.fault_driver import recorded, running, said
from tests.user_driver import flat

pytestmark = pytest.mark.kafka

PARTITIONS = 3

WITHIN_S = 90
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
SESSIONS = 4
SAID = {
    "shop": {0: "My name is Alex", 6: "Call me Al", 12: "My full name is Alexander. I live in Oslo.", 24: "Hello?"},
    "bank": {0: "My name is Kim", 6: "I live in Lima", 12: "I prefer Python", 18: "I moved", 24: "Hello?"},
}
KNOWN = {
    "shop": {"name": "Alexander", "location": "Oslo"},
    "bank": {"name": "Kim", "language": "Python"},
}


def turns(app: str, numbers: Sequence[int]) -> list[Record]:
    """Turns of all sessions of the app's user `u`, who says what matters in the first."""
    return [
        recorded(
            said(
                number,
                session_id=f"{app}-{n}",
                app_id=app,
                role=Role.ASSISTANT if number % 2 else Role.USER,
                content=(SAID[app].get(number) if n == 0 else None) or f"What of databases, number {number}?",
                at=START + timedelta(minutes=number, seconds=n),
            )
        )
        for number in numbers
        for n in range(SESSIONS)
    ]


async def events(settings: Settings, topic: Topic) -> list[Any]:
    """Everything on an output topic; an event that came again is there once."""
    by_id: dict[str, Any] = {}
    for event in await all_events(settings, topic):
        assert by_id.setdefault(event.id, event) == event
    return list(by_id.values())


async def standings(settings: Settings) -> dict[str, UserMemoryChanged]:
    """The last of each app's user."""
    found = await events(settings, FACTS)
    latest = (event for event in found if isinstance(event, UserMemoryChanged))
    return {event.app_id: event for event in sorted(latest, key=lambda event: event.source.offset)}


async def until(settings: Settings, done: Callable[[dict[str, UserMemoryChanged]], bool]) -> None:
    """Wait for what users' memories are to say."""
    async with asyncio.timeout(WITHIN_S):
        found = await standings(settings)
        while not done(found):
            await asyncio.sleep(0.3)  # poll the topic
            found = await standings(settings)


def compressed(turn_count: int) -> Callable[[dict[str, UserMemoryChanged]], bool]:
    """Both users have so many turns, and all full twenties of them are in episodes."""
    return lambda found: (
        len(found) == len(SAID)
        and all(s.turn_count == turn_count and s.compressed_turns == turn_count // 20 * 20 for s in found.values())
    )


def beyond(turn_count: int) -> Callable[[dict[str, UserMemoryChanged]], bool]:
    """One of the users has more turns than that: the role is in the midst of them."""
    return lambda found: any(standing.turn_count > turn_count for standing in found.values())


def check_episodes(found: Sequence[EpisodeCompressed], app: str, turns_of_one: int) -> None:
    """Five of twenty, and every turn of every session once."""
    own = sorted((e for e in found if e.app_id == app), key=lambda e: e.first_turn)
    said = sorted(turn for episode in own for turn in flat(episode.turns))

    assert [e.turn_range for e in own] == [f"turns {20 * n + 1}-{20 * n + 20}" for n in range(len(own))]
    assert len(own) == turns_of_one * SESSIONS // 20
    assert said == sorted((f"{app}-{n}", number) for n in range(SESSIONS) for number in range(turns_of_one))
    assert {e.summarised_by for e in own} == {"extractive"}


async def test_a_killed_memory_role_goes_on_where_it_was(settings: Settings, tmp_path: Path) -> None:
    """Kill −9 amid the turns, twice: the users end as if nothing had been, no turn lost or in two episodes."""
    memory = RoleProcess("memory", settings, log=tmp_path / "memory.log", worker_id="m")
    async with running(settings, "sessions", "enrich"):
        try:
            for first in (0, 10, 20):
                memory.start()
                await memory.ready()
                for number in range(first, first + 10):
                    await send_to_turns(settings, [*turns("shop", [number]), *turns("bank", [number])])
                if first < 20:
                    await until(settings, beyond(SESSIONS * first))
                    memory.kill()
            await until(settings, compressed(SESSIONS * 30))
        finally:
            memory.stop()
    facts, episodes = await events(settings, FACTS), await events(settings, USER_EPISODES)

    for app, known in KNOWN.items():
        check_episodes(episodes, app, 30)
        last = {e.key: e for e in facts if isinstance(e, FactChanged) and e.app_id == app}
        assert {key: e.value for key, e in last.items() if e.active} == known
        counts = [e.turn_count for e in facts if isinstance(e, UserMemoryChanged) and e.app_id == app]
        assert (counts, set(counts)) == (sorted(counts), set(range(1, 121)))
        assert len(counts) == 120 + len(episodes) // len(KNOWN)
