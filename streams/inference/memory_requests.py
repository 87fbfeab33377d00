"""Dispatch of the memory role's requests by kind. Another kind of request is another function and a line here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from models.events import (
    CompactionDecided,
    CompactionRequested,
    EpisodeRequested,
    EpisodeSummarised,
    FactsExtracted,
    FactsRequested,
    MemoryProposed,
    MemoryRequested,
)
from models.events.user import MOST_SUMMARY_CHARS
from streams.inference.llm_facts import FactExtractor
from streams.inference.llm_memories import MemoryWriter
from streams.inference.summaries import Summariser
from streams.observe.telemetry import metrics

Request = EpisodeRequested | FactsRequested | MemoryRequested | CompactionRequested
Reply = EpisodeSummarised | FactsExtracted | MemoryProposed | CompactionDecided
Answerers = Mapping[type[Request], Callable[[Any], Awaitable[Reply | None]]]
"""Each takes a request of its kind; None: there is nothing to say, and nobody waits for it."""


def answerers(summariser: Summariser, extractor: FactExtractor | None, writer: MemoryWriter) -> Answerers:
    """One for every kind of request.

    Args:
        summariser: Summarises the turns of an episode.
        extractor: Finds facts in messages; None where nothing slower than the rules is configured.
        writer: Makes memories of apps, and decides on their compactions.
    """
    return {
        EpisodeRequested: partial(_episode, summariser),
        FactsRequested: partial(_facts, extractor),
        MemoryRequested: partial(_memory, writer),
        CompactionRequested: partial(_decision, writer),
    }


async def _episode(summariser: Summariser, request: EpisodeRequested) -> EpisodeSummarised:
    made = await summariser.summarise(request.turns)
    _count("extractive" if made.fell_back else "answered")
    return EpisodeSummarised(
        app_id=request.app_id,
        user_id=request.user_id,
        timestamp=request.timestamp,
        first_turn=request.first_turn,
        last_turn=request.last_turn,
        summary=made.text[:MOST_SUMMARY_CHARS] or "(no text)",
        summarised_by=made.summarised_by,
        key_topics=made.key_topics,
    )


async def _facts(extractor: FactExtractor | None, request: FactsRequested) -> FactsExtracted | None:
    if extractor is None:
        return None
    found = await extractor.extract(request.content)
    _count("answered" if found else "empty")
    if found is None:
        return None
    return FactsExtracted(
        app_id=request.app_id,
        user_id=request.user_id,
        timestamp=request.timestamp,
        facts=found.facts,
        retractions=found.retractions,
        session_id=request.session_id,
        turn=request.turn,
        extracted_by=extractor.name,
    )


async def _memory(writer: MemoryWriter, request: MemoryRequested) -> MemoryProposed:
    proposed = await writer.propose(request)
    _count("failed" if proposed.failure else "answered")
    return proposed


async def _decision(writer: MemoryWriter, request: CompactionRequested) -> CompactionDecided:
    decided = await writer.decide(request)
    _count("failed" if decided.failure else "answered")
    return decided


def _count(result: str) -> None:
    metrics.counter("requests_answered_total", result=result).inc()
