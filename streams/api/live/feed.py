"""Reads what the board is made of: Kafka without a group, from `live.window` ago to now and on.

It never stops the role it runs in: whatever fails is logged, and it connects again and begins anew, which the board
does not mind. Turns are passed over unread but for the few records that say something of alerts, or erase.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from time import monotonic, time
from typing import Literal, get_args

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord
from msgspec import structs

from models import events
from models.errors import InvalidRecord
from models.events.topics import ALERTS, COMPACTIONS, ERASURES, PROFILES, TURNS, Topic
from models.wire.codec import UNDECODABLE, decode_output
from models.wire.envelope import tag_of
from models.wire.trace_context import traceparent_of
from streams.api.live.board import LiveBoard
from streams.api.live.messages import AlertNote
from streams.kafka.client import admin, consumer
from streams.settings import Settings

log = structlog.get_logger(__name__)

TOPICS: tuple[Topic, ...] = (PROFILES, ALERTS, COMPACTIONS, ERASURES, TURNS)
POLL_MS = 250
MOST_RECORDS = 2_000
AT_ONCE = 100
"""Records that are taken before others of the process may do something: about 3 ms."""
LOOK_AROUND_S = 30.0
"""For new partitions, and for sessions that are silent for too long."""
WITHOUT_TOPICS_S = 5.0
RETRY_S, LONGEST_RETRY_S = 1.0, 30.0
_MS = timedelta(milliseconds=1)
_Told = events.AlertLabelled | events.AlertAcknowledged | events.AlertTriaged | events.SessionErased
_TAGS = [tag_of(kind).encode() for kind in get_args(_Told)]
_control: msgspec.json.Decoder[_Told] = msgspec.json.Decoder(_Told)


class LiveFeed:
    """Keeps a board as the log is.

    Args:
        settings: Which cluster, and how far back.
        board: What is kept.
        now_s: The clock that records are dated by, Unix seconds.
    """

    def __init__(self, settings: Settings, board: LiveBoard, *, now_s: Callable[[], float] = time) -> None:
        self._settings = settings
        self._board = board
        self._now_s = now_s
        self._topics = {topic.full_name(settings.topic_prefix): topic for topic in TOPICS}

    async def run(self) -> None:
        """Follow the log until cancelled."""
        retry_s = RETRY_S
        while True:
            began_s = monotonic()
            try:
                async with consumer(
                    self._settings.kafka, auto_offset_reset="earliest", max_poll_records=MOST_RECORDS
                ) as client:
                    await self._follow(client)
            except Exception as error:  # noqa: BLE001 - the page must never stop the role
                if monotonic() - began_s > LONGEST_RETRY_S:
                    retry_s = RETRY_S
                self._board.reading = structs.replace(self._board.reading, kafka="away")
                log.warning("live_feed_failed", error=type(error).__name__, detail=str(error), retry_s=retry_s)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, LONGEST_RETRY_S)

    async def _follow(self, client: AIOKafkaConsumer) -> None:
        assigned: frozenset[TopicPartition] = frozenset()
        look_s = monotonic()
        while True:
            if monotonic() >= look_s:
                assigned = await self._look_around(client, assigned)
                look_s = monotonic() + (LOOK_AROUND_S if assigned else 0.0)
                found: Literal["read", "without_topics"] = "read" if assigned else "without_topics"
                self._board.reading = structs.replace(self._board.reading, kafka=found)
            if not assigned:
                await asyncio.sleep(WITHOUT_TOPICS_S)  # no topic yet: `turntide topics apply` makes them
                continue
            polled = await client.getmany(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
            for partition, records in polled.items():
                await self._take(self._topics[partition.topic], records)

    async def _look_around(
        self, client: AIOKafkaConsumer, assigned: frozenset[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Take partitions that are new, at their place in time; those that were there go on where they are."""
        self._board.prune(self._window_began_ms(self._settings.live.window))
        wanted = await self._there()
        if wanted == assigned:
            return assigned
        places = {partition: await client.position(partition) for partition in assigned & wanted}
        new = wanted - assigned
        starts = {
            partition: 0 if assigned else self._window_began_ms(self._back(self._topics[partition.topic]))
            for partition in new
        }
        client.assign(sorted(wanted))
        ends = await client.end_offsets(list(new))  # asked for first: what comes meanwhile is not passed over
        found = await client.offsets_for_times(starts)
        for partition in new:
            at = found.get(partition)
            places[partition] = ends[partition] if at is None else at.offset
        for partition, offset in places.items():
            client.seek(partition, offset)
        log.info("live_feed_reads", partitions=len(wanted), new=len(new))
        return wanted

    async def _there(self) -> frozenset[TopicPartition]:
        """Partitions of the topics that exist. All are asked for: asking for one might make a broker create it."""
        async with admin(self._settings.kafka) as client:
            return frozenset(
                TopicPartition(each["topic"], partition["partition"])
                for each in await client.describe_topics()
                if each["topic"] in self._topics and not each["error_code"]
                for partition in each["partitions"]
            )

    def _back(self, topic: Topic) -> timedelta:
        live = self._settings.live
        return min(live.label_window, live.window) if topic is TURNS else live.window

    def _window_began_ms(self, back: timedelta) -> int:
        return max(0, int(self._now_s() * 1_000) - back // _MS)

    async def _take(self, topic: Topic, records: Sequence[ConsumerRecord]) -> None:
        taken = records
        if topic is TURNS:
            turns = self._board.reading.turns + len(records)
            self._board.reading = structs.replace(self._board.reading, turns=turns)
            taken = _controls(records)
        undecodable = 0
        for start in range(0, len(taken), AT_ONCE):
            for record in taken[start : start + AT_ONCE]:
                try:
                    take(self._board, topic, record)
                except InvalidRecord:
                    undecodable += 1
            await asyncio.sleep(0)
        if undecodable:
            log.warning("live_undecodable", topic=topic.name, records=undecodable)


def _controls(records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
    """Those that may say something of an alert, or be an erasure."""
    return [each for each in records if each.value and any(tag in each.value for tag in _TAGS)]


def take(board: LiveBoard, topic: Topic, record: ConsumerRecord) -> None:
    """Let a board know what a record says; one that says nothing of sessions or alerts changes nothing.

    Raises:
        InvalidRecord: It is no event of the topic.
    """
    if topic is TURNS:
        _take_control(board, record)
        return
    if record.value is None:
        if topic is PROFILES and record.key is not None:  # written by erasures alone
            board.erase_session(_session_of_key(record.key.decode(errors="replace")), record.timestamp)
        return
    match decode_output(topic, record.value):
        case events.ProfileUpdated() as profile:
            board.take_profile(profile, record.timestamp)
        case events.AlertChanged() as alert:
            trace = traceparent_of(record.headers)
            board.take_alert(alert, record.timestamp, None if trace is None else trace.trace_id)
        case events.SegmentCompacted() as segment:
            board.take_segment(segment, record.timestamp)
        case events.EraseRequested() as request:
            board.erase(request, record.timestamp)


def _take_control(board: LiveBoard, record: ConsumerRecord) -> None:
    try:
        event = _control.decode(record.value or b"")
    except UNDECODABLE:
        return  # a turn that speaks of such, or input that is refused
    if record.key != event.session_id.encode():
        return  # refused by everybody: its place in the session's order is not known
    if isinstance(event, events.SessionErased):
        board.erase_session(events.SessionName(event.app_id, event.session_id), record.timestamp)
        return
    if (alert := board.alert(event.alert_id)) is None or alert.event.session_id != event.session_id:
        return
    if event.app_id not in {"", alert.event.app_id}:
        return
    if isinstance(event, events.AlertLabelled):
        board.take_label(event.alert_id, escalating=event.escalating)
    elif event.note:
        board.take_note(event.alert_id, AlertNote(by=event.by, at=event.timestamp, note=event.note))


def _session_of_key(key: str) -> events.SessionName:
    """The session that a record of an output is keyed by; up to 0.2.0 its id, which says nothing of an app."""
    return events.SessionName.of_key(key) if key.startswith("session:") else events.SessionName("", key)
