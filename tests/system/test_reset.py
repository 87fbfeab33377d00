"""`turntide ops reset` of the roles of users' memory: lost state is refused, then folded anew from the commands."""

import asyncio
from functools import partial
from typing import get_args

import pytest

from jobs.operate.reindex import SOURCES, ResetRole, reset_role
from jobs.operate.topics import apply_topics
from jobs.replay.comparison import Settled
from models.errors import TurntideError
from models.events import EpisodeSummarised
from models.events.topics import COMMANDS, MEMORY_STATE, REQUESTS
from streams.oracle.replay import FOLDED
from streams.roles.enrich import EnrichRole
from streams.roles.index import IndexRole
from streams.roles.memory import MemoryRole
from streams.roles.sessions import SessionsRole
from streams.settings import Settings
from streams.wiring import ROLES
from tests.support.fault_driver import assert_equal_to_replay, delete_topic, disorder, events, running, send, until

pytestmark = pytest.mark.fault("F12")
TURNS = 600


async def folded(settings: Settings) -> Settled:
    """What the roles make of the log; compared once all of them are known to the broker."""
    async with running(settings, "sessions", "memory", "enrich"):
        await until(partial(_has_answers, settings, 1), "the first answer")
        return await assert_equal_to_replay(settings)


async def test_users_are_folded_anew_after_their_state_was_lost(settings: Settings) -> None:
    """The memory role refuses to go on from nothing; after the reset all is as never lost, and nothing is new."""
    await send(settings, disorder(12, TURNS))
    before = await folded(settings)
    await delete_topic(settings, MEMORY_STATE)
    await apply_topics(settings)
    with pytest.raises(TurntideError, match="turntide ops reset memory --from-beginning"):
        await ROLES["memory"](settings, asyncio.Event())
    done = await reset_role(settings, "memory")
    async with running(settings, "memory", "enrich"):
        after = await assert_equal_to_replay(settings)

    assert (MEMORY_STATE.full_name(settings.topic_prefix), 0) == (done.changelog, done.expired_records)
    assert done.records >= TURNS
    assert before.users.outputs == after.users.outputs
    assert after.comparison.repeats > before.comparison.repeats


@pytest.mark.slow
async def test_answers_that_come_again_change_nothing(settings: Settings) -> None:
    """The enrich role answers every request once more: no second episode, and no difference."""
    await send(settings, disorder(13, TURNS))
    before = await folded(settings)
    done = await reset_role(settings, "enrich")
    async with running(settings, "memory", "enrich"):
        answers = 2 * before.comparison.checked["answers"]
        await until(partial(_has_answers, settings, answers), "every answer twice")
        after = await assert_equal_to_replay(settings)

    assert ("", before.comparison.checked["answers"]) == (done.changelog, done.records)
    assert before.users.outputs == after.users.outputs


async def _has_answers(settings: Settings, count: int) -> bool:
    return sum(isinstance(event, EpisodeSummarised) for event in await events(settings, COMMANDS)) >= count


def test_every_source_of_a_role_is_set_back() -> None:
    """What a role reads, and where a folding role keeps its state, stands in two places that must agree."""
    roles = (SessionsRole, MemoryRole, EnrichRole, IndexRole)

    assert {role.name: role.sources for role in roles} == SOURCES
    assert {*get_args(ResetRole)} == {*SOURCES}
    assert {(role.name, role.changelog) for role in (SessionsRole, MemoryRole)} == {
        (e.role, e.changelog) for e in FOLDED
    }
    assert (REQUESTS,) == SOURCES["enrich"]
