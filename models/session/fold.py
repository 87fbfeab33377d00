"""Risk memory of one session, turn by turn: start reading here.

`fold` applies one input to a session and returns the new session and the outputs. Stream, replay and back-test use the
same function. `_SessionStep.turn` has the steps of a turn in order.

Rules for exceptional input:

- **Replayed** (offset at or below the state's): no change, no output.
- **Without a number**: it gets the next number and is emitted with it (`TurnNumbered`).
- **Repeat** (without a number, and its `message_id` is among the last 256): only counted as duplicate, also in a closed
  session.
- **Duplicate** (a turn number already folded, among the last 64): only counted as duplicate.
- **Gap**: delays nothing; else a lost turn could delay an alert.
- **Out of order** (a new number among the last 64): counted like any turn; it is inserted into the risk window, and
  into the buffer if it is one of the last ten. Counts, sums, peak, mean, risk window, slope and suspicion equal those
  of the sorted input. It joins the open segment. Modes, alerts, topic changes and the vectors' marks follow the order
  of arrival.
- **Late** (lower than that, or at most the last number before a session closed): counted as late, in the profile and
  the windows, and not folded.
- **After the end**: the state keeps a closed session for `closed_retention`. A higher number reopens it: with a new
  profile that continues the numbering; open windows continue.
- **Erased**: nothing is left, also of a closed session; a later turn begins a new one. An open alert ends with a
  minimal event; there is no other output.
- **A correction** of a turn replaces its text in the state, also of a closed session, and is forwarded to the turn's
  user; results of the old text stay, and the clock does not advance.
- **A label** of an alert changes nothing: it can come days later, and does not extend the session.
- **Triage** of an alert does not extend the session either. A snooze ends when the watermark reaches its end.
- **A judge's answer** for an earlier alert changes only the deadline, as every event does.
- **Time-outs** are identified by their deadline, not by offset: an earlier one than the state's changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct, structs

from models.events import (
    AlertAcknowledged,
    AlertLabelled,
    AlertTriaged,
    OutputEvent,
    Position,
    Role,
    SegmentSummarised,
    SessionEnded,
    SessionErased,
    TopicControl,
    TopicsRecalled,
    Turn,
    TurnCorrected,
    TurnNumbered,
    TurnsJudged,
    UnnumberedTurn,
    UserTurnCorrected,
)
from models.events.base import NAME_CHARS, session_key
from models.events.ids import event_id, named_id
from models.policy import Policy
from models.session.messages import is_known, note
from models.session.outputs import SessionEmission
from models.session.profile import TurnOrder, admit, count_turn
from models.session.risk import RiskStep
from models.session.segments import close_episode, compact
from models.session.state import Closed, Open, SessionState, read_due
from models.session.topics.controls import Moment, take_control
from models.session.topics.conversation_topics import CountedMessage
from models.session.topics.matching import topic_vector
from models.state.buffer import BufferedTurn, encode_turn
from models.state.entity import Emission, is_late, same_fields
from models.text.summary import sentences_in
from models.wire.arrival import SessionInput, SessionTimedOut

__all__ = ["SessionState", "fold", "read_due"]

_SPEAKERS: Final = (Role.USER, Role.ASSISTANT)
"""Roles whose turns are forwarded to user memory (`history`) and project memory."""


def fold(state: SessionState | None, item: SessionInput, policy: Policy) -> tuple[SessionState, list[OutputEvent]]:
    """Fold one input into a session.

    Args:
        state: The session, None if it has no state; consumed.
        item: The input.
        policy: The rules.

    Returns:
        The session after it, with `last_point` set if a turn was counted, and the outputs in order.
    """
    state = state or SessionState.blank()
    state.last_point = None
    if isinstance(item.event, SessionTimedOut):
        return state, _time_out(state, item.event, item, policy)
    if item.position.offset <= state.offset:
        return state, []
    if isinstance(item.event, UnnumberedTurn):
        return _number(state, item, item.event, policy)
    if isinstance(item.event, SessionErased):
        return state, _erase(state, item, item.event, policy)
    if isinstance(item.event, TurnCorrected):
        return state, _correct(state, item, item.event, policy)
    outputs: list[OutputEvent] = []
    if (head := _open_head(state, item)) is not None:
        head.offset = item.position.offset
        if not (isinstance(item.event, AlertLabelled) or _of_earlier_life(head, item.event)):
            outputs = _SessionStep(state, head, item, policy, item.event.timestamp).take(item.event)
    return state, outputs


def _number(
    state: SessionState, item: SessionInput, event: UnnumberedTurn, policy: Policy
) -> tuple[SessionState, list[OutputEvent]]:
    """Fold a turn as the next of its session; a repeat is not counted."""
    head = state.head
    if event.message_id is not None and is_known(state.parts, event.message_id):
        head.offset = item.position.offset
        if isinstance(head, Open):
            head.duplicate_turns += 1
        return state, []
    turn = event.numbered(max(head.last_turn + 1, head.counts_from, item.first_turn))
    state, outputs = fold(state, structs.replace(item, event=turn), policy)
    return state, [_turn_numbered(turn, item.position), *outputs]


def _erase(state: SessionState, item: SessionInput, event: SessionErased, policy: Policy) -> list[OutputEvent]:
    """Erase the session; if it has an open alert, emit its end."""
    head, told = state.head, list[OutputEvent]()
    if isinstance(head, Open) and head.alert is not None:
        emission = SessionEmission(RiskStep(state, head, item, _utc(event.timestamp), policy))
        emission.alert_erased(head.alert)
        told = emission.outputs
    state.become(Closed(closed=True))
    return told


def _correct(state: SessionState, item: SessionInput, event: TurnCorrected, policy: Policy) -> list[OutputEvent]:
    """Replace the text of a turn in the state, and forward the correction to its user's memory.

    A closed session stores no offset: a repeated correction is forwarded again, with the same id.
    """
    if state.head.deadline is not None:
        state.head.offset = item.position.offset
        state.buffer.replace_text(event.turn, event.content)
        state.transcript(policy).replace_text(event.turn, event.content)
        if policy.topics.enabled:
            state.topics(policy).replace_text(event.turn, event.content)
    if not policy.users.enabled:
        return []
    emission = Emission[OutputEvent](
        event.session_id, event.app_id, event.user_id, item.position, _utc(event.timestamp)
    )
    common = emission.common("user_turn_corrected", event.session_id)
    return [UserTurnCorrected(**common, turn=event.turn, content=event.content)]


def _open_head(state: SessionState, item: SessionInput) -> Open | None:
    """The head to fold into; None for input that is too late for a closed session."""
    head, event = state.head, item.event
    if isinstance(head, Open):
        return head
    if isinstance(event, Turn) and event.turn > head.last_turn:
        fresh = Open(
            floor=head.last_turn,
            last_turn=head.last_turn,
            windows=head.windows,
            user_id=event.user_id,
            app_id=event.app_id,
            messages=head.messages,
            counts_from=max(head.counts_from, item.first_turn),
            since=item.position.offset,
        )
        state.become(fresh)
        return fresh
    if head.deadline is not None:
        head.offset = item.position.offset
        head.late_turns += isinstance(event, Turn)
    return None


def _of_earlier_life(head: Open, event: Struct) -> bool:
    """Whether an event answers or restores data from before the session opened, which may be erased."""
    if isinstance(event, TopicsRecalled):
        return event.source.offset < head.since
    return is_late(event, head.since)


def _time_out(state: SessionState, event: SessionTimedOut, item: SessionInput, policy: Policy) -> list[OutputEvent]:
    head = state.head
    if event.reason == "snooze_over":
        return _end_snooze(state, event.deadline, item, policy)
    if head.deadline is None or event.deadline < head.deadline:
        return []
    if isinstance(head, Closed):
        state.become(Closed(closed=True))
        return []
    # The record that moved the watermark is not folded by this: it may be the session's own next turn.
    head.offset = max(head.offset, item.position.offset - 1)
    return _SessionStep(state, head, item, policy, min(event.deadline, item.watermark)).close(event.reason, "paused")


def _end_snooze(state: SessionState, deadline: datetime, item: SessionInput, policy: Policy) -> list[OutputEvent]:
    if not isinstance(head := state.head, Open):
        return []
    head.offset = max(head.offset, item.position.offset - 1)  # as in a time-out
    step = _SessionStep(state, head, item, policy, deadline)
    step.emission.risk(step.risk.end_snooze(deadline))
    return step.emission.outputs


class _SessionStep:
    """Application of one input to an open session."""

    def __init__(
        self, state: SessionState, head: Open, item: SessionInput, policy: Policy, timestamp: datetime
    ) -> None:
        self.state = state
        self.head = head
        self.item = item
        self.policy = policy
        self.timestamp = _utc(timestamp)
        self.watermark = _utc(item.watermark)
        self.windows = state.windows(policy, self.watermark)
        self.risk = RiskStep(state, head, item, self.timestamp, policy)
        self.emission = SessionEmission(self.risk)

    def take(
        self,
        event: Turn | SessionEnded | AlertAcknowledged | AlertTriaged | TurnsJudged | SegmentSummarised | TopicControl,
    ) -> list[OutputEvent]:
        """Fold the event and return the outputs."""
        if isinstance(event, SessionEnded):
            return self.close(event.reason[:NAME_CHARS], "ended")
        arrival = TurnOrder.NEW
        if isinstance(event, Turn):
            arrival = admit(self.head, event.turn, self.policy.session.reorder_reach_turns)
            if arrival is TurnOrder.DUPLICATE:
                self.head.duplicate_turns += 1
                return []
        if not isinstance(event, AlertTriaged):
            self.put_off_deadline()
        if isinstance(event, AlertAcknowledged | AlertTriaged):
            self.emission.risk(self.risk.attend(event))
        elif isinstance(event, TurnsJudged):
            self.emission.risk(self.risk.judge(event))
        elif isinstance(event, SegmentSummarised):
            self.replace_summary(event)
        elif isinstance(event, TopicControl):
            self.take_to_topics(event)
        elif arrival is TurnOrder.LATE:
            self.count_late()
        else:
            self.turn(event)
        return self.emission.outputs

    def turn(self, turn: Turn) -> None:
        """Count a turn: risk, behaviour, mode, alert, memory, topics, user memory, windows; then emit the risk."""
        head, policy = self.head, self.policy
        head.other_user |= turn.user_id != head.user_id
        self.emission.windows(self.windows.close(self.watermark))
        count_turn(head, turn.turn, self.timestamp)
        if turn.message_id is not None:
            note(self.state.parts, turn.message_id, head.messages)
            head.messages += 1
        effects = self.risk.turn(turn)
        remembered = BufferedTurn(turn.turn, turn.role, turn.content, self.timestamp, effects.risk)
        encoded = encode_turn(remembered)
        self.remember(turn.turn, encoded)
        if policy.topics.enabled:
            about = None if self.item.vector is None else topic_vector(self.item.vector)
            now = max(self.timestamp, self.watermark)
            self.add_to_topics(CountedMessage(remembered, encoded, about, _importance(turn), now))
        if policy.users.enabled and turn.role in _SPEAKERS:
            self.emission.user_turn(turn)
        if turn.project_id is not None and policy.projects.enabled and turn.role in _SPEAKERS:
            self.emission.project_turn(turn, turn.project_id)
        raised = effects.alert is not None and effects.alert[1] == "raised"
        self.windows.observe(self.timestamp, self.watermark, effects.risk, alerts=raised)
        due = head.turn_count == 1 or head.turns_since_profile >= policy.profile.every_turns
        self.emission.risk(effects, profile_due=due)
        self.state.last_point = (self.timestamp, effects.risk)

    def count_late(self) -> None:
        """Count a late turn, which is not folded."""
        self.head.late_turns += 1
        self.emission.windows(self.windows.close(self.watermark))
        self.windows.observe_late(self.watermark)

    def put_off_deadline(self) -> None:
        """Extend the session's deadline: every event does, except duplicates and triage."""
        deadline = max(self.timestamp, self.watermark) + self.policy.session.timeout
        self.head.deadline = deadline if self.head.deadline is None else max(self.head.deadline, deadline)

    def remember(self, turn: int, encoded: bytes) -> None:
        """Layers 1 and 2."""
        open_turns, memory = self.head.open_turns, self.policy.memory
        open_turns.append(turn)
        self.state.buffer.insert(turn, encoded, memory.buffer_turns, open_turns)
        if len(open_turns) >= memory.segment_turns:
            self.compact_open_turns(asks=memory.ask)

    def add_to_topics(self, message: CountedMessage) -> None:
        """Topic memory."""
        session_id, at = self.item.event.session_id, self.item.position
        self.state.topics(self.policy).add(
            message,
            lambda: named_id("topic", session_id, at.topic, str(at.partition), str(at.offset)),
            self.emission,
        )

    def take_to_topics(self, event: TopicControl) -> None:
        """What users and their assistants say of topics."""
        if not self.policy.topics.enabled:
            return
        vector = None if self.item.vector is None else topic_vector(self.item.vector)
        moment = Moment(max(self.timestamp, self.watermark), self.head.last_turn, vector)
        take_control(self.state.topics(self.policy), event, moment, self.emission)

    def compact_open_turns(self, *, asks: bool = False) -> None:
        """Close the open segment, complete or not, and ask for a better summary: of a closed session none is taken."""
        if not self.head.open_turns:
            return
        buffer = self.state.buffer
        turns = [buffer.read(turn) for turn in sorted(self.head.open_turns)]
        said = sentences_in([turn.content for turn in turns])
        segment = compact(turns, self.policy, said)
        if self.policy.apps.enabled:
            self.state.note(turns, said, self.policy)
        self.state.add_segment(segment, turns, self.policy)
        self.head.open_turns = []
        self.emission.segment(segment)
        if asks:
            self.emission.segment_request(segment, turns)

    def replace_summary(self, event: SegmentSummarised) -> None:
        """Take a slower summariser's text for a segment that is still in the working memory."""
        memory = self.state.working_memory
        ref = memory.find(event.first_turn, event.last_turn, event.ended_at)
        if ref is not None:
            summary = event.summary[: self.policy.memory.summary_chars]
            self.emission.segment(memory.replace(ref, summary, event.summarised_by[:NAME_CHARS]))

    def close(self, reason: str, status: Literal["ended", "paused"]) -> list[OutputEvent]:
        """Emit everything that is still open, then keep only a marker (risk memory, `cleanup_memory`)."""
        head, policy, emission = self.head, self.policy, self.emission
        emission.windows(self.windows.close(self.watermark) + self.windows.flush())
        self.compact_open_turns()
        if policy.topics.enabled:
            self.state.topics(policy).close(emission)
            if policy.users.enabled and policy.topics.recalled:
                emission.topics_kept()
        past, segments = self.state.past_segments.all(), self.state.working_memory.all()
        episode = close_episode(past, segments, head.repeated_topics, policy)
        emission.episode(reason, episode)
        if policy.apps.enabled:
            emission.conversation_ended(reason, episode, [*past, *segments])
        emission.project_conversations(reason, status)
        emission.risk(self.risk.close(), profile_due=True, still_open=False)
        self.state.become(
            Closed(
                closed=True,
                deadline=self.watermark + policy.session.closed_retention,
                offset=head.offset,
                last_turn=head.last_turn,
                late_turns=head.late_turns,
                windows=head.windows,
                closed_at=self.watermark,
                messages=head.messages,
                counts_from=head.counts_from,
            )
        )
        return self.emission.outputs


def _importance(turn: Turn) -> float | None:
    """What the caller says of the turn's topic in `metadata.importance`; anything but a number of 0-1 says nothing."""
    said = turn.metadata.get("importance") if turn.metadata else None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0.0 <= said <= 1.0:
        return None
    return float(said)


def _utc(time: datetime) -> datetime:
    """State stores instants; an offset kept in memory but not in the state would make outputs depend on batching."""
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def _turn_numbered(turn: Turn, source: Position) -> TurnNumbered:
    """A turn that came without a number, as all others but the fold read it."""
    said = same_fields(turn, TurnNumbered)
    whose = {name: getattr(turn, name) for name in ("session_id", "user_id", "app_id", "timestamp")}
    key = session_key(turn.app_id, turn.session_id)
    return TurnNumbered(id=event_id("turn_numbered", key, source), source=source, **whose, **said)
