"""Collections of the index, as a table: which events are in them, how they are found, and whom they name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

import structlog
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models import events
from models.entities import REGISTRY, entity_key, owner_of
from models.errors import InvalidRecord
from models.events.topics import Topic
from models.retrieval.relevance import Findable, rendered, searched_text
from models.wire.codec import decode_output
from streams.index.event_points import Collection, milliseconds, point_key
from streams.inference.intake import topic_text
from streams.ports import PayloadValue

EMBEDDED = ("memory", "episode", "chunk")
"""Kinds of a project's items that are found by what they say."""
PROJECT_STATS = "projects"
"""`owner_key` of how far projects are; that of an item is its project's key."""


class RememberedTurn(events.Turn, frozen=True, kw_only=True):
    """A turn as the index has it; without what its producer noted beside it.

    Attributes:
        risk: 0-1, the producer's or else the scorer's; None where neither gave one.
        similarity: Cosine to the query, -1 to 1; None where there was no query.
        partition: Of `turns.v1` where its record stands, and …
        event_offset: … at which offset; None for turns indexed without their places.
        corrected_at: When its text was put right last; None: it is as it was said.
    """

    similarity: float | None = None
    partition: int | None = None
    event_offset: int | None = None
    corrected_at: datetime | None = None


class RememberedCorrection(events.TurnCorrected, frozen=True, kw_only=True, tag="turn_corrected"):
    """A correction of a turn, and the offset of its record."""

    event_offset: int


class RememberedTopic(events.TopicChanged, frozen=True, kw_only=True, tag="topic_changed"):
    """A topic as its last event has it; the active one with the turns that followed.

    Attributes:
        event_offset: Of the event's record. Offsets order the events of a session.
        similarity: Cosine to the query, -1 to 1; None where there was no query.
    """

    event_offset: int
    similarity: float | None = None


def turn_key(session: events.SessionName, turn: int) -> str:
    """Readable id of a turn's point: its session's key, `_` and its number. The last `_` divides: no two share one."""
    return f"{events.session_key(*session)}_{turn}"


def turn_of_key(key: str) -> tuple[events.SessionName, int]:
    """Session and number that a turn's key was made of.

    >>> turn_of_key(turn_key(events.SessionName("web", "a_1"), 2))
    (SessionName(app_id='web', session_id='a_1'), 2)
    """
    session, turn = parted(key)
    return events.SessionName.of_key(session), turn


def parted(key: str) -> tuple[str, int]:
    """Key of the session, and number, that a turn's key was made of; what a session is called costs more to read."""
    session, _, turn = key.rpartition("_")
    return session, int(turn)


def permille(ratio: float) -> int:
    """A ratio as an integer, which every store compares exactly; what is larger than 1 counts as 1."""
    return round(min(max(ratio, -1.0), 1.0) * 1_000_000) // 1_000


TURNS = Collection(
    "turns",
    RememberedTurn,
    key=lambda turn: turn_key(events.SessionName(turn.app_id, turn.session_id), turn.turn),
    filters={"event_time_ms": lambda turn: milliseconds(turn.timestamp)},
    without=("metadata", "type", "similarity"),
    text=lambda turn: turn.content,
    words=lambda turn: turn.content,
    dated=lambda turn: turn.timestamp,
    asked_by=("message_id", "partition", "told_from", "told_to"),
)
CORRECTIONS = Collection(
    "corrections",
    RememberedCorrection,
    key=lambda turn: turn_key(events.SessionName(turn.app_id, turn.session_id), turn.turn),
    without=("by", "reason"),
)
SEGMENTS = Collection(
    "segments",
    events.SegmentCompacted,
    key=lambda segment: (
        f"{events.session_key(segment.app_id, segment.session_id)}\n{segment.first_turn}-{segment.last_turn}"
    ),
    filters={"turn": lambda segment: segment.last_turn},
    asked_by=(),
)
TOPICS = Collection(
    "topics",
    RememberedTopic,
    # Session ids hold no control characters, so no two topics share one.
    key=lambda topic: f"{events.session_key(topic.app_id, topic.session_id)}\n{topic.topic_id}",
    filters={"source_offset": lambda topic: topic.source.offset},
    without=("similarity",),
    text=lambda topic: topic_text(topic.title, topic.summary),
    asked_by=("topic_id", "kept", "cause"),
)
EPISODES = Collection(
    "episodes",
    events.EpisodeCompressed,
    filters={"turn": lambda episode: episode.first_turn},
    without=("embedding",),
    text=lambda episode: episode.summary,  # where none of its turns is at hand
    words=lambda episode: " ".join([episode.summary, *episode.key_topics]),
    dated=lambda episode: episode.started_at,
    erased_by=("user_id", "app_id", "turn"),
)
FACTS = Collection(
    "facts",
    events.FactChanged,
    filters={"importance_permille": lambda fact: permille(fact.importance)},
    without=("history",),  # earlier values have points of their own
    missing={"cause": "stored"},
    asked_by=("category", "key", "active"),
)
USERS = Collection(
    "users",
    events.UserMemoryChanged,
    filters={"event_time_ms": lambda user: milliseconds(user.timestamp)},
    without=("session_id",),
    erased_by=("user_id", "app_id"),
    asked_by=(),
)
MEMORIES = Collection(
    "memories",
    events.AppMemoryChanged,
    filters={
        "owner_key": point_key,
        "app_id": lambda memory: memory.app_id,
        "user_id": owner_of,
        "owned": lambda _: 1,
    },
    kept_as={"app_id": "owner_app_id", "user_id": "said_by"},
    missing={"active": True, "cause": "created"},
    text=lambda memory: memory.content,
    words=lambda memory: " ".join([memory.content, *memory.tags]),
    dated=lambda memory: memory.created_at,
    erased_by=("owner_key",),
)
SPACES = Collection("spaces", events.AppMemoriesChanged, filters={"user_id": owner_of}, without=("session_id",))


