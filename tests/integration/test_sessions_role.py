"""The sessions role in this process, on the real broker: what breaks it, and what that leaves behind."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from jobs.operate.topics import apply_topics
from models.errors import DeliveryFailed
from models.events.topics import DEAD_LETTERS, EPISODES, PROFILES, TURNS
from models.policy import Policy, ProfilePolicy
from streams.kafka.client import admin
from streams.kafka.topics import set_config
from streams.observe.telemetry import metrics
from streams.roles.sessions import SessionsRole
from streams.settings import Settings
from streams.wiring import embedder_of
from tests.support.fault_driver import BrittleScorer, events, recorded, records_on, said, send, until, working

PARTITIONS = 1

POLICY = Policy(profile=ProfilePolicy(every_turns=1))
START = datetime.now(UTC) - timedelta(minutes=5)


async def produce(settings: Settings, numbers: Sequence[int], start: datetime = START) -> None:
    """Turns of one session."""
    await send(settings, [recorded(said(number, at=start + timedelta(seconds=number))) for number in numbers])


def running(settings: Settings) -> AbstractAsyncContextManager[list[asyncio.Future[None]]]:
    """The role, stopped at the end."""
    return working(SessionsRole(settings, POLICY, embedder_of(settings), BrittleScorer()).run)


async def test_a_record_that_breaks_the_fold_becomes_a_dead_letter(settings: Settings) -> None:
    """The others of the same batch and session are folded; the role goes on, and shows where it stands."""
    await produce(settings, range(5))

    async def all_told() -> list[Any]:
        found = await events(settings, PROFILES)
        return found if found and found[-1].last_turn == 4 else []

    async with running(settings), asyncio.timeout(60):
        profiles = await until(all_told, "the profile after the last turn")
        (letter,) = await events(settings, DEAD_LETTERS)
        shown = metrics.registry.get_sample_value
        lag = {"partition": "0"}
        while (  # noqa: ASYNC110
            shown("turntide_open_sessions", {**lag, "mode": "calm"}) != 1
            or shown("turntide_offset_lag_records", lag) != 0
        ):
            await asyncio.sleep(0.1)  # the heartbeat shows both
        assert (shown("turntide_event_time_lag_seconds", lag) or 0) > 0

    assert (letter.reason, letter.stage, letter.offset) == ("fold_failed", "fold", 2)
    assert (profiles[-1].turn_count, profiles[-1].duplicate_turns) == (4, 0)


@pytest.mark.behaviour("card-02")
async def test_state_is_among_the_apps_tables(settings: Settings) -> None:
    """Faust's table views, router and monitor see sessions with sizes, never texts; Faust itself reads no changelog."""
    await produce(settings, range(2))
    role = SessionsRole(settings, POLICY, embedder_of(settings), BrittleScorer())
    async with working(role.run), asyncio.timeout(60):
        await until(partial(events, settings, PROFILES), "the turns are folded")
        table, counted = role.app.tables["sessions-state.v1"], role.app.monitor.tables
        while "sessions-state.v1" not in counted:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # outputs come before the state
        keys = list(table)
        async with TestClient(TestServer(await role.app.web.wsgi())) as web:
            paths = ("", f"{table.name}/session%3Aa%2Fs/", f"{table.name}/none/")
            replies = [await web.get(URL(f"/table/{path}", encoded=True)) for path in paths]
            shown, parts = [await reply.json() for reply in replies[:2]]
        consumed = {place.topic for place in role.app.consumer.assignment()}

    assert [row["name"] for row in shown] == [table.name]
    assert keys == ["session:a/s"]
    assert (list(table), len(table)) == ([], 0)  # the role let go of them
    assert parts["head"] > 0
    assert all(isinstance(size, int) for size in parts.values())
    assert replies[2].status == 404
    assert (counted[table.name].keys_retrieved, counted[table.name].keys_updated) == (2, 1)
    assert consumed == {TURNS.full_name(settings.topic_prefix)}


@pytest.mark.fault("F14")
async def test_a_rejected_output_stops_the_role_before_its_state(settings: Settings) -> None:
    """Profiles that the broker refuses are not lost: nothing is committed, and a mended topic gets them all (F14)."""
    profiles = PROFILES.full_name(settings.topic_prefix)
    async with admin(settings.kafka) as client:
        await set_config(client, {profiles: {"max.message.bytes": "100"}})
    await produce(settings, [0, 1])
    async with running(settings) as (task,):
        await asyncio.wait({task}, timeout=60)
    await apply_topics(settings)
    async with running(settings), asyncio.timeout(60):
        found: list[Any] = []
        while len(found) < 2:
            await asyncio.sleep(0.2)  # poll the topic
            found = await events(settings, PROFILES)

    assert isinstance(task.exception(), DeliveryFailed)
    assert [p.turn_count for p in await events(settings, PROFILES)] == [1, 2]


async def test_an_idle_partition_gets_a_tick_and_closes_what_is_due(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing arrives any more: the role itself writes the record that moves the clock, once."""
    monkeypatch.setattr("streams.roles.sessions.IDLE_BEFORE_TICK", timedelta(seconds=3))
    await produce(settings, [0, 1], start=datetime.now(UTC) - timedelta(hours=2))
    async with running(settings):
        episodes = await until(partial(events, settings, EPISODES), "the session is closed")
        await asyncio.sleep(5)  # time for a second tick, were it sent
    keys = [record.key for record in await records_on(settings, TURNS)]

    assert [(e.session_id, e.reason, e.turn_count) for e in episodes] == [("s", "timed_out", 2)]
    assert keys == [b"s", b"s", b"clock-0"]
