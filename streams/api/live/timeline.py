"""Timeline of one session, put together from the board and from what is indexed of it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, structs

from models.events import Mode, ModeTransition, SessionName
from models.policy import NotifyPolicy
from models.risk.telling import counterfactual, strongest, worst_turn
from streams.api.answers import answered
from streams.api.live import messages
from streams.api.live.board import LiveBoard
from streams.api.live.known import MOST_SEGMENTS, KnownAlert
from streams.api.live.routes import LIVE, AlertId
from streams.api.sessions.turns import OfSession, session_of
from streams.http.audit import note, note_ids
from streams.http.problems import invalid_field, not_found
from streams.http.security import caller
from streams.index.collections import RememberedTopic, RememberedTurn
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.masking.credentials import without_secrets

MOST_TURNS = 1_000
"""Of a timeline, the last ones; also of turns with text in one answer."""
MOST_QUOTED_CHARS = 500
MOST_GONE_TOPICS = 50
_DIGITS = 4
MOST_EPISODES = 100
"""Of the user, among which those of the session are looked for."""


class SimilarSession(Struct, frozen=True, kw_only=True):
    """A session similar to that of an alert.

    Attributes:
        turn: Number of its turn that is most similar to a turn of the alert's evidence.
        similarity: Cosine similarity of the two turns.
        alert: Alert of this session, if known.
    """

    app_id: str
    session_id: str
    user_id: str
    turn: int
    similarity: float
    alert: messages.RowAlert | None


class SimilarSessions(Struct, frozen=True, kw_only=True):
    """Sessions similar to that of an alert, most similar first; without text."""

    sessions: list[SimilarSession]


@dataclass(frozen=True)
class TimelineReader:
    """Reads for the caller of a request: the memories give only the caller's apps.

    Args:
        board: Sessions and alerts.
        turns: What was said.
        topics: What it was about.
        users: Facts and episodes of users.
        policy: What to do about alerts.
        quoted: Masks what an alert quotes.
    """

    board: LiveBoard
    turns: SessionVectorMemory
    topics: TopicMemory
    users: UserMemory
    policy: NotifyPolicy
    quoted: Callable[[str], str] = without_secrets

    @LIVE.get("/texts/{session_id:path}", "list_session_texts", audits="text_read")
    async def said(
        self,
        asked: OfSession,
        *,
        first: Annotated[int, Meta(ge=0, le=2**53, description="Number of the first turn.")] = 0,
        last: Annotated[int, Meta(ge=0, le=2**53, description="Number of the last turn, at most `first` + 999.")] = 199,
    ) -> messages.Said:
        """Return turns of a session with their text. Turns that are not indexed, or no longer, are omitted.

        Raises:
            Problem: 422, too many, or the last before the first.
        """
        if not 0 <= last - first < MOST_TURNS:
            raise invalid_field("last", f"must be at least `first` and at most `first` + {MOST_TURNS - 1}")
        session = await session_of(self.turns, asked.session_id, asked.app_id)
        found = await self.turns.turns_numbered(session, range(first, last + 1))
        return messages.Said(turns=[answered(messages.SaidTurn, each) for each in found])

    @LIVE.get("/sessions/{session_id:path}", "get_session_timeline")
    async def timeline(
        self,
        asked: OfSession,
        *,
        text: Annotated[
            bool,
            Meta(description="Include text: titles, facts, summaries and notes. Needs text permission; audited."),
        ] = False,
    ) -> messages.Timeline:
        """Return one session with its turns, modes, segments, topics, facts, episodes, and alerts with evidence.

        Raises:
            Problem: 404, the board does not know the session, or it is another tenant's.
        """
        asked_by = note("text_read") if text else caller()
        if (app_id := asked_by.app_of(asked.app_id)) is None:
            session = self.board.named(asked.session_id, asked_by.may_read)
        else:
            session = SessionName(app_id, asked.session_id)
        row = None if session is None else self.board.row(session)
        if session is None or row is None:
            raise not_found("no such session within live.window; `turntide query` finds older sessions in the archive")
        note_ids({"app_id": session.app_id}.get)
        turns, topics, facts, episodes = await asyncio.gather(
            self.turns.last_turns(session, MOST_TURNS),
            self._all_topics(session),
            self.users.facts(row.app_id, row.user_id, include_past=True),
            self.users.episodes(row.app_id, row.user_id, limit=MOST_EPISODES),
        )
        alerts = self.board.alerts(session)
        segments = await self.turns.segments(session, MOST_SEGMENTS) if text else []
        summaries = {each.first_turn: each.summary for each in segments}
        return messages.Timeline(
            session=row,
            turns=_turns(turns, alerts),
            modes=_modes(self.board.modes(session), {turn.turn: turn.timestamp for turn in turns}),
            segments=[
                answered(messages.Segment, each, summary=summaries.get(each.first_turn))
                for each in self.board.segments(session)
            ],
            topics=[_topic(topic, text=text) for topic in topics],
            facts=[
                answered(messages.TimelineFact, fact, value=fact.value if text else None)
                for fact in facts
                if fact.session_id == session.session_id
            ],
            episodes=[
                answered(messages.TimelineEpisode, each, summary=each.summary if text else None)
                for each in episodes
                if any(run.session_id == row.session_id for run in each.turns)
            ],
            alerts=[
                alert_detail(alert, self.policy, text=text, quote=self._quote(alert, turns) if text else None)
                for alert in alerts
            ],
        )

    @LIVE.get("/alerts/{alert_id:path}/similar", "find_similar_sessions")
    async def similar(
        self,
        *,
        alert_id: AlertId,
        limit: Annotated[int, Meta(ge=1, le=50, description="Maximum number of items.")] = 10,
    ) -> SimilarSessions:
        """Find indexed sessions of the alert's app with turns similar to its evidence. Returns no text.

        Raises:
            Problem: 404, the board does not know the alert, or it is another tenant's.
        """
        alert = self.board.alert(alert_id)
        if alert is None or not caller().may_read(alert.event.app_id):
            raise not_found("no such alert within live.window; `turntide alerts list` shows older alerts")
        note_ids({"app_id": alert.event.app_id}.get)
        session = SessionName(alert.event.app_id, alert.event.session_id)
        found = await self.turns.sessions_like(session, [each.turn for each in alert.event.evidence], limit)
        rows = [(turn, self.board.row(SessionName(turn.app_id, turn.session_id))) for turn in found]
        return SimilarSessions(
            sessions=[
                answered(
                    SimilarSession,
                    turn,
                    similarity=round(turn.similarity or 0.0, _DIGITS),
                    alert=None if row is None else row.alert,
                )
                for turn, row in rows
            ]
        )

    def _quote(self, alert: KnownAlert, turns: Sequence[RememberedTurn]) -> str | None:
        """What was said in the alert's worst turn, masked before it is cut; None if the turn is not kept any more."""
        worst = worst_turn(alert.event)
        said = next((each.content for each in turns if each.turn == worst), None)
        return None if said is None else self.quoted(said)[:MOST_QUOTED_CHARS]

    async def _all_topics(self, session: SessionName) -> list[RememberedTopic]:
        found = await self.topics.topics(session)
        return [*found.kept, *await self.topics.gone(session, found, MOST_GONE_TOPICS)]


