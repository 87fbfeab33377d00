"""Every event on every topic, as frozen structs. JSON Schema, AsyncAPI and Parquet come from here.

Times are aware UTC. Ratios and scores lie in 0-1 unless the field says otherwise. Output events carry `id`
(deterministic, see `models.ids`) and `source`, the input record that caused them, so that a repeat after a
crash has the same id and an alert can be replayed from its offset.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

Identifier = Annotated[str, Meta(min_length=1, max_length=256)]
"""An id chosen by the producer: 1-256 printable characters."""
Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
TurnNumber = Annotated[int, Meta(ge=0, le=2**53)]
UtcTime = Annotated[datetime, Meta(tz=True)]
Scalar = str | int | float | bool | None

MAX_CONTENT_BYTES = 256 * 1024
"""Longest turn content, UTF-8 bytes (design §6)."""


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Mode(StrEnum):
    """Risk mode of a session, in rising order (seed 000 names the field, the policy its thresholds)."""

    CALM = "calm"
    WATCH = "watch"
    ELEVATED = "elevated"
    CRITICAL = "critical"


# --- in: turns.v1, key session_id --------------------------------------------------------------------------


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One message of a conversation. A turn is one message, not an exchange."""

    session_id: Identifier
    user_id: Identifier
    app_id: Identifier
    turn: TurnNumber
    role: Role
    content: str
    timestamp: UtcTime
    project_id: Identifier | None = None
    risk: Ratio | None = None
    metadata: dict[str, Scalar] | None = None
    type: Literal["turn"] = "turn"


