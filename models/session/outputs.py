"""Events that a session emits, built from its state: about turns, memories and risk."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from msgspec import Struct, structs

from models import events
from models.events.ids import named_id
from models.policy.digest import policy_digest
from models.risk.alerts import Cause, OpenAlert, resolve
from models.risk.harm import harm_of
from models.risk.signals import suspicion_score
from models.risk.windows import ClosedWindow
from models.session.explain import evidence, explain, explain_judgement
from models.session.risk import Effects, RiskStep
from models.session.segments import KeptSegment, PastSegment
from models.session.topics.controls import take_news
from models.session.topics.state import Damage, TopicChange
from models.state import entity
from models.state.buffer import BufferedTurn
from models.state.decay import half_life, memory_type, priority
from models.text.language import UNSUPPORTED
from models.text.summary import Summary
from models.text.words import estimate_tokens, latest_that_fit, utf8_bytes
from models.wire.arrival import SessionTimedOut

TOPICS_STAGE = "topics"
"""Stage of a dead letter whose bytes are not an input, so it cannot be replayed."""
_TIMED_OUT_ORDINAL = 1 << 20
"""A time-out is caused by the record that moved the watermark. This can be the session's own next turn, whose outputs
then have the same source: ordinals from here on separate the two, and its multiples sessions with the same id."""


_FINGERPRINT = "alert-fingerprint"
_EARLIER = 4
"""At most one part in this many of a language model's input consists of summaries of earlier turns."""


def forms_of(event: events.OutputEvent) -> tuple[events.OutputEvent, ...]:
    """The event, and its form in releases up to 0.2, whose alert fingerprints did not include the app."""
    if not isinstance(event, events.AlertChanged):
        return (event,)
    return event, structs.replace(event, fingerprint=named_id(_FINGERPRINT, event.session_id))


