"""Memories of apps by a language model, and its decision which of eleven to remove (Memory Sub-Agent).

Its answers are data: decoded or refused. The fold decides whether a decision is valid.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from string import Template
from typing import Annotated, Any, Generic, NamedTuple

import msgspec
import structlog
from msgspec import Meta, Struct, structs

from models.app.state import paragraph
from models.entities import owner_of
from models.errors import LlmRubbish, LlmTimedOut, LlmUnavailable
from models.events.app import (
    MOST_MEMORY_CHARS,
    CompactionDecided,
    CompactionRequested,
    MemoryId,
    MemoryProposed,
    MemoryRequested,
    MemoryToKeep,
)
from models.events.base import NAME_CHARS
from models.policy.app import AppPolicy
from models.text.words import estimate_tokens
from streams.inference.llm_answers import PROMPTS, Answer, Llm, LlmReply, decode_answer

log = structlog.get_logger(__name__)

MOST_REASON_CHARS = 1_000
"""Maximum length of a model's explanation."""
_MOST_TAGS = 64
_TAG_CHARS = 200


class MemoryWriter:
    """Answers each request of a space's fold, if necessary with the reason of a failure.

    Args:
        llm: The model; None if none is configured (any more): then every answer is a failure.
        policy: Sizes for the prompt.
        within: Time limit of one answer, all tries together (app memory: 30 s).
        clock: Seconds, monotonic.
    """

    def __init__(
        self, llm: Llm | None, policy: AppPolicy, *, within: timedelta, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._llm = llm
        self._policy = policy
        self._within = within
        self._clock = clock

    async def propose(self, request: MemoryRequested) -> MemoryProposed:
        """A memory of a conversation. Invalid importance or tags are dropped; the memory stays."""
        if _says_something(request):
            asked = await self._ask(_told("memory", self._policy), _conversation(request), _Memory)
        else:
            asked = _ModelOutcome[_Memory](None, "", 0, 0)  # a model would invent something
        made = asked.answer
        return MemoryProposed(
            app_id=request.app_id,
            user_id=owner_of(request),
            timestamp=request.timestamp,
            request=request.request,
            content=_tidy(made.content) if made else "",
            importance=_importance(made.importance) if made else None,
            tags=_tags(made.tags) if made else [],
            made_by=self._name,
            failure=asked.failure,
            tokens=asked.tokens,
            elapsed_ms=asked.elapsed_ms,
        )

    async def decide(self, request: CompactionRequested) -> CompactionDecided:
        """Decide which memory to delete or to merge with another. An answer with a wrong type is refused."""
        kept = len(request.memories)
        system = _told("compaction", self._policy, kept=kept, all=kept + 1)
        asked = await self._ask(system, _memories(request), _Decision)
        said = asked.answer
        return CompactionDecided(
            app_id=request.app_id,
            user_id=owner_of(request),
            timestamp=request.timestamp,
            request=request.request,
            action=said.action.strip().lower()[:NAME_CHARS] if said else "",
            target_memory_id=said.target_memory_id if said else 0,
            new_content=_tidy(said.new_content) if said and said.new_content is not None else None,
            reason=paragraph(said.reason or "")[:MOST_REASON_CHARS] if said else "",
            decided_by=self._name,
            failure=asked.failure,
            tokens=asked.tokens,
            elapsed_ms=asked.elapsed_ms,
        )

    @property
    def _name(self) -> str:
        return self._llm.name if self._llm is not None else ""

    async def _ask(self, system: str, user: str, schema: type[Answer]) -> _ModelOutcome[Answer]:
        if self._llm is None:
            log.warning("llm_memory_failed", asked=schema.__name__, failure="llm_error", error="no model configured")
            return _ModelOutcome(None, "llm_error", 0, 0)
        answer, failure, said = None, "", None
        began_s = self._clock()
        try:
            said = await self._llm.complete(system, user, schema, within=self._within)
            answer = decode_answer(said.text, schema)
        except (LlmUnavailable, LlmRubbish) as error:
            failure = _failure(error)
            log.warning("llm_memory_failed", asked=schema.__name__, failure=failure, error=type(error).__name__)
        elapsed_ms = round((self._clock() - began_s) * 1_000)
        return _ModelOutcome(answer, failure, _tokens(system + user, said, failure), elapsed_ms)


class _ModelOutcome(NamedTuple, Generic[Answer]):
    """Answer of a model, or the reason of its failure, with its cost."""

    answer: Answer | None
    failure: str
    tokens: int
    elapsed_ms: int


class _Memory(Struct, frozen=True):
    """A memory as requested from the model; only its text must be valid."""

    content: Annotated[str, Meta(min_length=1, pattern=r"\S")]
    importance: Annotated[Any, Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": 10})] = None
    tags: Annotated[Any, Meta(extra_json_schema={"type": "array", "items": {"type": "string"}})] = None


class _Decision(Struct, frozen=True, rename="camel"):
    """The source's `MemoryCompactionDecision`."""

    action: Annotated[str, Meta(extra_json_schema={"enum": ["delete", "edit"]})]
    target_memory_id: MemoryId
    new_content: str | None = None
    reason: str | None = None


class _KnownMemory(Struct, frozen=True, rename="camel"):
    """A memory in the model's input."""

    id: int
    content: str
    importance: float
    """0-10, as in the source."""
    pinned: bool
    created_at: datetime
    updated_at: datetime


def _told(prompt: str, policy: AppPolicy, **numbers: int) -> str:
    return Template(PROMPTS[prompt]).substitute(structs.asdict(policy), **numbers)


def _says_something(request: MemoryRequested) -> bool:
    said = [request.summary, *[notable.text for notable in request.notables], *[turn.content for turn in request.turns]]
    return any(text.strip() for text in said)


def _conversation(request: MemoryRequested) -> str:
    """The conversation as JSON, so that its text stays inside strings."""
    notables = [notable.text for notable in request.notables]
    said = {"summary": request.summary, "notables": notables, "earlier": request.earlier, "turns": request.turns}
    return msgspec.json.encode(said).decode()


def _memories(request: CompactionRequested) -> str:
    existing = [_known_memory(memory) for memory in request.memories]
    return msgspec.json.encode({"existingMemories": existing, "newMemory": _known_memory(request.new_memory)}).decode()


def _known_memory(memory: MemoryToKeep) -> _KnownMemory:
    importance = round(memory.importance * 10, 1)
    times = memory.created_at, memory.updated_at
    return _KnownMemory(memory.memory_id, memory.content, importance, memory.pinned, *times)


def _tidy(content: str) -> str:
    """The text as one paragraph. A text above the limit stays too long, so that the fold refuses it."""
    return paragraph(content)[: MOST_MEMORY_CHARS + 1]


def _importance(said: Any) -> float | None:
    """Importance 0-1; None if the model's is not 0-10, so that the fold scores it."""
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return said / 10 if is_number and 0 <= said <= 10 else None  # noqa: PLR2004 - the source's scale


def _tags(said: Any) -> list[str]:
    """Valid tags without repeats."""
    texts = [paragraph(tag) for tag in said if isinstance(tag, str)] if isinstance(said, list) else []
    return [tag for tag in dict.fromkeys(texts) if 0 < len(tag) <= _TAG_CHARS][:_MOST_TAGS]


def _failure(error: LlmUnavailable | LlmRubbish) -> str:
    if isinstance(error, LlmRubbish):
        return "rubbish"
    return "timeout" if isinstance(error, LlmTimedOut) else "llm_error"


def _tokens(asked: str, said: LlmReply | None, failure: str) -> int:
    """Tokens as counted by the server, else estimated: after a time-out those of the prompt, after an error none."""
    if said is None:
        return estimate_tokens(asked) if failure == "timeout" else 0
    return said.tokens or estimate_tokens(asked) + estimate_tokens(said.text)
