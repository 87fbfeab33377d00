"""Reading a session's topics: what it is about, and what was said of each.

A session id may hold slashes, so a path can be read in two ways; the routes that end in a fixed word come first. Who
has a topic called like one of them asks for it by `topic=`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from models.events import SessionName
from models.events.fields import Identifier
from models.policy.topic import TopicPolicy
from models.state.decay import MemoryType, half_life, memory_type
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.sessions.turns import ReadSession, SimilarTurns, Waiting
from streams.api.users.messages import between
from streams.archive.history import ArchivedTurns
from streams.http.audit import note_given
from streams.http.problems import Problem, not_found
from streams.http.route import Group
from streams.http.security import caller
from streams.index.collections import RememberedTopic, RememberedTurn
from streams.index.session_memory import TopicMemory

if TYPE_CHECKING:
    from streams.archive.inputs import ArchivedMessage

_TOPICS = Group("topics", "Topics of one session.", prefix="/v1/sessions/{session_id:path}")
_WithGone = Annotated[bool, Meta(description="Include topics that were evicted or merged into another.")]
_Topic = Annotated[Identifier, Meta(description="Id of a topic. Default: the active topic.")]
_MOST_GONE = 100
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class TopicStats:
    """Statistics of a topic under the source's names."""

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


class TopicAnswer(RememberedTopic, frozen=True, kw_only=True, tag=False):
    """A topic with its statistics (`TopicStats`): its last event, with the turns since.

    `memory_type` and `half_life_days` are current.
    """

    topic_title: str
    active_messages: int
    compressed_messages: int
    total_messages: int
    has_summary: bool
    importance_score: float
    age_seconds: float
    inactive_seconds: float


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message in the format of language models."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class TimedMessage:
    """A message with its Unix time in seconds."""

    role: str
    content: str
    timestamp: float


@dataclass(frozen=True)
class TopicReader:
    """Routes over one topic memory; the last one takes any word behind `/topics/`.

    Args:
        memory: What is indexed.
        policy: Half-lives.
        waiting: Holds requests back until a turn is visible.
        archive: Messages that the index gave up; None: nowhere.
        shown: How the index shows a text: what it masks is not read in the archive either.
        now: The clock that ages are measured by.
    """

    memory: TopicMemory
    policy: TopicPolicy
    waiting: Waiting
    archive: ArchivedTurns | None = None
    shown: Callable[[str], str] = str
    now: Callable[[], datetime] = now_utc

    @_TOPICS.get("/topics", "list_topics", audits="text_read")
    async def topics(self, asked: ReadSession, *, include_gone: _WithGone = False) -> list[TopicAnswer]:
        """List the topics of the session, latest activity first. An unknown session has none."""
        session = await self.waiting.session(self.memory, asked)
        found = await self.memory.topics(session)
        gone = await self.memory.gone(session, found, _MOST_GONE) if include_gone else []
        return self._answers([*found.kept, *gone])

    @_TOPICS.get("/topics/search", "search_topics", audits="text_read")
    async def search(self, asked: SimilarTurns, *, include_gone: _WithGone = False) -> list[TopicAnswer]:
        """Search topics of the session by title and summary, best match first. Does not count as an access."""
        session = await self.waiting.session(self.memory, asked)
        within = between(asked.since, asked.until)
        found = await self.memory.find_similar(asked.q, session, asked.top_k, include_gone=include_gone, between=within)
        return self._answers(found)

    @_TOPICS.get("/context", "assemble_topic_context", audits="text_read")
    async def context(self, asked: ReadSession, *, topic: _Topic | None = None) -> list[TopicMessage]:
        """List a topic's summary and unpacked messages as chat messages, oldest first. Does not count as an access."""
        found = await self._found(asked, topic)
        if found is None:
            return []
        note_given(turns := await self.memory.messages(found, include_packed=False))
        said = [TopicMessage(turn.role, turn.content) for turn in turns]
        return said if found.summary is None else [TopicMessage("system", f"Topic summary: {found.summary}"), *said]

    @_TOPICS.get("/messages", "list_topic_messages", audits="text_read")
    async def history(
        self,
        asked: ReadSession,
        *,
        topic: _Topic | None = None,
        include_packed: Annotated[bool, Meta(description="Include packed messages.")] = True,
    ) -> list[TimedMessage]:
        """List all messages of a topic in chronological order, from the index, and older ones from the archive."""
        found = await self._found(asked, topic)
        if found is None:
            return []
        turns = await self.memory.messages(found, include_packed=include_packed)
        messages = {(each.session_id, each.turn): _timed(each) for each in turns}
        if include_packed and len(messages) < found.message_count and caller().may_read(found.app_id):
            messages = {**await self._archived(found), **messages}
        return sorted(messages.values(), key=lambda message: message.timestamp)

    async def _archived(self, topic: RememberedTopic) -> dict[tuple[str, int], TimedMessage]:
        """What the archive has of a topic, by session and turn; nothing where there is none."""
        found: dict[tuple[str, int], TimedMessage] = {}
        if self.archive is None:
            return found
        for part in await self.memory.parts(topic):
            session = SessionName(part.app_id, part.session_id)
            for each in await self.archive.of_topic(session, part.topic_id) or ():
                found[part.session_id, each.turn] = _timed(each, self.shown)
        return found

    @_TOPICS.get("/stats", "get_topic_statistics", audits="text_read")
    async def stats(self, asked: ReadSession, *, topic: _Topic | None = None) -> TopicStats:
        """Return statistics of a topic."""
        found = await self._found(asked, topic)
        if found is None:
            raise not_found("the session has no active topic yet: request it again after a turn")
        note_given([])  # a single topic is no item of a list: the audit counts none
        return _stats(found, self.policy, self.now())

    @_TOPICS.get("/topics/{topic}", "get_topic", audits="text_read")
    async def one(
        self, asked: ReadSession, *, topic: Annotated[Identifier, Meta(description="Id of the topic.")]
    ) -> TopicAnswer:
        """Return one topic, including an evicted or merged one."""
        found = await self.memory.topic(await self.waiting.session(self.memory, asked), topic)
        if found is None:
            raise _unknown_topic()
        note_given([])
        return _answer(found, self.policy, self.now())

    async def _found(self, asked: ReadSession, topic: str | None) -> RememberedTopic | None:
        """A topic, or the active one; None where there is no active one.

        Raises:
            Problem: 404, the named topic is not known.
        """
        found = await self.memory.topic(await self.waiting.session(self.memory, asked), topic)
        if found is None and topic is not None:
            raise _unknown_topic()
        return found

    def _answers(self, topics: Sequence[RememberedTopic]) -> list[TopicAnswer]:
        now = self.now()
        return [_answer(topic, self.policy, now) for topic in topics]


def _timed(said: RememberedTurn | ArchivedMessage, shown: Callable[[str], str] = str) -> TimedMessage:
    return TimedMessage(said.role, shown(said.content), said.timestamp.timestamp())


def _unknown_topic() -> Problem:
    return not_found(
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


def _answer(topic: RememberedTopic, policy: TopicPolicy, now: datetime) -> TopicAnswer:
    return answered(TopicAnswer, topic, **asdict(_stats(topic, policy, now)))
