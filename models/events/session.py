"""Events of a session (seed 000): turns and what travels beside them in; profiles, windows, alerts and episodes out."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from models.events.base import Control, Identifier, Mode, Output, Ratio, Role, Scalar, TurnNumber, UtcTime

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


class AlertLabelled(Control, frozen=True, kw_only=True, tag="alert_labelled", gc=False):
    """Somebody says whether an alert was right (the control event `label_alert`): back-tests measure by it.

    It changes nothing in the session, and may come long after its end. The latest label of an alert counts.
    """

    alert_id: str
    escalating: bool
    """True: the session did escalate. False: a false alarm."""
    reason: str = ""
    by: str = ""


class TurnsJudged(Control, frozen=True, kw_only=True, tag="turns_judged", gc=False):
    """A slower judge (a guard model, a classifier) answered `JudgementRequested`: the alert is weighed anew with it.

    An answer for an alert that is over changes nothing.
    """

    alert_id: str
    judge: str
    """Name and version of the model."""
    probability: Ratio | None = None
    """That the turns it saw are harmful; None: it did not answer."""
    failure: str = ""
    """Why it did not answer; no text of a turn."""
    elapsed_ms: int = 0


class ClockTicked(Control, frozen=True, kw_only=True, tag="clock_ticked", gc=False):
    """Written by a session worker when a partition is idle and a deadline is due.

    The time that counts is the broker's append time of this record, so that a replay sees the same clock.
    """


# --- out ---------------------------------------------------------------------------------------------------


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
    log_odds: float = 0.0
    """What this turn added to the session's log-odds, by all signals."""


class Contribution(Struct, frozen=True, gc=False):
    """What one signal adds to the log-odds that a session escalates, and what would be without it."""

    signal: str
    value: float
    """0-1."""
    log_odds: float
    probability_without: float
    alert_without: bool
    """Whether the probability without it still reaches the threshold."""
    why: str = ""


class TurnShare(Struct, frozen=True, gc=False):
    """What one turn added to the log-odds."""

    turn: int
    log_odds: float


class Escalation(Struct, frozen=True):
    """The calibrated judgement of a session, taken apart exactly.

    `base_log_odds` and the `log_odds` of all contributions add up to `log_odds`, to the last digit (all are whole
    multiples of 0.0001); so do `base_log_odds`, `earlier_log_odds` and the `log_odds` of all `turns`.
    """

    probability: float
    log_odds: float
    base_log_odds: float
    threshold: float
    """Probability from which an alert is raised in this app."""
    model: str
    """Name and digest of the model."""
    contributions: list[Contribution]
    turns: list[TurnShare]
    """The last turns that were weighed, in the order of their arrival."""
    earlier_log_odds: float
    """Of all turns before those, and of a judge's answer, which is no turn's."""


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
    cause: Literal["raised", "worsened", "renotified", "acknowledged", "judged", "resolved"]
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
    policy_digest: str = ""
    """Of the policy's content: two that bear the same version by mistake are told apart."""
    escalation: Escalation | None = None
    """None where the seed's formulas alone decide (no model, `escalation.enabled = false`)."""


class JudgedTurn(Struct, frozen=True, gc=False):
    """A turn as a judge reads it."""

    turn: int
    role: Role
    content: str


class JudgementRequested(Output, frozen=True, kw_only=True, tag="judgement_requested"):
    """An alert was raised, and a slower judge is to read its last turns. Never waited for."""

    alert_id: str
    turn: int
    turns: list[JudgedTurn]


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
