"""`turntide ops replay --alert`: make an alert again, by the rules of its time, and compare it bit for bit.

The log of its partition is folded from the beginning: what other sessions did there moved its clock too. With another
policy the same tells what would have been.

Sources of `turntide ops replay --alert`: the topics, or the archive.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import duckdb
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from jobs.replay.alert_rules import Origin, rules_of
from jobs.replay.archive_read import landed, skipped
from jobs.shared.log_read import log_extent
from models.errors import ConfigurationError
from models.events import AlertChanged, Output, OutputEvent, SessionName
from models.events.topics import ALERTS, TURNS
from models.policy.digest import policy_digest
from models.session.outputs import forms_of
from models.wire.codec import encode
from streams.kafka.client import read_to_end
from streams.kafka.records import readable
from streams.oracle.replay import FoldRules, SessionReplay
from streams.ports import Embedder
from streams.settings import Settings
from streams.wiring import stream_embedder_of


class Recorded(NamedTuple):
    """A change of an alert as it was emitted."""

    event: AlertChanged
    value: bytes
    """JSON, as the topic has it."""


class TopicSource:
    """Changes of alerts, and the log that they came of: the topics themselves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def changes(self, alert_id: str) -> list[Recorded]:
        """Every change of every alert of the session that has this one, in log order; none if it is not known.

        The alerts are read twice: to find the session, and then its partition alone.
        """
        found = await self._first(alert_id)
        if found is None:
            return []
        session = found.app_id, found.session_id
        return [
            each
            async for each in self._alerts(found.source.partition)
            if (each.event.app_id, each.event.session_id) == session
        ]

    async def _first(self, alert_id: str) -> AlertChanged | None:
        async with aclosing(self._alerts(None)) as alerts:
            async for each in alerts:
                if each.event.alert_id == alert_id:
                    return each.event
        return None

    async def _alerts(self, partition: int | None) -> AsyncGenerator[Recorded, None]:
        topic = ALERTS.full_name(self._settings.topic_prefix)
        async for record in read_to_end(self._settings.kafka, topic, only=partition):
            event = readable(ALERTS, record)
            if isinstance(event, AlertChanged):
                yield Recorded(event, record.value)

    async def count(self, partition: int, before: int) -> int:
        """How many records `turns` yields.

        Raises:
            ConfigurationError: The partition is not whole up to there; the message says what to do.
        """
        start, end = (await log_extent(self._settings, TURNS)).get(partition, (0, 0))
        topic = TURNS.full_name(self._settings.topic_prefix)
        if end < before:
            raise ConfigurationError(
                f"{topic}-{partition} ends at offset {end}, but the alert depends on offsets up to {before - 1}: it "
                "was raised on another topic"
            )
        if start > 0:
            raise ConfigurationError(
                f"retention has removed records of {topic}-{partition} below offset {start}: use --archive"
            )
        return before

    def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """Records of a partition of `turns.v1` from its beginning up to an offset."""
        topic = TURNS.full_name(self._settings.topic_prefix)
        return read_to_end(self._settings.kafka, topic, only=partition, before=before)

    async def erased(self, partition: int, before: int) -> int:  # noqa: ARG002 - the archive's alone
        """How many records below an offset were erased since; a topic that lost some is cut off, and not whole."""
        return 0


