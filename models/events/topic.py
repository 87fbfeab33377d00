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
    """Somebody rates or tags a topic of the session. Omitted fields are unchanged."""

    topic_id: Annotated[TopicId | None, about("Id of the topic; null: the active topic.")] = None
    importance: Annotated[Ratio | None, about("New importance, 0-1; null: unchanged.")] = None
    tags: Annotated[list[str] | None, about("New tags, replacing the old; null: unchanged.", CONTENT)] = None


class FeedbackGiven(Control, frozen=True, kw_only=True, tag="feedback_given", gc=False):
    """A user liked (up to 1) or disliked (down to -1) an answer; this adjusts the importance of its topic."""

    value: Annotated[float, about("From -1 (disliked) to 1 (liked).", BEHAVIOUR, unit="-1 to 1", ge=-1.0, le=1.0)]
    topic_id: Annotated[TopicId | None, about("Id of the topic; null: that of `turn`, or the active topic.")] = None
    turn: Annotated[TurnNumber | None, about("Turn of the topic; null: see `topic_id`.")] = None


class TopicSummarised(Control, frozen=True, kw_only=True, tag="topic_summarised", gc=False):
    """Answer of a slower summariser: its text replaces the summary of a topic, and is updated from then on."""

    topic_id: Annotated[TopicId, NAMED]
    summary: Summary
    summarised_by: SummarisedBy
    packed: Annotated[int | None, about("Same as in the request; null: all messages packed by now.", BEHAVIOUR)] = None
    asked_offset: AskedOffset = NOT_ASKED


class RestoredMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message to restore from the archive into a topic."""

    turn: Annotated[TurnNumber, about("Turn number: position in the session.")]
    role: Speaker
    content: Annotated[str, about("Text of the message.", CONTENT)]
    timestamp: EventTime


class TopicRestored(Control, frozen=True, kw_only=True, tag="topic_restored", gc=False):
    """An evicted topic is restored from the archive under its old id."""

    topic_id: Annotated[TopicId, NAMED]
    title: Annotated[str, about("Title: the beginning of the first message.", CONTENT)]
    created_at: Annotated[UtcTime, about("Event time of the first message.")]
    importance: Annotated[Ratio, about("Importance, 0-1: from users' ratings and feedback.")]
    access_count: Annotated[int, about("Number of accesses by users.", BEHAVIOUR, ge=0, le=2**53)]
    tags: Annotated[list[str], about("Tags given by users.", CONTENT)] = field(default_factory=list)
    summary: Summary = ""
    messages: Annotated[list[RestoredMessage], about("Latest messages, oldest first.", CONTENT)] = field(
        default_factory=list
    )


class KeptTopic(Struct, frozen=True, kw_only=True, gc=False):
    """A topic sent between a session and its user's memory. Another session receives its numbers, never its text."""

    topic_id: TopicId
    created_at: Annotated[UtcTime, about("Event time of the first message.")]
    last_active_at: Annotated[UtcTime, about("Event time of the latest message or access.")]
    importance: Annotated[Ratio, about("Importance, 0-1: from users' ratings and feedback.")]
    messages: Annotated[int, about("Number of messages that joined it.", BEHAVIOUR, ge=0, le=2**53)]
    accesses: Annotated[int, about("Number of accesses by users.", BEHAVIOUR, ge=0, le=2**53)]
    weight: Annotated[int, about("Number of messages in its mean embedding; 0: no embedding.", BEHAVIOUR, ge=0, le=255)]
    embedding: Annotated[
        list[Annotated[int, Meta(ge=-128, le=127)]],
        about("Mean embedding of its user messages, 256 dimensions.", CONTENT, max_length=TOPIC_DIMS),
    ]
    turns: Annotated[list[int], about("Its turns in the session: first and last number of each run.", BEHAVIOUR)] = []
    title: Annotated[str, about("Beginning of its first message; empty in another session.", CONTENT)] = ""
    tags: Annotated[list[str], about("Tags given by users; empty in another session.", CONTENT)] = []
    summary: Annotated[Summary, about("Summary; empty in another session.", CONTENT)] = ""
    summarised_by: SummarisedBy = ""


class TopicsKept(Output, frozen=True, kw_only=True, tag="topics_kept"):
    """A session closed: changes of its topics since the user's memory last received them, for their retention."""

    topics: Annotated[list[KeptTopic], about("Topics; counts of messages and accesses are of new ones.", CONTENT)]


class TopicsRecalled(Control, frozen=True, kw_only=True, tag="topics_recalled", gc=False):
    """A user returned: the session receives topics of earlier sessions that have not decayed."""

    id: EventId
    user_id: UserId
    source: Annotated[Position, about("Number of the turn with which the user returned.", OPERATIONAL)]
    topics: Annotated[list[KeptTopic], about("Topics, highest priority first.", CONTENT, max_length=64)]


TopicControl = TopicAdjusted | FeedbackGiven | TopicSummarised | TopicRestored | TopicsRecalled


