"""Scoring of extractors on the labelled sentences: by type, subject, split and difficulty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from msgspec import Struct

from jobs.lab.eval.extraction_sentences import LabelledSentence, LabelledStatement
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
from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.statements.extraction import ExtractedStatement

Extract = Callable[[LabelledSentence], Sequence[ExtractedStatement]]
_SEED_PATTERNS = (
    (re.compile(r"decided|chose|selected|went with", re.IGNORECASE), MemoryType.DECISION, 0.8),
    (re.compile(r"prefer|like|want|need", re.IGNORECASE), MemoryType.PREFERENCE, 0.7),
    (re.compile(r"must|should|cannot|can't|need to", re.IGNORECASE), MemoryType.CONSTRAINT, 0.7),
    (re.compile(r"goal|objective|aim|target", re.IGNORECASE), MemoryType.GOAL, 0.8),
)
"""Project memory, Automatic Extraction, as they stand there."""
_ROUNDS = 5


class ExtractionScores(Struct, frozen=True):
    """All figures of the rules on one set, and those of the source's bare patterns beside."""

    all: ScoreFigures
    held_out: ScoreFigures
    """Of all splits but `dev`."""
    by_split: dict[str, ScoreFigures]
    by_type: dict[str, ScoreFigures]
    by_difficulty: dict[str, GroupFigures]
    subjects: ScoreFigures
    """Of statements whose type is right: a wrong subject counts against precision, an absent one against recall."""
    seed_patterns: ScoreFigures
    seed_patterns_held_out: ScoreFigures
    f1_ratio: float | None
    """Rules to source patterns, both on all messages."""
    messages: int
    negatives: int
    """Messages that state nothing."""
    negatives_clean: float | None
    us_per_message: float
    """Of the rules, the best of some rounds over the set."""
    misses: list[Misjudged]


class _JudgedSentence(Judged, frozen=True):
    """With the subjects that were labelled, each beside what was found."""

    subjects: list[tuple[str, str]]


def measure(sentences: Sequence[LabelledSentence], extract: Extract, promote_from: float) -> ExtractionScores:
    """Run rules and source patterns over every message and count.

    Args:
        sentences: Labelled ones, at least one.
        extract: From a message to statements.
        promote_from: Statements less sure count as not found, as they become no memory.
    """
    judged = [_judge(each, extract(each), promote_from) for each in sentences]
    bare = [_judge(each, by_seed_patterns(each), promote_from) for each in sentences]
    rules, patterns = figures(judged), figures(bare)
    return ExtractionScores(
        all=rules,
        held_out=figures(_held_out(judged)),
        by_split=by_split(judged),
        by_type={type_.value: figures(judged, type_) for type_ in MemoryType},
        by_difficulty=by_kind(judged),
        subjects=_subjects([pair for each in judged for pair in each.subjects]),
        seed_patterns=patterns,
        seed_patterns_held_out=figures(_held_out(bare)),
        f1_ratio=rules.f1 / patterns.f1 if rules.f1 is not None and patterns.f1 else None,
        messages=len(sentences),
        negatives=sum(not each.expected for each in sentences),
        negatives_clean=share_clean(judged),
        us_per_message=_microseconds(sentences, extract),
        misses=[each.miss for each in judged if each.miss is not None],
    )


def by_seed_patterns(sentence: LabelledSentence) -> list[ExtractedStatement]:
    """What the source's patterns, found anywhere in a message, would make of it."""
    if sentence.role not in {Role.USER, Role.ASSISTANT}:
        return []
    return [
        ExtractedStatement(content=sentence.text, type=type_, confidence=confidence)
        for pattern, type_, confidence in _SEED_PATTERNS
        if pattern.search(sentence.text)
    ]


def _judge(sentence: LabelledSentence, found: Iterable[ExtractedStatement], promote_from: float) -> _JudgedSentence:
    left = [each for each in found if each.confidence >= promote_from]
    right: list[tuple[LabelledStatement, ExtractedStatement]] = []
    absent: list[str] = []
    for label in sentence.expected:
        match = next((each for each in left if each.type is label.type), None)
        if match is None:
            absent.append(label.type.value)
        else:
            left.remove(match)
            right.append((label, match))
    wrong = [each.type.value for each in left]
    missed = absent + [
        f"{label.type.value}: {label.subject or '-'}, not {found.subject or '-'}"
        for label, found in right
        if label.subject not in (None, found.subject)
    ]
    named = (sentence.id, sentence.split, sentence.difficulty, sentence.text)
    return _JudgedSentence(
        sentence.split,
        sentence.difficulty,
        right=[label.type.value for label, _ in right],
        missed=absent,
        wrong=wrong,
        clean=None if sentence.expected else not left,
        miss=Misjudged(*named, missed, wrong) if missed or wrong else None,
        subjects=[(label.subject, found.subject) for label, found in right if label.subject is not None],
    )


def _subjects(pairs: Sequence[tuple[str, str]]) -> ScoreFigures:
    right = sum(label == found != "" for label, found in pairs)
    return figures_of(right, gold=sum(label != "" for label, _ in pairs), found=sum(found != "" for _, found in pairs))


def _held_out(judged: Iterable[Judged]) -> list[Judged]:
    return [each for each in judged if each.split != "dev"]


def _microseconds(sentences: Sequence[LabelledSentence], extract: Extract) -> float:
    times = []
    for _ in range(_ROUNDS):
        begin = perf_counter()
        for sentence in sentences:
            extract(sentence)
        times.append(perf_counter() - begin)
    return min(times) / len(sentences) * 1e6
