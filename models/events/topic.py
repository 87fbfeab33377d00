"""Events of a session's memory: its topics, and its segments, turns that became a summary."""

# ruff: noqa: F403, F405 - the vocabulary of fields

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from models.events.base import NOT_ASKED, AskedOffset, Control, Output, Position, RequestedTurn, Speaker
from models.events.fields import *

TOPIC_DIMS = 256
"""Of a topic's embedding: topics are told apart better than with the 64 of the detectors (`lab eval topics`)."""


class TopicAdjusted(Control, frozen=True, kw_only=True, tag="topic_adjusted", gc=False):
    """Somebody rates or tags a topic of the session; what is not named stays."""

    topic_id: Annotated[TopicId | None, about("Topic that is meant; null: the active one.")] = None
    importance: Annotated[Ratio | None, about("The new importance, 0-1; null: as it was.")] = None
    tags: Annotated[list[str] | None, about("In place of the tags it had; null: as they were.", CONTENT)] = None


class FeedbackGiven(Control, frozen=True, kw_only=True, tag="feedback_given", gc=False):
    """A user liked (up to 1) or disliked (down to -1) an answer: the topic's importance learns from it."""

    value: Annotated[float, about("From -1, disliked, to 1, liked.", BEHAVIOUR, unit="-1 to 1", ge=-1.0, le=1.0)]
    topic_id: Annotated[TopicId | None, about("Topic that is meant; null: that of `turn`, or the active one.")] = None
    turn: Annotated[TurnNumber | None, about("Turn whose topic is meant; null: `topic_id`, or the active one.")] = None


class TopicSummarised(Control, frozen=True, kw_only=True, tag="topic_summarised", gc=False):
    """A slower summariser finished: its text replaces the summary of a topic, and is updated from then on."""

    topic_id: Annotated[TopicId, NAMED]
    summary: Summary
    summarised_by: SummarisedBy
    packed: Annotated[int | None, about("As in the request; null: whatever is packed by now.", BEHAVIOUR)] = None
    asked_offset: AskedOffset = NOT_ASKED


class RestoredMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message on its way from the archive back into a topic."""

    turn: Annotated[TurnNumber, about("Turn number: position in the session.")]
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    timestamp: EventTime


class TopicRestored(Control, frozen=True, kw_only=True, tag="topic_restored", gc=False):
    """An evicted topic comes back from the archive, under its old id."""

    topic_id: Annotated[TopicId, NAMED]
    title: Annotated[str, about("Beginning of the topic's first message.", CONTENT)]
    created_at: Annotated[UtcTime, about("Event time of its first message.")]
    importance: Annotated[Ratio, about("How important the topic is, 0-1: rated by users, learnt from feedback.")]
    access_count: Annotated[int, about("How often a user came to the topic.", BEHAVIOUR, ge=0, le=2**53)]
    tags: Annotated[list[str], about("Words that users gave the topic.", CONTENT)] = field(default_factory=list)
    summary: Summary = ""
    messages: Annotated[list[RestoredMessage], about("Its latest messages, oldest first.", CONTENT)] = field(
        default_factory=list
    )


class KeptTopic(Struct, frozen=True, kw_only=True, gc=False):
    """A topic on its way between a session and its user's memory. To another session it takes numbers, never words."""

    topic_id: TopicId
    created_at: Annotated[UtcTime, about("Event time of its first message.")]
    last_active_at: Annotated[UtcTime, about("Event time of its latest message or access.")]
    importance: Annotated[Ratio, about("How important the topic is, 0-1: rated by users, learnt from feedback.")]
    messages: Annotated[int, about("Messages that joined it.", BEHAVIOUR, ge=0, le=2**53)]
    accesses: Annotated[int, about("How often a user came to it.", BEHAVIOUR, ge=0, le=2**53)]
    weight: Annotated[
        int, about("Messages that its embedding is the mean of; 0: it has none.", BEHAVIOUR, ge=0, le=255)
    ]
    embedding: Annotated[
        list[Annotated[int, Meta(ge=-128, le=127)]],
        about("Mean of its user messages, 256 dimensions.", CONTENT, max_length=TOPIC_DIMS),
    ]
    turns: Annotated[list[int], about("Its turns in the session: first and last number of each run.", BEHAVIOUR)] = []
    title: Annotated[str, about("Beginning of its first message; empty in another session.", CONTENT)] = ""
    tags: Annotated[list[str], about("Words that users gave it; none in another session.", CONTENT)] = []
    summary: Annotated[Summary, about("Its summary; empty in another session.", CONTENT)] = ""
    summarised_by: SummarisedBy = ""


