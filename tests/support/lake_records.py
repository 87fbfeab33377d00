"""Records and landings for tests of the archive, without Kafka."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple, TypeVar

import msgspec
from aiokafka import TopicPartition
from msgspec import Struct
from msgspec.structs import replace

from models.entities import entity_key
from models.events import (
    AccessAudited,
    AlertChanged,
    AlertStatus,
    AnyTurn,
    Control,
    ErasureEvent,
    Mode,
    Position,
    ProfileUpdated,
    ProjectCommand,
    RiskPoint,
    Role,
    SegmentCompacted,
    SpaceCommand,
    TopicChanged,
    TopicCompaction,
    Turn,
    UserCommand,
    WindowClosed,
)
from models.events.topics import TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from models.wire.envelope import key_of, schema_of
from streams.archive import landed
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import LakePaths
from streams.archive.rows import Landed
from streams.archive.writer import LakeWriter

PREFIX = "t"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
_SOURCE = Position(f"{PREFIX}.turns.v1", 0, 0)
_EXAMPLES = Path(__file__).parents[2] / "deploy" / "contracts" / "examples"
_Event = TypeVar("_Event", bound=Struct)


class Record(NamedTuple):
    """What the archive reads of a consumer's record."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def paths(folder: Path) -> LakePaths:
    """An archive in the folder."""
    return LakePaths(folder / "catalog.sqlite", f"{folder}/data/")


def copied(made: Path, folder: Path) -> LakeWriter:
    """A writer of a copy of an archive that several tests begin with."""
    copytree(made, folder, dirs_exist_ok=True)
    return LakeWriter(paths(folder))


def turn(number: int = 0, *, session_id: str = "s-1", app_id: str = "support", **fields: Any) -> Turn:
    """A turn that differs from another by number and session only."""
    content = fields.pop("content", f"what about {number}?")
    return Turn(
        session_id=session_id,
        user_id="u-1",
        app_id=app_id,
        turn=number,
        role=Role.USER,
        content=content,
        timestamp=NOW + timedelta(seconds=number),
        **fields,
    )


RECEIVED = NOW + timedelta(hours=1)


def example(kind: type[_Event]) -> _Event:
    """The contracts' example."""
    return msgspec.json.decode((_EXAMPLES / f"{schema_of(kind)}.json").read_bytes(), type=kind)


def record(event: Any, offset: int, *, partition: int = 0, received: datetime = RECEIVED) -> Record:
    """The event as a record; bytes and None go as they are."""
    value = event if isinstance(event, bytes | None) else encode(event)
    return Record(partition, offset, int(received.timestamp() * 1000), _key(event), value)


def _key(event: Any) -> bytes:
    if isinstance(event, bytes | None):
        return b"s-1"
    if isinstance(event, AnyTurn | Control):
        return event.session_id.encode()
    if isinstance(event, ErasureEvent):
        return event.request_id.encode()
    if isinstance(event, AccessAudited):
        return event.id.encode()
    if isinstance(event, UserCommand | SpaceCommand | ProjectCommand):
        return entity_key(event).encode()
    return key_of(event) or b""


def take(buffer: LandingBuffer, topic: Topic, taken: Record) -> None:
    """Put a record into the buffer as the role does."""
    row = landed.land(topic, topic.full_name(PREFIX), taken, IntakePolicy())
    if isinstance(row, Landed):
        buffer.add(row)
    else:
        buffer.skip(row)


def land_all(writer: LakeWriter, by_topic: Mapping[Topic, Sequence[Any]]) -> None:
    """Land events, or records as they are: the first ones of a partition of each topic, at once."""
    buffer = LandingBuffer()
    for topic, events in by_topic.items():
        for offset, event in enumerate(events):
            take(buffer, topic, event if isinstance(event, Record) else record(event, offset))
        buffer.moves[TopicPartition(topic.full_name(PREFIX), 0)] = Move(None, 0, len(events))
    writer.land(buffer, now=NOW)