def _turns(turns: Sequence[RememberedTurn], alerts: Sequence[KnownAlert]) -> list[messages.TimelineTurn]:
    resting: dict[int, list[str]] = {}
    for alert in alerts:
        for number in dict.fromkeys(each.turn for each in alert.event.evidence):
            resting.setdefault(number, []).append(alert.event.alert_id)
    return [answered(messages.TimelineTurn, each, evidence=resting.get(each.turn, [])) for each in turns]


def _modes(transitions: Sequence[ModeTransition], times: Mapping[int, datetime]) -> list[messages.ModeChange]:
    """The modes, each with the one before; a session begins calm."""
    modes = [Mode.CALM, *(each.mode for each in transitions)]
    return [
        messages.ModeChange(turn=each.turn, from_mode=before.value, to_mode=each.mode.value, at=times.get(each.turn))
        for before, each in zip(modes, transitions, strict=False)
        if each.mode is not before
    ]


def _topic(topic: RememberedTopic, *, text: bool) -> messages.TimelineTopic:
    state = "gone" if not topic.kept else "active" if topic.active else "kept"
    return answered(
        messages.TimelineTopic, topic, topic=topic.topic_id, title=topic.title if text else None, state=state
    )


def alert_detail(
    alert: KnownAlert, policy: NotifyPolicy, *, text: bool = False, quote: str | None = None
) -> messages.AlertDetail:
    """An alert with its grounds: the signals that made its score, as its reason has them.

    Without a model those of the source formulas, and neither weights nor a counterfactual.
    """
    row, judged = alert.row(), alert.event.escalation
    made = {each.name: each.share for each in alert.event.signals}
    if judged is not None:
        raising = {each.signal: each.log_odds for each in strongest(judged.contributions) if each.log_odds > 0}
        made = {name: added / sum(raising.values()) for name, added in raising.items()}
    return answered(
        messages.AlertDetail,
        row,
        notes=alert.notes if text else [structs.replace(note, note=None) for note in alert.notes],
        next_step=policy.next_step(alert.event),
        quote=quote,
        signals=[messages.Share(name=name, share=share) for name, share in made.items()],
        contributions=[]
        if judged is None
        else [messages.Weight(turn=each.turn, weight=each.log_odds) for each in judged.turns],
        counterfactual=None if judged is None else counterfactual(judged),
    )
