"""Partitions that are added to a live topic: said, not hidden; and the way that works."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics, copy_turns
from models.errors import ConfigurationError
from models.events.topics import PROFILES, TURNS
from streams.kafka.client import admin
from streams.kafka.topics import add_partitions
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role, until

SESSIONS = [f"s-{n}" for n in range(8)]


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """A profile after each turn."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[profile]\nevery_turns = 1\n")
    return settings.model_copy(update={"policy_file": policy})


async def say(settings: Settings, *numbers: int) -> None:
    """A turn of each session for each of these numbers."""
    await send(settings, [recorded(said(number, session_id=session)) for number in numbers for session in SESSIONS])


async def counted(settings: Settings, turns: int) -> bool:
    """Whether the latest profile of every session counts so many turns."""
    found = {profile.session_id: profile.turn_count for profile in await events(settings, PROFILES)}
    return found == dict.fromkeys(SESSIONS, turns)


async def test_a_topic_that_grows_ends_its_roles_with_what_to_do(settings: Settings) -> None:
    """While it runs, and at the next start; under a new prefix every session has all of its turns."""
    await say(settings, 0, 1)
    async with sessions_role(settings) as live:
        await until(partial(counted, settings, 2), "profiles")
        async with admin(settings.kafka) as client:
            await add_partitions(client, {TURNS.full_name(settings.topic_prefix): 5})
        await asyncio.wait({live}, timeout=90)
    async with sessions_role(settings) as started:
        await asyncio.wait({started}, timeout=90)
    for role in (live, started):
        with pytest.raises(ConfigurationError, match="turntide topics copy --from"):
            role.result()

    kafka = settings.kafka.model_copy(update={"partitions": 5})
    wide = settings.model_copy(update={"topic_prefix": f"{settings.topic_prefix}-wide", "kafka": kafka})
    await apply_topics(wide)
    copied = await copy_turns(wide, settings.topic_prefix)
    async with sessions_role(wide) as role:
        await say(wide, 2)
        await until(partial(counted, wide, 3), "profiles of all turns")
        await assert_equal_to_replay(wide)
        assert not role.done()

    assert copied == 2 * len(SESSIONS)


async def test_the_same_prefix_is_no_copy(settings: Settings) -> None:
    """It would double every turn for nothing."""
    with pytest.raises(ConfigurationError, match="TURNTIDE_TOPIC_PREFIX"):
        await copy_turns(settings, settings.topic_prefix)