class Control(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of the control events that travel beside the turns, under the same key."""

    session_id: Identifier
    timestamp: UtcTime


class SessionEnded(Control, frozen=True, kw_only=True, tag="session_ended", gc=False):
    """The conversation is over: close its memory and release its state."""

    reason: str = "ended"


class AlertAcknowledged(Control, frozen=True, kw_only=True, tag="alert_acknowledged", gc=False):
    """Somebody looks at the alert: no renotification until it is resolved or grows worse."""

    alert_id: str
    by: str = ""
    note: str = ""


class SegmentSummarised(Control, frozen=True, kw_only=True, tag="segment_summarised", gc=False):
    """A slower summariser finished: its text replaces the extractive one of that segment."""

    first_turn: TurnNumber
    last_turn: TurnNumber
    summary: str
    summarised_by: str


class TopicAdjusted(Control, frozen=True, kw_only=True, tag="topic_adjusted", gc=False):
    """Somebody rates or tags a topic of the session; what is not named stays (seed 001)."""

    topic_id: str | None = None
    """None: the active one."""
    importance: Ratio | None = None
    tags: list[str] | None = None
    """In place of those it had."""


class FeedbackGiven(Control, frozen=True, kw_only=True, tag="feedback_given", gc=False):
    """A user liked (up to 1) or disliked (down to -1) an answer: the topic's importance learns from it."""

    value: Annotated[float, Meta(ge=-1.0, le=1.0)]
    topic_id: str | None = None
    """The topic; or …"""
    turn: TurnNumber | None = None
    """… the turn whose topic it is. With neither the active one."""


class TopicSummarised(Control, frozen=True, kw_only=True, tag="topic_summarised", gc=False):
    """A slower summariser finished: its text replaces the summary of a topic, and is updated from then on."""

    topic_id: Identifier
    summary: str
    summarised_by: str


class RestoredMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message on its way from the archive back into a topic."""

    turn: TurnNumber
    role: Role
    content: str
    timestamp: UtcTime


class TopicRestored(Control, frozen=True, kw_only=True, tag="topic_restored", gc=False):
    """An evicted topic comes back from the archive, under its old id."""

    topic_id: Identifier
    title: str
    created_at: UtcTime
    importance: Ratio
    access_count: Annotated[int, Meta(ge=0, le=2**53)]
    tags: list[str] = []
    summary: str = ""
    messages: list[RestoredMessage] = []


class ClockTicked(Control, frozen=True, kw_only=True, tag="clock_ticked", gc=False):
    """Written by a session worker when a partition is idle and a deadline is due.

    The time that counts is the broker's append time of this record, so that a replay sees the same clock.
    """


TopicControl = TopicAdjusted | FeedbackGiven | TopicSummarised | TopicRestored
ControlEvent = SessionEnded | AlertAcknowledged | SegmentSummarised | TopicControl | ClockTicked
InputEvent = Turn | ControlEvent


# --- out ---------------------------------------------------------------------------------------------------


class Position(Struct, frozen=True, gc=False):
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int


class Output(Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """Base of everything Turntide emits about a session."""

    id: str
    session_id: str
    user_id: str
    app_id: str
    timestamp: UtcTime
    source: Position


class SignalShare(Struct, frozen=True, gc=False):
    """One signal's value and its share of the combined score; the shares of an alert add up to 1."""

    name: str
    value: float
    share: float


class EvidenceTurn(Struct, frozen=True, gc=False):
    """A turn that an alert rests on. Id `session_turn` as in the vector store; never its text."""

    id: str
    turn: int
    risk: float
    why: str


class RiskPoint(Struct, frozen=True, gc=False):
    """Risk of one turn: the history beyond the window lives in the archive as these."""

    turn: int
    timestamp: UtcTime
    risk: float
    score: float
    mode: Mode
    risk_source: str


class ModeTransition(Struct, frozen=True, gc=False):
    """At which turn the mode became what."""

    turn: int
    mode: Mode


class Slope(Struct, frozen=True, gc=False):
    """Least-squares slope of risk per turn over the trajectory window, as `scipy.stats.linregress`."""

    per_turn: float
    stderr: float
    n: int


class ProfileUpdated(Output, frozen=True, kw_only=True, tag="profile_updated"):
    """The session's profile after `turn_count` turns (seed 000, layer 3). Compacted by session."""

    open: bool
    turn_count: int
    last_turn: int
    duplicate_turns: int
    late_turns: int
    started_at: UtcTime
    peak_risk: float
    mean_risk: float
    slope: Slope
    mode: Mode
    mode_transitions: list[ModeTransition]
    question_count: int
    imperative_count: int
    topic_changes: int
    repeated_topics: dict[str, int]
    probing_attempts: int
    hypothetical_count: int
    meta_instruction_count: int
    suspicion: float
    score: float
    signals: list[SignalShare]
    risk_points: list[RiskPoint]
    """The turns scored since the previous profile of this session."""


class WindowClosed(Output, frozen=True, kw_only=True, tag="window_closed"):
    """Counts of one event-time window, of one session or of one app on one partition.

    An app's sessions are spread over partitions: its window is the sum over `source.partition`
    (the SQL view `windows` adds them up). For an app, `session_id` and `user_id` are empty.
    """

    scope: Literal["session", "app"]
    window_start: UtcTime
    window_end: UtcTime
    turns: int
    turns_per_minute: float
    risk_sum: float
    risk_max: float
    scored_turns: int
    alerts: int
    late_turns: int


class SegmentCompacted(Output, frozen=True, kw_only=True, tag="segment_compacted"):
    """Turns of the working memory became a summary (seed 000, layer 2). Both ends of the range are inside."""

    first_turn: int
    last_turn: int
    turns: list[int]
    summary: str
    summarised_by: str
    risk_mean: float
    key_topics: list[str]
    started_at: UtcTime
    ended_at: UtcTime
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int


TopicCause = Literal[
    "started",
    "returned",
    "left",
    "compacted",
    "unpacked",
    "merged",
    "evicted",
    "adjusted",
    "learnt",
    "summarised",
    "restored",
    "closed",
]


class TopicCompaction(Struct, frozen=True, kw_only=True, gc=False):
    """Lineage of one compaction of a topic: what went in, what is left of it, and what it cost.

    Bytes are those of the packed messages' JSON, before and after packing; tokens those of the messages and of the
    summary that stands for them.
    """

    turns: list[int]
    """Packed by this compaction. Those that were unpacked since the last one are packed again as they were."""
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int
    ratio: float
    """Bytes after to bytes before."""
    summarised_by: str
    probes: int
    """Messages of those packed that name anything to search for."""
    probes_found: int
    """Of these, how many a search for what they name still finds in the summary."""
    loss: float
    """Share of the probes that are not found; the messages themselves are not lost."""
    codec: str
    released_turns: list[int]
    """Left the packed history for good: from here on they are in the archive alone."""


class TopicChanged(Output, frozen=True, kw_only=True, tag="topic_changed"):
    """A topic of a session came, went or changed (seed 001); the whole topic as it is now, without its messages' text.

    Turns that no event of the session names yet belong to the active topic.
    """

    topic_id: str
    title: str
    cause: TopicCause
    detail: str
    """What exactly: with which topic it merged, why it was evicted."""
    active: bool
    """Whether the session's next message without a likeness joins it."""
    kept: bool
    """False for the last event of an evicted topic, or of one that merged into another."""
    turn: int
    """Highest turn number of the session so far."""
    message_count: int
    access_count: int
    importance: float
    priority: float
    half_life_days: float
    memory_type: str
    tags: list[str]
    created_at: UtcTime
    last_active_at: UtcTime
    active_turns: list[int]
    """Messages at hand, in order of number."""
    packed_turns: list[int]
    """Messages in the packed history, the oldest block first."""
    released_messages: int
    """Messages that are in the archive alone."""
    packed_bytes: int
    summary: str | None
    summarised_by: str | None
    session_topics: int
    """Topics of the session after this."""
    compaction: TopicCompaction | None


class EpisodeClosed(Output, frozen=True, kw_only=True, tag="episode_closed"):
    """A session ended or timed out: what is kept of it when its state is released."""

    reason: str
    first_turn: int
    last_turn: int
    turn_count: int
    summary: str
    key_topics: list[str]
    started_at: UtcTime
    ended_at: UtcTime
    peak_risk: float
    mean_risk: float
    mode: Mode
    alerts: int


class AlertStatus(StrEnum):
    """Life cycle of an alert."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Severity(StrEnum):
    """How urgent."""

    WARNING = "warning"
    CRITICAL = "critical"


class AlertChanged(Output, frozen=True, kw_only=True, tag="alert_changed"):
    """An alert fired, was repeated, acknowledged, made worse or resolved.

    `alert_id` names the alert through its life, `id` this change of it; `fingerprint` groups alerts of the
    same session and kind over time.
    """

    alert_id: str
    fingerprint: str
    status: AlertStatus
    severity: Severity
    cause: Literal["raised", "worsened", "renotified", "acknowledged", "resolved"]
    reason: str
    score: float
    mode: Mode
    signals: list[SignalShare]
    slope: Slope
    evidence: list[EvidenceTurn]
    turn: int
    fired_at: UtcTime
    notifications: int
    policy_version: str


class DeadLetter(Struct, frozen=True, kw_only=True, tag_field="type", tag="dead_letter"):
    """Bad input, with its original bytes (base64 in JSON), reason and place."""

    id: str
    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    detail: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    appended_at: UtcTime


OutputEvent = (
    ProfileUpdated | WindowClosed | SegmentCompacted | TopicChanged | EpisodeClosed | AlertChanged | DeadLetter
)
"""Everything that Turntide emits. A fold gives a dead letter only where a packed history is damaged."""
