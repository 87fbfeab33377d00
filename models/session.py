"""One session, turn by turn: start reading here (seed 000).

`fold` takes the session and one input, and gives the session after it and what is to be emitted. It is the same in the
stream, in replay and in a back-test. What happens to a turn, in order: `_fold_turn`.

Rules for what is not in order:

- **Replayed** (offset at or below the state's): nothing changes, nothing is emitted.
- **Duplicate** (a turn number already folded, among the last 64): counted as duplicate, otherwise without effect.
- **Gap**: delays nothing. Whoever could lose a turn could hold back an alert.
- **Out of order** (a new number among the last 64): counted like any turn; it takes its place in the risk window, and
  in the buffer if it is one of the last ten. Counts, sums, peak, mean, risk window, slope and suspicion are those of the
  sorted input. It joins the segment that is open. Modes, alerts, topic changes and the vectors' marks follow arrival.
- **Late** (lower than that, or at most the last number before a session closed): counted as late, in the profile and
  the windows, and not folded.
- **After the end**: a closed session is remembered for `closed_retention`. A higher number reopens it: a fresh profile
  that continues the numbering; windows that are still open go on.
- **Time-outs** are told apart by their deadline, not by offset: an earlier one than the state's changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from models.arrival import SessionInput, SessionTimedOut
from models.events import AlertAcknowledged, Role, SegmentSummarised, SessionEnded, SessionOutput, Slope, Turn
from models.ids import named_id
from models.memory.buffer import BufferedTurn
from models.memory.episodic import close_episode
from models.memory.segments import compact
from models.memory.vectors import Mark
from models.policy import Policy
from models.risk.alerts import Cause, Situation, acknowledge, after_turn, resolve
from models.risk.modes import next_mode
from models.risk.profile import Arrival, admit, insert_risk, observe_behaviour
from models.risk.signals import Combination, combine
from models.risk.slope import fit_slope
from models.risk.windows import Windows
from models.session_outputs import Emission
from models.session_state import Closed, Open, SessionState, read_deadline
from models.text.features import is_refusal

__all__ = ["SessionState", "fold", "read_deadline"]

_UPSTREAM = "upstream"
_RULES = "rules"


def fold(state: SessionState | None, item: SessionInput, policy: Policy) -> tuple[SessionState, list[SessionOutput]]:
    """Fold one input into a session.

    Args:
        state: The session, or None when nothing is stored of it; consumed.
        item: The input.
        policy: The rules.

    Returns:
        The session after it, with `last_point` set if a turn was counted, and the outputs in order.
    """
    state = state or SessionState.blank()
    state.last_point = None
    head, event = state.head, item.event
    if isinstance(event, SessionTimedOut):
        return state, _time_out(state, head, event, item, policy)
    if item.position.offset <= head.offset:
        return state, []
    if isinstance(head, Closed):
        if not isinstance(event, Turn) or event.turn <= head.last_turn:
            _count_after_end(head, item)
            return state, []
        head = _reopen(state, head, event)
    head.offset = item.position.offset
    emission = Emission(head, item, _utc(event.timestamp))
    match event:
        case Turn():
            arrival = admit(head, event.turn, policy.session.reorder_reach_turns)
            if arrival is Arrival.DUPLICATE:
                head.duplicate_turns += 1
                return state, []
            _refresh_deadline(head, item, event.timestamp, policy)
            if arrival is Arrival.LATE:
                _count_late(head, item, policy, emission)
            else:
                _fold_turn(state, head, event, item, policy, emission)
        case SessionEnded():
            _close(state, head, item, policy, emission, event.reason)
        case AlertAcknowledged():
            _refresh_deadline(head, item, event.timestamp, policy)
            _acknowledge(state, head, event, policy, emission)
        case SegmentSummarised():
            _refresh_deadline(head, item, event.timestamp, policy)
            _replace_summary(state, event, policy, emission)
    return state, emission.outputs


def _fold_turn(
    state: SessionState, head: Open, turn: Turn, item: SessionInput, policy: Policy, emission: Emission
) -> None:
    windows = Windows(policy.window, head.windows)
    emission.windows(windows.close(item.watermark))
    timestamp = _utc(turn.timestamp)
    _count_turn(head, turn.turn, timestamp)
    behaves = turn.role in policy.risk.scored_roles
    risk = _bounded(turn.risk if turn.risk is not None or not behaves else item.risk)
    if risk is not None:
        insert_risk(head, turn.turn, risk, policy.risk.trajectory_window)
    if behaves:
        risky = risk is not None and risk >= policy.risk.risky_turn
        observe_behaviour(state, head, turn, vector=item.vector, risky=risky, policy=policy)
    elif turn.role is Role.ASSISTANT and turn.turn > head.last_user_turn >= 0 and is_refusal(turn.content):
        state.vectors(policy.memory.recent_vectors).mark(head.last_user_turn, Mark.REFUSED)

    # A turn that is neither scored nor behaviour moves no signal but by the count it is divided by.
    changed_mode = False
    if behaves or risk is not None:
        score = _measure(head, policy)[1].score
        changed_mode = _move_mode(head, score, policy)
        if risk is not None:
            source = _RULES if turn.risk is None else _UPSTREAM
            head.risk_points.append((turn.turn, timestamp, risk, score, head.mode, source))
    _remember(state, head, BufferedTurn(turn.turn, turn.role, turn.content, timestamp, risk), policy, emission)
    cause = _move_alert(state, head, item, risk, policy, emission)
    windows.observe(timestamp, item.watermark, risk, alerts=cause == "raised")
    if changed_mode or cause or head.turns_since_profile >= policy.profile.every_turns:
        emission.profile(*_measure(head, policy), policy, still_open=True)
    state.last_point = (timestamp, risk)


def _count_turn(head: Open, number: int, timestamp: datetime) -> None:
    if head.turn_count == 0:
        head.started_at = head.latest_at = timestamp
        head.first_turn = number
    head.started_at = min(head.started_at, timestamp)
    head.latest_at = max(head.latest_at, timestamp)
    head.first_turn = min(head.first_turn, number)
    head.turn_count += 1
    head.turns_since_profile += 1
    head.turns_in_mode += 1


def _measure(head: Open, policy: Policy) -> tuple[Slope, Combination]:
    slope = fit_slope(head.risks)
    return slope, combine(
        risks=head.risks,
        slope=slope,
        behaviour=head.behaviour,
        turn_count=head.turn_count,
        repeated_topics=head.repeated_topics,
        patterns=head.patterns,
        policy=policy.risk,
    )


def _move_mode(head: Open, score: float, policy: Policy) -> bool:
    mode = next_mode(head.mode, score, head.turns_in_mode, policy.modes)
    if mode is head.mode:
        return False
    head.mode, head.turns_in_mode = mode, 0
    head.mode_transitions.append((head.last_turn, mode))
    del head.mode_transitions[: -policy.profile.mode_transitions]
    return True


def _remember(state: SessionState, head: Open, turn: BufferedTurn, policy: Policy, emission: Emission) -> None:
    head.open_turns.append(turn.turn)
    state.buffer.insert(turn, policy.memory.buffer_turns, head.open_turns)
    if len(head.open_turns) >= policy.memory.segment_turns:
        _compact_open_turns(state, head, policy, emission)


def _compact_open_turns(state: SessionState, head: Open, policy: Policy, emission: Emission) -> None:
    if not head.open_turns:
        return
    buffer = state.buffer
    segment = compact([buffer.read(turn) for turn in sorted(head.open_turns)], policy)
    state.working_memory.append(segment, policy.memory.segments)
    head.open_turns = []
    emission.segment(segment)


def _move_alert(
    state: SessionState,
    head: Open,
    item: SessionInput,
    risk: float | None,
    policy: Policy,
    emission: Emission,
) -> Cause | None:
    at = item.position
    head.alert, cause = after_turn(
        head.alert,
        Situation(head.latest_at, head.mode, head.scored_turns, risk),
        policy.alerts,
        lambda: named_id("alert", item.event.session_id, at.topic, str(at.partition), str(at.offset)),
    )
    if head.alert is None or cause is None:
        return None
    head.alerts_raised += cause == "raised"
    slope, combination = _measure(head, policy)
    emission.alert(head.alert, cause, slope, combination, state.vectors(policy.memory.recent_vectors), policy)
    if cause == "resolved":
        head.alert = None
    return cause


def _acknowledge(state: SessionState, head: Open, event: AlertAcknowledged, policy: Policy, emission: Emission) -> None:
    head.alert, cause = acknowledge(head.alert, event.alert_id)
    if head.alert is None or cause is None:
        return
    slope, combination = _measure(head, policy)
    emission.alert(head.alert, cause, slope, combination, state.vectors(policy.memory.recent_vectors), policy)
    emission.profile(slope, combination, policy, still_open=True)


def _replace_summary(state: SessionState, event: SegmentSummarised, policy: Policy, emission: Emission) -> None:
    memory = state.working_memory
    ref = memory.find(event.first_turn, event.last_turn)
    if ref is not None:
        summary = event.summary[: policy.memory.summary_chars]
        emission.segment(memory.replace(ref, summary, event.summarised_by[:_NAME_CHARS]))


def _count_late(head: Open, item: SessionInput, policy: Policy, emission: Emission) -> None:
    head.late_turns += 1
    windows = Windows(policy.window, head.windows)
    emission.windows(windows.close(item.watermark))
    windows.observe_late(item.watermark)


def _time_out(
    state: SessionState, head: Open | Closed, event: SessionTimedOut, item: SessionInput, policy: Policy
) -> list[SessionOutput]:
    if head.deadline is None or event.deadline < head.deadline:
        return []
    # The record that moved the watermark is not folded by this: it may be the session's own next turn.
    head.offset = max(head.offset, item.position.offset - 1)
    if isinstance(head, Closed):
        # Forgotten: what comes next meets a session of which nothing is known, as it would after a restart.
        state.become(Closed(closed=True, offset=head.offset))
        return []
    emission = Emission(head, item, _utc(event.deadline))
    _close(state, head, item, policy, emission, "timed_out")
    return emission.outputs


def _close(
    state: SessionState, head: Open, item: SessionInput, policy: Policy, emission: Emission, reason: str
) -> None:
    """Everything that is still open is emitted, then only a marker is kept (seed 000, `cleanup_memory`)."""
    emission.windows(Windows(policy.window, head.windows).flush())
    _compact_open_turns(state, head, policy, emission)
    episode = close_episode(state.working_memory.all(), head.repeated_topics, policy)
    emission.episode(reason[:_NAME_CHARS], episode.text, episode.key_topics)
    slope, combination = _measure(head, policy)
    if head.alert is not None:
        ring = state.vectors(policy.memory.recent_vectors)
        emission.alert(resolve(head.alert), "resolved", slope, combination, ring, policy)
    emission.profile(slope, combination, policy, still_open=False)
    state.become(
        Closed(
            closed=True,
            deadline=_utc(item.watermark) + policy.session.closed_retention,
            offset=head.offset,
            last_turn=head.last_turn,
            late_turns=head.late_turns,
            windows=head.windows,
            closed_at=_utc(item.watermark),
        )
    )


def _count_after_end(head: Closed, item: SessionInput) -> None:
    if head.deadline is not None:
        head.offset = item.position.offset
        head.late_turns += isinstance(item.event, Turn)


def _reopen(state: SessionState, closed: Closed, turn: Turn) -> Open:
    head = Open(
        floor=closed.last_turn,
        last_turn=closed.last_turn,
        windows=closed.windows,
        user_id=turn.user_id,
        app_id=turn.app_id,
    )
    state.become(head)
    return head


def _refresh_deadline(head: Open, item: SessionInput, timestamp: datetime, policy: Policy) -> None:
    deadline = max(_utc(timestamp), _utc(item.watermark)) + policy.session.timeout
    head.deadline = deadline if head.deadline is None else max(head.deadline, deadline)


def _bounded(risk: float | None) -> float | None:
    """Scorers are plug-ins: what they give outside 0-1, or as NaN, must not poison the sums."""
    if risk is None or 0.0 <= risk <= 1.0:
        return risk
    return 1.0 if risk > 1.0 else 0.0


def _utc(time: datetime) -> datetime:
    """State stores instants; an offset kept in memory but not in the state would make outputs depend on batching."""
    return time if time.tzinfo is UTC else time.astimezone(UTC)


_NAME_CHARS = 256
