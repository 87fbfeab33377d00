"""Notices lost state before anything is folded onto nothing (fault F12).

State is durable before its source offset is committed. So a group that has committed further than the state says
either met only records that leave no state (dead letters), or its changelog is gone, emptied or cut. The log between
the two offsets tells which: a usable record in there was folded once, and what it changed is lost. (Records that
retention has removed can no longer tell, nor be folded again.)

The repair is the operator's to start, for a rebuild repeats every output (with its old id): `turntide ops reset`.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from typing import NamedTuple

import structlog
from aiokafka import ConsumerRecord, TopicPartition

from models.errors import ConfigurationError, RecoveryFailed
from models.events import DeadLetter, Position
from models.events.topics import DEAD_LETTERS, Topic
from models.partition.log_fold import Parts
from models.session.outputs import TOPICS_STAGE
from models.session.turn_numbers import INDEX_STAGE
from streams.kafka.client import consumer, read_to_end, require_topic
from streams.kafka.records import readable
from streams.settings import Settings

log = structlog.get_logger(__name__)

_OF_FOLDED = (TOPICS_STAGE, INDEX_STAGE)
"""Stages of letters whose records are folded all the same."""


class LossRule(NamedTuple):
    """What tells whether a role's state lacks what was folded before.

    Attributes:
        role: Its name, which is its group's.
        source: What it folds.
        changelog: Where its state is kept.
        folded: State of a partition → source offset of the last record in it, −1 without any.
        usable: Records → places of those that a fold takes.
    """

    role: str
    source: Topic
    changelog: Topic
    folded: Callable[[Mapping[str, Parts]], int]
    usable: Callable[[list[ConsumerRecord]], list[Position]]

    @property
    def repair(self) -> str:
        """What mends it."""
        return (
            f"Stop all {self.role} workers, run `turntide ops reset {self.role} --from-beginning`, and start them: "
            "this rebuilds the state from the log"
        )


async def committed_offsets(settings: Settings, rule: LossRule, partitions: Iterable[int]) -> dict[int, int]:
    """Next source offset that the role's group has committed, by partition; those without one are left out.

    Ask before the state is read: what is committed was durable before.

    Raises:
        ConfigurationError: The changelog's topic is gone, although offsets are committed.
        RecoveryFailed: The changelog's head was cut off.
        StoreUnavailable: Kafka does not answer.
    """
    changelog = rule.changelog.full_name(settings.topic_prefix)
    numbers = list(partitions)
    if not numbers:
        return {}
    try:
        await require_topic(settings.kafka, changelog)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} If it existed before, state is lost. {rule.repair}.") from error
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.{rule.role}") as client:
        starts = await client.beginning_offsets([TopicPartition(changelog, number) for number in numbers])
        cut = sorted(place.partition for place, start in starts.items() if start > 0)
        if cut:
            raise RecoveryFailed(
                f"changelog {changelog} begins after offset 0 on partitions {cut}: records were deleted from it, so "
                f"state is lost. Its cleanup.policy must be compact (`turntide topics check`). {rule.repair}."
            )
        source = rule.source.full_name(settings.topic_prefix)
        found = {number: await client.committed(TopicPartition(source, number)) for number in numbers}
    return {number: offset for number, offset in found.items() if offset is not None}


async def require_whole(
    settings: Settings,
    rule: LossRule,
    *,
    committed: Mapping[int, int],
    entities: Callable[[int], Mapping[str, Parts]],
) -> None:
    """Refuse to go on from state that lacks what was folded before the offsets that were committed before recovery.

    Raises:
        RecoveryFailed: State is lost; the message names the repair.
        StoreUnavailable: Kafka does not answer.
    """
    source = rule.source.full_name(settings.topic_prefix)
    for number, offset in committed.items():
        first = rule.folded(entities(number)) + 1
        if first >= offset:
            continue
        lost = await _first_lost(settings, rule, number, first, offset)
        if lost is not None:
            raise RecoveryFailed(
                f"state of {source}[{number}] is lost: the group has committed offset {offset}, the changelog "
                f"{rule.changelog.full_name(settings.topic_prefix)} has nothing from offset {lost} on. {rule.repair}."
            )
        log.info("state_behind_by_dead_letters", partition=number, first=first, committed=offset)


async def _first_lost(settings: Settings, rule: LossRule, number: int, first: int, before: int) -> int | None:
    """First offset of these whose record can be used and is no dead letter of the fold."""
    source = rule.source.full_name(settings.topic_prefix)
    dead_lettered: set[int] | None = None
    async with aclosing(read_to_end(settings.kafka, source, only=number, first=first, before=before)) as records:
        async for record in records:
            if not rule.usable([record]):
                continue
            if dead_lettered is None:
                dead_lettered = await _dead_lettered(settings, source, number)
            if record.offset not in dead_lettered:
                return int(record.offset)
    return None


async def _dead_lettered(settings: Settings, source: str, number: int) -> set[int]:
    """Source offsets of the dead letters on a partition; a letter stands on the partition of its cause."""
    found: set[int] = set()
    async for record in read_to_end(settings.kafka, DEAD_LETTERS.full_name(settings.topic_prefix), only=number):
        letter = readable(DEAD_LETTERS, record)
        # A letter of the topics' is no set-aside record: that was folded.
        if isinstance(letter, DeadLetter) and letter.topic == source and letter.stage not in _OF_FOLDED:
            found.add(letter.offset)
    return found
