"""Every event on every topic, as frozen structs. JSON Schema, AsyncAPI and Parquet come from here.

Times are aware UTC. Ratios and scores lie in 0-1 unless the field says otherwise. Output events carry `id`
(deterministic, see `models.events.ids`) and `source`, the input record that caused them, so that a repeat after a
crash has the same id and an alert can be replayed from its offset.
"""

# ruff: noqa: F403, F405 - one name for all of them

from __future__ import annotations

from models.events.app import *
from models.events.base import *
from models.events.erase import *
from models.events.fields import *
from models.events.project import *
from models.events.project_items import *
from models.events.session import *
from models.events.topic import *
from models.events.user import *

SessionControl = (
    SessionEnded
    | AlertAcknowledged
    | AlertTriaged
    | AlertLabelled
    | TurnCorrected
    | TurnsJudged
    | SegmentSummarised
    | TopicControl
)
ControlEvent = SessionControl | SessionErased | ClockTicked
InputEvent = Turn | UnnumberedTurn | SessionEnded | SessionErased | SessionControl | ClockTicked
CommandEvent = UserEvent | UserErasure | SpaceEvent | SpaceErasure | ProjectEvent | ProjectErasure
"""What changes a user's memory, a space of an app's memories, or a project's memory."""
SessionOutput = (
    TurnNumbered
    | ProfileUpdated
    | WindowClosed
    | SegmentCompacted
    | SegmentRequested
    | TopicChanged
    | TopicSummaryRequested
    | EpisodeClosed
    | AlertChanged
    | JudgementRequested
)
Forwarded = UserTurnAdded | UserTurnCorrected | TopicsKept | ConversationEnded | ProjectForwarded
"""What the sessions role sends to other memories."""
OutputEvent = SessionOutput | Forwarded | UserOutput | SpaceOutput | ProjectOutput | DeadLetter
"""Everything that a fold emits. It gives a dead letter only where a packed history is damaged."""