class TopicsKept(Output, frozen=True, kw_only=True, tag="topics_kept"):
    """A session closed: what was said of its topics since its user's memory was told last, for their retention."""

    topics: Annotated[list[KeptTopic], about("Messages and accesses are those that are new.", CONTENT)]


class TopicsRecalled(Control, frozen=True, kw_only=True, tag="topics_recalled", gc=False):
    """A user came back: the session gets the topics of earlier ones that have not faded."""

    id: EventId
    user_id: UserId
    source: Annotated[Position, about("The turn with which the user came back.", OPERATIONAL)]
    topics: Annotated[list[KeptTopic], about("Highest priority first.", CONTENT, max_length=64)]


TopicControl = TopicAdjusted | FeedbackGiven | TopicSummarised | TopicRestored | TopicsRecalled


class TopicSummaryRequested(Output, frozen=True, kw_only=True, tag="topic_summary_requested"):
    """A slower summariser is to say better what was packed. Never waited for; answered by `TopicSummarised`."""

    topic_id: TopicId
    packed: Annotated[int, about("Messages that the summary stands for: an answer for fewer is late.", BEHAVIOUR)]
    summary: Annotated[Summary, about("The topic's summary before; empty for none.")]
    turns: Annotated[list[RequestedTurn], about("The messages that were packed, long ones cut.", CONTENT)]


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

    turns: Annotated[list[int], about("Numbers of the turns that it packed.", BEHAVIOUR)]
    tokens_before: Annotated[Tokens, about("Tokens of the messages that were packed.")]
    tokens_after: Tokens
    bytes_before: Annotated[Bytes, about("Size of the packed messages' JSON, of those packed again too.")]
    bytes_after: Annotated[Bytes, about("Size of these messages, packed.")]
    ratio: Annotated[float, about("Bytes after to bytes before.", OPERATIONAL, unit="bytes/byte")]
    summarised_by: SummarisedBy
    probes: Annotated[int, about("Packed messages that name anything to search for.", BEHAVIOUR)]
    probes_found: Annotated[int, about("Of these, those that a search still finds in the summary.", BEHAVIOUR)]
    loss: Annotated[Share, about("Share of the probes that are not found, 0-1; no message is lost.")]
    codec: Annotated[str, about("Packing: zstd or deflate (with a dictionary), or gzip (and base64).", OPERATIONAL)]
    released_turns: Annotated[list[int], about("Turns that it released: the archive alone has them.", BEHAVIOUR)]