class TopicSummaryRequested(Output, frozen=True, kw_only=True, tag="topic_summary_requested"):
    """Requests a better summary of packed messages. Nothing waits for it; answered by `TopicSummarised`."""

    topic_id: TopicId
    packed: Annotated[int, about("Number of summarised messages; an answer for fewer is late.", BEHAVIOUR)]
    summary: Annotated[Summary, about("Previous summary of the topic; empty: none.")]
    turns: Annotated[list[RequestedTurn], about("Packed messages; long texts truncated.", CONTENT)]


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
    """Lineage of one compaction of a topic: input, output and cost.

    Bytes are the size of the packed messages' JSON before and after packing. Tokens are those of the messages and of
    the summary that replaces them.
    """

    turns: Annotated[list[int], about("Numbers of the packed turns.", BEHAVIOUR)]
    tokens_before: Annotated[Tokens, about("Tokens of the packed messages.")]
    tokens_after: Tokens
    bytes_before: Annotated[Bytes, about("Size of the packed messages' JSON, including those packed again.")]
    bytes_after: Annotated[Bytes, about("Size of these messages when packed.")]
    ratio: Annotated[float, about("Ratio of bytes after to bytes before.", OPERATIONAL, unit="bytes/byte")]
    summarised_by: SummarisedBy
    probes: Annotated[int, about("Number of packed messages with terms to search for.", BEHAVIOUR)]
    probes_found: Annotated[int, about("Number of probes that a search still finds in the summary.", BEHAVIOUR)]
    loss: Annotated[Share, about("Share of the probes that are not found, 0-1; no message is lost.")]
    codec: Annotated[str, about("Codec: zstd or deflate (with a dictionary), or gzip (with base64).", OPERATIONAL)]
    released_turns: Annotated[list[int], about("Numbers of the released turns; only the archive has them.", BEHAVIOUR)]


class TopicChanged(Output, frozen=True, kw_only=True, tag="topic_changed"):
    """A topic of a session was added, removed or changed; its full present state without the text of its messages.

    Turns that no event of the session names yet belong to the active topic.
    """

    topic_id: TopicId
    title: Annotated[str, about("Title: the beginning of the first message.", CONTENT)]
    cause: Annotated[TopicCause, about("Cause of the change.", BEHAVIOUR)]
    detail: Annotated[str, about("Id of the topic it merged with, or reason for the eviction.", BEHAVIOUR)]
    active: Annotated[bool, about("Whether the next message joins it by default.", BEHAVIOUR)]
    kept: Annotated[bool, about("False in the last event of an evicted or merged topic.", BEHAVIOUR)]
    turn: Annotated[TurnIndex, about("Highest turn number of the session so far.")]
    message_count: Annotated[int, about("Number of messages, including packed and released ones.", BEHAVIOUR)]
    access_count: Annotated[int, about("Number of accesses by users; the half-life grows with it.", BEHAVIOUR)]
    importance: Annotated[Share, about("Importance, 0-1: from users' ratings and feedback.")]
    priority: Annotated[Share, about("Importance, halved with each half-life since the last activity.")]
    half_life_days: Annotated[float, about("Half-life of the priority in days.", BEHAVIOUR, unit="days")]
    memory_type: Annotated[str, about("Memory type by half-life: short-term, transitioning or long-term.", BEHAVIOUR)]
    tags: Annotated[list[str], about("Tags given by users.", CONTENT)]
    created_at: Annotated[UtcTime, about("Event time of the first message.")]
    last_active_at: Annotated[UtcTime, about("Event time of the latest message or access.")]
    active_turns: Annotated[list[int], about("Numbers of the turns that are not packed, in order.", BEHAVIOUR)]
    packed_turns: Annotated[list[int], about("Numbers of the packed turns, in order of time.", BEHAVIOUR)]
    released_messages: Annotated[int, about("Number of messages that only the archive has.", BEHAVIOUR)]
    packed_bytes: Annotated[Bytes, about("Size of the packed history.")]
    summary: Annotated[str | None, about("Summary of the packed messages; null before the first compaction.", CONTENT)]
    summarised_by: Annotated[SummarisedBy | None, about("Name of the summariser; null without a summary.")]
    session_topics: Annotated[int, about("Number of topics kept by the session after this change.", BEHAVIOUR)]
    compaction: Annotated[TopicCompaction | None, about("Lineage of the compaction; null: another cause.", BEHAVIOUR)]
    released_runs: Annotated[
        list[int], about("Turns that only index and archive have: first and last number of each run.", BEHAVIOUR)
    ] = field(default_factory=list)
    recalled_messages: Annotated[int, about("Number of its messages from the user's other sessions.", BEHAVIOUR)] = 0


class SegmentSummarised(Control, frozen=True, kw_only=True, tag="segment_summarised", gc=False):
    """Answer of a slower summariser: its text replaces the extractive summary of the segment."""

    first_turn: Annotated[TurnNumber, about("Lowest turn number of the range, inclusive.")]
    last_turn: Annotated[TurnNumber, about("Highest turn number of the range, inclusive.")]
    summary: Summary
    summarised_by: SummarisedBy
    ended_at: Annotated[UtcTime | None, about("Same as in the request; null: any segment of this range.")] = None
    asked_offset: AskedOffset = NOT_ASKED


class SegmentCompacted(Output, frozen=True, kw_only=True, tag="segment_compacted"):
    """Turns of the working memory became a summary. Both ends of the range are inclusive."""

    first_turn: FirstTurn
    last_turn: LastTurn
    turns: Annotated[list[int], about("Numbers of the summarised turns.", BEHAVIOUR)]
    summary: Summary
    summarised_by: SummarisedBy
    risk_mean: Annotated[Share, about("Mean risk of the turns in the segment.")]
    key_topics: KeyTopics
    started_at: StartTime
    ended_at: EndTime
    tokens_before: Annotated[Tokens, about("Tokens of the summarised turns.")]
    tokens_after: Tokens
    bytes_before: Annotated[Bytes, about("UTF-8 bytes of the summarised turns.")]
    bytes_after: Bytes


class SegmentRequested(Output, frozen=True, kw_only=True, tag="segment_requested"):
    """Requests a better summary of a segment. Nothing waits for it; answered by `SegmentSummarised`."""

    first_turn: FirstTurn
    last_turn: LastTurn
    turns: Annotated[list[RequestedTurn], about("The turns; long texts truncated.", CONTENT)]
    ended_at: EndTime
