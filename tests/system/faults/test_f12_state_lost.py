"""F12: the changelog or local state is lost. Noticed and refused with the repair, never folded onto nothing."""

import asyncio
import shutil

import pytest

from jobs.operate.reindex import reset_role
from jobs.operate.topics import apply_topics
from models.errors import ConfigurationError, RecoveryFailed, TurntideError
from models.events.topics import SESSION_STATE
from streams.kafka.producer import Record
from streams.settings import Settings, StateSettings
from tests.support.fault_driver import WITHIN_S, assert_equal_to_replay, delete_topic, disorder, send, sessions_role

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


async def test_a_deleted_changelog_is_refused_until_the_state_is_rebuilt(settings: Settings) -> None:
    """Gone, and recreated empty: the role says what to do and writes nothing; after it, all is as never lost."""
    await folded(settings, disorder(12, turns=400))
    await delete_topic(settings, SESSION_STATE)
    gone = await refusal(settings)
    await apply_topics(settings)
    empty = await refusal(settings)
    done = await reset_role(settings, "sessions")
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
    await reset_role(settings, "sessions")
    async with sessions_role(local):
        await assert_equal_to_replay(settings)

    assert "turntide ops reset sessions --from-beginning" in str(empty)
