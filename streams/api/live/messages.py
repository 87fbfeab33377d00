"""Answers of `/v1/live` in JSON: times RFC 3339 in UTC, risks 0-1. Text only where it is said so."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.fields import Identifier, UtcTime

Readiness = Literal["ready", "not_ready", "away", "unknown"]
SearchKind = Literal["turns", "episodes", "facts", "memories"]


class Me(Struct, frozen=True, kw_only=True):
    """The caller and its permissions.

    Attributes:
        name: Name of the token, as in the audit.
        role: `reader`, `operator` or `admin`.
        text: Whether the caller may read text.
        apps: Ids of the readable apps; null: all.
        tokens: Whether this server requires tokens.
    """

    name: str
    role: str
    text: bool
    apps: list[str] | None
    tokens: bool


class RowAlert(Struct, frozen=True, kw_only=True):
    """The most severe unresolved alert of a session, else its last alert."""

    alert_id: str
    severity: str
    status: str


class Row(Struct, frozen=True, kw_only=True):
    """A session, from its last profile.

    Attributes:
        risk: Score that sets the mode, 0-1.
        slope: Slope of the risk, per turn.
        turns: Number of counted turns.
        last_turn: Highest turn number.
        open: False after the session ended or timed out.
        spark: Score after each of the last 40 turns at most, oldest first.
    """

    session_id: str
    app_id: str
    user_id: str
    risk: float
    peak_risk: float
    slope: float
    mode: str
    turns: int
    last_turn: int
    started_at: UtcTime
    updated_at: UtcTime
    open: bool
    spark: list[float]
    alert: RowAlert | None


class AlertRow(Struct, frozen=True, kw_only=True):
    """An alert, from its last change.

    Attributes:
        cause: Cause of the last change.
        category: Kind of harm.
        sentence: Explanation in one sentence, without text of a turn.
        reason: Strongest signals, without text of a turn.
        score: Score at the change, 0-1.
        probability: Probability that the session escalates; null if only the source formulas decide.
        turn: Number of the last turn at the change.
        evidence: Numbers of the turns that are evidence.
        trace_id: Trace of the change (W3C, 32 hexadecimal digits).
        label: Whether it was labelled as correct; null: no label.
        assignee: Assigned person; empty: nobody.
        snoozed_until: End of the snooze; `duplicate_of`: id of the original alert.
        by: Name of the token of the last change; empty: automatic.
    """

    alert_id: str
    session_id: str
    app_id: str
    user_id: str
    severity: str
    status: str
    cause: str
    category: str
    sentence: str
    reason: str
    score: float
    probability: float | None
    turn: int
    evidence: list[int]
    fired_at: UtcTime
    updated_at: UtcTime
    trace_id: str | None
    label: bool | None
    assignee: str
    snoozed_until: UtcTime | None
    duplicate_of: str
    by: str


class RoleRow(Struct, frozen=True, kw_only=True):
    """Health of one role.

    Attributes:
        state: `ready`, `not_ready` with the reason as `detail`, `away` if nothing answers, `unknown` until asked.
        lag_records: Number of waiting records; null: unknown.
    """

    role: str
    state: Readiness
    detail: str = ""
    lag_records: int | None = None


class Reading(Struct, frozen=True, kw_only=True):
    """Progress of the live data, to explain an empty page.

    Attributes:
        kafka: `connecting` at first, `away` without a response, `without_topics` without Turntide's topics, or `read`.
        turns: Number of records read from `turns.v1`, beginning `live.label_window` before the start.
    """

    kafka: Literal["connecting", "away", "without_topics", "read"] = "connecting"
    turns: int = 0


class Snapshot(Struct, frozen=True, kw_only=True):
    """State at the start of a stream, in parts; `more` is false in the last part."""

    sessions: list[Row]
    alerts: list[AlertRow]
    roles: list[RoleRow]
    reading: Reading
    more: bool


class GoneSession(Struct, frozen=True, kw_only=True):
    """A session that is no longer shown."""

    app_id: str
    session_id: str


class Changes(Struct, frozen=True, kw_only=True):
    """Changes since the last event of the stream: the latest state of each changed session and alert."""

    sessions: list[Row]
    gone: list[str]
    """Ids of sessions that are no longer shown: erased, or the longest inactive above the limit."""
    gone_sessions: list[GoneSession]
    """The same, each with its app."""
    alerts: list[AlertRow]


class Roles(Struct, frozen=True, kw_only=True):
    """Health of the roles, every five seconds."""

    roles: list[RoleRow]
    reading: Reading


# --- one session


class TimelineTurn(Struct, frozen=True, kw_only=True):
    """A turn without its text; `evidence` has the ids of the alerts that it is evidence of."""

    turn: int
    role: str
    timestamp: UtcTime
    risk: float | None
    evidence: list[str]


class ModeChange(Struct, frozen=True, kw_only=True):
    """A change of the risk mode, with its turn and, if known, the time of the turn."""

    turn: int
    from_mode: str
    to_mode: str
    at: UtcTime | None


class Segment(Struct, frozen=True, kw_only=True):
    """A range of turns that became a summary, with tokens before and after; the summary needs text permission."""

    first_turn: int
    last_turn: int
    tokens_before: int
    tokens_after: int
    summary: str | None


class TimelineTopic(Struct, frozen=True, kw_only=True):
    """A topic of the session; the title needs text permission."""

    topic: str
    title: str | None
    importance: float
    message_count: int
    state: Literal["active", "kept", "gone"]


class TimelineFact(Struct, frozen=True, kw_only=True):
    """A fact said in the session; the value needs text permission."""

    category: str
    key: str
    value: str | None
    active: bool


class TimelineEpisode(Struct, frozen=True, kw_only=True):
    """An episode with turns of the session, numbered over all turns of its user; the summary needs text permission."""

    episode: int
    first_turn: int
    last_turn: int
    summary: str | None


class Share(Struct, frozen=True, kw_only=True):
    """Share of a signal in the score; the shares of an alert add up to 1."""

    name: str
    share: float


class Weight(Struct, frozen=True, kw_only=True):
    """Contribution of a turn, in log-odds."""

    turn: int
    weight: float


class AlertNote(Struct, frozen=True, kw_only=True):
    """A note on an alert; the note needs text permission."""

    by: str
    at: UtcTime
    note: str | None


class AlertDetail(AlertRow, frozen=True, kw_only=True):
    """An alert with its evidence.

    Attributes:
        next_step: Recommended action.
        quote: Text of the worst turn without secrets and personal data; needs text permission.
        counterfactual: Change that would have avoided the alert.
    """

    notes: list[AlertNote]
    next_step: str
    quote: str | None
    signals: list[Share]
    contributions: list[Weight]
    counterfactual: str | None


class Timeline(Struct, frozen=True, kw_only=True):
    """Full history of one session."""

    session: Row
    turns: list[TimelineTurn]
    modes: list[ModeChange]
    segments: list[Segment]
    topics: list[TimelineTopic]
    facts: list[TimelineFact]
    episodes: list[TimelineEpisode]
    alerts: list[AlertDetail]


class SaidTurn(Struct, frozen=True, kw_only=True):
    """A turn with its text."""

    turn: int
    role: str
    content: str
    timestamp: UtcTime


class Said(Struct, frozen=True, kw_only=True):
    """Turns of a session with their text, in order of number."""

    turns: list[SaidTurn]


class Hit(Struct, frozen=True, kw_only=True):
    """A search result. Scores are comparable within one kind only; higher is better."""

    kind: SearchKind
    session_id: str | None
    turn: int | None
    user_id: str
    app_id: str
    score: float
    text: str | None
    """Null unless requested."""


class Hits(Struct, frozen=True, kw_only=True):
    """Search results, best first."""

    hits: list[Hit]


# --- what people do


class Acknowledge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acknowledgement of an alert."""

    session_id: Identifier
    note: str = ""


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Label of an alert: whether it was correct."""

    session_id: Identifier
    label: bool
    reason: str = ""


class NamedAlert(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reference to an alert."""

    alert_id: Identifier
    session_id: Identifier


class OfAlerts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to several alerts: to all or, if one is invalid, to none."""

    alerts: Annotated[list[NamedAlert], Meta(min_length=1, max_length=100)]


class Triage(OfAlerts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Assignee, snooze and original of several alerts. Omitted fields stay unchanged.

    Attributes:
        assignee: New assignee; empty: nobody.
        snoozed_until: End of the snooze; a past time ends it now.
        duplicate_of: Id of the original alert in the same app; empty: no duplicate.
    """

    assignee: Annotated[str, Meta(max_length=256)] | None = None
    snoozed_until: UtcTime | None = None
    duplicate_of: Annotated[str, Meta(max_length=256)] | None = None
    note: str = ""


class LabelAll(OfAlerts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Label of several alerts: whether they were correct."""

    label: bool
    reason: str = ""


class Written(Struct, frozen=True, kw_only=True):
    """Position of the written event in the log. The stream reports its effect."""

    topic: str
    partition: int
    offset: int


class AllWritten(Struct, frozen=True, kw_only=True):
    """Positions of the written events, in the order of the request."""

    written: list[Written]