class TopicChanged(Output, frozen=True, kw_only=True, tag="topic_changed"):
    """A topic of a session came, went or changed; the whole topic as it is now, without its messages' text.

    Turns that no event of the session names yet belong to the active topic.
    """

    topic_id: TopicId
    title: Annotated[str, about("Beginning of the topic's first message.", CONTENT)]
    cause: Annotated[TopicCause, about("What happened to the topic.", BEHAVIOUR)]
    detail: Annotated[str, about("With which topic it merged, or why it was evicted.", BEHAVIOUR)]
    active: Annotated[bool, about("Whether the next message joins it, if no other topic is nearer.", BEHAVIOUR)]
    kept: Annotated[bool, about("False in the last event of one evicted or merged: the archive has it.", BEHAVIOUR)]
    turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    message_count: Annotated[int, about("Messages that joined it, packed and released ones too.", BEHAVIOUR)]
    access_count: Annotated[int, about("How often a user came to it; the half-life grows with it.", BEHAVIOUR)]
    importance: Annotated[Share, about("How important the topic is, 0-1: rated by users, learnt from feedback.")]
    priority: Annotated[Share, about("Importance, halved with every half-life since it was last active.")]
    half_life_days: Annotated[float, about("Time in which its priority halves, in days.", BEHAVIOUR, unit="days")]
    memory_type: Annotated[str, about("Short-term, transitioning or long-term, by the half-life.", BEHAVIOUR)]
    tags: Annotated[list[str], about("Words that users gave the topic.", CONTENT)]
    created_at: Annotated[UtcTime, about("Event time of its first message.")]
    last_active_at: Annotated[UtcTime, about("Event time of its latest message or access.")]
    active_turns: Annotated[list[int], about("Numbers of the turns at hand, in order.", BEHAVIOUR)]
    packed_turns: Annotated[list[int], about("Numbers of those in the packed history, in order of time.", BEHAVIOUR)]
    released_messages: Annotated[int, about("Messages that the archive alone has.", BEHAVIOUR)]
    packed_bytes: Annotated[Bytes, about("Size of the packed history.")]
    summary: Annotated[str | None, about("Of the packed messages, shorter; null before the first compaction.", CONTENT)]
    summarised_by: Annotated[SummarisedBy | None, about("What wrote the summary; null as long as there is none.")]
    session_topics: Annotated[int, about("Topics that the session keeps after this change.", BEHAVIOUR)]
    compaction: Annotated[TopicCompaction | None, about("What it packed and cost; null: another cause.", BEHAVIOUR)]
    released_runs: Annotated[
        list[int], about("Turns that index and archive alone have: first and last number of each run.", BEHAVIOUR)
    ] = field(default_factory=list)
    recalled_messages: Annotated[int, about("Of its messages, those of the user's other sessions.", BEHAVIOUR)] = 0


class SegmentSummarised(Control, frozen=True, kw_only=True, tag="segment_summarised", gc=False):
    """A slower summariser finished: its text replaces the extractive one of that segment."""

    first_turn: Annotated[TurnNumber, about("Lowest turn number, inside the range.")]
    last_turn: Annotated[TurnNumber, about("Highest turn number, inside the range.")]
    summary: Summary
    summarised_by: SummarisedBy
    ended_at: Annotated[UtcTime | None, about("As in the request; null: of whatever segment has this range.")] = None
    asked_offset: AskedOffset = NOT_ASKED


class SegmentCompacted(Output, frozen=True, kw_only=True, tag="segment_compacted"):
    """Turns of the working memory became a summary. Both ends of the range are inside."""

    first_turn: FirstTurn
    last_turn: LastTurn
    turns: Annotated[list[int], about("Numbers of the turns that the summary stands for.", BEHAVIOUR)]
    summary: Summary
    summarised_by: SummarisedBy
    risk_mean: Annotated[Share, about("Mean risk of the turns in the segment.")]
    key_topics: KeyTopics
    started_at: StartTime
    ended_at: EndTime
    tokens_before: Annotated[Tokens, about("Tokens of the turns that it stands for.")]
    tokens_after: Tokens
    bytes_before: Annotated[Bytes, about("UTF-8 bytes of the turns that it stands for.")]
    bytes_after: Bytes


class SegmentRequested(Output, frozen=True, kw_only=True, tag="segment_requested"):
    """A slower summariser is to say better what a segment says. Never waited for; answered by `SegmentSummarised`."""

    first_turn: FirstTurn
    last_turn: LastTurn
    turns: Annotated[list[RequestedTurn], about("The turns, long ones cut.", CONTENT)]
    ended_at: EndTime