class SessionEmission(entity.Emission[events.OutputEvent]):
    """Outputs of one fold, in order.

    Args:
        step: The input and the session; an output has the session's state at the time of its creation.
    """

    def __init__(self, step: RiskStep) -> None:
        self._head, self._item = step.head, step.item
        session_id = step.item.event.session_id
        super().__init__(session_id, step.head.app_id, step.head.user_id, step.item.position, step.timestamp)
        if isinstance(event := step.item.event, SessionTimedOut):
            self.first_ordinal = _TIMED_OUT_ORDINAL * (1 + event.namesakes)
        self._step = step
        self._state = step.state
        self._policy = step.policy

    # --- of turns and memories

    def windows(self, closed: list[ClosedWindow]) -> None:
        """Emit an event for each closed window."""
        for window in closed:
            self.outputs.append(
                events.WindowClosed(
                    **self._common("window_closed"),
                    **structs.asdict(window.counts),
                    scope="session",
                    window_start=window.start,
                    window_end=window.end,
                    turns_per_minute=window.turns_per_minute,
                )
            )

    def segment(self, segment: KeptSegment) -> None:
        """Emit a compacted segment, or its new summary."""
        self.outputs.append(
            events.SegmentCompacted(
                **self._common("segment_compacted"),
                **structs.asdict(segment),
                first_turn=segment.first_turn,
                last_turn=segment.last_turn,
                tokens_after=estimate_tokens(segment.summary),
                bytes_after=utf8_bytes(segment.summary),
            )
        )

    def segment_request(self, segment: KeptSegment, turns: Sequence[BufferedTurn]) -> None:
        """Request a segment's summary from a slower summariser."""
        chars = self._policy.memory.asked_chars
        self.outputs.append(
            events.SegmentRequested(
                **self._common("segment_requested"),
                first_turn=segment.first_turn,
                last_turn=segment.last_turn,
                turns=[events.RequestedTurn(turn.role, turn.content[:chars]) for turn in turns],
                ended_at=segment.ended_at,
            )
        )

    def user_turn(self, turn: events.Turn) -> None:
        """Forward a turn to its user's memory."""
        common = self._common("user_turn_added", turn)
        self.outputs.append(
            events.UserTurnAdded(
                **common, turn=turn.turn, role=turn.role, content=turn.content, language=self._head.language
            )
        )

    def project_turn(self, turn: events.Turn, project_id: str) -> None:
        """Forward a turn to its project's memory."""
        projects, place = self._head.projects, [turn.app_id, project_id]
        if place not in projects and len(projects) < self._policy.projects.projects_of_session:
            self._head.projects = [*projects, place]
        common = self._common("project_turn_added", turn)
        self.outputs.append(
            events.ProjectTurnAdded(
                **common, project_id=project_id, turn=turn.turn, role=turn.role, content=turn.content
            )
        )

    def project_conversations(self, reason: str, status: Literal["ended", "paused"]) -> None:
        """Report the closed session to its projects, up to a maximum number."""
        last_turn = self._head.last_turn
        for app_id, project_id in self._head.projects:
            common = self._common("project_conversation_ended")
            common["app_id"] = app_id
            self.outputs.append(
                events.ProjectConversationEnded(
                    **common, project_id=project_id, status=status, reason=reason, last_turn=last_turn
                )
            )

    def topic(self, change: TopicChange) -> None:
        """Emit the whole of a new, changed or removed topic; its only text is title and summary."""
        policy, slot = self._policy.topics, change.slot
        store = self._state.topics(self._policy).store
        topic, summary = store.topic(slot), store.summary(slot)
        now = max(self._step.timestamp, self._item.watermark)
        packed = topic.packed
        self.outputs.append(
            events.TopicChanged(
                **self._common("topic_changed"),
                **_read(topic, _OF_TOPIC),
                cause=change.cause,
                detail=change.detail,
                active=slot == store.index.active,
                kept=change.kept,
                turn=self._head.last_turn,
                priority=priority(topic.importance, now - topic.last_active_at, topic.access_count, policy),
                half_life_days=half_life(topic.access_count, policy) / timedelta(days=1),
                memory_type=memory_type(topic.access_count, policy),
                tags=list(topic.tags),
                active_turns=store.active_turns(slot),
                packed_turns=[turn for block in packed for turn in store.block_turns(slot, block)],
                released_messages=topic.released,
                packed_bytes=sum([block.packed_bytes for block in packed]),
                summary=None if summary is None else summary.text,
                summarised_by=None if summary is None else summary.summarised_by,
                session_topics=len(store.index.slots) - (not change.kept),
                compaction=change.compaction,
                released_runs=store.runs(slot),
                recalled_messages=topic.recalled,
            )
        )

        if change.packed and policy.ask:
            self.outputs.append(
                events.TopicSummaryRequested(
                    **self._common("topic_summary_requested"),
                    topic_id=topic.topic_id,
                    packed=topic.away,
                    summary=change.before,
                    turns=[
                        events.RequestedTurn(each.role, each.content[: policy.asked_chars]) for each in change.packed
                    ],
                )
            )

    def topics_kept(self) -> None:
        """Hand the topics of the closed session to its user's memory; a session with several users hands over none."""
        news = [] if self._head.other_user else take_news(self._state.topics(self._policy))
        for at in range(0, len(news), _TOPICS_AT_ONCE):
            topics = news[at : at + _TOPICS_AT_ONCE]
            self.outputs.append(events.TopicsKept(**self._common("topics_kept"), topics=topics))

    def damage(self, damage: Damage) -> None:
        """Emit a dead letter with a packed history that is not fully readable."""
        item = self._item
        self.outputs.append(
            events.DeadLetter(
                id=self.common("dead_letter")["id"],
                **structs.asdict(item.position),
                stage=TOPICS_STAGE,
                reason="damaged_history",
                detail=f"{damage.detail}; turns {damage.turns} left the topic, the archive has them",
                key=item.event.session_id.encode(),
                value=damage.data,
                headers=[],
                appended_at=item.watermark,
            )
        )

    def episode(self, reason: str, summary: Summary) -> None:
        """Emit the episode of the closed session."""
        head = self._head
        self.outputs.append(
            events.EpisodeClosed(
                **self._common("episode_closed"),
                **_read(head, _OF_EPISODE),
                reason=reason,
                summary=summary.text,
                key_topics=summary.key_topics,
                ended_at=head.latest_at,
                alerts=head.alerts_raised,
            )
        )

    def conversation_ended(self, reason: str, summary: Summary, said: Sequence[PastSegment | KeptSegment]) -> None:
        """Offer the closed session as an app memory: one event for each space of the policy.

        A language model gets all turns, or the last ones that fit, with summaries of the earlier ones (`said`).

        A session with several users belongs to no user's space, so that no data passes to another user.
        """
        head, policy = self._head, self._policy.apps
        notables = self._state.notables(self._policy)
        turns = self._state.transcript(self._policy).all() if policy.ask else []
        before = [each.summary for each in said if turns and each.first_turn < turns[0].turn]
        while sum(map(estimate_tokens, before)) > policy.asked_tokens // _EARLIER:
            before = before[1::2]  # spread over all of it
        left = policy.asked_tokens - sum(map(estimate_tokens, before))
        turns = latest_that_fit(turns, left, lambda turn: estimate_tokens(turn.content))
        for space in policy.spaces:
            if space == "user" and head.other_user:
                continue
            self.outputs.append(
                events.ConversationEnded(
                    **self._common("conversation_ended"),
                    **_read(head, _OF_CONVERSATION),
                    space=space,
                    reason=reason,
                    summary=summary.text,
                    key_topics=summary.key_topics,
                    notables=notables,
                    turns=[events.RequestedTurn(turn.role, turn.content) for turn in turns],
                    earlier=before,
                    ended_at=head.latest_at,
                )
            )

    # --- of risk

    def risk(self, effects: Effects, *, profile_due: bool = False, still_open: bool = True) -> None:
        """Emit the effects of an input on risk: the changed alert, the request to a judge, and the profile."""
        if effects.alert is not None:
            self._alert(*effects.alert)
            if effects.asks_judge:
                self._judgement_request(effects.alert[0])
        if profile_due or effects.alert is not None or effects.mode_changed:
            self._profile(still_open=still_open)

    def _alert(self, alert: OpenAlert, cause: Cause) -> None:
        head, policy, session_id = self._head, self._policy, self._item.event.session_id
        measured, judged = self._step.measured, self._step.judged
        signals = measured.combination.shares()
        ring = self._state.vectors(policy.memory.recent_vectors)
        if judged is None:
            escalation, shares = None, None
            reason = explain(head, signals, measured.slope, ring, policy)
        else:
            escalation = judged.escalation(policy.modes.thresholds(head.app_id)[1].enter)
            shares = judged.evidence(dict(zip(head.risk_turns, head.risks, strict=True)))
            reason = explain_judgement(escalation)
        self.outputs.append(
            events.AlertChanged(
                **self._common("alert_changed"),
                **_read(alert, _OF_ALERT + _TRIAGED),
                by=getattr(self._item.event, "by", ""),
                fingerprint=named_id(_FINGERPRINT, events.session_key(head.app_id, session_id)),
                cause=cause,
                reason=reason,
                score=self._step.score,
                mode=head.mode,
                signals=signals,
                slope=measured.slope,
                evidence=evidence(session_id, head, ring, policy.alerts.evidence_turns, shares),
                turn=head.last_turn,
                policy_version=policy.version,
                policy_digest=policy_digest(policy),
                escalation=escalation,
                category=harm_of(head.harms),
            )
        )

    def alert_erased(self, alert: OpenAlert) -> None:
        """End the alert of an erased session, without reasons and without the user's name."""
        head, policy = self._head, self._policy
        common = self._common("alert_changed")
        common["user_id"] = ""
        self.outputs.append(
            events.AlertChanged(
                **common,
                **_read(resolve(alert), _OF_ALERT),
                fingerprint=named_id(_FINGERPRINT, events.session_key(head.app_id, self._item.event.session_id)),
                cause="erased",
                reason="the session was erased",
                score=0.0,
                mode=events.Mode.CALM,
                signals=[],
                slope=events.Slope(0.0, 0.0, 0),
                evidence=[],
                turn=head.last_turn,
                policy_version=policy.version,
                policy_digest=policy_digest(policy),
            )
        )

    def _judgement_request(self, alert: OpenAlert) -> None:
        turns = self._state.buffer.judged(self._policy.escalation.judge_turn_chars)
        common = self._common("judgement_requested")
        self.outputs.append(
            events.JudgementRequested(**common, alert_id=alert.alert_id, turn=self._head.last_turn, turns=turns)
        )

    def _profile(self, *, still_open: bool) -> None:
        """Emit the current profile, with the risk points since the previous one."""
        head, measured = self._head, self._step.measured
        self.outputs.append(
            events.ProfileUpdated(
                **self._common("profile_updated"),
                **structs.asdict(head.behaviour),
                **_read(head, _OF_PROFILE),
                open=still_open,
                slope=measured.slope,
                mode_transitions=[events.ModeTransition(turn, mode) for turn, mode in head.mode_transitions],
                repeated_topics=dict(head.repeated_topics),
                suspicion=suspicion_score(head.behaviour, head.turn_count, self._policy.risk.suspicion),
                score=self._step.score,
                signals=measured.combination.shares(),
                risk_points=[events.RiskPoint(*point) for point in head.risk_points],
                language=head.language if head.supported else UNSUPPORTED,
                unsupported=head.unsupported,
            )
        )
        head.risk_points = []
        head.turns_since_profile = 0

    # --- what every event begins with

    def _common(self, kind: str, turn: events.Turn | None = None) -> events.OutputFields:
        """Common fields of the next event of a kind; the user is that of the turn, else of the session."""
        whose, common = turn or self._head, self.common(kind, self._key)
        common["user_id"], common["app_id"] = whose.user_id, whose.app_id
        return common


_TOPICS_AT_ONCE = 16
_OF_CONVERSATION = ("first_turn", "last_turn", "turn_count", "started_at")
_OF_EPISODE = (*_OF_CONVERSATION, "peak_risk", "mean_risk", "mode")
_OF_PROFILE = (*_OF_EPISODE[1:], "duplicate_turns", "late_turns")
_OF_TOPIC = ("topic_id", "title", "message_count", "access_count", "importance", "created_at", "last_active_at")
_OF_ALERT = ("alert_id", "status", "severity", "fired_at", "notifications")
_TRIAGED = ("assignee", "snoozed_until", "duplicate_of")


def _read(state: Struct, names: tuple[str, ...]) -> dict[str, Any]:
    """Fields that an event shares with the state."""
    return {name: getattr(state, name) for name in names}
