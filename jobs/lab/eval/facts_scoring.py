"""Scoring of extractors on the labelled messages: precision, recall, F1, clean negatives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import asdict

from jobs.lab.eval.facts_messages import LabelledFact, LabelledMessage, LabelledRetraction
from jobs.lab.eval.ratios import Figures, GroupFigures, figures_of, group_figures, grouped
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


class Extracted(Protocol):
    """What an extractor returns, as far as it is scored."""

    @property
    def facts(self) -> Sequence[ExtractedFact]:
        """Facts the message states."""
        ...

    @property
    def retractions(self) -> Sequence[Retraction]:
        """What it takes back."""
        ...


Extract = Callable[[str], Extracted]


class Miss(Struct, frozen=True):
    """A message that was not read as labelled; entries are `category/key=value`, of retractions `-category/key`."""

    id: str
    split: str
    kind: str
    content: str
    missed: list[str]
    wrong: list[str]


class Report(Figures, frozen=True):
    """All figures of one extractor on one set."""

    by_category: dict[str, Figures]
    by_kind: dict[str, GroupFigures]
    by_split: dict[str, Figures]
    retractions: Figures
    messages: int
    negatives: int
    """Messages with nothing to remember or to forget."""
    negatives_clean: float | None
    """Share of them in which nothing was found, retractions included."""
    misses: list[Miss]


class _Judged(Struct, frozen=True):
    """One message: which facts and retractions are right, missed, wrong."""

    message: LabelledMessage
    right: list[ExtractedFact]
    missed: list[LabelledFact]
    wrong: list[ExtractedFact]
    retractions_right: int
    retractions_missed: list[LabelledRetraction]
    retractions_wrong: list[Retraction]

    @property
    def clean(self) -> bool:
        return not (self.right or self.wrong or self.retractions_right or self.retractions_wrong)


def measure(messages: Sequence[LabelledMessage], extract: Extract, policy: FactPolicy) -> Report:
    """Run the extractor over every message and count.

    Args:
        messages: Labelled ones.
        extract: From a message's text to facts and retractions.
        policy: Facts below its confidence or importance count as not found, as they are not stored.
    """
    judged = [_judge(message, extract(message.content), policy) for message in messages]
    negatives = [each for each in judged if each.message.says_nothing]
    return Report(
        **asdict(_figures(judged)),
        by_category={category: _figures(judged, category) for category in FactCategory},
        by_kind={name: _of_kind(group) for name, group in grouped(judged, lambda each: each.message.kind).items()},
        by_split={name: _figures(group) for name, group in grouped(judged, lambda each: each.message.split).items()},
        retractions=_ratios(
            sum(each.retractions_right for each in judged),
            sum(len(each.retractions_missed) for each in judged),
            sum(len(each.retractions_wrong) for each in judged),
        ),
        messages=len(judged),
        negatives=len(negatives),
        negatives_clean=_share_clean(negatives),
        misses=[miss for each in judged if (miss := _miss(each)) is not None],
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


def _judge(message: LabelledMessage, extracted: Extracted, policy: FactPolicy) -> _Judged:
    left = [
        fact
        for fact in extracted.facts
        if fact.confidence >= policy.min_confidence and fact.importance >= policy.min_importance
    ]
    right: list[ExtractedFact] = []
    missed: list[LabelledFact] = []
    for label in sorted(message.facts, key=lambda label: label.key is None):  # those with a key choose first
        match = next((fact for fact in left if _agrees(label, fact)), None)
        if match is None:
            missed.append(label)
        else:
            left.remove(match)
            right.append(match)
    said = Counter((retraction.category, retraction.key) for retraction in message.retractions)
    retractions_wrong: list[Retraction] = []
    for retraction in extracted.retractions:
        name = (retraction.category, retraction.key)
        if said[name]:
            said[name] -= 1
        else:
            retractions_wrong.append(retraction)
    retractions_missed = [LabelledRetraction(*name) for name in said.elements()]
    return _Judged(
        message=message,
        right=right,
        missed=missed,
        wrong=left,
        retractions_right=len(message.retractions) - len(retractions_missed),
        retractions_missed=retractions_missed,
        retractions_wrong=retractions_wrong,
    )


def _agrees(label: LabelledFact, fact: ExtractedFact) -> bool:
    same_key = label.key is None or label.key == fact.key
    return label.category == fact.category and same_key and same_value(label.value, fact.value)


def _ratios(right: int, missed: int, wrong: int) -> Figures:
    return figures_of(right, gold=right + missed, found=right + wrong)


def _figures(judged: Iterable[_Judged], category: FactCategory | None = None) -> Figures:
    def count(facts: Iterable[ExtractedFact | LabelledFact]) -> int:
        return sum(category in (None, fact.category) for fact in facts)

    counts = [(count(each.right), count(each.missed), count(each.wrong)) for each in judged]
    return _ratios(*(sum(column) for column in zip(*counts, strict=True))) if counts else _ratios(0, 0, 0)


def _of_kind(judged: Sequence[_Judged]) -> GroupFigures:
    clean = _share_clean([each for each in judged if each.message.says_nothing])
    return group_figures(_figures(judged), messages=len(judged), clean=clean)


def _share_clean(negatives: Sequence[_Judged]) -> float | None:
    return sum(each.clean for each in negatives) / len(negatives) if negatives else None


def _miss(each: _Judged) -> Miss | None:
    missed = [_entry(fact) for fact in each.missed] + [_entry_of_retraction(one) for one in each.retractions_missed]
    wrong = [_entry(fact) for fact in each.wrong] + [_entry_of_retraction(one) for one in each.retractions_wrong]
    if not missed and not wrong:
        return None
    message = each.message
    return Miss(message.id, message.split, message.kind, message.content, missed, wrong)


def _entry(fact: LabelledFact | ExtractedFact) -> str:
    return f"{fact.category}/{fact.key or '*'}={fact.value}"


def _entry_of_retraction(retraction: LabelledRetraction | Retraction) -> str:
    return f"-{retraction.category or '*'}/{retraction.key or '*'}"