def item_of(event: events.ProjectItemChanged) -> events.ProjectItem | None:
    """What is there; None if it went."""
    found: events.ProjectItem | None = getattr(event, event.kind)
    return found if event.active else None


def item_text(event: events.ProjectItemChanged) -> str:
    """What an item is embedded by; nothing of one that went, or that only filters find."""
    item = item_of(event)
    return rendered(item) if isinstance(item, Findable) else ""


def _item_words(event: events.ProjectItemChanged) -> str:
    item = item_of(event)
    return searched_text(item) if isinstance(item, Findable) else ""


def _item_day(event: events.ProjectItemChanged) -> datetime | None:
    """Of which it speaks."""
    item = item_of(event)
    if not isinstance(item, Findable):
        return None
    return item.valid_from if isinstance(item, events.ProjectMemory) else item.started_at


def _importance(event: events.ProjectItemChanged) -> PayloadValue:
    match item_of(event):
        case events.ProjectMemory(importance=ratio) | events.ProjectEpisode(significance=ratio):
            return permille(ratio)
    return None


PROJECT_ITEMS = Collection(
    "project_items",
    events.ProjectItemChanged,
    filters={
        "owner_key": entity_key,
        "active": lambda event: int(item_of(event) is not None),
        "archived": lambda event: int(getattr(event.memory, "archived", False)),
        "memory_type": lambda event: None if event.memory is None else event.memory.type.value,
        "category": lambda event: getattr(event.memory, "category", None),
        "importance_permille": _importance,
    },
    kept_as={"user_id": "said_by"},  # a project is nobody's own: who is forgotten is found by the sessions
    text=item_text,
    words=_item_words,
    dated=_item_day,
    erased_by=("app_id", "owner_key", "kind", "slot"),
    aside=lambda payload: payload["owner_key"] == PROJECT_STATS,
)
"""What went stays as a point without text and without names (`active` 0), so that readers who hold a view of the
project hear of it; it goes when its slot is taken."""
PROJECT_PARTS = replace(PROJECT_ITEMS, name="projects", text=None, words=None, dated=None)
"""Items that only filters find; beside them …"""
PROJECTS = Collection(
    "projects",
    events.ProjectChanged,
    filters={"owner_key": lambda _: PROJECT_STATS},
    without=("session_id", "user_id"),
)
"""… how far each project is."""

OF_SESSIONS: tuple[Collection[Any], ...] = (TURNS, TOPICS)
"""Whose keys begin with a session's."""
OF_EVENTS: Mapping[type[Struct], Collection[Any]] = {
    each.event: Collection(of.collection, each.event, erased_by=of.erased_by, asked_by=None if of.listed else ())
    for each in REGISTRY.emits.values()
    if (of := each.index) is not None and of.erased_by is not None
}
"""Of events of which the registry says all that there is to say: whose they are finds them, and nothing else."""
_OWN = (TURNS, CORRECTIONS, TOPICS, SEGMENTS, EPISODES, FACTS, USERS, MEMORIES, SPACES, PROJECT_ITEMS, PROJECT_PARTS)
COLLECTIONS: Mapping[str, Collection[Any]] = {
    each.name: each for each in chain[Collection[Any]](_OWN, OF_EVENTS.values())
}
"""By name, in the order in which they are copied: episodes are embedded by turns."""


log = structlog.get_logger(__name__)

_Event = TypeVar("_Event", bound=Struct)


def latest_of(
    topic: Topic,
    records: Iterable[ConsumerRecord],
    *kinds: type[_Event],
    key: Callable[[_Event], str] | None = None,
) -> list[tuple[_Event, int]]:
    """The last event of these kinds for each key, among records in log order, with the offset of its record.

    The key is that of the record, or what `key` makes of the event.

    A null record, by which an erasure takes a key out of the topic, is passed: the index is told of it otherwise. One
    that is no event of the topic was written by somebody else: it is logged and passed.
    """
    latest: dict[bytes | str | None, tuple[_Event, int]] = {}
    for record in records:
        if record.value is None:
            continue
        try:
            event = decode_output(topic, record.value)
        except InvalidRecord as error:
            log.warning("event_undecodable", topic=topic.name, partition=record.partition, offset=record.offset)
            log.debug("event_undecodable_detail", detail=error.detail)
            continue
        if isinstance(event, kinds):
            latest[record.key if key is None else key(event)] = (event, record.offset)
    return list(latest.values())
