"""Scoring of extractors on the labelled sentences: by type, subject, split and difficulty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from msgspec import Struct

from jobs.lab.eval.extraction_sentences import LabelledSentence, LabelledStatement
from jobs.lab.eval.ratios import Figures, GroupFigures, figures_of, group_figures, grouped
from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.statements.extraction import Found

Extract = Callable[[LabelledSentence], Sequence[Found]]
_SEED_PATTERNS = (
    (re.compile(r"decided|chose|selected|went with", re.IGNORECASE), MemoryType.DECISION, 0.8),
    (re.compile(r"prefer|like|want|need", re.IGNORECASE), MemoryType.PREFERENCE, 0.7),
    (re.compile(r"must|should|cannot|can't|need to", re.IGNORECASE), MemoryType.CONSTRAINT, 0.7),
    (re.compile(r"goal|objective|aim|target", re.IGNORECASE), MemoryType.GOAL, 0.8),
)
"""Project memory, Automatic Extraction, as they stand there."""
_ROUNDS = 5


class Miss(Struct, frozen=True):
    """A message that was not read as labelled; entries are `type` or `type: subject, not subject`."""

    id: str
    split: str
    difficulty: str
    text: str
    missed: list[str]
    wrong: list[str]


class Report(Struct, frozen=True):
    """All figures of the rules on one set, and those of the source's bare patterns beside."""

    all: Figures
    held_out: Figures
    """Of all splits but `dev`."""
    by_split: dict[str, Figures]
    by_type: dict[str, Figures]
    by_difficulty: dict[str, GroupFigures]
    subjects: Figures
    """Of statements whose type is right: a wrong subject counts against precision, an absent one against recall."""
    seed_patterns: Figures
    seed_patterns_held_out: Figures
    f1_ratio: float | None
    """Rules to source patterns, both on all messages."""
    messages: int
    negatives: int
    """Messages that state nothing."""
    negatives_clean: float | None
    us_per_message: float
    """Of the rules, the best of some rounds over the set."""
    misses: list[Miss]


class _Judged(Struct, frozen=True):
    sentence: LabelledSentence
    right: list[tuple[LabelledStatement, Found]]
    missed: list[LabelledStatement]
    wrong: list[Found]


def measure(sentences: Sequence[LabelledSentence], extract: Extract, promote_from: float) -> Report:
    """Run rules and source patterns over every message and count.

    Args:
        sentences: Labelled ones, at least one.
        extract: From a message to statements.
        promote_from: Statements less sure count as not found, as they become no memory.
    """
    judged = [_judge(each, _sure(extract(each), promote_from)) for each in sentences]
    bare = [_judge(each, _sure(by_seed_patterns(each), promote_from)) for each in sentences]
    rules, patterns = _figures(judged), _figures(bare)
    negatives = [each for each in judged if not each.sentence.expected]
    return Report(
        all=rules,
        held_out=_figures(_held_out(judged)),
        by_split={name: _figures(group) for name, group in grouped(judged, lambda each: each.sentence.split).items()},
        by_type={type_.value: _figures(judged, type_) for type_ in MemoryType},
        by_difficulty={
            name: _of_difficulty(group)
            for name, group in grouped(judged, lambda each: each.sentence.difficulty).items()
        },
        subjects=_subjects(judged),
        seed_patterns=patterns,
        seed_patterns_held_out=_figures(_held_out(bare)),
        f1_ratio=rules.f1 / patterns.f1 if rules.f1 is not None and patterns.f1 else None,
        messages=len(sentences),
        negatives=len(negatives),
        negatives_clean=_share_clean(negatives),
        us_per_message=_microseconds(sentences, extract),
        misses=[miss for each in judged if (miss := _miss(each)) is not None],
    )


def by_seed_patterns(sentence: LabelledSentence) -> list[Found]:
    """What the source's patterns, found anywhere in a message, would make of it."""
    if sentence.role not in {Role.USER, Role.ASSISTANT}:
        return []
    return [
        Found(content=sentence.text, type=type_, confidence=confidence)
        for pattern, type_, confidence in _SEED_PATTERNS
        if pattern.search(sentence.text)
    ]


def _sure(found: Iterable[Found], promote_from: float) -> list[Found]:
    return [each for each in found if each.confidence >= promote_from]


def _judge(sentence: LabelledSentence, left: list[Found]) -> _Judged:
    right: list[tuple[LabelledStatement, Found]] = []
    missed: list[LabelledStatement] = []
    for label in sentence.expected:
        match = next((each for each in left if each.type is label.type), None)
        if match is None:
            missed.append(label)
        else:
            left.remove(match)
            right.append((label, match))
    return _Judged(sentence, right, missed, left)


def _figures(judged: Iterable[_Judged], type_: MemoryType | None = None) -> Figures:
    right = gold = found = 0
    for each in judged:
        hits = sum(type_ in (None, label.type) for label, _ in each.right)
        right += hits
        gold += hits + sum(type_ in (None, label.type) for label in each.missed)
        found += hits + sum(type_ in (None, statement.type) for statement in each.wrong)
    return figures_of(right, gold=gold, found=found)


def _subjects(judged: Iterable[_Judged]) -> Figures:
    looked_at = [
        (label.subject, found.subject) for each in judged for label, found in each.right if label.subject is not None
    ]
    right = sum(label == found != "" for label, found in looked_at)
    gold, found = (
        (sum(subject != "" for subject in column) for column in zip(*looked_at, strict=True)) if looked_at else (0, 0)
    )
    return figures_of(right, gold=gold, found=found)


def _of_difficulty(judged: Sequence[_Judged]) -> GroupFigures:
    clean = _share_clean([each for each in judged if not each.sentence.expected])
    return group_figures(_figures(judged), messages=len(judged), clean=clean)


def _held_out(judged: Iterable[_Judged]) -> list[_Judged]:
    return [each for each in judged if each.sentence.split != "dev"]


def _share_clean(negatives: Sequence[_Judged]) -> float | None:
    return sum(not each.wrong for each in negatives) / len(negatives) if negatives else None


def _microseconds(sentences: Sequence[LabelledSentence], extract: Extract) -> float:
    times = []
    for _ in range(_ROUNDS):
        begin = perf_counter()
        for sentence in sentences:
            extract(sentence)
        times.append(perf_counter() - begin)
    return min(times) / len(sentences) * 1e6


def _miss(each: _Judged) -> Miss | None:
    missed = [label.type.value for label in each.missed]
    missed += [
        f"{label.type.value}: {label.subject or '-'}, not {found.subject or '-'}"
        for label, found in each.right
        if label.subject not in (None, found.subject)
    ]
    wrong = [found.type.value for found in each.wrong]
    if not missed and not wrong:
        return None
    sentence = each.sentence
    return Miss(sentence.id, sentence.split, sentence.difficulty, sentence.text, missed, wrong)
