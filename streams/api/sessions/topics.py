"""Reading a session's topics: what it is about, and what was said of each (seed 001, API methods).

A session id may hold slashes, so a path can be read in two ways; the routes that end in a fixed word come first. Who
has a topic called like one of them asks for it by `topic=`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query

from models.policy.topic import TopicPolicy
from models.session.topics.decay import MemoryType, half_life, memory_type
from models.session.topics.reading import summary_message
from streams.api import openapi
from streams.api.users import examples
from streams.http.audit import READS_TEXT, note_given
from streams.index.topic_memory import RememberedTopic, TopicMemory

_SessionId = Annotated[
    str,
    Path(min_length=1, max_length=256, description="URL-encoded; any character.", examples=[examples.SESSION_ID]),
]
_TopicId = Annotated[
    str, Path(min_length=1, max_length=256, description="As the list has it.", examples=[examples.TOPIC_ID])
]
_Topic = Annotated[
    str | None,
    Query(
        min_length=1, max_length=256, description="Id of a topic; none: the active one.", examples=[examples.TOPIC_ID]
    ),
]
_Text = Annotated[
    str,
    Query(min_length=1, max_length=8_000, description="What the topics should be like.", examples=[examples.QUERY]),
]
_TopK = Annotated[int, Query(ge=1, le=100, description="How many at most.", examples=[5])]
_IncludeGone = Annotated[
    bool, Query(description="Also topics that were evicted or merged into another.", examples=[False])
]
_IncludePacked = Annotated[bool, Query(description="Also messages that were packed.", examples=[True])]
_MOST_GONE = 100
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class TopicStats:
    """Statistics under the seed's names (`models.session.topics.reading`)."""

    topic_id: str
    topic_title: str
    active_messages: int
    compressed_messages: int
    total_messages: int
    has_summary: bool
    importance_score: float
    access_count: int
    memory_type: MemoryType
    half_life_days: float
    age_seconds: float
    inactive_seconds: float


@dataclass(frozen=True, slots=True)
class TopicAnswer(TopicStats):
    """A topic with its statistics.

    Attributes:
        active: Whether the session is about it now.
        kept: False for one that was evicted or merged away, or that was forgotten with its session.
        cause: Of its last change …
        detail: … and what exactly: why it was evicted, with which topic it merged.
        released_messages: Messages that are in the archive alone.
        similarity: Cosine to the text, in a search.
    """

    active: bool
    kept: bool
    summary: str | None
    tags: list[str]
    created_at: datetime
    last_active_at: datetime
    cause: str
    detail: str
    released_messages: int
    similarity: float | None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message as language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class TimedMessage:
    """A message of a history; Unix time in seconds."""

    role: str
    content: str
    timestamp: float


def _utc_now() -> datetime:
    return datetime.now(UTC)


def topics_router(memory: TopicMemory, policy: TopicPolicy, *, now: Callable[[], datetime] = _utc_now) -> APIRouter:
    """Routes over one topic memory; include it last, since its last route takes any word behind `/topics/`.

    Args:
        memory: What is indexed.
        policy: Half-lives.
        now: The clock that ages are measured by.
    """
    router = APIRouter(prefix="/v1/sessions", tags=["topics"])
    _add_lists(router, memory, policy, now)
    _add_messages(router, memory)
    _add_single(router, memory, policy, now)
    return router


def _add_lists(router: APIRouter, memory: TopicMemory, policy: TopicPolicy, now: Callable[[], datetime]) -> None:
    @router.get("/{session_id:path}/topics", dependencies=READS_TEXT, responses=openapi.example([examples.TOPIC]))
    async def topics(session_id: _SessionId, include_gone: _IncludeGone = False) -> list[TopicAnswer]:
        """Topics of the session, the latest active first; an unknown session has none."""
        found = await memory.topics(session_id)
        gone = await memory.gone(session_id, found, _MOST_GONE) if include_gone else []
        return _answers([*found.kept, *gone], policy, now())

    @router.get(
        "/{session_id:path}/topics/search",
        dependencies=READS_TEXT,
        responses=openapi.example([{**examples.TOPIC, "similarity": 0.62}]),
    )
    async def search(
        session_id: _SessionId, q: _Text, top_k: _TopK = 5, include_gone: _IncludeGone = False
    ) -> list[TopicAnswer]:
        """Topics of the session most like `q` by title and summary, best first."""
        found = await memory.find_similar(q, session_id, top_k, include_gone=include_gone)
        return _answers(found, policy, now())


