"""F12: the changelog or local state is lost. Noticed and refused with the repair, never folded onto nothing."""

import asyncio
import shutil
from functools import partial

import pytest

from jobs.operate.reset import ResetRole, reset_role
from jobs.operate.topics import apply_topics
from models.errors import ConfigurationError, RecoveryFailed, TurntideError
from models.events.topics import DEAD_LETTERS, SESSION_STATE
from streams.kafka.producer import Record
from streams.settings import Settings, StateSettings
from tests.support.fault_driver import (
    WITHIN_S,
    BrittleScorer,
    assert_equal_to_replay,
    delete_topic,
    disorder,
    events,
    recorded,
    said,
    send,
    sessions_role,
    until,
)

pytestmark = pytest.mark.fault("F12")

PARTITIONS = 4


async def folded(settings: Settings, records: list[Record]) -> None:
    """Let a role fold the records, and stop it in order."""
    await send(settings, records)
    async with sessions_role(settings):
        await assert_equal_to_replay(settings)


async def refusal(settings: Settings) -> TurntideError:
    """What a role says when it is started; it must end by itself."""
    async with sessions_role(settings) as task:
        done, _ = await asyncio.wait({task}, timeout=WITHIN_S)
        assert done, "the role went on"
    error = task.exception()
    assert isinstance(error, TurntideError)
    return error


async def has_letters(settings: Settings, count: int) -> bool:
    """Whether so many dead letters are written."""
    return len(await events(settings, DEAD_LETTERS)) >= count


async def test_a_deleted_changelog_is_refused_until_the_state_is_rebuilt(settings: Settings) -> None:
    """Gone, and recreated empty: the role says what to do and writes nothing; after it, all is as never lost."""
    await folded(settings, disorder(12, turns=400))
    await delete_topic(settings, SESSION_STATE)
    gone = await refusal(settings)
    await apply_topics(settings)
    empty = await refusal(settings)
    done = await reset_role(settings, ResetRole.SESSIONS)
    async with sessions_role(settings):
        settled = await assert_equal_to_replay(settings)

    assert isinstance(gone, ConfigurationError)
    assert isinstance(empty, RecoveryFailed)
    assert "turntide ops reset sessions --from-beginning" in str(gone)
    assert "turntide ops reset sessions --from-beginning" in str(empty)
    assert (done.expired_records, done.partitions) == (0, 4)
    assert settled.comparison.repeats > 0


async def test_local_state_is_a_cache(settings: Settings) -> None:
    """Its folder removed between two runs, the state is rebuilt; it never stands in for a changelog that was lost."""
    local = settings.model_copy(update={"state": StateSettings(store="rocksdb")})
    folder = settings.data_dir / "state"
    await folded(local, disorder(12, turns=200))
    assert any(folder.rglob("*"))
    shutil.rmtree(folder)
    await folded(local, disorder(13, turns=200))
    await delete_topic(settings, SESSION_STATE)
    await apply_topics(settings)
    empty = await refusal(local)
    await reset_role(settings, ResetRole.SESSIONS)
    async with sessions_role(local):
        await assert_equal_to_replay(settings)

    assert "turntide ops reset sessions --from-beginning" in str(empty)


@pytest.mark.slow
async def test_a_record_that_broke_the_fold_at_the_end_is_no_lost_state(settings: Settings) -> None:
    """It could be used, and left a dead letter instead of state; the next worker goes on behind it."""
    for letters, session_id in enumerate(("s", "other"), start=1):
        await send(settings, [recorded(said(n, session_id=session_id)) for n in range(3)])
        async with sessions_role(settings, scorer=BrittleScorer()) as task:
            await until(partial(has_letters, settings, letters), "a dead letter of the fold")
            assert not task.done()

    assert [letter.stage for letter in await events(settings, DEAD_LETTERS)] == ["fold", "fold"]


@pytest.mark.slow
async def test_reset_refuses_while_a_worker_runs(settings: Settings) -> None:
    """Offsets of a group with members cannot be set back, and its state must not vanish under it."""
    await send(settings, [recorded(said(0))])
    async with sessions_role(settings):
        await assert_equal_to_replay(settings)
        with pytest.raises(ConfigurationError, match="stop its workers first"):
            await reset_role(settings, ResetRole.SESSIONS)
        await assert_equal_to_replay(settings)
