"""`turntide ops reindex` and the broker: where the new generation's index role begins."""

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from jobs.operate.reindex import Reindexed, reindex_all
from models.entities import REGISTRY
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.index.edge import EdgeStore
from streams.index.generations import require_finished
from streams.index.session_memory import SessionVectorMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.kafka.client import admin, consumer
from streams.kafka.producer import Record
from streams.roles.index import IndexRole
from streams.settings import Settings
from tests.support.fault_driver import commit, write
from tests.support.session_driver import said

PARTITIONS = 1


async def send_turns(settings: Settings, count: int) -> None:
    """Records that the index role would read; what they say does not matter here."""
    await write(settings, TURNS, [Record(b"s", b"{}")] * count)


async def offset_of(settings: Settings, group: str) -> int:
    """Where a group goes on."""
    async with admin(settings.kafka) as client:
        found = await client.list_consumer_group_offsets(f"{settings.topic_prefix}.{group}")
    return int(found[TopicPartition(TURNS.full_name(settings.topic_prefix), 0)].offset)


async def reindexed(settings: Settings) -> Reindexed:
    """Run the command's work."""
    embedder = WordLlamaEmbedder()
    return await reindex_all(settings, embedder, "second", "", switch=False, report=lambda _name, _copied: None)


@pytest.mark.behaviour("card-05")
async def test_the_new_role_begins_where_the_copy_did(settings: Settings) -> None:
    """Not where the log is when the copy is done; and a second run moves nothing."""
    embedder = WordLlamaEmbedder()
    store = EdgeStore(settings.data_dir / "vectors", embedder=embedder.name)
    turn = said(1, "hello there")
    await SessionVectorMemory(store, embedder).add_turns([turn], embedder.embed([turn.content]))
    await store.close()
    await send_turns(settings, 5)
    await commit(settings, "index", TURNS, 3)

    done = await reindexed(settings)
    await commit(settings, "index", TURNS, 5)
    await commit(settings, "index-second", TURNS, 4)
    again = await reindexed(settings)

    assert [(each.collection, each.points) for each in done.collections] == [("turns", 1)]
    assert (done.group, done.behind, again.behind) == (f"{settings.topic_prefix}.index-second", 2, 1)
    assert await offset_of(settings, "index-second") == 4


async def test_a_copy_that_would_be_older_or_has_a_hole_is_not_finished(settings: Settings) -> None:
    """A group that reads before it would have older copies written over newer turns; what retention removed is told."""
    await send_turns(settings, 4)
    await commit(settings, "index", TURNS, 1)
    topic = TURNS.full_name(settings.topic_prefix)
    async with consumer(settings.kafka, topic, group_id=f"{settings.topic_prefix}.index-second") as early:
        await early.getmany(timeout_ms=5_000)
        with pytest.raises(ConfigurationError, match="has members"):
            await reindexed(settings)
    async with admin(settings.kafka) as client:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=3)})
    with pytest.raises(ConfigurationError, match="retention removed 2 records"):
        await reindexed(settings)
    store = EdgeStore(settings.data_dir / "vectors", embedder="wordllama")
    with pytest.raises(ConfigurationError, match="is incomplete"):
        await require_finished(store, "second")
    await store.close()


def test_it_knows_what_the_index_role_reads() -> None:
    """A topic that the role reads and the copy forgets would be read from its beginning, or not at all."""
    assert REGISTRY.indexed_topics == IndexRole.sources
