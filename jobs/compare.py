"""Reads what the roles left behind, once they have caught up, and compares it with a replay of the log."""

# ruff: noqa: S608 - tables and columns are constants of this project, values travel as parameters

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

from aiokafka import TopicPartition
from msgspec import Struct

from jobs.compare_index import read_index
from models.codec import decode_output
from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from models.partition import folded_offset
from models.risk.scorer import RuleScorer
from models.topics import SESSION_STATE, TURNS, Topic
from streams.comparison import (
    INDEX,
    OUTPUT_TOPICS,
    Archived,
    Comparison,
    Entities,
    Kind,
    TopicOutputs,
    compare_archive,
    compare_index,
    compare_outputs,
    compare_state,
)
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.replay import Replayed, replay_log
from streams.settings import Settings
from streams.state.table import StateTable
from streams.wiring import embedder_of, policy_of

State = dict[int, Entities]
"""Partition → entity → part → bytes."""
Extent = dict[int, tuple[int, int]]
"""Partition → first and next offset of its log."""
_POLL_S = 0.5
_ARCHIVE = "archive"
_ARCHIVED_IDS = {
    "profiles.v1": "profile_history",
    "windows.v1": "raw.windows",
    "alerts.v1": "alert_changes",
    "compactions.v1": "compactions",
    "conversation-topics.v1": "topic_changes",
    "episodes.v1": "episodes",
    "dead-letters.v1": "dead_letters",
}
"""Where the archive has the events of each output topic."""


class LogGrows(TurntideError):  # noqa: N818 - it says what happens
    """New records kept arriving, so there is no one moment to compare at."""


class Settled(Struct):
    """The log's oracle, what the roles left, and how they differ."""

    oracle: Replayed
    state: State
    outputs: dict[str, TopicOutputs]
    comparison: Comparison


async def log_extent(settings: Settings) -> Extent:
    """First and next offset of each partition of `turns.v1`.

    Raises:
        ConfigurationError: There is no such topic.
        StoreUnavailable: Kafka does not answer.
    """
    topic = TURNS.full_name(settings.topic_prefix)
    places = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    async with consumer(settings.kafka) as client:
        starts, ends = await client.beginning_offsets(places), await client.end_offsets(places)
    return {place.partition: (starts[place], ends[place]) for place in places}


