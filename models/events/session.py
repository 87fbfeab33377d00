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

    session_id: Annotated[SessionId, NAMED, about("Conversation; the record key.")]
    user_id: Annotated[UserId, NAMED]
    app_id: Annotated[AppId, NAMED, about("App of the conversation: its id is unique within it.")] = DEFAULT_APP
    turn: Annotated[TurnNumber, about("Turn number: position in the session.")]
    role: Speaker
    content: Annotated[str, about("Text of the message, at most 256 KiB of UTF-8; may be empty.", CONTENT)]
    timestamp: EventTime
    project_id: Annotated[Identifier | None, about("Project of the app, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("An upstream model's risk, 0-1; null: the scorer fills it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalars passed through to the archive.", CONTENT)] = None
    message_id: MessageId | None = None
    type: Annotated[Literal["turn"], about("Which event it is.", BEHAVIOUR)] = "turn"


class UnnumberedTurn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn that its session's fold numbers, in log order; a `message_id` of the session's last 256 is a repeat."""

    session_id: Annotated[SessionId, NAMED, about("Conversation; the record key.")]
    user_id: Annotated[UserId, NAMED]
    app_id: Annotated[AppId, NAMED, about("App of the conversation: its id is unique within it.")] = DEFAULT_APP
    role: Speaker
    content: Annotated[str, about("Text of the message, at most 256 KiB of UTF-8; may be empty.", CONTENT)]
    timestamp: EventTime
    project_id: Annotated[Identifier | None, about("Project of the app, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("An upstream model's risk, 0-1; null: the scorer fills it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalars passed through to the archive.", CONTENT)] = None
    message_id: MessageId | None = None
    type: Annotated[Literal["turn"], about("Which event it is.", BEHAVIOUR)] = "turn"

    def numbered(self, turn: int) -> Turn:
        """The turn, with its number."""
        return Turn(turn=turn, **{name: getattr(self, name) for name in self.__struct_fields__})


AnyTurn = Turn | UnnumberedTurn


class SessionEnded(Control, frozen=True, kw_only=True, tag="session_ended", gc=False):
    """The conversation is over: close its memory and release its state."""

    reason: Annotated[str, about("Why the conversation is over.", CONTENT)] = "ended"


class AlertAcknowledged(Control, frozen=True, kw_only=True, tag="alert_acknowledged", gc=False):
    """Somebody looks at the alert: no renotification until it is resolved or grows worse."""

    alert_id: AlertId
    by: Annotated[Operator, about("Who acknowledged it.")] = ""
    note: Annotated[str, about("Remark of whoever acknowledged.", CONTENT)] = ""


class AlertTriaged(Control, frozen=True, kw_only=True, tag="alert_triaged", gc=False):
    """Somebody says who looks after an alert, until when it may rest, or which other it repeats; null: as it was.

    It shows no life of the session and moves no clock. Of a resolved alert it changes nothing, but its note is kept.
    """

    alert_id: AlertId
    assignee: Annotated[Operator | None, about("Who looks after it; empty: nobody.")] = None
    snoozed_until: Annotated[UtcTime | None, about("Not told again before, unless worse; past: told now.")] = None
    duplicate_of: Annotated[AlertId | None, about("Alert of the app that it repeats; empty: of none.")] = None
    note: Annotated[str, about("Remark.", CONTENT)] = ""
    by: Annotated[Operator, about("Who says so.")] = ""


class AlertLabelled(Control, frozen=True, kw_only=True, tag="alert_labelled", gc=False):
    """Somebody says whether an alert was right (the control event `label_alert`): back-tests measure by it.

    It changes nothing in the session, and may come long after its end. The latest label of an alert counts; one that
    names no alert says whether the session escalated, as of one that raised none.
    """

    alert_id: Annotated[str, about("Alert that it is of; empty: the session's.", IDENTIFIER, names="alert")]
    escalating: Annotated[bool, about("True: the session did escalate; false: a false alarm.", BEHAVIOUR)]
    reason: Annotated[str, about("Why, in their words.", CONTENT)] = ""
    by: Annotated[Operator, about("Who says so.")] = ""


class TurnsJudged(Control, frozen=True, kw_only=True, tag="turns_judged", gc=False):
    """A slower judge answered `JudgementRequested`: the alert is weighed anew; one that is over does not change."""

    alert_id: AlertId
    judge: Annotated[str, about("Name and version of the model that judged.", OPERATIONAL)]
    probability: Annotated[Ratio | None, about("That the turns it read are harmful, 0-1; null: no answer.")] = None
    failure: Annotated[str, about("Why it did not answer; empty if it did.", OPERATIONAL)] = ""
    elapsed_ms: Annotated[int, about("How long the judge took.", OPERATIONAL, unit="ms")] = 0


class ClockTicked(Control, frozen=True, kw_only=True, tag="clock_ticked", gc=False):
    """Written by a session worker when a partition is idle and a deadline is due.

    The time that counts is the broker's append time of this record, so that a replay sees the same clock.
    """


# --- out ---------------------------------------------------------------------------------------------------


class TurnNumbered(Output, frozen=True, kw_only=True, tag="turn_numbered", gc=False):
    """A turn that came without a number, and the number that the fold gave it; `source` is where it stands."""

    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    project_id: Annotated[Identifier | None, about("Project of the app, if any.", IDENTIFIER, names="project")] = None
    risk: Annotated[Ratio | None, about("An upstream model's risk, 0-1; null: the scorer fills it.")] = None
    metadata: Annotated[dict[str, Scalar] | None, about("Scalars passed through to the archive.", CONTENT)] = None
    message_id: MessageId | None = None

    @property
    def said(self) -> Turn:
        """The turn as a producer that counts would have sent it."""
        return Turn(**{name: getattr(self, name) for name in Turn.__struct_fields__ if name != "type"})


class SignalShare(Struct, frozen=True, gc=False):
    """One signal's value and its share of the combined score; the shares of an alert add up to 1."""

    name: Annotated[str, about("Name of the signal.", BEHAVIOUR)]
    value: Annotated[Share, about("Value of the signal, 0-1.")]
    share: Annotated[Share, about("Share of the combined score; the shares of an alert add up to 1.")]


class EvidenceTurn(Struct, frozen=True, gc=False):
    """A turn that an alert rests on. Id `session_turn` as in the vector store; never its text."""

    id: Annotated[str, about("`session_turn`, as in the vector store.", IDENTIFIER, names="turn")]
    turn: TurnIndex
    risk: Annotated[Share, about("Risk of the turn, 0-1.")]
    why: Annotated[str, about("Why this turn is evidence, in fixed words.", BEHAVIOUR)]
    log_odds: Annotated[float, about("What it added to the log-odds that the session escalates.", BEHAVIOUR)] = 0.0


class Contribution(Struct, frozen=True, gc=False):
    """What one signal adds to the log-odds that a session escalates, and what would be without it."""

    signal: Annotated[str, about("Name of the signal; `upstream` and `judge` are what others say.", BEHAVIOUR)]
    value: Annotated[Share, about("Value of the signal, 0-1.")]
    log_odds: Annotated[float, about("What it adds to the log-odds that the session escalates.", BEHAVIOUR)]
    probability_without: Annotated[Share, about("What the probability would be without the signal.")]
    alert_without: Annotated[bool, about("Whether the probability without it still reaches the threshold.", BEHAVIOUR)]
    why: Annotated[str, about("What the signal saw, in numbers.", BEHAVIOUR)] = ""


class TurnShare(Struct, frozen=True, gc=False):
    """What one turn added to the log-odds."""

    turn: TurnIndex
    log_odds: Annotated[float, about("What the turn added to the log-odds that the session escalates.", BEHAVIOUR)]


class Escalation(Struct, frozen=True):
    """The calibrated judgement of a session, taken apart exactly.

    `base_log_odds` and the `log_odds` of all contributions add up to `log_odds`, to the last digit (all are whole
    multiples of 0.0001); so do `base_log_odds`, `earlier_log_odds` and the `log_odds` of all `turns`.
    """

    probability: Annotated[Share, about("That the session escalates, 0-1.")]
    log_odds: Annotated[float, about("That the session escalates: the base and all contributions.", BEHAVIOUR)]
    base_log_odds: Annotated[float, about("Log-odds of a session of which nothing is known.", BEHAVIOUR)]
    threshold: Annotated[float, about("Probability from which an alert is raised.", OPERATIONAL, unit="0-1")]
    model: Annotated[str, about("Name and digest of the model that judged.", OPERATIONAL)]
    contributions: Annotated[list[Contribution], about("What each signal adds, the strongest first.", BEHAVIOUR)]
    turns: Annotated[list[TurnShare], about("What the last turns added, in the order of their arrival.", BEHAVIOUR)]
    earlier_log_odds: Annotated[float, about("What was added before these turns, and by a judge.", BEHAVIOUR)]


class RiskPoint(Struct, frozen=True, gc=False):
    """Risk of one turn: the history beyond the window lives in the archive as these."""

    turn: TurnIndex
    timestamp: EventTime
    risk: Annotated[Share, about("Risk of the turn, 0-1.")]
    score: Score
    mode: RiskMode
    risk_source: Annotated[str, about("Who gave the risk: `upstream`, the producer, or `rules`.", BEHAVIOUR)]


class ModeTransition(Struct, frozen=True, gc=False):
    """At which turn the mode became what."""

    turn: TurnIndex
    mode: RiskMode


class Slope(Struct, frozen=True, gc=False):
    """Least-squares slope of risk per turn over the trajectory window, as `scipy.stats.linregress`."""

    per_turn: Annotated[float, about("Least-squares slope of risk, per turn.", BEHAVIOUR)]
    stderr: Annotated[float, about("Standard error of the slope.", BEHAVIOUR)]
    n: Annotated[int, about("Number of turns in the regression.", BEHAVIOUR)]


class ProfileUpdated(Output, frozen=True, kw_only=True, tag="profile_updated"):
    """The session's profile after `turn_count` turns. Compacted by session."""

    open: Annotated[bool, about("Whether the session still goes on.", BEHAVIOUR)]
    turn_count: Annotated[int, about("Turns folded, duplicates not counted.", BEHAVIOUR)]
    last_turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    duplicate_turns: Annotated[int, about("Turns that came again with a known number.", BEHAVIOUR)]
    late_turns: Annotated[int, about("Turns that came too late to be folded.", BEHAVIOUR)]
    started_at: StartTime
    peak_risk: Annotated[Share, about("Highest risk of any turn.")]
    mean_risk: Annotated[Share, about("Mean risk of all scored turns.")]
    slope: Annotated[Slope, about("Slope of risk over the trajectory window.", BEHAVIOUR)]
    mode: RiskMode
    mode_transitions: Annotated[list[ModeTransition], about("At which turn the mode became what.", BEHAVIOUR)]
    question_count: Annotated[int, about("Turns that ask something.", BEHAVIOUR)]
    imperative_count: Annotated[int, about("Turns that demand something.", BEHAVIOUR)]
    topic_changes: Annotated[int, about("How often the topic of conversation changed.", BEHAVIOUR)]
    repeated_topics: Annotated[dict[str, int], about("Topic to how often it came back.", CONTENT)]
    probing_attempts: Annotated[int, about("Turns that ask about safety or limits.", BEHAVIOUR)]
    hypothetical_count: Annotated[int, about("Turns with a hypothetical frame.", BEHAVIOUR)]
    meta_instruction_count: Annotated[int, about("Turns about the assistant's own instructions.", BEHAVIOUR)]
    suspicion: Annotated[Share, about("Behavioural suspicion score, 0-1.")]
    score: Score
    signals: Annotated[list[SignalShare], about("The signals of the combined score, each with its share.", BEHAVIOUR)]
    risk_points: Annotated[list[RiskPoint], about("Turns scored since the previous profile.", BEHAVIOUR)]
    language: Annotated[str, about("Of the last user turn, ISO 639-1, or `unsupported`: no risk.", BEHAVIOUR)] = "en"
    unsupported: UnsupportedTurns = field(default_factory=dict)


class WindowClosed(Output, frozen=True, kw_only=True, tag="window_closed"):
    """Counts of one event-time window, of one session or of one app on one partition.

    An app's sessions are spread over partitions: its window is the sum over `source.partition`
    (the SQL view `windows` adds them up). For an app, `session_id` and `user_id` are empty.
    """

    session_id: Annotated[SessionId, about("Conversation; empty for an app.")]
    user_id: Annotated[UserId, about("User; empty for an app.")]
    scope: Annotated[Literal["session", "app"], about("Whether the window counts one session or one app.", BEHAVIOUR)]
    window_start: Annotated[UtcTime, about("Begin of the window, inside.")]
    window_end: Annotated[UtcTime, about("End of the window, outside.")]
    turns: Annotated[int, about("Turns counted.", BEHAVIOUR)]
    turns_per_minute: Annotated[float, about("Turns per minute of the window.", BEHAVIOUR, unit="turns/min")]
    risk_sum: Annotated[float, about("Sum of the risks in the window.", BEHAVIOUR, unit="sum of 0-1")]
    risk_max: Annotated[Share, about("Highest risk in the window.")]
    scored_turns: Annotated[int, about("Turns of the window that have a risk.", BEHAVIOUR)]
    alerts: Annotated[int, about("Alerts raised in the window.", BEHAVIOUR)]
    late_turns: Annotated[int, about("Turns that came after their window had closed.", BEHAVIOUR)]


class EpisodeClosed(Output, frozen=True, kw_only=True, tag="episode_closed"):
    """A session ended or timed out: what is kept of it when its state is released."""

    reason: Annotated[str, about("Why the session closed.", BEHAVIOUR)]
    first_turn: FirstTurn
    last_turn: LastTurn
    turn_count: Annotated[int, about("Turns folded, duplicates not counted.", BEHAVIOUR)]
    summary: Summary
    key_topics: KeyTopics
    started_at: StartTime
    ended_at: EndTime
    peak_risk: Annotated[Share, about("Highest risk of any turn.")]
    mean_risk: Annotated[Share, about("Mean risk of all scored turns.")]
    mode: RiskMode
    alerts: Annotated[int, about("Alerts raised in the session.", BEHAVIOUR)]


class AlertStatus(StrEnum):
    """Life cycle of an alert."""

    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Severity(StrEnum):
    """How urgent."""

    WARNING = "warning"
    CRITICAL = "critical"


class Harm(StrEnum):
    """Which kind of harm an alert is about."""

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
    """An alert fired, was repeated, acknowledged, triaged, made worse or resolved.

    `alert_id` names the alert through its life, `id` this change of it; `fingerprint` groups alerts of the
    same session and kind over time.
    """

    alert_id: AlertId
    fingerprint: Annotated[str, about("Groups alerts of one session and kind over time.", IDENTIFIER)]
    status: Annotated[AlertStatus, about("Firing, acknowledged or resolved.", BEHAVIOUR)]
    severity: Annotated[Severity, about("How urgent.", BEHAVIOUR)]
    cause: Annotated[
        AlertCause, about("What happened; `woken`: its snooze is over, or it is no duplicate any more.", BEHAVIOUR)
    ]
    reason: Annotated[str, about("Why, in one sentence, without any turn's text.", BEHAVIOUR)]
    score: Score
    mode: RiskMode
    signals: Annotated[list[SignalShare], about("The signals of the combined score, each with its share.", BEHAVIOUR)]
    slope: Annotated[Slope, about("Slope of risk over the trajectory window.", BEHAVIOUR)]
    evidence: Annotated[list[EvidenceTurn], about("Turns that the alert rests on, never their text.", IDENTIFIER)]
    turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    fired_at: Annotated[UtcTime, about("Event time at which the alert was first raised.")]
    notifications: Annotated[int, about("How often the alert was sent, this change included.", BEHAVIOUR)]
    policy_version: Annotated[str, about("Version of the policy that decided.", OPERATIONAL)]
    policy_digest: Annotated[str, about("Of the policy's content, weights too; 12 digits, SHA-256.", OPERATIONAL)] = ""
    escalation: Annotated[Escalation | None, about("The judgement, taken apart; null: no model judges.", BEHAVIOUR)] = (
        None
    )
    category: Annotated[Harm, about("Kind of harm that its turns are about; `other`: none is clear.", BEHAVIOUR)] = (
        Harm.OTHER
    )
    assignee: Annotated[Operator, about("Who looks after it; empty: nobody.")] = ""
    snoozed_until: Annotated[UtcTime | None, about("Not told again before, unless it grows worse.")] = None
    duplicate_of: Annotated[AlertId, about("Alert that it repeats; empty: of none.")] = ""
    by: Annotated[Operator, about("Who acknowledged or triaged it, of a change that somebody made.")] = ""

    @property
    def is_silenced(self) -> bool:
        """Whether nobody is to be called by it: it is snoozed, or a duplicate, and not over."""
        return self.status is not AlertStatus.RESOLVED and bool(self.snoozed_until or self.duplicate_of)


class JudgedTurn(Struct, frozen=True, gc=False):
    """A turn as a judge reads it."""

    turn: TurnIndex
    role: Speaker
    content: Annotated[str, about("Text of the turn; a long one is cut.", CONTENT)]


class JudgementRequested(Output, frozen=True, kw_only=True, tag="judgement_requested"):
    """An alert was raised, and a slower judge is to read its last turns. Never waited for."""

    alert_id: AlertId
    turn: Annotated[TurnIndex, about("Highest turn number of the session when the alert was raised.")]
    turns: Annotated[list[JudgedTurn], about("The last turns, long ones cut.", CONTENT)]


class DeadLetter(Struct, frozen=True, kw_only=True, tag_field="type", tag="dead_letter"):
    """Bad input, with its original bytes (base64 in JSON), reason and place."""

    id: EventId
    topic: Annotated[str, about("Topic of the bad record.", OPERATIONAL)]
    partition: Annotated[int, about("Partition of the bad record.", OPERATIONAL, unit="number")]
    offset: Annotated[int, about("Offset of the bad record in its partition.", OPERATIONAL, unit="offset")]
    stage: Annotated[str, about("Where it was refused.", OPERATIONAL)]
    reason: Annotated[str, about("Constant word for the kind of fault.", BEHAVIOUR)]
    detail: Annotated[str, about("What exactly is wrong, without any of the record's text.", BEHAVIOUR)]
    key: Annotated[bytes | None, about("Original record key.", CONTENT)]
    value: Annotated[bytes | None, about("Original record value.", CONTENT)]
    headers: Annotated[list[tuple[str, bytes | None]], about("Original record headers.", CONTENT)]
    appended_at: Annotated[UtcTime, about("When the broker appended the bad record.", OPERATIONAL)]


class TurnCorrected(Control, frozen=True, kw_only=True, tag="turn_corrected", gc=False):
    """Somebody puts the text of a turn right, also long after the session's end; the latest correction counts.

    The old text stays in the archive until it is erased. What was made of it before (risk, alerts, summaries, episodes,
    memories of projects and apps) stays as it is.
    """

    app_id: Annotated[AppId, NAMED, about("App of the conversation.")]
    user_id: Annotated[UserId, NAMED, about("User whose turn it is, or who was answered.")]
    turn: Annotated[TurnNumber, about("Turn that is put right.")]
    content: Annotated[str, about("The new text of the message, at most 256 KiB of UTF-8.", CONTENT)]
    by: Annotated[Operator, about("Who put it right.")] = ""
    reason: Annotated[str, about("Why, in their words.", CONTENT)] = ""
