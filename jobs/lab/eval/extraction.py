"""`turntide lab eval extraction`: labelled messages of project talk, and the scoring of extractors on them.

| split | messages | how they came to be |
|---|---|---|
| `dev` | 587 | rules are mended by looking at them |
| `test` | 167 | worded differently from the first 239 of `dev`, but by the same hand and shortly before the rules |
| `rare` | 33 | written after the first rules, to be unlike all others ("I'm calling it: …") |
| `foreign` | 120 | messages of teams of all trades, terse and long, typed in haste, lists, several statements in one |

`foreign` is the figure to go by: the even half of 240 messages (`team-…`) that were labelled before their writer had
seen the rules, which found F1 0.282 in it then. The odd half went to `dev`. What is missed in `test`, `rare` and
`foreign` has not been looked at; but whoever mended the rules had written both halves, so `foreign` is an upper bound.
Two later lots, now `team-dev-…`, had F1 0.769 (plainly worded) and 0.300 (unlike all others) before rules were mended
by them. Read the splits apart: `held_out` depends on how many there are of each. Once rules have been mended by rows of
another split, these belong to `dev` and new ones have to be written.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval import scores
from jobs.shared.dialogues import read_labelled
from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.statements.extraction import ExtractedStatement, extract
from models.policy import Policy

Split = Literal["dev", "test", "rare", "foreign"]


class LabelledStatement(Struct, frozen=True, forbid_unknown_fields=True):
    """A statement that the message makes. A subject of None is not looked at, an empty one must be empty."""

    type: MemoryType
    subject: str | None = None


class LabelledSentence(Struct, frozen=True, forbid_unknown_fields=True):
    """A message and what it states.

    Attributes:
        difficulty: Why the message is in the set; free, figures are given for each.
        expected: What it states, in order; empty for nothing.
        context: The assistant's message before it, where it matters.
    """

    id: str
    split: Split
    difficulty: str
    role: Role
    text: str
    expected: list[LabelledStatement]
    context: str = ""


def read_messages(file: Path | None = None) -> list[LabelledSentence]:
    """Read a labelled set; None: the one that Turntide brings. Errors as of `read_labelled`."""
    own = files(__package__).joinpath("extraction_sentences.jsonl")
    return read_labelled(file or own, LabelledSentence, "sentence")


Extract = Callable[[LabelledSentence], Sequence[ExtractedStatement]]
_SEED_PATTERNS = (
    (re.compile(r"decided|chose|selected|went with", re.IGNORECASE), MemoryType.DECISION, 0.8),
    (re.compile(r"prefer|like|want|need", re.IGNORECASE), MemoryType.PREFERENCE, 0.7),
    (re.compile(r"must|should|cannot|can't|need to", re.IGNORECASE), MemoryType.CONSTRAINT, 0.7),
    (re.compile(r"goal|objective|aim|target", re.IGNORECASE), MemoryType.GOAL, 0.8),
)
"""Project memory, Automatic Extraction, as they stand there."""


def by_rules(sentence: LabelledSentence) -> list[ExtractedStatement]:
    """What the rules find in a message."""
    return extract(sentence.text, sentence.role, context=sentence.context)


def measure(sentences: Sequence[LabelledSentence], policy: Policy, by: Extract = by_rules) -> Figures:
    """Run rules and source patterns over every message and count.

    `held_out` is of all splits but `dev`; `subjects` of statements whose type is right: a wrong subject counts against
    precision, an absent one against recall; `f1_ratio` of rules to source patterns, both on all messages.
    """
    promote_from = policy.projects.long_term.promote_from
    judged, bare = ([judge(each, way(each), promote_from) for each in sentences] for way in (by, by_seed_patterns))
    rules, patterns = scores.figures(judged), scores.figures(bare)
    return {
        **scores.of_set(judged, "difficulty"),
        "all": rules,
        "held_out": scores.figures(_held_out(judged)),
        "by_type": {type_.value: scores.figures(judged, type_) for type_ in MemoryType},
        "subjects": scores.figures_of(each.beside for each in judged),
        "seed_patterns": patterns,
        "seed_patterns_held_out": scores.figures(_held_out(bare)),
        "f1_ratio": rules.f1 / patterns.f1 if rules.f1 is not None and patterns.f1 else None,
    }


def by_seed_patterns(sentence: LabelledSentence) -> list[ExtractedStatement]:
    """What the source's patterns, found anywhere in a message, would make of it."""
    if sentence.role not in {Role.USER, Role.ASSISTANT}:
        return []
    return [
        ExtractedStatement(content=sentence.text, type=type_, confidence=confidence)
        for pattern, type_, confidence in _SEED_PATTERNS
        if pattern.search(sentence.text)
    ]


def judge(sentence: LabelledSentence, found: Iterable[ExtractedStatement], promote_from: float) -> scores.Judged:
    """Pair what a message states with what was found in it, surely enough to become a memory."""
    promoted = [each for each in found if each.confidence >= promote_from]
    right, absent, left = scores.paired(sentence.expected, promoted, lambda label, each: label.type is each.type)
    other_subjects = [
        f"{label.type.value}: {label.subject or '-'}, not {each.subject or '-'}"
        for label, each in right
        if label.subject not in (None, each.subject)
    ]
    subjects = [(label.subject, each.subject) for label, each in right if label.subject is not None]
    types = [label.type.value for label in absent]
    wrong = [each.type.value for each in left]
    return scores.Judged(
        {"id": sentence.id, "split": sentence.split, "difficulty": sentence.difficulty, "text": sentence.text},
        right=[label.type.value for label, _ in right],
        absent=types,
        wrong=wrong,
        missed=types + other_subjects,
        unlabelled=wrong,
        clean=None if sentence.expected else not left,
        beside=(
            sum(label == name != "" for label, name in subjects),
            sum(label != "" for label, _ in subjects),
            sum(name != "" for _, name in subjects),
        ),
    )


def _held_out(judged: Iterable[scores.Judged]) -> list[scores.Judged]:
    return [each for each in judged if each.message["split"] != "dev"]
