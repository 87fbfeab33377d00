"""Notices lost state before anything is folded onto nothing (fault F12).

State is durable before its source offset is committed. So a group that has committed further than the state says
either met only records that leave no state (dead letters), or its changelog is gone, emptied or cut. The log between
the two offsets tells which: a usable record in there was folded once, and what it changed is lost. (Records that
retention has removed can no longer tell, nor be folded again.)

The repair is the operator's to start, for a rebuild repeats every output (with its old id): `turntide reset`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import structlog
from aiokafka import ConsumerRecord, TopicPartition

from models.codec import decode_output
from models.errors import ConfigurationError, RecoveryFailed
from models.events import DeadLetter
from models.policy import IntakePolicy
from models.session_outputs import TOPICS_STAGE
from models.topics import DEAD_LETTERS, SESSION_STATE, TURNS
from streams.intake import decode
from streams.kafka.client import consumer, require_topic
from streams.settings import Settings

log = structlog.get_logger(__name__)

REPAIR = (
    "Stop all sessions workers, run `turntide reset sessions --from-beginning`, and start them: the state is folded "
    "anew from the log"
)
_POLL_MS = 500


async def committed_offsets(settings: Settings, partitions: Iterable[int]) -> dict[int, int]:
    """Next source offset that the sessions group has committed, by partition; those without one are left out.

    Ask before the state is read: what is committed was durable before.

    Raises:
        ConfigurationError: The changelog's topic is gone, although offsets are committed.
        RecoveryFailed: The changelog's head was cut off.
        StoreUnavailable: Kafka does not answer.
    """
    changelog = SESSION_STATE.full_name(settings.topic_prefix)
    numbers = list(partitions)
    if not numbers:
        return {}
    try:
        await require_topic(settings.kafka, changelog)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} If it was there before, state is lost. {REPAIR}.") from error
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.sessions") as client:
        starts = await client.beginning_offsets([TopicPartition(changelog, number) for number in numbers])
        cut = sorted(place.partition for place, start in starts.items() if start > 0)
        if cut:
            raise RecoveryFailed(
                f"changelog {changelog} begins after offset 0 on partitions {cut}: records were deleted from it, so "
                f"state is lost. Its cleanup.policy must be compact (`turntide topics check`). {REPAIR}."
            )
        found = {number: await client.committed(_source(settings, number)) for number in numbers}
    return {number: offset for number, offset in found.items() if offset is not None}


async def require_whole(
    settings: Settings, intake: IntakePolicy, *, committed: Mapping[int, int], folded: Callable[[int], int]
) -> None:
    """Refuse to go on from a state that lacks what was folded before.

    Args:
        settings: Which cluster and prefix.
        intake: Which records can be used.
        committed: From `committed_offsets`, taken before recovery.
        folded: Partition → source offset of the last record in the recovered state, −1 without any.

    Raises:
        RecoveryFailed: State is lost; the message names the repair.
        StoreUnavailable: Kafka does not answer.
    """
    behind = {number: folded(number) + 1 for number, offset in committed.items() if folded(number) + 1 < offset}
    for number, first in behind.items():
        lost = await _first_lost(settings, intake, number, (first, committed[number]))
        if lost is not None:
            raise RecoveryFailed(
                f"state of {TURNS.full_name(settings.topic_prefix)}[{number}] is lost: the group has committed offset "
                f"{committed[number]}, the changelog {SESSION_STATE.full_name(settings.topic_prefix)} knows nothing "
                f"from offset {lost} on. {REPAIR}."
            )
        log.info("state_behind_by_dead_letters", partition=number, first=first, committed=committed[number])


def _source(settings: Settings, number: int) -> TopicPartition:
    return TopicPartition(TURNS.full_name(settings.topic_prefix), number)


async def _first_lost(settings: Settings, intake: IntakePolicy, number: int, extent: tuple[int, int]) -> int | None:
    """First offset in `[from, to)` whose record can be used and is no dead letter of the fold."""
    set_aside: set[int] | None = None
    async for records in _read(settings, _source(settings, number), *extent):
        for arrival in decode(records, intake).arrivals:
            if set_aside is None:
                set_aside = await _set_aside(settings, number)
            if arrival.position.offset not in set_aside:
                return arrival.position.offset
    return None


async def _set_aside(settings: Settings, number: int) -> set[int]:
    """Source offsets of the dead letters on a partition; a letter stands on the partition of its cause."""
    place = TopicPartition(DEAD_LETTERS.full_name(settings.topic_prefix), number)
    found: set[int] = set()
    async for records in _read(settings, place, 0, None):
        letters = [decode_output(DEAD_LETTERS, record.value or b"") for record in records]
        # A letter of the topics' is no set-aside record: that was folded.
        found.update(x.offset for x in letters if isinstance(x, DeadLetter) and x.stage != TOPICS_STAGE)
    return found


async def _read(
    settings: Settings, place: TopicPartition, first: int, end: int | None
) -> AsyncIterator[list[ConsumerRecord]]:
    """Records of `[first, end)` that the log still has, poll by poll; to its end where none is given."""
    async with consumer(settings.kafka) as client:
        client.assign([place])
        start = (await client.beginning_offsets([place]))[place]
        last = (await client.end_offsets([place]))[place]
        end = last if end is None else min(end, last)
        client.seek(place, max(first, start))
        while await client.position(place) < end:
            for records in (await client.getmany(place, timeout_ms=_POLL_MS)).values():
                yield [record for record in records if record.offset < end]
