"""Scoring of extractors on the labelled messages: precision, recall, F1, clean negatives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import asdict

from jobs.lab.eval.facts_messages import LabelledFact, LabelledMessage
from jobs.lab.eval.judged import (
    GroupFigures,
    Judged,
    Misjudged,
    ScoreFigures,
    by_kind,
    by_split,
    figures,
    figures_of,
    share_clean,
)
from models.events.user import ExtractedFact, FactCategory, Retraction
from models.policy.user import FactPolicy

_ARTICLES = frozenset({"a", "an", "the"})
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], start=1
    )
}
_EDGES = ".,;:!?\"'“”\u2018\u2019()[]{}*`…$€£"
_HYPHEN = re.compile(r"(?<=[^\W\d])-(?=[^\W\d])")


class AnyExtraction(Protocol):
    """What an extractor returns, as far as it is scored."""

    @property
    def facts(self) -> Sequence[ExtractedFact]:
        """Facts the message states."""
        ...

    @property
    def retractions(self) -> Sequence[Retraction]:
        """What it takes back."""
        ...


Extract = Callable[[str], AnyExtraction]


class FactScores(ScoreFigures, frozen=True):
    """All figures of one extractor on one set."""

    by_category: dict[str, ScoreFigures]
    by_kind: dict[str, GroupFigures]
    by_split: dict[str, ScoreFigures]
    retractions: ScoreFigures
    messages: int
    negatives: int
    """Messages with nothing to remember or to forget."""
    negatives_clean: float | None
    """Share of them in which nothing was found, retractions included."""
    misses: list[Misjudged]


class _JudgedMessage(Judged, frozen=True):
    """With how many retractions are right, labelled and found."""

    retractions: tuple[int, int, int]


def measure(messages: Sequence[LabelledMessage], extract: Extract, policy: FactPolicy) -> FactScores:
    """Run the extractor over every message and count.

    Args:
        messages: Labelled ones.
        extract: From a message's text to facts and retractions.
        policy: Facts below its confidence or importance count as not found, as they are not stored.
    """
    judged = [_judge(message, extract(message.content), policy) for message in messages]
    right, gold, found = (sum(each.retractions[n] for each in judged) for n in range(3))
    return FactScores(
        **asdict(figures(judged)),
        by_category={category: figures(judged, category) for category in FactCategory},
        by_kind=by_kind(judged),
        by_split=by_split(judged),
        retractions=figures_of(right, gold=gold, found=found),
        messages=len(judged),
        negatives=sum(each.clean is not None for each in judged),
        negatives_clean=share_clean(judged),
        misses=[each.miss for each in judged if each.miss is not None],
    )


def words_of(value: str) -> list[str]:
    """A value's words as they are compared: no case, no articles, no punctuation around words, small numbers as digits.

    >>> words_of("The Gluten-Free, ")
    ['gluten', 'free']
    >>> words_of("three kids") == words_of("3 kids")
    True
    >>> words_of("UTC+2") == words_of("UTC-2")
    False
    """
    spaced = _HYPHEN.sub(" ", value.casefold().replace("\u2019", "'"))
    stripped = (word.strip(_EDGES) for word in spaced.split())
    return [_NUMBERS.get(word, word) for word in stripped if word and word not in _ARTICLES]


def same_value(one: str, other: str) -> bool:
    """Whether two values agree: the words of one are the other's, or stand in it in one piece.

    >>> same_value("hiking in the Alps", "Hiking")
    True
    >>> same_value("likes", "dislikes")
    False
    """
    shorter, longer = sorted((words_of(one), words_of(other)), key=len)
    if not shorter:
        return not longer
    return any(longer[at : at + len(shorter)] == shorter for at in range(len(longer) - len(shorter) + 1))


def _judge(message: LabelledMessage, extracted: AnyExtraction, policy: FactPolicy) -> _JudgedMessage:
    left = [
        fact
        for fact in extracted.facts
        if fact.confidence >= policy.min_confidence and fact.importance >= policy.min_importance
    ]
    right: list[str] = []
    absent: list[LabelledFact] = []
    for label in sorted(message.facts, key=lambda label: label.key is None):  # those with a key choose first
        match = next((fact for fact in left if _agrees(label, fact)), None)
        if match is None:
            absent.append(label)
        else:
            left.remove(match)
            right.append(match.category)
    said = Counter((retraction.category, retraction.key) for retraction in message.retractions)
    taken_back = Counter((retraction.category, retraction.key) for retraction in extracted.retractions)
    missed = [*map(_entry, absent), *map(_entry_of_retraction, (said - taken_back).elements())]
    wrong = [*map(_entry, left), *map(_entry_of_retraction, (taken_back - said).elements())]
    named = (message.id, message.split, message.kind, message.content)
    return _JudgedMessage(
        message.split,
        message.kind,
        right=right,
        missed=[label.category for label in absent],
        wrong=[fact.category for fact in left],
        clean=not (right or left or taken_back) if message.says_nothing else None,
        miss=Misjudged(*named, missed, wrong) if missed or wrong else None,
        retractions=((said & taken_back).total(), said.total(), taken_back.total()),
    )


def _agrees(label: LabelledFact, fact: ExtractedFact) -> bool:
    same_key = label.key is None or label.key == fact.key
    return label.category == fact.category and same_key and same_value(label.value, fact.value)


def _entry(fact: LabelledFact | ExtractedFact) -> str:
    return f"{fact.category}/{fact.key or '*'}={fact.value}"


def _entry_of_retraction(name: tuple[FactCategory | None, str | None]) -> str:
    category, key = name
    return f"-{category or '*'}/{key or '*'}"