class ArchiveSource(TopicSource):
    """The same of the archive."""

    def __init__(self, settings: Settings, lake: duckdb.DuckDBPyConnection) -> None:
        super().__init__(settings)
        self._topic = TURNS.full_name(settings.topic_prefix)
        self._lake = lake

    async def changes(self, alert_id: str) -> list[Recorded]:
        """See `TopicSource`."""
        from streams.archive.inputs import archived_changes

        return [Recorded(event, encode(event)) for event in archived_changes(self._lake, alert_id)]

    async def count(self, partition: int, before: int) -> int:
        """See `TopicSource`."""
        from streams.archive.inputs import archived_count
        from streams.archive.schema import EXPIRED

        start, end = landed(self._lake, self._topic, partition)
        if end < before:
            raise ConfigurationError(
                f"the archive has {self._topic}-{partition} only up to offset {end}, but the alert depends on offsets "
                f"up to {before - 1}: let `turntide worker archive` catch up"
            )
        if start > 0 or skipped(self._lake, self._topic, partition, before).get(EXPIRED):
            raise ConfigurationError(
                f"the archive lacks records of {self._topic}-{partition} below offset {before}: retention removed them "
                "before they were archived. The alert cannot be recomputed"
            )
        return archived_count(self._lake, only=partition, before=before)

    async def erased(self, partition: int, before: int) -> int:
        """See `TopicSource`."""
        from streams.archive.schema import ERASED

        return skipped(self._lake, self._topic, partition, before).get(ERASED, 0)

    async def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """See `TopicSource`."""
        from streams.archive.inputs import archived_inputs

        for record in archived_inputs(self._lake, self._topic, only=partition, before=before):
            yield record


Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Number of records → a progress bar that is told how many are folded."""


class ChangeCompared(Struct, frozen=True, kw_only=True):
    """One change of an alert as it was emitted and as the fold makes it; no text of it.

    Attributes:
        offset: Of the record of `turns.v1` that caused it.
        recorded: Cause as emitted; None: only the fold makes it.
        replayed: Cause as folded; None: the fold does not make it.
        equal: Whether their JSON is the same, byte for byte.
        differs: Fields that are not the same, those of `escalation` singly.
        recorded_score: Combined score or probability, 0-1.
        replayed_score: Likewise.
    """

    offset: int
    turn: int
    recorded: str | None
    replayed: str | None
    equal: bool
    differs: list[str]
    recorded_score: float | None
    replayed_score: float | None


class AlertCompared(Struct, frozen=True, kw_only=True):
    """An alert made again.

    Attributes:
        records: Folded.
        policies: Digests of the policies, in the order in which they were in force.
        rules: Where they are from.
        assumed_below: Offset below which nothing says by which rules; the earliest known ones stand for them.
        erased: Records below the alert's last offset that an erasure has removed since: the fold is without them, which
            alone may make a difference.
    """

    alert_id: str
    session_id: str
    partition: int
    records: int
    policies: list[str]
    rules: Origin
    assumed_below: int
    erased: int
    equal: bool
    changes: list[ChangeCompared]


class _AlertReplay(SessionReplay):
    """A fold that keeps nothing of its outputs but the changes of one session's alerts."""

    def __init__(self, rules: list[FoldRules], embedder: Embedder, session: SessionName) -> None:
        super().__init__(rules[0].policy, embedder, rules[0].scorer, lambda _: rules)
        self._session = session
        self.changes: dict[str, AlertChanged] = {}

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            if isinstance(event, AlertChanged) and self._session == (event.app_id, event.session_id):
                self.changes[event.id] = event


