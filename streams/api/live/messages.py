"""Answers of `/v1/live` in JSON: times RFC 3339 in UTC, risks 0-1. Text only where it is said so."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events.fields import Identifier, UtcTime

Readiness = Literal["ready", "not_ready", "away", "unknown"]
SearchKind = Literal["turns", "episodes", "facts", "memories"]


class Me(Struct, frozen=True, kw_only=True):
    """Who asks, and what they may.

    Attributes:
        name: Of the token, as the audit has it.
        role: `reader`, `operator` or `admin`.
        text: Whether they may read what was said.
        apps: Whose sessions they see; None for all.
        tokens: Whether this server asks for tokens at all.
    """

    name: str
    role: str
    text: bool
    apps: list[str] | None
    tokens: bool


class RowAlert(Struct, frozen=True, kw_only=True):
    """The gravest alert of a session that is not resolved, else its last."""

    alert_id: str
    severity: str
    status: str


class Row(Struct, frozen=True, kw_only=True):
    """One session as its last profile has it.

    Attributes:
        risk: The score that moves the mode.
        slope: Of the risk, per turn.
        turns: How many were counted.
        last_turn: Highest number of a turn.
        open: False once it ended or timed out.
        spark: The score after each of the last turns, at most 40, the oldest first.
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
    """One alert as its last change has it.

    Attributes:
        cause: Of the last change.
        category: Kind of harm that it is about.
        sentence: What a person needs to know, without any words of a turn.
        reason: The strongest signals, likewise.
        score: 0-1.
        probability: That the session escalates; None where the source formulas alone decide.
        turn: Last turn at the change.
        evidence: Numbers of the turns that it rests on.
        trace_id: Of the trace that the change belongs to (W3C, 32 hexadecimal digits).
        label: Whether somebody said that it was right; None while nobody did.
        assignee: Who looks after it; empty: nobody.
        snoozed_until: It rests until then; `duplicate_of`: it repeats that alert.
        by: Who made the last change, if somebody did.
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
        lag_records: Records that wait for it; None where that is not known.
    """

    role: str
    state: Readiness
    detail: str = ""
    lag_records: int | None = None


class Reading(Struct, frozen=True, kw_only=True):
    """How far what fills the page has come: says what is missing where nothing is shown.

    Attributes:
        kafka: `away` if it does not answer, `without_topics` if it has none of Turntide's; `connecting` at first.
        turns: Records of `turns.v1` that were read, from `live.label_window` before the start on.
    """

    kafka: Literal["connecting", "away", "without_topics", "read"] = "connecting"
    turns: int = 0


class Snapshot(Struct, frozen=True, kw_only=True):
    """What is known when a stream begins, in pieces; `more` is false in the last."""

    sessions: list[Row]
    alerts: list[AlertRow]
    roles: list[RoleRow]
    reading: Reading
    more: bool


class GoneSession(Struct, frozen=True, kw_only=True):
    """A session that is shown no more."""

    app_id: str
    session_id: str


class Changes(Struct, frozen=True, kw_only=True):
    """What changed since the last event of the stream; of each session and alert its latest standing."""

    sessions: list[Row]
    gone: list[str]
    """Ids of sessions that are shown no more: erased, or the longest silent of too many."""
    gone_sessions: list[GoneSession]
    """The same, each with its app."""
    alerts: list[AlertRow]


class Roles(Struct, frozen=True, kw_only=True):
    """Health of the roles, every five seconds."""

    roles: list[RoleRow]
    reading: Reading


# --- one session


class TimelineTurn(Struct, frozen=True, kw_only=True):
    """One turn without its text; `evidence` are the alerts that rest on it."""

    turn: int
    role: str
    timestamp: UtcTime
    risk: float | None
    evidence: list[str]


class ModeChange(Struct, frozen=True, kw_only=True):
    """At which turn the mode became what, and when that turn was, if it is known."""

    turn: int
    from_mode: str
    to_mode: str
    at: UtcTime | None


class Segment(Struct, frozen=True, kw_only=True):
    """Turns that became a summary, and what that saved; the summary is text."""

    first_turn: int
    last_turn: int
    tokens_before: int
    tokens_after: int
    summary: str | None


class TimelineTopic(Struct, frozen=True, kw_only=True):
    """A topic of the session; its title is text."""

    topic: str
    title: str | None
    importance: float
    message_count: int
    state: Literal["active", "kept", "gone"]


class TimelineFact(Struct, frozen=True, kw_only=True):
    """A fact that the session said; its value is text."""

    category: str
    key: str
    value: str | None
    active: bool


class TimelineEpisode(Struct, frozen=True, kw_only=True):
    """An episode with turns of the session, counted over all of its user's; its summary is text."""

    episode: int
    first_turn: int
    last_turn: int
    summary: str | None


class Share(Struct, frozen=True, kw_only=True):
    """A signal's share of what made the score; all of an alert add up to 1."""

    name: str
    share: float


class Weight(Struct, frozen=True, kw_only=True):
    """What a turn added, in log-odds."""

    turn: int
    weight: float


class AlertNote(Struct, frozen=True, kw_only=True):
    """What somebody remarked; the remark is text."""

    by: str
    at: UtcTime
    note: str | None


class AlertDetail(AlertRow, frozen=True, kw_only=True):
    """An alert with its grounds.

    Attributes:
        next_step: What to do.
        quote: What was said in the worst turn, without secrets and personal data: text.
        counterfactual: What had to be otherwise.
    """

    notes: list[AlertNote]
    next_step: str
    quote: str | None
    signals: list[Share]
    contributions: list[Weight]
    counterfactual: str | None


class Timeline(Struct, frozen=True, kw_only=True):
    """One session from all that is known of it."""

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
    """Something that a search found, the better the higher the score; comparable within one kind only."""

    kind: SearchKind
    session_id: str | None
    turn: int | None
    user_id: str
    app_id: str
    score: float
    text: str | None
    """None where it was not asked for."""


class Hits(Struct, frozen=True, kw_only=True):
    """What a search found, best first."""

    hits: list[Hit]


# --- what people do


class Acknowledge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody looks at an alert."""

    session_id: Identifier
    note: str = ""


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody says whether an alert was right."""

    session_id: Identifier
    label: bool
    reason: str = ""


class NamedAlert(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several alerts."""

    alert_id: Identifier
    session_id: Identifier


class OfAlerts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of several alerts at once: of all or, if one does not take it, of none."""

    alerts: Annotated[list[NamedAlert], Meta(min_length=1, max_length=100)]


class Triage(OfAlerts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who looks after them, until when they rest, which other they repeat; what is left out stays as it is.

    Attributes:
        assignee: Empty: nobody.
        snoozed_until: Past: they are told now.
        duplicate_of: An alert of their app; empty: of none.
    """

    assignee: Annotated[str, Meta(max_length=256)] | None = None
    snoozed_until: UtcTime | None = None
    duplicate_of: Annotated[str, Meta(max_length=256)] | None = None
    note: str = ""


class LabelAll(OfAlerts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody says whether they were right."""

    label: bool
    reason: str = ""


class Written(Struct, frozen=True, kw_only=True):
    """Where the event stands; what comes of it is told by the stream."""

    topic: str
    partition: int
    offset: int


class AllWritten(Struct, frozen=True, kw_only=True):
    """The same of several, in their order."""

    written: list[Written]