def buffer_of(
    events: Iterable[Any],
    *,
    topic: Topic = TURNS,
    first: int = 0,
    partition: int = 0,
    expected: int | None = None,
    received: datetime = RECEIVED,
) -> LandingBuffer:
    """A buffer with the events at the offsets from `first` on, ready to land."""
    buffer, offset = LandingBuffer(), first
    for event in events:
        take(buffer, topic, record(event, offset, partition=partition, received=received))
        offset += 1
    start = Move(expected, first if expected is None else 0, offset)
    buffer.moves[TopicPartition(topic.full_name(PREFIX), partition)] = start
    return buffer


def _output(event_id: str, session_id: str) -> dict[str, Any]:
    return {
        "id": event_id,
        "session_id": session_id,
        "user_id": "u-1",
        "app_id": "support",
        "timestamp": NOW,
        "source": _SOURCE,
    }


def profile(event_id: str, *, turns: int, session_id: str = "s-1") -> ProfileUpdated:
    """A profile after so many turns, with one risk point for each."""
    return replace(
        example(ProfileUpdated),
        **_output(event_id, session_id),
        turn_count=turns,
        last_turn=turns - 1,
        started_at=NOW,
        risk_points=[RiskPoint(n, NOW, 0.1 * n, 0.3, Mode.WATCH, "rules") for n in range(turns)],
    )


def alert(event_id: str, status: AlertStatus) -> AlertChanged:
    """A change of alert `a-1`."""
    cause = "raised" if status is AlertStatus.FIRING else "resolved"
    change = {"alert_id": "a-1", "status": status, "cause": cause, "fired_at": NOW}
    return replace(example(AlertChanged), **_output(event_id, "s-1"), **change)


def app_window(event_id: str, *, source_partition: int, turns: int) -> WindowClosed:
    """One partition's share of a window of the app."""
    fields = _output(event_id, "") | {"source": Position(_SOURCE.topic, source_partition, 0)}
    return WindowClosed(
        **fields,
        scope="app",
        window_start=NOW,
        window_end=NOW + timedelta(minutes=5),
        turns=turns,
        turns_per_minute=turns / 5,
        risk_sum=0.5,
        risk_max=0.1 * turns,
        scored_turns=turns,
        alerts=0,
        late_turns=0,
    )


def segment(event_id: str, summary: str) -> SegmentCompacted:
    """The summary of turns 0-4."""
    turns = {"first_turn": 0, "last_turn": 4, "turns": [0, 1, 2, 3, 4], "started_at": NOW, "ended_at": NOW}
    return replace(example(SegmentCompacted), **_output(event_id, "s-1"), **turns, summary=summary, bytes_before=400)


def topic(event_id: str, topic_id: str = "t-1", *, at_offset: int = 0, **fields: Any) -> TopicChanged:
    """A change of a topic of session `s-1`, caused by the turn at an offset."""
    started: dict[str, Any] = {
        "title": "the refund",
        "cause": "started",
        "turn": 0,
        "created_at": NOW,
        "last_active_at": NOW,
        "active_turns": [],
        "packed_turns": [],
        "compaction": None,
    }
    source = {"source": Position(_SOURCE.topic, 0, at_offset)}
    return replace(example(TopicChanged), **(_output(event_id, "s-1") | source | started | fields), topic_id=topic_id)


def lineage(*turns: int, released: tuple[int, ...] = ()) -> TopicCompaction:
    """What a compaction of these turns cost."""
    return TopicCompaction(
        turns=list(turns),
        tokens_before=100,
        tokens_after=20,
        bytes_before=1_000,
        bytes_after=300,
        ratio=0.3,
        summarised_by="extractive",
        probes=4,
        probes_found=3,
        loss=0.25,
        codec="gzip",
        released_turns=list(released),
    )


def land(writer: LakeWriter, landings: range, *, content: str = "text") -> None:
    """One small file per landing, three turns each."""
    for n in landings:
        turns = [turn(3 * n + k, content=f"{content} {n}") for k in range(3)]
        writer.land(buffer_of(turns, first=3 * n, expected=3 * n or None), now=NOW)
