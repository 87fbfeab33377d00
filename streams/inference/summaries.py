"""Answers to the requests of folds: summaries of episodes, segments, topics, and the dispatch of all kinds of request.

The extractive summary always serves; a language model's replaces it where one is configured and answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import structlog
from msgspec import Meta, Struct

from models.errors import LlmRubbish, LlmUnavailable
from models.events import (
    CompactionDecided,
    CompactionRequested,
    EpisodeRequested,
    EpisodeSummarised,
    FactsExtracted,
    FactsRequested,
    MemoryProposed,
    MemoryRequested,
    ProjectSummarised,
    ProjectSummaryRequested,
    SegmentRequested,
    SegmentSummarised,
    StatementsRead,
    StatementsRequested,
    TopicSummarised,
    TopicSummaryRequested,
)
from models.events.base import RequestedTurn, Role
from models.events.user import MOST_SUMMARY_CHARS
from models.policy import Policy
from models.state.entity import same_fields
from models.text.summary import EXTRACTIVE, Passage
from models.user.fold import summarise_episode
from streams.inference.llm_answers import Llm, answer_of
from streams.inference.llm_facts import FactExtractor
from streams.inference.llm_memories import MemoryWriter
from streams.inference.statement_reader import StatementReader
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)


class Summarised(Struct, frozen=True, kw_only=True):
    """A summary, and whose.

    Attributes:
        text: Empty if the turns have no text.
        key_topics: The most important first.
        summarised_by: Name of the summariser.
        fell_back: A slower one was asked in vain.
    """

    text: str
    key_topics: list[str]
    summarised_by: str
    fell_back: bool = False


class Summariser(Protocol):
    """Makes a summary of turns. Never fails for what the turns say."""

    name: str

    async def summarise(self, turns: Sequence[RequestedTurn], task: str = "summary") -> Summarised:
        """Summarise turns, oldest first; a language model is told to by the prompt of this task."""
        ...


class ExtractiveSummariser:
    """The sentences that say most, without a language model; the same turns give the same summary."""

    name = EXTRACTIVE

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def summarise(self, turns: Sequence[RequestedTurn], task: str = "summary") -> Summarised:  # noqa: ARG002
        """Choose sentences, at once."""
        made = summarise_episode([Passage(turn.content) for turn in turns], self._policy)
        return Summarised(text=made.text, key_topics=made.key_topics, summarised_by=self.name)


class LlmSummariser:
    """A language model's summary (user memory, flow 1, step 1), and the default's where it fails."""

    def __init__(self, llm: Llm, default: Summariser, policy: Policy) -> None:
        self.name = llm.name
        self._llm = llm
        self._default = default
        self._most_chars = policy.users.summary_chars
        self._most_topics = policy.memory.key_topics

    async def summarise(self, turns: Sequence[RequestedTurn], task: str = "summary") -> Summarised:
        """Ask the model; turns without any text are not worth it."""
        if not any(turn.content.strip() for turn in turns):
            return await self._default.summarise(turns)
        try:
            answer = await answer_of(self._llm, task, {"turns": turns}, _Answer)
        except (LlmUnavailable, LlmRubbish) as error:
            log.warning("llm_summary_fell_back", error=type(error).__name__, turns=len(turns))
            made = await self._default.summarise(turns)
            return msgspec.structs.replace(made, fell_back=True)
        return Summarised(
            text=" ".join(answer.summary.split())[: self._most_chars],
            key_topics=[topic for said in answer.key_topics if (topic := said.strip())][: self._most_topics],
            summarised_by=self.name,
        )


class _Answer(Struct, frozen=True):
    """What the model is asked for; a summary of nothing is rubbish."""

    summary: Annotated[str, Meta(min_length=1, pattern=r"\S")]
    key_topics: list[Annotated[str, Meta(max_length=200)]] = []


Request = (
    EpisodeRequested
    | FactsRequested
    | MemoryRequested
    | CompactionRequested
    | ProjectSummaryRequested
    | SegmentRequested
    | StatementsRequested
    | TopicSummaryRequested
)
Reply = (
    EpisodeSummarised
    | FactsExtracted
    | MemoryProposed
    | CompactionDecided
    | ProjectSummarised
    | SegmentSummarised
    | StatementsRead
    | TopicSummarised
)
Answerers = Mapping[type[Request], Callable[[Any], Awaitable[Reply | None]]]
"""Each takes a request of its kind; None: there is nothing to say, and nobody waits for it."""


_OfASpace = TypeVar("_OfASpace", MemoryProposed, CompactionDecided)
_Better = TypeVar("_Better", SegmentSummarised, TopicSummarised, ProjectSummarised)
_Reply = TypeVar("_Reply", bound=Reply)
_ABOUT = ("app_id", "user_id", "session_id", "timestamp")


def answerers(
    summariser: Summariser, extractor: FactExtractor | None, writer: MemoryWriter, reader: StatementReader | None = None
) -> Answerers:
    """One for every kind of request; without an extractor or a reader nothing slower than the rules reads."""
    return {
        EpisodeRequested: partial(_episode, summariser),
        FactsRequested: partial(_facts, extractor),
        MemoryRequested: partial(_of_a_space, writer.propose),
        CompactionRequested: partial(_of_a_space, writer.decide),
        StatementsRequested: partial(_statements, reader),
        SegmentRequested: partial(_better, summariser, "segment", SegmentSummarised),
        TopicSummaryRequested: partial(_better, summariser, "topic", TopicSummarised),
        ProjectSummaryRequested: partial(_better, summariser, "", ProjectSummarised),
    }


def _reply(kind: type[_Reply], request: Request, **said: Any) -> _Reply:
    """An answer: about whom and what is asked, and what is said of it."""
    about = {name: getattr(request, name) for name in _ABOUT if name in kind.__struct_fields__}
    return kind(**about, **same_fields(request, kind, *said), **said)


async def _episode(summariser: Summariser, request: EpisodeRequested) -> EpisodeSummarised:
    made = await summariser.summarise(request.turns)
    _count("extractive" if made.fell_back else "answered")
    summary = made.text[:MOST_SUMMARY_CHARS] or "(no text)"
    said = {"summary": summary, "summarised_by": made.summarised_by, "key_topics": made.key_topics}
    return _reply(EpisodeSummarised, request, **said)


async def _better(
    summariser: Summariser,
    task: str,
    kind: type[_Better],
    request: SegmentRequested | TopicSummaryRequested | ProjectSummaryRequested,
) -> _Better | None:
    """A summary where the fold has the extractive one already; None: that one stands."""
    turns = list(request.turns)
    if not isinstance(request, SegmentRequested) and request.summary:
        turns.insert(0, RequestedTurn(Role.SYSTEM, f"Summary so far: {request.summary}"))
    if isinstance(request, ProjectSummaryRequested):
        task = f"project_{request.kind}"
    made = await summariser.summarise(turns, task)
    if made.summarised_by == EXTRACTIVE:
        _count("extractive")
        return None
    _count("answered")
    said = {"summary": made.text, "summarised_by": made.summarised_by, "key_topics": made.key_topics}
    return _reply(kind, request, **{name: each for name, each in said.items() if name in kind.__struct_fields__})


async def _facts(extractor: FactExtractor | None, request: FactsRequested) -> FactsExtracted | None:
    if extractor is None:
        return None
    found = await extractor.extract(request.content)
    _count("answered" if found else "empty")
    if found is None:
        return None
    said = {"facts": found.facts, "retractions": found.retractions, "extracted_by": extractor.name}
    return _reply(FactsExtracted, request, **said)


async def _statements(reader: StatementReader | None, request: StatementsRequested) -> StatementsRead | None:
    if reader is None:
        return None
    found = await asyncio.to_thread(reader.read, request.sentences)
    _count("answered" if found else "empty")
    if not found:
        return None
    return _reply(StatementsRead, request, statements=found, read_by=reader.name)


async def _of_a_space(answer: Callable[[Any], Awaitable[_OfASpace]], request: Any) -> _OfASpace:
    made = await answer(request)
    _count("failed" if made.failure else "answered")
    return made


def _count(result: str) -> None:
    metrics.counter("requests_answered_total", result=result).inc()
