"""Changes that people make to a session's topics and turns: importance, tags, feedback, corrections.

Each is an event on `turns.v1`, under its session's key and on its partition, so it has its place in the session's
order. It is answered once it is in the log; readers see what comes of it a moment later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from models.events import FeedbackGiven, ProfileUpdated, SessionName, TopicAdjusted, TurnCorrected
from models.events.base import MAX_CONTENT_BYTES
from models.events.fields import Identifier, Ratio, TurnNumber
from models.events.topics import TURNS
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.commands import EventWriter, read_only
from streams.api.live.messages import Written
from streams.api.sessions.turns import OfSession, session_of
from streams.archive.history import ArchivedTurn, ArchivedTurns
from streams.http.audit import require_text
from streams.http.field_rules import Rules, given, some_of
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group
from streams.http.security import caller
from streams.index.collections import OF_EVENTS, RememberedTurn
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.kafka.records import input_record
from streams.ports import VectorStore
from streams.settings.http import TokenRole

MOST_TAGS = 64
_CHANGES = Group("topics", "Topics of one session.", prefix="/v1/sessions/{session_id:path}", role=TokenRole.WRITER)


class AdjustTopic(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to a topic. Omitted and null fields stay unchanged."""

    rules: ClassVar[Rules] = some_of(*map(given, ("importance", "tags")))
    importance: Ratio | None = None
    tags: Annotated[list[Identifier], Meta(max_length=MOST_TAGS, description="Replaces the old tags.")] | None = None


class GiveFeedback(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A user's rating of an answer, which adjusts the importance of its topic."""

    value: Annotated[float, Meta(ge=-1.0, le=1.0, description="From -1 (disliked) to 1 (liked).", examples=[1.0])]
    topic: Annotated[Identifier, Meta(description="Default: that of `turn`, or the active topic.")] | None = None
    turn: Annotated[TurnNumber, Meta(description="Number of the rated turn. Default: see `topic`.")] | None = None


class CorrectTurn(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Correction of a turn's text."""

    content: Annotated[str, Meta(max_length=MAX_CONTENT_BYTES, description="New text, at most 256 KiB of UTF-8.")]
    reason: Annotated[str, Meta(max_length=1_000, description="Reason, for the archive.")] = ""


@dataclass(frozen=True)
class SessionChanges:
    """Routes that change what is known of a session.

    Args:
        turns: What was said, as indexed.
        topics: What it was about.
        store: Profiles of sessions.
        writer: Where events go; None: this role takes none.
        archive: Where older turns are; None: nowhere.
        now: The clock of events.
    """

    turns: SessionVectorMemory
    topics: TopicMemory
    store: VectorStore
    writer: EventWriter | None
    archive: ArchivedTurns | None
    now: Callable[[], datetime] = now_utc

    @_CHANGES.put("/topics/{topic}", "adjust_topic", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def adjust(
        self,
        asked: OfSession,
        body: AdjustTopic,
        *,
        topic: Annotated[Identifier, Meta(description="Id of the topic.")],
    ) -> Accepted[Written]:
        """Set the importance or the tags of a topic.

        Raises:
            Problem: 404 no such topic that the session keeps; 409 the session has ended.
        """
        if body == AdjustTopic():
            raise invalid_field("", "has no change: give importance or tags")
        session = await session_of(self.turns, asked.session_id, asked.app_id)
        await self._require_topic(session, topic)
        await self._require_open(session)
        event = TopicAdjusted(
            **session._asdict(),
            timestamp=self.now(),
            topic_id=topic,
            importance=body.importance,
            tags=body.tags,
        )
        return await self._write(event, session)

    @_CHANGES.post("/feedback", "give_feedback", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def feedback(self, asked: OfSession, body: GiveFeedback) -> Accepted[Written]:
        """Record that a user liked or disliked an answer.

        Raises:
            Problem: 404 no such topic or turn; 409 the session has ended.
        """
        session = await session_of(self.turns, asked.session_id, asked.app_id)
        if body.topic is not None:
            await self._require_topic(session, body.topic)
        elif body.turn is not None:
            await self._turn(session, body.turn)
        await self._require_open(session)
        event = FeedbackGiven(
            **session._asdict(), timestamp=self.now(), value=body.value, topic_id=body.topic, turn=body.turn
        )
        return await self._write(event, session)

    @_CHANGES.put("/turns/{turn}", "correct_turn", audits="acted", role=TokenRole.OPERATOR)
    async def correct(
        self, asked: OfSession, body: CorrectTurn, *, turn: Annotated[TurnNumber, Meta(description="Turn number.")]
    ) -> Accepted[Written]:
        """Correct the text of a turn, also long after the session's end. The old text stays in the archive.

        Readers see the new text. Data derived from the old text (risk, alerts, summaries, episodes, memories of
        projects and apps) is unchanged. Facts of the user are extracted again from the new text.

        Raises:
            Problem: 403 no permission to read text; 404 the turn never came, or was erased.
        """
        require_text()
        if len(body.content.encode()) > MAX_CONTENT_BYTES:
            raise invalid_field("content", f"has more than {MAX_CONTENT_BYTES} bytes of UTF-8")
        session = await session_of(self.turns, asked.session_id, asked.app_id)
        said = await self._turn(session, turn)
        event = TurnCorrected(
            session_id=said.session_id,
            app_id=said.app_id,
            user_id=said.user_id,
            timestamp=self.now(),
            turn=said.turn,
            content=body.content,
            by=caller().name,
            reason=body.reason,
        )
        return await self._write(event, session, said.partition)

    async def _require_open(self, session: SessionName) -> None:
        """Let through what changes a session that goes on; one that is unknown here may have begun a moment ago."""
        found = await OF_EVENTS[ProfileUpdated].latest(self.store, session._asdict(), 1)
        if found and not found[0].open:
            detail = "the session has ended, and so have its topics: change them after its next turn"
            raise Problem(HTTPStatus.CONFLICT, "session_ended", detail)

    async def _turn(self, session: SessionName, number: int) -> RememberedTurn | ArchivedTurn:
        for each in await self.turns.turns_numbered(session, [number]):
            return each
        if self.archive is not None and caller().may_read(session.app_id):
            for older in await self.archive.turns(session, number, 1) or []:
                if older.turn == number:
                    return older
        raise not_found("the session has no such turn: it was never received, or was erased")

    async def _require_topic(self, session: SessionName, topic: str) -> None:
        found = await self.topics.topic(session, topic)
        if found is None or not found.kept:
            raise not_found("the session has no such open topic: GET /v1/sessions/{id}/topics lists its open topics")

    async def _write(
        self, event: TopicAdjusted | FeedbackGiven | TurnCorrected, session: SessionName, partition: int | None = None
    ) -> Accepted[Written]:
        """Write where the session stands: its producer may partition otherwise than Turntide does."""
        if self.writer is None:
            raise read_only()
        if partition is None:
            partition = next((each.partition for each in await self.turns.last_turns(session, 1)), None)
        return Accepted(answered(Written, await self.writer.write(TURNS.name, input_record(event, partition))))
