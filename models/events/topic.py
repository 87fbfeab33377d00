"""Events of a session's topics (seed 001): what is said of them, and what becomes of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from models.events.base import Control, Identifier, Output, Ratio, Role, TurnNumber, UtcTime


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
    tags: list[str] = field(default_factory=list)
    summary: str = ""
    messages: list[RestoredMessage] = field(default_factory=list)


TopicControl = TopicAdjusted | FeedbackGiven | TopicSummarised | TopicRestored

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