async def replay_alert(
    settings: Settings,
    alert_id: str,
    *,
    archive: bool = False,
    policy_file: Path | None = None,
    scorer: str | None = None,
    bar: Bar,
) -> AlertCompared:
    """Fold the alert's partition up to its last change, and compare.

    Args:
        settings: Which cluster and prefix, and where versions and archive are.
        alert_id: Which alert.
        archive: Read the archive, not the topics.
        policy_file: Fold by this policy and the present scorer: what would have been. None: as it was.
        scorer: `rules` or a scorer's file: with a policy file, and where no history names the scorer.
        bar: Progress.

    Raises:
        ConfigurationError: There is no such alert, its rules are not kept here, or its log is not whole.
        StoreUnavailable: Kafka or the archive does not answer.
    """
    with ExitStack() as stack:
        source = TopicSource(settings)
        if archive:
            from streams.archive.catalog import paths_of, reading

            source = ArchiveSource(settings, stack.enter_context(reading(paths_of(settings))))
        of_session = await source.changes(alert_id)
        recorded = of_alert(of_session, alert_id)
        if not recorded:
            where = "the archive" if archive else "the topic: has retention removed it? Try --archive"
            raise ConfigurationError(f"no alert has the id {alert_id} in {where}")
        last = recorded[-1].event
        if last.source.topic != (topic := TURNS.full_name(settings.topic_prefix)):
            raise ConfigurationError(
                f"alert {alert_id} is from {last.source.topic}, not {topic}: set TURNTIDE_TOPIC_PREFIX"
            )
        embedder = stream_embedder_of(settings)
        found = rules_of(settings, [each.event for each in recorded], embedder, policy_file, scorer)
        rules = found.rules
        partition, before = last.source.partition, last.source.offset + 1
        records, erased = await source.count(partition, before), await source.erased(partition, before)
        replay = _AlertReplay(rules, embedder, SessionName(last.app_id, last.session_id))
        with bar(records) as progress:
            replay.progress = progress
            async for record in source.turns(partition, before):
                replay.take(record)
            replay.result()
    first = recorded[0].event.source.offset
    earlier = [each.event.source.offset for each in of_session if each.event.source.offset < first]
    changes = compare(recorded, list(replay.changes.values()), above=max(earlier, default=-1))
    return AlertCompared(
        alert_id=alert_id,
        session_id=last.session_id,
        partition=partition,
        records=records,
        policies=[policy_digest(each.policy) for each in rules],
        rules=found.origin,
        assumed_below=found.assumed_below,
        erased=erased,
        equal=all(change.equal for change in changes),
        changes=changes,
    )


def of_alert(changes: Sequence[Recorded], alert_id: str) -> list[Recorded]:
    """The changes of one alert among those of its session, in the order of their causes.

    Of a change that was emitted again after a crash, the last counts: the state went on from that.
    """
    latest = {each.event.id: each for each in changes if each.event.alert_id == alert_id}
    return sorted(latest.values(), key=lambda each: each.event.source.offset)


def compare(recorded: Sequence[Recorded], replayed: Sequence[AlertChanged], *, above: int = -1) -> list[ChangeCompared]:
    """Each change that was emitted or is made by the fold, in the order of their causes.

    Args:
        recorded: The alert's changes.
        replayed: Of the fold, all changes of the session's alerts up to the alert's last.
        above: Offset of the last change of the session's alert before; what the fold makes up to there is that one's.
    """
    emitted = {each.event.id: each for each in recorded}
    made = {change.id: change for change in replayed if change.id in emitted or change.source.offset > above}
    compared = [_compared(emitted.get(change_id), made.get(change_id)) for change_id in {**emitted, **made}]
    return sorted(compared, key=attrgetter("offset"))


def _compared(recorded: Recorded | None, replayed: AlertChanged | None) -> ChangeCompared:
    emitted = recorded.event if recorded else None
    known = emitted or replayed
    assert known is not None, "a change that is compared is on one side at least"  # noqa: S101
    equal = recorded is not None and replayed is not None and recorded.value in map(encode, forms_of(replayed))
    return ChangeCompared(
        offset=known.source.offset,
        turn=known.turn,
        recorded=emitted.cause if emitted else None,
        replayed=replayed.cause if replayed else None,
        equal=equal,
        differs=differing(emitted, replayed) if emitted and replayed and not equal else [],
        recorded_score=emitted.score if emitted else None,
        replayed_score=replayed.score if replayed else None,
    )


def differing(recorded: AlertChanged, replayed: AlertChanged) -> list[str]:
    """Names of the fields that are not the same; `encoding` where all are, but not the bytes."""
    found = _differing_fields(recorded, replayed, "")
    if "escalation" in found and recorded.escalation is not None and replayed.escalation is not None:
        at = found.index("escalation")
        found[at : at + 1] = _differing_fields(recorded.escalation, replayed.escalation, "escalation.")
    return found or ["encoding"]


def _differing_fields(one: Struct | Output, other: Struct | Output, before: str) -> list[str]:
    return [f"{before}{name}" for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
