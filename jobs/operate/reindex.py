"""`turntide ops reindex`: embed the vector store's collections anew with another model, beside the ones that serve.

`turntide ops reset`: let a role fold or index the log anew, after its state or store was lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from aiokafka import TopicPartition
from msgspec import Struct

from jobs.cli import with_examples
from jobs.operate.topics import apply_topics
from jobs.shared.log_read import log_extent
from jobs.shared.output import OutputFormat, OutputOption, Printer, YesOption, status_line
from jobs.shared.role_groups import commit_offsets, require_empty
from models.entities import REGISTRY
from models.errors import ConfigurationError, StoreUnavailable
from models.events import ErasureProved
from models.events.topics import ERASURES, REQUESTS, Topic
from streams.index import generations
from streams.index.collections import COLLECTIONS
from streams.kafka.client import admin, consumer
from streams.kafka.records import events_on
from streams.oracle.replay import FOLDED
from streams.settings import Settings, load_settings
from streams.wiring import embedder_of

if TYPE_CHECKING:
    from streams.index.qdrant import QdrantStore
    from streams.ports import Embedder

_INDEXED = REGISTRY.indexed_topics
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_GENERATION = re.compile(r"[A-Za-z0-9_-]{1,32}")

Offsets = dict[str, dict[int, int]]
"""Topic → partition → offset."""


class Reindexed(Struct, frozen=True, kw_only=True):
    """Result of `reindex`.

    Attributes:
        generation: Set `vectors.generation` to it, and `vectors.embedder` to the embedder.
        group: Consumer group of its index role.
        collections: All that were copied, now or before.
        behind: Records that its index role has still to read.
        aliases: On a server, those that point to it now.
    """

    embedder: str
    generation: str
    group: str
    collections: list[generations.Copied]
    behind: int
    aliases: list[str]


@with_examples(
    "turntide ops reindex --embedder e5",
    "turntide ops reindex --embedder e5 --switch --output json",
)
def reindex(
    *,
    embedder: Annotated[str, typer.Option(help="Embedder of the new vectors: a value of vectors.embedder.")],
    generation: Annotated[
        str | None, typer.Option(help="Name of the new generation. Default: the embedder's name.", show_default=False)
    ] = None,
    before: Annotated[str, typer.Option("--from", help="Generation to copy; empty: the first.")] = generations.FIRST,
    switch: Annotated[
        bool, typer.Option("--switch", help="Then point the aliases `<collection>-current` of the Qdrant server to it.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Embed all collections again with another model, into new collections. The serving collections do not change.

    An interrupted run continues where it stopped. With a Qdrant server, all roles keep running. Qdrant Edge allows one
    process: stop the index role first. Afterwards start index roles with vectors.embedder and vectors.generation set.
    They read what arrived since the copy began, report ready when they have caught up, and then take over.
    """
    settings = load_settings(vectors={"embedder": embedder})
    name = generation or _NOT_IN_NAMES.sub("_", embedder)
    if name == before or not _GENERATION.fullmatch(name):
        raise ConfigurationError(f"generation {name!r}: use 1-32 letters, digits, _ or -, and not the value of --from")
    printed = Printer(output)
    with status_line("reindex") as say:

        def report(collection: str, copied: int) -> None:
            say(f"{copied:,} points of {collection}")

        done = asyncio.run(reindex_all(settings, embedder_of(settings), name, before, switch=switch, report=report))
    if output is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(done))
        return
    printed.rows("Copied", map(msgspec.to_builtins, done.collections))
    printed.message(
        f"start index roles with vectors.embedder={embedder} and vectors.generation={name}: group {done.group} has "
        f"{done.behind} records to read"
    )


