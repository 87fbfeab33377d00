"""The events a session emits, built from its state, each with its deterministic id."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from models.arrival import SessionInput, SessionTimedOut
from models.event_base import OutputFields
from models.events import (
    AlertChanged,
    ConversationEnded,
    DeadLetter,
    EpisodeClosed,
    ModeTransition,
    OutputEvent,
    ProfileUpdated,
    ProjectConversationEnded,
    ProjectTurnAdded,
    RiskPoint,
    SegmentCompacted,
    TopicChanged,
    Turn,
    UserTurnAdded,
    WindowClosed,
)
from models.ids import event_id, named_id
from models.memory.decay import half_life, memory_type, priority
from models.memory.segments import Segment
from models.memory.topic_changes import TopicChange
from models.memory.topic_state import Damage
from models.policy import Policy
from models.risk.alerts import Alert, Cause
from models.risk.explain import evidence, explain
from models.risk.profile import Measured, measure
from models.risk.signals import suspicion_score
from models.risk.windows import ClosedWindow
from models.session_state import Open, SessionState
from models.text.summary import Summary
from models.text.words import estimate_tokens, utf8_bytes

_TIMED_OUT_ORDINAL = 1 << 20
"""A time-out is caused by the record that moved the watermark. That can be the session's own next turn, whose outputs
then have the same source: ordinals from here on keep the two apart."""

TOPICS_STAGE = "topics"
"""Stage of a dead letter whose bytes are no input: it cannot be replayed."""


class Emission:
    """Collects what one fold emits.

    Args:
        state: The session.
        head: Its head, which the outputs describe as it is when they are made.
        item: The input; its position is the outputs' source.
        policy: The rules.
        timestamp: Event time of the outputs.
    """

    def __init__(
        self, state: SessionState, head: Open, item: SessionInput, policy: Policy, timestamp: datetime
    ) -> None:
        self.outputs: list[OutputEvent] = []
        self._state = state
        self._head = head
        self._item = item
        self._policy = policy
        self._timestamp = timestamp
        self._ordinals: dict[str, int] = {}

    @cached_property
    def measured(self) -> Measured:
        """The signals, measured once per input: first looked at when all that moves them has been counted."""
        return measure(self._head, self._policy)

    def _common(self, kind: str) -> OutputFields:
        event, position = self._item.event, self._item.position
        first = _TIMED_OUT_ORDINAL if isinstance(event, SessionTimedOut) else 0
        ordinal = self._ordinals[kind] = self._ordinals.get(kind, first - 1) + 1
        return {
            "id": event_id(kind, event.session_id, position, ordinal),
            "session_id": event.session_id,
            "user_id": self._head.user_id,
            "app_id": self._head.app_id,
            "timestamp": self._timestamp,
            "source": position,
        }

    def windows(self, closed: list[ClosedWindow]) -> None:
        """One event per closed window."""
        for window in closed:
            counts = window.counts
            self.outputs.append(
                WindowClosed(
                    **self._common("window_closed"),
                    scope="session",
                    window_start=window.start,
                    window_end=window.end,
                    turns=counts.turns,
                    turns_per_minute=window.turns_per_minute,
                    risk_sum=counts.risk_sum,
                    risk_max=counts.risk_max,
                    scored_turns=counts.scored_turns,
                    alerts=counts.alerts,
                    late_turns=counts.late_turns,
                )
            )

    def segment(self, segment: Segment) -> None:
        """A segment was compacted, or its summary replaced."""
        self.outputs.append(
            SegmentCompacted(
                **self._common("segment_compacted"),
                first_turn=segment.first_turn,
                last_turn=segment.last_turn,
                turns=segment.turns,
                summary=segment.summary,
                summarised_by=segment.summarised_by,
                risk_mean=segment.risk_mean,
                key_topics=segment.key_topics,
                started_at=segment.started_at,
                ended_at=segment.ended_at,
                tokens_before=segment.tokens_before,
                tokens_after=estimate_tokens(segment.summary),
                bytes_before=segment.bytes_before,
                bytes_after=utf8_bytes(segment.summary),
            )
        )

    def user_turn(self, turn: Turn) -> None:
        """A turn is the user's too: whoever folds users goes on from here (seed 002)."""
        common = self._common("user_turn_added")
        common["user_id"], common["app_id"] = turn.user_id, turn.app_id
        self.outputs.append(UserTurnAdded(**common, turn=turn.turn, role=turn.role, content=turn.content))

    def project_turn(self, turn: Turn, project_id: str) -> None:
        """A turn is its project's too: whoever folds projects goes on from here (seed 004)."""
        projects, place = self._head.projects, [turn.app_id, project_id]
        if place not in projects and len(projects) < self._policy.projects.projects_of_session:
            self._head.projects = [*projects, place]
        common = self._common("project_turn_added")
        common["user_id"], common["app_id"] = turn.user_id, turn.app_id
        self.outputs.append(
            ProjectTurnAdded(**common, project_id=project_id, turn=turn.turn, role=turn.role, content=turn.content)
        )

    def project_conversations(self, reason: str, status: Literal["ended", "paused"]) -> None:
        """The session closed: the projects that were spoken of in it are told, while there are not too many."""
        for app_id, project_id in self._head.projects:
            common = self._common("project_conversation_ended")
            common["app_id"] = app_id
            self.outputs.append(
                ProjectConversationEnded(
                    **common, project_id=project_id, status=status, reason=reason, last_turn=self._head.last_turn
                )
            )

    def topic(self, change: TopicChange) -> None:
        """A topic came, went or changed: the whole of it, without text but title and summary."""
        policy, slot = self._policy.topics, change.slot
        store = self._state.topics(self._policy).store
        topic, summary = store.topic(slot), store.summary(slot)
        now = max(self._timestamp, self._item.watermark)
        lasting = half_life(topic.access_count, policy)
        packed = topic.packed
        self.outputs.append(
            TopicChanged(
                **self._common("topic_changed"),
                topic_id=topic.topic_id,
                title=topic.title,
                cause=change.cause,
                detail=change.detail,
                active=slot == store.index.active,
                kept=change.kept,
                turn=self._head.last_turn,
                message_count=topic.message_count,
                access_count=topic.access_count,
                importance=topic.importance,
                priority=priority(topic.importance, now - topic.last_active_at, topic.access_count, policy),
                half_life_days=lasting / timedelta(days=1),
                memory_type=memory_type(topic.access_count, policy),
                tags=list(topic.tags),
                created_at=topic.created_at,
                last_active_at=topic.last_active_at,
                active_turns=store.active_turns(slot),
                packed_turns=[turn for block in packed for turn in store.block_turns(slot, block)],
                released_messages=topic.released,
                packed_bytes=sum([block.packed_bytes for block in packed]),
                summary=None if summary is None else summary.text,
                summarised_by=None if summary is None else summary.summarised_by,
                session_topics=len(store.index.slots) - (not change.kept),
                compaction=change.compaction,
            )
        )

    def damage(self, damage: Damage) -> None:
        """A packed history could not be read to its end: what is there of it goes to the dead letters."""
        position, session_id = self._item.position, self._item.event.session_id
        ordinal = self._ordinals["dead_letter"] = self._ordinals.get("dead_letter", -1) + 1
        self.outputs.append(
            DeadLetter(
                id=event_id("dead_letter", session_id, position, ordinal),
                topic=position.topic,
                partition=position.partition,
                offset=position.offset,
                stage=TOPICS_STAGE,
                reason="damaged_history",
                detail=f"{damage.detail}; turns {damage.turns} left the topic, the archive has them",
                key=session_id.encode(),
                value=damage.data,
                headers=[],
                appended_at=self._item.watermark,
            )
        )

    def episode(self, reason: str, summary: Summary) -> None:
        """The session closed."""
        head = self._head
        self.outputs.append(
            EpisodeClosed(
                **self._common("episode_closed"),
                reason=reason,
                first_turn=head.first_turn,
                last_turn=head.last_turn,
                turn_count=head.turn_count,
                summary=summary.text,
                key_topics=summary.key_topics,
                started_at=head.started_at,
                ended_at=head.latest_at,
                peak_risk=head.peak_risk,
                mean_risk=head.mean_risk,
                mode=head.mode,
                alerts=head.alerts_raised,
            )
        )

    def conversation_ended(self, reason: str, summary: Summary) -> None:
        """The session closed, and may become a memory: one event for each space that the policy names (seed 003).

        One in which several apps spoke, or several users, belongs to none of theirs: nothing crosses to another tenant.
        """
        head, policy = self._head, self._policy.apps
        notables = self._state.notables(self._policy)
        turns = self._state.buffer.asked(policy.asked_turn_chars) if policy.ask else []
        for space in policy.spaces:
            if head.other_app or (space == "user" and head.other_user):
                continue
            self.outputs.append(
                ConversationEnded(
                    **self._common("conversation_ended"),
                    space=space,
                    reason=reason,
                    first_turn=head.first_turn,
                    last_turn=head.last_turn,
                    turn_count=head.turn_count,
                    summary=summary.text,
                    key_topics=summary.key_topics,
                    notables=notables,
                    turns=turns,
                    started_at=head.started_at,
                    ended_at=head.latest_at,
                )
            )

    def alert(self, alert: Alert, cause: Cause) -> None:
        """An alert changed."""
        head, policy, session_id = self._head, self._policy, self._item.event.session_id
        measured = self.measured
        signals = measured.combination.shares()
        ring = self._state.vectors(policy.memory.recent_vectors)
        self.outputs.append(
            AlertChanged(
                **self._common("alert_changed"),
                alert_id=alert.alert_id,
                fingerprint=named_id("alert-fingerprint", session_id),
                status=alert.status,
                severity=alert.severity,
                cause=cause,
                reason=explain(head, signals, measured.slope, ring, policy),
                score=measured.combination.score,
                mode=head.mode,
                signals=signals,
                slope=measured.slope,
                evidence=evidence(session_id, head, ring, policy.alerts.evidence_turns),
                turn=head.last_turn,
                fired_at=alert.fired_at,
                notifications=alert.notifications,
                policy_version=policy.version,
            )
        )

    def profile(self, *, still_open: bool) -> None:
        """The profile as it is now; the risk points since the one before go with it."""
        head, policy = self._head, self._policy
        measured = self.measured
        counts = head.behaviour
        self.outputs.append(
            ProfileUpdated(
                **self._common("profile_updated"),
                open=still_open,
                turn_count=head.turn_count,
                last_turn=head.last_turn,
                duplicate_turns=head.duplicate_turns,
                late_turns=head.late_turns,
                started_at=head.started_at,
                peak_risk=head.peak_risk,
                mean_risk=head.mean_risk,
                slope=measured.slope,
                mode=head.mode,
                mode_transitions=[ModeTransition(turn, mode) for turn, mode in head.mode_transitions],
                question_count=counts.question_count,
                imperative_count=counts.imperative_count,
                topic_changes=counts.topic_changes,
                repeated_topics=dict(head.repeated_topics),
                probing_attempts=counts.probing_attempts,
                hypothetical_count=counts.hypothetical_count,
                meta_instruction_count=counts.meta_instruction_count,
                suspicion=suspicion_score(counts, head.turn_count, policy.risk.suspicion),
                score=measured.combination.score,
                signals=measured.combination.shares(),
                risk_points=[RiskPoint(*point) for point in head.risk_points],
            )
        )
        head.risk_points = []
        head.turns_since_profile = 0
