"""Events of a session's working memory: turns that became a summary, and what a slower summariser makes of them."""

from __future__ import annotations

from typing import Annotated

from models.events.base import Control, Output, RequestedTurn
from models.events.fields import (
    BEHAVIOUR,
    CONTENT,
    Bytes,
    EndTime,
    FirstTurn,
    KeyTopics,
    LastTurn,
    Share,
    StartTime,
    SummarisedBy,
    Summary,
    Tokens,
    TurnNumber,
    UtcTime,
    about,
)


class SegmentSummarised(Control, frozen=True, kw_only=True, tag="segment_summarised", gc=False):
    """A slower summariser finished: its text replaces the extractive one of that segment."""

    first_turn: Annotated[TurnNumber, about("Lowest turn number, inside the range.")]
    last_turn: Annotated[TurnNumber, about("Highest turn number, inside the range.")]
    summary: Summary
    summarised_by: SummarisedBy
    ended_at: Annotated[UtcTime | None, about("As in the request; null: of whatever segment has this range.")] = None


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