async def reindex_all(
    settings: Settings, embedder: Embedder, generation: str, before: str, *, switch: bool, report: generations.Report
) -> Reindexed:
    """Note the offsets, copy, set the new group's offsets, switch; each step once, however often it is called.

    Raises:
        ConfigurationError: The new group is reading already, or retention overtook the copy.
        StoreUnavailable: Kafka or the store does not answer.
    """
    group = _group(settings, generation)
    async with _opened(settings, embedder) as store:
        notes = generations.notes_of(store, generation)
        offsets = await notes.read(generations.OFFSETS, Offsets)
        if offsets is None:
            # Before the first point is read: what is committed is in the store, so in the copy, or repeated after it.
            offsets = await _committed(settings, _group(settings, before))
            await notes.write(generations.OFFSETS, offsets)
        collections = await generations.copy_collections(
            store, embedder, before=before, generation=generation, report=report
        )
        if not await notes.read(generations.FINISHED, bool):
            await _begin_at(settings, group, offsets)
            await notes.write(generations.FINISHED, noted=True)
        aliases = await _switched(store, generation) if switch else []
    return Reindexed(
        embedder=embedder.name,
        generation=generation,
        group=group,
        collections=collections,
        behind=await _behind(settings, group),
        aliases=aliases,
    )


async def _switched(store: QdrantStore, generation: str) -> list[str]:
    """Point the aliases to a generation."""
    from streams.index.server import ServerStore

    if not isinstance(store, ServerStore):
        raise ConfigurationError("--switch: only a Qdrant server has aliases; with Edge, set vectors.generation")
    return await store.switch_aliases(COLLECTIONS, generation)


@asynccontextmanager
async def _opened(settings: Settings, embedder: Embedder) -> AsyncIterator[QdrantStore]:
    vectors = settings.vectors
    store: QdrantStore
    if vectors.url:
        from streams.index.server import ServerStore

        store = ServerStore.connect(vectors.url, api_key=vectors.api_key, embedder=embedder.name)
    else:
        from streams.index.edge import EdgeStore

        store = EdgeStore(settings.data_dir / "vectors", embedder=embedder.name)
    try:
        yield store
    finally:
        await store.close()


def _group(settings: Settings, generation: str) -> str:
    return f"{settings.topic_prefix}.{generations.generation_name('index', generation)}"


async def _committed(settings: Settings, group: str) -> Offsets:
    """Where the group goes on; partitions that it has never read are left out, and begin at their beginning."""
    async with admin(settings.kafka) as client:
        found = await client.list_consumer_group_offsets(group)
    names = {topic.full_name(settings.topic_prefix) for topic in _INDEXED}
    offsets: Offsets = {name: {} for name in sorted(names)}
    for place, committed in found.items():
        if place.topic in names and committed.offset >= 0:
            offsets[place.topic][place.partition] = committed.offset
    return offsets


