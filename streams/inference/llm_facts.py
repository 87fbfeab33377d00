"""Facts about a user that a language model finds in a message (user memory, flow 2); rules have looked before."""

import re
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import structlog
from msgspec import Meta, Struct

from models.errors import LlmRubbish, LlmUnavailable
from models.events.user import ExtractedFact, FactCategory, FactKey, FactValue, Retraction
from streams.inference.llm_answers import Llm, answer_of, json_schema

log = structlog.get_logger(__name__)

MOST = 64
"""Facts, and retractions, taken from one message: as many as their event holds."""
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")


class ExtractedFacts(Struct, frozen=True, kw_only=True):
    """Facts and retractions of a message about its user, each category and key once."""

    facts: list[ExtractedFact]
    retractions: list[Retraction]


class FactExtractor(Protocol):
    """Finds facts in a user's message, slower than the rules."""

    name: str

    async def extract(self, content: str) -> ExtractedFacts | None:
        """Facts and retractions; None if there are none, or the extractor cannot say."""
        ...


class LlmFactExtractor:
    """Asks a language model. What is wrong in its answer is dropped entry by entry.

    Nothing is believed blindly: who stores facts still wants confidence and importance above the policy's, and a
    retraction must name what it takes back. To forget everything of a user is left to the rules: models give empty
    entries for nothing.
    """

    def __init__(self, llm: Llm) -> None:
        self.name = llm.name
        self._llm = llm

    async def extract(self, content: str) -> ExtractedFacts | None:
        """Ask the model; None also where it does not answer or answers rubbish: the rules' facts stand."""
        if not content.strip():
            return None
        try:
            answer = await answer_of(self._llm, "facts", {"message": content}, _Answer)
        except (LlmUnavailable, LlmRubbish) as error:
            log.warning("llm_extraction_failed", error=type(error).__name__)
            return None
        facts = _once([fact for entry in answer.facts if (fact := _valid(entry, ExtractedFact))])
        retractions = [
            Retraction(category=said.category, key=said.key)
            for entry in answer.retractions
            if (said := _valid(entry, _RetractionForm))
        ]
        dropped = len(answer.facts) + len(answer.retractions) - len(facts) - len(retractions)
        if dropped:
            log.info("llm_entries_dropped", dropped=dropped)
        if not facts and not retractions:
            return None
        return ExtractedFacts(facts=facts[:MOST], retractions=retractions[:MOST])


class _FactForm(Struct, frozen=True, kw_only=True):
    """A fact as the model is told to write it; a default would tell it that a field may be missing."""

    category: FactCategory
    key: FactKey
    value: FactValue
    confidence: Annotated[float, Meta(ge=0.0, le=1.0)]
    importance: Annotated[float, Meta(ge=0.0, le=1.0)]
    corrects: bool


class _RetractionForm(Struct, frozen=True, kw_only=True):
    """A retraction as the model is told to write it."""

    category: FactCategory
    key: FactKey


def _inline(form: type[Struct]) -> dict[str, Any]:
    """A schema to stand inside another one."""
    described = json_schema(form)
    named = described.pop("$defs", {})
    for field in described["properties"].values():
        if reference := field.pop("$ref", None):
            field.update(named[reference.rpartition("/")[2]])
    return described


class _Answer(Struct, frozen=True):
    """The schema is told to the model, but entries are decoded one by one: a bad one must not cost the others."""

    facts: list[Annotated[Any, Meta(extra_json_schema=_inline(_FactForm))]] = []
    retractions: list[Annotated[Any, Meta(extra_json_schema=_inline(_RetractionForm))]] = []


_Entry = TypeVar("_Entry", ExtractedFact, _RetractionForm)


def _valid(entry: object, form: type[_Entry]) -> _Entry | None:
    """The entry in its form, its key in snake case; None if it cannot be."""
    if not isinstance(entry, dict):
        return None
    tidy = {name: value for name, value in entry.items() if value is not None}
    if isinstance(key := tidy.get("key"), str):
        tidy["key"] = _NOT_IN_KEYS.sub("_", key.casefold()).strip("_")
    value = tidy.get("value")
    if isinstance(value, int | float) and not isinstance(value, bool):
        tidy["value"] = str(value)
    elif isinstance(value, str):
        tidy["value"] = value.strip()
    try:
        return msgspec.convert(tidy, form)
    except msgspec.ValidationError:
        return None


def _once(facts: list[ExtractedFact]) -> list[ExtractedFact]:
    """Each category and key once: the surest, of equals the last said (user memory, deduplicate within a message)."""
    surest: dict[tuple[FactCategory, str], ExtractedFact] = {}
    for fact in facts:
        known = surest.get((fact.category, fact.key))
        if known is None or fact.confidence >= known.confidence:
            surest[fact.category, fact.key] = fact
    return list(surest.values())
