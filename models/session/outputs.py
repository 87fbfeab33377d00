"""The events a session emits of its turns and memories, built from its state."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from models.events import (
    ConversationEnded,
    DeadLetter,
    EpisodeClosed,
    ProjectConversationEnded,
    ProjectTurnAdded,
    SegmentCompacted,
    TopicChanged,
    Turn,
    UserTurnAdded,
    WindowClosed,
)
from models.policy import Policy
from models.risk.windows import ClosedWindow
from models.session.outbox import Outbox
from models.session.segments import Segment
from models.session.state import Open, SessionState
from models.session.topics.changes import TopicChange
from models.session.topics.decay import half_life, memory_type, priority
from models.session.topics.state import Damage
from models.text.summary import Summary
from models.text.words import estimate_tokens, utf8_bytes

TOPICS_STAGE = "topics"
"""Stage of a dead letter whose bytes are no input: it cannot be replayed."""


class Emission:
    """What one fold emits of turns and memories. Of risk: `models.session.risk_outputs`.

    Args:
        state: The session.
        head: Its head, which the outputs describe as it is when they are made.
        outbox: Where they go.
        policy: The rules.
    """

    def __init__(self, state: SessionState, head: Open, outbox: Outbox, policy: Policy) -> None:
        self._state = state
        self._head = head
        self._policy = policy
        self._outbox = outbox
        self._outputs = outbox.outputs
        self._common = outbox.common

    def windows(self, closed: list[ClosedWindow]) -> None:
        """One event per closed window."""
        for window in closed:
            counts = window.counts
            self._outputs.append(
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
        self._outputs.append(
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
        self._outputs.append(UserTurnAdded(**common, turn=turn.turn, role=turn.role, content=turn.content))

    def project_turn(self, turn: Turn, project_id: str) -> None:
        """A turn is its project's too: whoever folds projects goes on from here (seed 004)."""
        projects, place = self._head.projects, [turn.app_id, project_id]
        if place not in projects and len(projects) < self._policy.projects.projects_of_session:
            self._head.projects = [*projects, place]
        common = self._common("project_turn_added")
        common["user_id"], common["app_id"] = turn.user_id, turn.app_id
        self._outputs.append(
            ProjectTurnAdded(**common, project_id=project_id, turn=turn.turn, role=turn.role, content=turn.content)
        )

    def project_conversations(self, reason: str, status: Literal["ended", "paused"]) -> None:
        """The session closed: the projects that were spoken of in it are told, while there are not too many."""
        for app_id, project_id in self._head.projects:
            common = self._common("project_conversation_ended")
            common["app_id"] = app_id
            self._outputs.append(
                ProjectConversationEnded(
                    **common, project_id=project_id, status=status, reason=reason, last_turn=self._head.last_turn
                )
            )

    def topic(self, change: TopicChange) -> None:
        """A topic came, went or changed: the whole of it, without text but title and summary."""
        policy, slot = self._policy.topics, change.slot
        store = self._state.topics(self._policy).store
        topic, summary = store.topic(slot), store.summary(slot)
        now = max(self._outbox.timestamp, self._outbox.item.watermark)
        lasting = half_life(topic.access_count, policy)
        packed = topic.packed
        self._outputs.append(
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
        item = self._outbox.item
        position = item.position
        self._outputs.append(
            DeadLetter(
                id=self._outbox.id_of("dead_letter"),
                topic=position.topic,
                partition=position.partition,
                offset=position.offset,
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
        """The session closed."""
        head = self._head
        self._outputs.append(
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
            self._outputs.append(
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
