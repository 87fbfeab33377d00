"""Events of a session: turns and what travels beside them in; profiles, windows, alerts and episodes out."""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Struct, field

from models.events.base import DEFAULT_APP, Control, Output, RiskMode, Scalar, Speaker
from models.events.fields import *

# --- in: turns.v1, key session_id --------------------------------------------------------------------------


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One message of a conversation. A turn is one message, not an exchange."""

    session_id: Annotated[SessionId, NAMED, about("Id of the session (conversation); the record key.")]
    user_id: Annotated[UserId, NAMED]
    app_id: Annotated[AppId, NAMED, about("Id of the app; session ids are unique within it.")] = DEFAULT_APP
    turn: Annotated[TurnNumber, about("Turn number: position in the session.")]
    role: Speaker
    content: Annotated[str, about("Text of the message, at most 256 KiB of UTF-8; may be empty.", CONTENT)]
    timestamp: EventTime
    project_id: Annotated[Identifier | None, about("Id of the project, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("Risk from an upstream model, 0-1; null: the scorer sets it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalar values, copied to the archive.", CONTENT)] = None
    message_id: MessageId | None = None
    type: Annotated[Literal["turn"], about("Type of the event.", BEHAVIOUR)] = "turn"


class UnnumberedTurn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn that the fold numbers in log order. A `message_id` of the session's last 256 is a repeat."""

    session_id: Annotated[SessionId, NAMED, about("Id of the session (conversation); the record key.")]
    user_id: Annotated[UserId, NAMED]
    app_id: Annotated[AppId, NAMED, about("Id of the app; session ids are unique within it.")] = DEFAULT_APP
    role: Speaker
    content: Annotated[str, about("Text of the message, at most 256 KiB of UTF-8; may be empty.", CONTENT)]
    timestamp: EventTime
    project_id: Annotated[Identifier | None, about("Id of the project, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("Risk from an upstream model, 0-1; null: the scorer sets it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalar values, copied to the archive.", CONTENT)] = None
    message_id: MessageId | None = None
    type: Annotated[Literal["turn"], about("Type of the event.", BEHAVIOUR)] = "turn"

    def numbered(self, turn: int) -> Turn:
        """The turn, with its number."""
        return Turn(turn=turn, **{name: getattr(self, name) for name in self.__struct_fields__})


AnyTurn = Turn | UnnumberedTurn


class SessionEnded(Control, frozen=True, kw_only=True, tag="session_ended", gc=False):
    """The conversation ended: its memory is closed and its state released."""

    reason: Annotated[str, about("Reason for the end.", CONTENT)] = "ended"


class AlertAcknowledged(Control, frozen=True, kw_only=True, tag="alert_acknowledged", gc=False):
    """Somebody acknowledges an alert: it is not sent again until it is resolved or gets worse."""

    alert_id: AlertId
    by: Annotated[Operator, about("Name of the token that acknowledged it.")] = ""
    note: Annotated[str, about("Note on the acknowledgement.", CONTENT)] = ""


class AlertTriaged(Control, frozen=True, kw_only=True, tag="alert_triaged", gc=False):
    """Somebody assigns or snoozes an alert, or marks it as a duplicate; null: unchanged.

    It is no activity of the session and moves no clock. Of a resolved alert only the note is kept.
    """

    alert_id: AlertId
    assignee: Annotated[Operator | None, about("Assignee of the alert; empty: nobody.")] = None
    snoozed_until: Annotated[UtcTime | None, about("End of the snooze, unless it gets worse; past: now.")] = None
    duplicate_of: Annotated[AlertId | None, about("Id of the original alert of the app; empty: no duplicate.")] = None
    note: Annotated[str, about("Note on the alert.", CONTENT)] = ""
    by: Annotated[Operator, about("Name of the caller's token.")] = ""


class AlertLabelled(Control, frozen=True, kw_only=True, tag="alert_labelled", gc=False):
    """Somebody labels an alert as correct or not (the control event `label_alert`). Back-tests use the label.

    It changes nothing in the session, and may arrive long after its end. The latest label of an alert counts. A label
    without an alert says whether the session escalated, e.g. for a session that raised none.
    """

    alert_id: Annotated[str, about("Id of the alert; empty: the label is the session's.", IDENTIFIER, names="alert")]
    escalating: Annotated[bool, about("True: the session did escalate; false: a false alarm.", BEHAVIOUR)]
    reason: Annotated[str, about("Reason, as free text.", CONTENT)] = ""
    by: Annotated[Operator, about("Name of the caller's token.")] = ""


class TurnsJudged(Control, frozen=True, kw_only=True, tag="turns_judged", gc=False):
    """Answer of a slower judge to `JudgementRequested`: the alert is evaluated again, unless it is resolved."""

    alert_id: AlertId
    judge: Annotated[str, about("Name and version of the judge model.", OPERATIONAL)]
    probability: Annotated[Ratio | None, about("Probability that the turns are harmful, 0-1; null: no answer.")] = None
    failure: Annotated[str, about("Reason for no answer; empty if it answered.", OPERATIONAL)] = ""
    elapsed_ms: Annotated[int, about("Duration of the judgement in milliseconds.", OPERATIONAL, unit="ms")] = 0


class ClockTicked(Control, frozen=True, kw_only=True, tag="clock_ticked", gc=False):
    """Written by a session worker when a partition is idle and a deadline is due.

    The fold uses the broker's append time of this record, so that a replay sees the same clock.
    """


# --- out ---------------------------------------------------------------------------------------------------


class TurnNumbered(Output, frozen=True, kw_only=True, tag="turn_numbered", gc=False):
    """A turn that arrived without a number, and its number from the fold; `source` is its position in the log."""

    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    project_id: Annotated[Identifier | None, about("Id of the project, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("Risk from an upstream model, 0-1; null: the scorer sets it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalar values, copied to the archive.", CONTENT)] = None
    message_id: MessageId | None = None

    @property
    def said(self) -> Turn:
        """The turn as a producer that counts would have sent it."""
        return Turn(**{name: getattr(self, name) for name in Turn.__struct_fields__ if name != "type"})


class SignalShare(Struct, frozen=True, gc=False):
    """Value of a signal and its share of the combined score; the shares of an alert add up to 1."""

    name: Annotated[str, about("Name of the signal.", BEHAVIOUR)]
    value: Annotated[Share, about("Value of the signal, 0-1.")]
    share: Annotated[Share, about("Share of the combined score; the shares of an alert add up to 1.")]


class EvidenceTurn(Struct, frozen=True, gc=False):
    """A turn that is evidence of an alert. Id `session_turn` as in the vector store; never its text."""

    id: Annotated[str, about("`session_turn`, as in the vector store.", IDENTIFIER, names="turn")]
    turn: TurnIndex
    risk: Annotated[Share, about("Risk of the turn, 0-1.")]
    why: Annotated[str, about("Reason why the turn is evidence, in fixed words.", BEHAVIOUR)]
    log_odds: Annotated[float, about("Contribution of the turn to the log-odds of escalation.", BEHAVIOUR)] = 0.0


class Contribution(Struct, frozen=True, gc=False):
    """Contribution of one signal to the log-odds of escalation, and the result without it."""

    signal: Annotated[str, about("Name of the signal; `upstream` and `judge` are external scores.", BEHAVIOUR)]
    value: Annotated[Share, about("Value of the signal, 0-1.")]
    log_odds: Annotated[float, about("Contribution of the signal to the log-odds of escalation.", BEHAVIOUR)]
    probability_without: Annotated[Share, about("Probability without the signal.")]
    alert_without: Annotated[bool, about("Whether the probability without it still reaches the threshold.", BEHAVIOUR)]
    why: Annotated[str, about("Explanation of the signal in numbers.", BEHAVIOUR)] = ""


class TurnShare(Struct, frozen=True, gc=False):
    """Contribution of one turn to the log-odds."""

    turn: TurnIndex
    log_odds: Annotated[float, about("Contribution of the turn to the log-odds of escalation.", BEHAVIOUR)]


class Escalation(Struct, frozen=True):
    """The calibrated judgement of a session as an exact sum of contributions.

    `base_log_odds` and the `log_odds` of all contributions add up to `log_odds`, to the last digit (all are whole
    multiples of 0.0001); so do `base_log_odds`, `earlier_log_odds` and the `log_odds` of all `turns`.
    """

    probability: Annotated[Share, about("Probability that the session escalates, 0-1.")]
    log_odds: Annotated[float, about("Log-odds of escalation: the base and all contributions.", BEHAVIOUR)]
    base_log_odds: Annotated[float, about("Log-odds of a session without evidence.", BEHAVIOUR)]
    threshold: Annotated[float, about("Lowest probability that raises an alert.", OPERATIONAL, unit="0-1")]
    model: Annotated[str, about("Name and digest of the model.", OPERATIONAL)]
    contributions: Annotated[list[Contribution], about("Contribution of each signal, strongest first.", BEHAVIOUR)]
    turns: Annotated[list[TurnShare], about("Contributions of the last turns, in order of arrival.", BEHAVIOUR)]
    earlier_log_odds: Annotated[float, about("Contribution of earlier turns and of a judge.", BEHAVIOUR)]


class RiskPoint(Struct, frozen=True, gc=False):
    """Risk of one turn. The archive keeps these points beyond the window."""

    turn: TurnIndex
    timestamp: EventTime
    risk: Annotated[Share, about("Risk of the turn, 0-1.")]
    score: Score
    mode: RiskMode
    risk_source: Annotated[str, about("Source of the risk: `upstream` (the producer) or `rules`.", BEHAVIOUR)]


class ModeTransition(Struct, frozen=True, gc=False):
    """A change of the risk mode, with its turn."""

    turn: TurnIndex
    mode: RiskMode


class Slope(Struct, frozen=True, gc=False):
    """Least-squares slope of risk per turn over the trajectory window, as `scipy.stats.linregress`."""

    per_turn: Annotated[float, about("Least-squares slope of risk, per turn.", BEHAVIOUR)]
    stderr: Annotated[float, about("Standard error of the slope.", BEHAVIOUR)]
    n: Annotated[int, about("Number of turns in the regression.", BEHAVIOUR)]


class ProfileUpdated(Output, frozen=True, kw_only=True, tag="profile_updated"):
    """The session's profile after `turn_count` turns. Compacted by session."""

    open: Annotated[bool, about("Whether the session is open.", BEHAVIOUR)]
    turn_count: Annotated[int, about("Number of folded turns, without duplicates.", BEHAVIOUR)]
    last_turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    duplicate_turns: Annotated[int, about("Number of turns that repeated a known turn number.", BEHAVIOUR)]
    late_turns: Annotated[int, about("Number of turns that arrived too late to be folded.", BEHAVIOUR)]
    started_at: StartTime
    peak_risk: Annotated[Share, about("Highest risk of any turn.")]
    mean_risk: Annotated[Share, about("Mean risk of all scored turns.")]
    slope: Annotated[Slope, about("Slope of risk over the trajectory window.", BEHAVIOUR)]
    mode: RiskMode
    mode_transitions: Annotated[list[ModeTransition], about("Changes of the risk mode, with their turns.", BEHAVIOUR)]
    question_count: Annotated[int, about("Number of turns with a question.", BEHAVIOUR)]
    imperative_count: Annotated[int, about("Number of turns with an imperative.", BEHAVIOUR)]
    topic_changes: Annotated[int, about("Number of topic changes.", BEHAVIOUR)]
    repeated_topics: Annotated[dict[str, int], about("Number of returns to each topic.", CONTENT)]
    probing_attempts: Annotated[int, about("Number of turns that ask about safety or limits.", BEHAVIOUR)]
    hypothetical_count: Annotated[int, about("Number of turns with a hypothetical frame.", BEHAVIOUR)]
    meta_instruction_count: Annotated[int, about("Number of turns about the assistant's own instructions.", BEHAVIOUR)]
    suspicion: Annotated[Share, about("Behavioural suspicion score, 0-1.")]
    score: Score
    signals: Annotated[list[SignalShare], about("Signals of the combined score with their shares.", BEHAVIOUR)]
    risk_points: Annotated[list[RiskPoint], about("Turns scored since the previous profile.", BEHAVIOUR)]
    language: Annotated[str, about("Last user turn's language, ISO 639-1; `unsupported`: no risk.", BEHAVIOUR)] = "en"
    unsupported: UnsupportedTurns = field(default_factory=dict)


class WindowClosed(Output, frozen=True, kw_only=True, tag="window_closed"):
    """Counts of one event-time window of a session, or of an app on one partition.

    An app's sessions are spread over partitions: its window is the sum over `source.partition`
    (the SQL view `windows` adds them up). For an app, `session_id` and `user_id` are empty.
    """

    session_id: Annotated[SessionId, about("Id of the session; empty for an app.")]
    user_id: Annotated[UserId, about("Id of the user; empty for an app.")]
    scope: Annotated[Literal["session", "app"], about("Whether the window counts one session or one app.", BEHAVIOUR)]
    window_start: Annotated[UtcTime, about("Start of the window, inclusive.")]
    window_end: Annotated[UtcTime, about("End of the window, exclusive.")]
    turns: Annotated[int, about("Number of turns.", BEHAVIOUR)]
    turns_per_minute: Annotated[float, about("Turns per minute of the window.", BEHAVIOUR, unit="turns/min")]
    risk_sum: Annotated[float, about("Sum of the risks in the window.", BEHAVIOUR, unit="sum of 0-1")]
    risk_max: Annotated[Share, about("Highest risk in the window.")]
    scored_turns: Annotated[int, about("Number of turns with a risk.", BEHAVIOUR)]
    alerts: Annotated[int, about("Number of alerts raised in the window.", BEHAVIOUR)]
    late_turns: Annotated[int, about("Number of turns that arrived after their window closed.", BEHAVIOUR)]


class EpisodeClosed(Output, frozen=True, kw_only=True, tag="episode_closed"):
    """A session ended or timed out: the summary kept when its state is released."""

    reason: Annotated[str, about("Reason why the session closed.", BEHAVIOUR)]
    first_turn: FirstTurn
    last_turn: LastTurn
    turn_count: Annotated[int, about("Number of folded turns, without duplicates.", BEHAVIOUR)]
    summary: Summary
    key_topics: KeyTopics
    started_at: StartTime
    ended_at: EndTime
    peak_risk: Annotated[Share, about("Highest risk of any turn.")]
    mean_risk: Annotated[Share, about("Mean risk of all scored turns.")]
    mode: RiskMode
    alerts: Annotated[int, about("Number of alerts raised in the session.", BEHAVIOUR)]


class AlertStatus(StrEnum):
    """Status of an alert in its life cycle."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Severity(StrEnum):
    """Severity of an alert."""

    WARNING = "warning"
    CRITICAL = "critical"


class Harm(StrEnum):
    """Kind of harm of an alert."""

    PRIVACY = "privacy"
    FRAUD = "fraud"
    WEAPONS = "weapons"
    SELF_HARM = "self-harm"
    CYBER = "cyber"
    VIOLENCE = "violence"
    HATE = "hate"
    OTHER = "other"


AlertNews = Literal["raised", "worsened", "renotified", "woken", "judged", "resolved", "erased"]
AlertCause = Literal[AlertNews, "acknowledged", "assigned", "noted", "snoozed", "duplicate"]


class AlertChanged(Output, frozen=True, kw_only=True, tag="alert_changed"):
    """An alert was raised, repeated, acknowledged, triaged, worsened or resolved.

    `alert_id` identifies the alert over its life, `id` this change; `fingerprint` groups alerts of the
    same session and kind over time.
    """

    alert_id: AlertId
    fingerprint: Annotated[str, about("Groups alerts of one session and kind over time.", IDENTIFIER)]
    status: Annotated[AlertStatus, about("Firing, acknowledged or resolved.", BEHAVIOUR)]
    severity: Annotated[Severity, about("Severity of an alert.", BEHAVIOUR)]
    cause: Annotated[
        AlertCause, about("Cause of the change; `woken`: the snooze ended, or it is no longer a duplicate.", BEHAVIOUR)
    ]
    reason: Annotated[str, about("Reason in one sentence, without text of any turn.", BEHAVIOUR)]
    score: Score
    mode: RiskMode
    signals: Annotated[list[SignalShare], about("Signals of the combined score with their shares.", BEHAVIOUR)]
    slope: Annotated[Slope, about("Slope of risk over the trajectory window.", BEHAVIOUR)]
    evidence: Annotated[list[EvidenceTurn], about("Turns that are the alert's evidence, never their text.", IDENTIFIER)]
    turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    fired_at: Annotated[UtcTime, about("Event time at which the alert was first raised.")]
    notifications: Annotated[int, about("Number of notifications, including this change.", BEHAVIOUR)]
    policy_version: Annotated[str, about("Version of the policy.", OPERATIONAL)]
    policy_digest: Annotated[str, about("Digest of the policy and weights; 12 digits of SHA-256.", OPERATIONAL)] = ""
    escalation: Annotated[Escalation | None, about("Judgement by contributions; null without a model.", BEHAVIOUR)] = (
        None
    )
    category: Annotated[Harm, about("Kind of harm in its turns; `other`: none is clear.", BEHAVIOUR)] = Harm.OTHER
    assignee: Annotated[Operator, about("Assignee of the alert; empty: nobody.")] = ""
    snoozed_until: Annotated[UtcTime | None, about("No notification before this, unless it gets worse.")] = None
    duplicate_of: Annotated[AlertId, about("Id of the original alert; empty: no duplicate.")] = ""
    by: Annotated[Operator, about("Name of the token that made the change; empty: automatic.")] = ""

    @property
    def is_silenced(self) -> bool:
        """Whether nobody is to be called by it: it is snoozed, or a duplicate, and not over."""
        return self.status is not AlertStatus.RESOLVED and bool(self.snoozed_until or self.duplicate_of)


class JudgedTurn(Struct, frozen=True, gc=False):
    """A turn as sent to a judge."""

    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the turn; truncated if long.", CONTENT)]


class JudgementRequested(Output, frozen=True, kw_only=True, tag="judgement_requested"):
    """Asks a slower judge to read the last turns of a raised alert. Nothing waits for it."""

    alert_id: AlertId
    turn: Annotated[TurnIndex, about("Highest turn number of the session when the alert was raised.")]
    turns: Annotated[list[JudgedTurn], about("The last turns; long texts truncated.", CONTENT)]


class DeadLetter(Struct, frozen=True, kw_only=True, tag_field="type", tag="dead_letter"):
    """An invalid input record with its original bytes (base64 in JSON), reason and position."""

    id: EventId
    topic: Annotated[str, about("Topic of the bad record.", OPERATIONAL)]
    partition: Annotated[int, about("Partition of the bad record.", OPERATIONAL, unit="number")]
    offset: Annotated[int, about("Offset of the bad record in its partition.", OPERATIONAL, unit="offset")]
    stage: Annotated[str, about("Stage that refused it.", OPERATIONAL)]
    reason: Annotated[str, about("Constant code of the error.", BEHAVIOUR)]
    detail: Annotated[str, about("Details of the error, without text of the record.", BEHAVIOUR)]
    key: Annotated[bytes | None, about("Original record key.", CONTENT)]
    value: Annotated[bytes | None, about("Original record value.", CONTENT)]
    headers: Annotated[list[tuple[str, bytes | None]], about("Original record headers.", CONTENT)]
    appended_at: Annotated[UtcTime, about("Broker's append time of the bad record.", OPERATIONAL)]


class TurnCorrected(Control, frozen=True, kw_only=True, tag="turn_corrected", gc=False):
    """Somebody corrects the text of a turn, also long after the session's end. The latest correction counts.

    The old text stays in the archive until it is erased. What was derived from it before (risk, alerts, summaries,
    episodes, memories of projects and apps) is unchanged.
    """

    app_id: Annotated[AppId, NAMED, about("Id of the app.")]
    user_id: Annotated[UserId, NAMED, about("Id of the user who wrote, or was answered.")]
    turn: Annotated[TurnNumber, about("Number of the turn to correct.")]
    content: Annotated[str, about("New text of the message, at most 256 KiB of UTF-8.", CONTENT)]
    by: Annotated[Operator, about("Name of the token that corrected it.")] = ""
    reason: Annotated[str, about("Reason, as free text.", CONTENT)] = ""