async def settle(
    settings: Settings,
    *,
    within_s: float,
    index_url: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Settled:
    """Wait until the roles have caught up with the log, or the time is over, and compare.

    Args:
        settings: Which cluster, prefix, policy and archive.
        within_s: How long state, archive and index may take.
        index_url: Where the index role answers; none: the settings' port.
        progress: Told the records replayed.

    Raises:
        LogGrows: Turns kept arriving.
        ConfigurationError: A topic is missing, or retention has removed the head of the log.
        StoreUnavailable: Kafka does not answer.
    """
    deadline_s = monotonic() + within_s
    while True:
        extent = await log_extent(settings)
        _require_whole(settings, extent)
        oracle = await replay_log(settings, policy_of(settings), embedder_of(settings), RuleScorer(), progress=progress)
        state = await _caught_up(settings, oracle, deadline_s)
        outputs = await read_outputs(settings)
        if await log_extent(settings) == extent:
            result = compare_state(state, oracle)
            result.include(compare_outputs(outputs, oracle))
            followers = await _followers_compared(settings, index_url, oracle, extent, deadline_s)
            # The clock of an idle partition moves by itself: what that closed would be taken for false.
            if not followers.differences or await log_extent(settings) == extent:
                result.include(followers)
                return Settled(oracle, state, outputs, result)
        if monotonic() > deadline_s:
            raise LogGrows(
                f"{TURNS.full_name(settings.topic_prefix)} grew while it was compared, for {within_s:g} s: "
                "stop its producers, then compare again"
            )


def _require_whole(settings: Settings, extent: Extent) -> None:
    cut = [number for number, (start, _) in extent.items() if start > 0]
    if cut:
        raise ConfigurationError(
            f"{TURNS.full_name(settings.topic_prefix)}: retention has removed the head of partitions {cut}; "
            "a comparison needs the whole log. `turntide replay` without --compare folds what is left."
        )


async def _caught_up(settings: Settings, oracle: Replayed, deadline_s: float) -> State:
    wanted = {number: folded_offset(entities) for number, entities in oracle.entities.items()}
    async with _changelog(settings) as read:
        while True:
            state = await read()
            stands = {number: folded_offset(state.get(number, {})) for number in wanted}
            if all(stands[n] >= offset for n, offset in wanted.items()) or monotonic() > deadline_s:
                return state
            await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def _changelog(settings: Settings) -> AsyncIterator[Callable[[], Awaitable[State]]]:
    """A reader of the changelog that may be asked again and again."""
    topic = SESSION_STATE.full_name(settings.topic_prefix)
    numbers = await require_topic(settings.kafka, topic)
    table = StateTable(settings, topic, producer=None)

    async def read() -> State:
        await table.recover(numbers)
        return {number: table.partition(number).entities for number in numbers if table.partition(number).entities}

    yield read


async def read_outputs(settings: Settings) -> dict[str, TopicOutputs]:
    """Every output topic, by its name without the prefix."""
    return {topic.name: await _read_topic(settings, topic) for topic in OUTPUT_TOPICS}


async def _read_topic(settings: Settings, topic: Topic) -> TopicOutputs:
    found = TopicOutputs()
    following: dict[int, int] = {}
    async for record in read_to_end(settings.kafka, topic.full_name(settings.topic_prefix)):
        found.has_holes |= record.offset != following.get(record.partition, 0)
        following[record.partition] = record.offset + 1
        event_id = decode_output(topic, record.value).id
        found.values.setdefault(event_id, []).append(record.value)
        found.written_ms.setdefault(event_id, record.timestamp)
    return found


# --- archive and index, which follow in their own time


async def _followers_compared(
    settings: Settings, index_url: str | None, oracle: Replayed, extent: Extent, deadline_s: float
) -> Comparison:
    async def grown_or_late() -> bool:
        return monotonic() > deadline_s or await log_extent(settings) != extent

    archive = await _until_equal(
        _ARCHIVE, lambda: asyncio.to_thread(_archive_compared, settings, oracle), grown_or_late
    )
    archive.include(await _until_equal(INDEX, lambda: _index_compared(settings, index_url, oracle), grown_or_late))
    return archive


async def _until_equal(
    where: str, compared: Callable[[], Awaitable[Comparison]], given_up: Callable[[], Awaitable[bool]]
) -> Comparison:
    """Compare until nothing differs or it is given up; a store that does not answer counts as a difference."""
    while True:
        try:
            result = await compared()
        except StoreUnavailable as error:
            result = Comparison()
            result.add(where, Kind.MISSING, [str(error)])
        if not result.differences or await given_up():
            return result
        await asyncio.sleep(_POLL_S)


def _archive_compared(settings: Settings, oracle: Replayed) -> Comparison:
    try:
        return compare_archive(read_archive(settings), oracle)
    except ConfigurationError as nothing_there:
        return Comparison(not_checked={_ARCHIVE: str(nothing_there)})


def read_archive(settings: Settings) -> Archived:
    """Identities of everything in the archive, from one snapshot.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from streams.lake.catalog import paths_of, reading
    from streams.lake.schema import ABSENT, ERASED, EXPIRED

    prefix = settings.topic_prefix
    turns_topic = TURNS.full_name(prefix)
    with reading(paths_of(settings)) as lake:
        lake.execute("BEGIN")
        turns = lake.execute("SELECT session_id, turn FROM turns").fetchall()
        doubled = lake.execute("SELECT count(*) - count(DISTINCT (kafka_partition, kafka_offset)) FROM raw.turns")
        ((doubled_rows,),) = doubled.fetchall()
        ids = {
            name: {str(row[0]) for row in lake.execute(f"SELECT id FROM {view}").fetchall()}
            for name, view in _ARCHIVED_IDS.items()
        }
        ((refused,),) = lake.execute(
            "SELECT coalesce(sum(last_offset - first_offset + 1), 0)::BIGINT FROM raw.skipped "
            "WHERE topic = ? AND reason NOT IN (?, ?, ?)",
            [turns_topic, ABSENT, ERASED, EXPIRED],
        ).fetchall()
        absent = lake.execute("SELECT DISTINCT topic FROM raw.skipped WHERE reason = ?", [ABSENT]).fetchall()
        lake.execute("ROLLBACK")
    compacted = {str(topic).removeprefix(f"{prefix}.") for (topic,) in absent}
    return Archived(turns=turns, doubled_rows=doubled_rows, ids=ids, refused=refused, compacted=compacted)


async def _index_compared(settings: Settings, index_url: str | None, oracle: Replayed) -> Comparison:
    keep_turns = policy_of(settings).memory.stored_vectors
    found = await read_index(settings, {session_id for session_id, _ in oracle.turn_keys}, index_url=index_url)
    if isinstance(found, str):
        return Comparison(not_checked={INDEX: found})
    return compare_index(found, oracle, keep_turns=keep_turns)
