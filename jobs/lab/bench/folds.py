"""Turns of the demo's conversations to measure with: sent, or scored and embedded beforehand and folded."""

import asyncio
import gc
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter, process_time
from typing import Any, TypeVar

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord

from jobs.demo.conversations import DemoConversation, load_conversations
from jobs.lab.bench.measuring import Timing
from jobs.lab.eval.dialogues import read_dialogues
from jobs.shared.sending import send_to_turns
from models.events import CommandEvent, OutputEvent, Position, Role, SessionEnded, Turn
from models.events.topics import COMMANDS, TURNS, Topic
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.arrival import Command
from models.wire.codec import decode_input, encode
from streams.inference.intake import Intake
from streams.kafka.client import client_options, consumer, read_to_end, require_topic
from streams.kafka.producer import Record
from streams.kafka.records import input_record
from streams.oracle.replay import SessionReplay
from streams.settings import Settings, load_settings
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable
from streams.wiring import policy_of, scorer_of, stream_embedder_of

SESSIONS_AT_ONCE = 100
"""So many conversations are open at any time; where one ends another begins."""
SPACING = timedelta(milliseconds=200)
"""Event time between turns of the log, so about twenty seconds between those of a session."""
TURNS_PER_ALARM = 10
"""Length of an alarming session; its last turn raises the alert."""
_ALARMING_RISK = 0.97
_QUIET_RISK = 0.05
_Item = TypeVar("_Item")


def conversation_of(app_id: str, turns: list[dict[Role, str]]) -> DemoConversation:
    """A conversation for `TurnTraffic`, which names sessions and users itself."""
    nobody: dict[str, Any] = {"session_id": "", "user_id": "", "title": "", "starts_minute": 0}
    return DemoConversation(app_id=app_id, turns=turns, expected_alert=False, ends=False, **nobody)


class TurnTraffic:
    """Makes turns of conversations (the demo's, unless given), so many at once, interleaved by the seed."""

    def __init__(
        self, seed: int = 0, conversations: Sequence[DemoConversation] = (), *, at_once: int = SESSIONS_AT_ONCE
    ) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._conversations = conversations or load_conversations()
        self._harmless = [each for each in self._conversations if not each.expected_alert]
        self._at_once = at_once

    def backlog(self, count: int, *, ends_at: datetime, spacing: timedelta = SPACING) -> Iterator[Turn]:
        """`count` turns of interleaved sessions without an upstream risk, in event-time order, up to `ends_at`.

        From about turn 9,000 on sessions that fell silent time out (half an hour of event time), which costs extra: the
        contenders that work per event see none of it.
        """
        events = self.events(count, ends_at=ends_at, spacing=spacing)
        return (event for event in events if isinstance(event, Turn))

    def events(self, count: int, *, ends_at: datetime, spacing: timedelta = SPACING) -> Iterator[Turn | SessionEnded]:
        """The same turns, and behind the last one of each session its end."""
        said, sessions = [0] * self._at_once, list(range(self._at_once))
        for n in range(count):
            place = self._rng.randrange(self._at_once)
            session, turn, at = sessions[place], said[place], ends_at - (count - n) * spacing
            conversation = self._conversations[session % len(self._conversations)]
            said[place] += 1
            yield _turn(conversation, f"bench-{session}", turn, at)
            if said[place] == len(conversation.turns):
                yield SessionEnded(session_id=f"bench-{session}", app_id=conversation.app_id, timestamp=at)
                sessions[place] += self._at_once
                said[place] = 0

    def alarming(self, n: int, timestamp: datetime) -> Turn:
        """Turn `n` of endless short sessions, one after the other, whose last turn alone alerts: by its upstream risk.

        What is said in them is harmless: a session that alerts by its words would have its alert before.
        """
        session, turn = divmod(n, TURNS_PER_ALARM)
        risk = _ALARMING_RISK if self.alarms(n) else _QUIET_RISK
        said = self._harmless[session % len(self._harmless)]
        return _turn(said, f"alarming-{session}", turn, timestamp, risk)

    def alarms(self, n: int) -> bool:
        """True if turn `n` of the alarming sessions is one that alerts."""
        return n % TURNS_PER_ALARM == TURNS_PER_ALARM - 1