def _add_messages(router: APIRouter, memory: TopicMemory) -> None:
    @router.get("/{session_id:path}/context", dependencies=READS_TEXT, responses=openapi.example(examples.MESSAGES))
    async def context(session_id: _SessionId, topic: _Topic = None) -> list[ChatMessage]:
        """Summary and messages at hand of a topic, as chat messages, oldest first."""
        found = await _found(memory, session_id, topic)
        if found is None:
            return []
        note_given(turns := await memory.messages(found, include_packed=False))
        said = [ChatMessage(turn.role, turn.content) for turn in turns]
        return said if found.summary is None else [ChatMessage(**summary_message(found.summary)), *said]

    @router.get("/{session_id:path}/history", dependencies=READS_TEXT, responses=openapi.example(examples.HISTORY))
    async def history(
        session_id: _SessionId, topic: _Topic = None, include_packed: _IncludePacked = True
    ) -> list[TimedMessage]:
        """Every message of a topic that is still indexed, in order of time; the archive has those before."""
        found = await _found(memory, session_id, topic)
        if found is None:
            return []
        turns = await memory.messages(found, include_packed=include_packed)
        note_given(turns)
        return [TimedMessage(turn.role, turn.content, turn.timestamp.timestamp()) for turn in turns]


def _add_single(router: APIRouter, memory: TopicMemory, policy: TopicPolicy, now: Callable[[], datetime]) -> None:
    @router.get("/{session_id:path}/stats", dependencies=READS_TEXT, responses=openapi.example(examples.STATS))
    async def stats(session_id: _SessionId, topic: _Topic = None) -> TopicStats:
        """Statistics of a topic under the seed's names."""
        found = await _found(memory, session_id, topic)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "the session has no active topic (yet): ask again after a turn")
        return _stats(found, policy, now())

    @router.get("/{session_id:path}/topics/{topic}", dependencies=READS_TEXT, responses=openapi.example(examples.TOPIC))
    async def one(session_id: _SessionId, topic: _TopicId) -> TopicAnswer:
        """One topic, also one that was evicted or merged away."""
        found = await memory.topic(session_id, topic)
        if found is None:
            raise _unknown_topic()
        return _answer(found, policy, now())


async def _found(memory: TopicMemory, session_id: str, topic: str | None) -> RememberedTopic | None:
    """A topic, or the active one; None where there is no active one.

    Raises:
        HTTPException: 404, the named topic is not known.
    """
    found = await memory.topic(session_id, topic)
    if found is None and topic is not None:
        raise _unknown_topic()
    return found


def _unknown_topic() -> HTTPException:
    return HTTPException(
        HTTPStatus.NOT_FOUND,
        "no such topic in this session: GET /v1/sessions/{id}/topics?include_gone=true lists its topics; "
        "older ones are in the archive (`turntide query`)",
    )


def _stats(topic: RememberedTopic, policy: TopicPolicy, now: datetime) -> TopicStats:
    return TopicStats(
        topic_id=topic.topic_id,
        topic_title=topic.title,
        active_messages=len(topic.active_turns),
        compressed_messages=len(topic.packed_turns),
        total_messages=topic.message_count,
        has_summary=topic.summary is not None,
        importance_score=topic.importance,
        access_count=topic.access_count,
        memory_type=memory_type(topic.access_count, policy),
        half_life_days=half_life(topic.access_count, policy) / timedelta(days=1),
        age_seconds=max(now - topic.created_at, _ZERO).total_seconds(),
        inactive_seconds=max(now - topic.last_active_at, _ZERO).total_seconds(),
    )


def _answers(topics: Sequence[RememberedTopic], policy: TopicPolicy, now: datetime) -> list[TopicAnswer]:
    note_given(topics)
    return [_answer(topic, policy, now) for topic in topics]


def _answer(topic: RememberedTopic, policy: TopicPolicy, now: datetime) -> TopicAnswer:
    return TopicAnswer(
        **asdict(_stats(topic, policy, now)),
        active=topic.active,
        kept=topic.kept,
        summary=topic.summary,
        tags=topic.tags,
        created_at=topic.created_at,
        last_active_at=topic.last_active_at,
        cause=topic.cause,
        detail=topic.detail,
        released_messages=topic.released_messages,
        similarity=topic.similarity,
    )