async def _begin_at(settings: Settings, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
    """Commit where a group begins.

    Raises:
        ConfigurationError: It is reading already, or records between the offsets and now are gone.
    """
    wanted = {
        TopicPartition(topic, number): offset
        for topic, numbers in offsets.items()
        for number, offset in numbers.items()
    }
    await require_empty(settings, group)
    if not wanted:
        return
    async with consumer(settings.kafka) as client:
        begin = await client.beginning_offsets(list(wanted))
    gone = sum(max(0, begin[place] - offset) for place, offset in wanted.items())
    if gone:
        raise ConfigurationError(
            f"retention removed {gone} records that arrived after the copy began: only the old generation has their "
            "changes. Delete the collections of the new one, raise retention, and start again"
        )
    await commit_offsets(settings, group, wanted)


async def _behind(settings: Settings, group: str) -> int:
    committed = await _committed(settings, group)
    extents = {topic.full_name(settings.topic_prefix): await log_extent(settings, topic) for topic in _INDEXED}
    return sum(
        end - committed[name].get(number, start)
        for name, extent in extents.items()
        for number, (start, end) in extent.items()
    )


_WITHIN_S = 30.0
_POLL_S = 0.1


ResetRole = Literal["sessions", "memory", "enrich", "index"]
"""Roles whose work can be repeated from their logs."""


SOURCES: dict[str, tuple[Topic, ...]] = {
    **{each.role: (each.source,) for each in FOLDED},
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
}
"""What each reads."""
_CHANGELOGS = {each.role: each.changelog for each in FOLDED}
_EXPIRED = {
    "sessions": "sessions that began in them are incomplete",
    "memory": "the memory of their users and apps is incomplete",
    "enrich": "nothing waits for their answers any more, unless this role was down for longer than the retention",
    "index": "their content is not indexed again",
}


class Reset(Struct, frozen=True, kw_only=True):
    """Result of `reset`.

    Attributes:
        group: Consumer group whose offsets were set back.
        partitions: How many, of all its sources.
        records: Records that will be read again; of a compacted topic at most.
        expired_records: Records that retention has removed: what they changed cannot be rebuilt.
        changelog: Topic that was emptied; empty for a role without one.
        erasures_in_log: Erasures whose records are in the logs until retention removes them.
    """

    group: str
    partitions: int
    records: int
    expired_records: int
    changelog: str
    erasures_in_log: int


@with_examples(
    "turntide ops reset sessions --from-beginning",
    "turntide ops reset memory --from-beginning",
    "turntide ops reset index --from-beginning --yes --output json",
)
def reset(
    role: Annotated[ResetRole, typer.Argument(help="Role to rebuild.")],
    *,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Required: read the log again from its first record.")
    ] = False,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Rebuild a role's state from its logs: reset its offsets to the beginning and empty its changelog.

    Use it after a loss of state: a changelog was deleted, recreated or cut, or a vector store was lost. Stop the role's
    workers first, and start them afterwards. Outputs repeat with the same ids, so readers can recognise repeats.
    """
    if not from_beginning:
        raise ConfigurationError("--from-beginning is required: the role will read its whole log again")
    settings = load_settings()
    if not yes:
        also = " and empty its state" if role in _CHANGELOGS else ""
        typer.confirm(f"Set {generations.group_of(settings, role)} back to the beginning{also}?", abort=True, err=True)
    done = asyncio.run(reset_role(settings, role))
    Printer(output).record(msgspec.to_builtins(done))
    if done.expired_records:
        typer.echo(f"{done.expired_records} records were removed by retention: {_EXPIRED[role]}", err=True)
    if done.erasures_in_log:
        typer.echo(
            f"the logs still have data of {done.erasures_in_log} erasures, and the role reads it again: "
            "once the role has caught up, repeat them with `turntide memory erase`",
            err=True,
        )


async def reset_role(settings: Settings, role: ResetRole) -> Reset:
    """Set the group's offsets back, then empty its changelog; cut short in between, it changed nothing yet.

    Raises:
        ConfigurationError: Workers are running, or a topic is missing.
        StoreUnavailable: Kafka does not answer, or does not finish in time.
    """
    group = generations.group_of(settings, role)
    extents = {topic: await log_extent(settings, topic) for topic in SOURCES[role]}
    proofs = [proof async for proof in events_on(settings, ERASURES, ErasureProved)]
    await require_empty(settings, group)
    starts = {
        TopicPartition(topic.full_name(settings.topic_prefix), number): start
        for topic, extent in extents.items()
        for number, (start, _) in extent.items()
    }
    await commit_offsets(settings, group, starts)
    changelog = _CHANGELOGS[role].full_name(settings.topic_prefix) if role in _CHANGELOGS else ""
    if changelog:
        await _recreate(settings, changelog)
    spans = [span for extent in extents.values() for span in extent.values()]
    return Reset(
        group=group,
        partitions=len(spans),
        records=sum(end - start for start, end in spans),
        expired_records=sum(start for start, _ in spans),
        changelog=changelog,
        erasures_in_log=still_in_logs(proofs, datetime.now(UTC)),
    )


def still_in_logs(proofs: Iterable[ErasureProved], now: datetime) -> int:
    """Number of erasures with records that retention has not removed yet; null records do not count."""
    return sum(
        any(s.expires_at is not None and s.expires_at > now and not s.store.startswith("keys ") for s in proof.stores)
        for proof in proofs
    )


async def _recreate(settings: Settings, topic: str) -> None:
    """Delete the topic and make it anew; tombstones would not do, for the higher source offset wins in recovery."""
    async with admin(settings.kafka) as client:
        if topic in await client.list_topics():
            await client.delete_topics([topic])
        try:
            async with asyncio.timeout(_WITHIN_S):
                while topic in await client.list_topics():  # noqa: ASYNC110 - a broker has no event to wait for
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise StoreUnavailable(
                f"the broker has not deleted {topic} within {_WITHIN_S:.0f} s: check delete.topic.enable, then repeat"
            ) from None
    await apply_topics(settings)