def _turn(said: DemoConversation, session_id: str, turn: int, at: datetime, risk: float | None = None) -> Turn:
    ((role, content),) = said.turns[turn].items()
    return Turn(
        session_id=session_id,
        user_id=f"user-of-{session_id}",
        app_id=said.app_id,
        turn=turn,
        role=role,
        content=content,
        timestamp=at,
        risk=risk,
    )


@asynccontextmanager
async def producing(settings: Settings, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    """A producer for the cluster."""
    producer = AIOKafkaProducer(**client_options(settings.kafka), **options)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def reading(settings: Settings, *topics: Topic, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of these topics, all partitions from their beginning."""
    names = [topic.full_name(settings.topic_prefix) for topic in topics]
    async with consumer(settings.kafka, auto_offset_reset="earliest", **options) as client:
        client.assign([TopicPartition(name, n) for name in names for n in await require_topic(settings.kafka, name)])
        yield client


async def send(producer: AIOKafkaProducer, settings: Settings, event: Turn | SessionEnded) -> Any:
    """Write an event to `turns.v1`; the result ends when it is acknowledged."""
    record = input_record(event)
    topic = TURNS.full_name(settings.topic_prefix)
    return await producer.send(topic, record.value, key=record.key, headers=record.headers)


async def paced(
    items: Iterable[_Item], per_s: float | None, *, tick_s: float = 0.0
) -> AsyncIterator[tuple[float, _Item]]:
    """Each item when it is due, with that time (`perf_counter`), so that a sender that falls behind hides nothing.

    So many come a second (None: at once); no sleep is shorter than `tick_s`.
    """
    began_s = perf_counter()
    for n, item in enumerate(items):
        due_s = began_s if per_s is None else began_s + n / per_s
        if per_s is not None and (early_s := due_s - perf_counter()) > 0:
            await asyncio.sleep(max(early_s, tick_s))
        yield due_s, item


async def send_backlog(
    settings: Settings, seed: int, turns: int, conversations: Sequence[DemoConversation] = ()
) -> float:
    """Write a backlog (`TurnTraffic.backlog`) that ends now to `turns.v1`, all acknowledged on return.

    Returns:
        Mean bytes of a record's value.
    """
    backlog = TurnTraffic(seed, conversations).backlog(turns, ends_at=datetime.now(UTC))
    records = [Record(*input_record(turn)[:2]) for turn in backlog]
    await send_to_turns(settings, records)
    return sum(len(record.value or b"") for record in records) / len(records)


BATCH_RECORDS = 500
_SENTENCE_END = re.compile(r"(?<=\w)([.!?])(?=\s|$)")
POLLED_RECORDS = 1_000
"""As the sessions role polls by default."""
BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first turn."""


class Prepared:
    """Makes arrivals without any work that belongs to another stage than the fold.

    Attributes:
        lines: Turns of all conversations, one conversation after the other.
    """

    def __init__(self, policy: Policy) -> None:
        intake = Intake(policy, stream_embedder_of(load_settings()), RuleScorer())
        said = [records_of(dialogue.turns) for dialogue in read_dialogues()]
        self._conversations = [intake.take(records).arrivals for records in said]
        self.lines = [arrival for arrivals in self._conversations for arrival in arrivals]

    def line(self, number: int, session_id: str, turn: int, offset: int, after: timedelta) -> DecodedArrival:
        """Line `number` of all conversations, counted on from the first again after the last, as a session's turn.

        Its event time is so long after `BEGINS`.
        """
        return _as(self.lines[number % len(self.lines)], session_id, turn, offset, after)

    def turn(self, session: int, turn: int, offset: int, after: timedelta) -> DecodedArrival:
        """Turn `turn` of the conversation that session number `session` has; short ones begin anew."""
        said = self._conversations[session % len(self._conversations)]
        return _as(said[turn % len(said)], f"bench-{session}", turn, offset, after)


class InMemory:
    """One partition's fold (`kind`) and table, empty unless given, as a role has them, without a changelog.

    Attributes:
        outputs: What came of the last micro-batch.
    """

    def __init__(
        self, policy: Policy, table: MemoryTable | None = None, kind: Callable[..., Any] = PartitionFold
    ) -> None:
        self.table = table or MemoryTable()
        self.fold = kind(self.table.entities, policy)
        self.outputs: list[OutputEvent] = []

    def take(self, arrivals: Sequence[DecodedArrival] | Sequence[Command]) -> float:
        """Fold a micro-batch and keep its state.

        Returns:
            Seconds of CPU time: the fold waits for nothing, and what else runs on the machine takes none of it.
        """
        outputs = list[OutputEvent]()
        began_s = process_time()
        for folded in self.fold.fold(arrivals):
            self.table.apply(keyed(folded.changed), offset=folded.offset, applied=0, tail=None, now_ms=0)
            outputs += folded.outputs
        self.outputs = outputs
        return process_time() - began_s


class CommandLog:
    """A partition of `commands.v1` that is folded as it is written, one command at a time as when little is to do."""

    def __init__(self, policy: Policy) -> None:
        self._partition = InMemory(policy, kind=MemoryPartitionFold)

    def put(self, event: CommandEvent, at: datetime) -> tuple[float, list[OutputEvent]]:
        """Milliseconds of CPU time of folding an event, state read and written, and its outputs."""
        position = Position(COMMANDS.name, 0, self._partition.fold.offset + 1)
        return self._partition.take([Command(event, position, at)]) * 1000, self._partition.outputs


def about(text: str, what: str) -> str:
    """The text with these words at the end of each sentence, so that it is another one's.

    >>> about("It rains. Why?", "in case 2")
    'It rains in case 2. Why in case 2?'
    """
    return _SENTENCE_END.sub(rf" {what}\1", text)


def time_fold(
    partition: InMemory, arrivals: Sequence[DecodedArrival] | Sequence[Command]
) -> tuple[float, list[OutputEvent]]:
    """Seconds of CPU time of folding these in micro-batches, and all that came of it."""
    seconds, outputs = 0.0, list[OutputEvent]()
    for first in range(0, len(arrivals), BATCH_RECORDS):
        seconds += partition.take(arrivals[first : first + BATCH_RECORDS])
        outputs += partition.outputs
    return seconds, outputs


def record_of(  # noqa: PLR0917 - as the record itself has them
    topic: str, offset: int, timestamp_ms: int, key: bytes | None, value: bytes, partition: int = 0
) -> ConsumerRecord:
    """A record as aiokafka has it."""
    return ConsumerRecord(topic, partition, offset, timestamp_ms, 1, key, value, None, len(key or b""), len(value), ())


def records_of(events: Iterable[Turn | SessionEnded]) -> list[ConsumerRecord]:
    """A partition of `turns.v1` with these events, each at its own time."""
    return [
        record_of(
            TURNS.name, offset, round(event.timestamp.timestamp() * 1000), event.session_id.encode(), encode(event)
        )
        for offset, event in enumerate(events)
    ]


def _as(line: DecodedArrival, session_id: str, turn: int, offset: int, after: timedelta) -> DecodedArrival:
    at = BEGINS + after
    event = msgspec.structs.replace(line.event, session_id=session_id, turn=turn, timestamp=at)
    return DecodedArrival(event, Position(TURNS.name, 0, offset), at, line.risk, line.vector)


async def plain_fold(settings: Settings, turns: int) -> Timing:
    """Decode, score, embed and fold records that are in memory already, in batches, into state in memory.

    The first batch is not counted, as with the sessions role.
    """
    by_partition, left = dict[int, list[ConsumerRecord]](), turns
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        if left:
            by_partition.setdefault(record.partition, []).append(record)
            left -= 1
    embedder = stream_embedder_of(settings)
    replay = SessionReplay(policy_of(settings), embedder, scorer_of(settings, embedder))
    batches = [
        (partition, records[first : first + POLLED_RECORDS])
        for partition, records in by_partition.items()
        for first in range(0, len(records), POLLED_RECORDS)
    ]
    gc.collect()
    gc.freeze()  # what was read beforehand is no garbage of the fold's
    replay.fold(*batches[0])
    began, began_s = replay.result().turns, perf_counter()
    for partition, records in batches[1:]:
        replay.fold(partition, records)
    return Timing(replay.result().turns - began, perf_counter() - began_s)


async def raw_read(settings: Settings, turns: int) -> Timing:
    """Fetch and decode with aiokafka alone, from the assignment on to the last turn."""
    intake, taken = Policy().intake, 0
    async with reading(settings, TURNS, max_poll_records=POLLED_RECORDS) as client:
        began_s = perf_counter()
        while taken < turns:
            for records in (await client.getmany(timeout_ms=1_000)).values():
                for record in records:
                    appended_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
                    decode_input(record.value, record.key, appended_at, intake)
                taken += len(records)
        return Timing(taken, perf_counter() - began_s)
