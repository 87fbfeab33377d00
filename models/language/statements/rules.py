"""Extraction rules by type, with confidences: the source patterns, made to fit statements, and those beyond them.

| type | source wording | confidence | beyond it |
|---|---|---|---|
| decision | decided, chose, selected, went with | 0.8 | we'll …, we're closing …, booked, X moves to Y |
| preference | prefer, like, want, need | 0.7 | rather, fan of, please no …, easier for me |
| constraint | must, should, cannot, can't, need to | 0.7 | has to, not allowed, at most, no … in …, due |
| goal | goal, objective, aim, target | 0.8 | want … by May, hope to, the point of … is |
| entity | | 0.75 | X is our …, our … is X, X runs the … |
| procedure | | 0.75 | to …, run …; first … then …; when …, restart … |
| fact | | 0.75 | the API runs on …, we have 3 …, the deadline is … |

Notes ("Roof: clay tiles") have their own wordings: `ways_of_noting`.

Rules are tried in order on a clause, the first that matches counts; found by a word that each of them holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from models.events.project_items import MemoryType
from models.language.statements.constraint_patterns import CONSTRAINTS
from models.language.statements.decision_patterns import DECISIONS
from models.language.statements.entity_patterns import ENTITIES, FACTS
from models.language.statements.goal_patterns import GOALS, PREFERENCES
from models.language.statements.note_patterns import (
    NOTED_CONSTRAINTS,
    NOTED_DECISIONS,
    NOTED_ENTITIES,
    NOTED_FACTS,
    NOTED_GOALS,
    NOTED_PREFERENCES,
    NOTED_PROCEDURES,
)
from models.language.statements.procedure_patterns import PROCEDURES

_NOTED = re.compile(r": | -> | => | = | - ")
_DIGIT = re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b")
_VERB_WITHIN = 8
"""Words: a verb stands near the begin."""


class StatementRule(Struct, frozen=True):
    """A clause that matches says something of this type."""

    place: int
    type: MemoryType
    confidence: float
    pattern: re.Pattern[str]
    """Searched in the folded clause. Group `other`: whoever speaks of themselves is not this project."""
    named: bool
    """Whether group `name` or `value` must be a name, with a capital letter."""


def _by_word() -> Mapping[str, tuple[StatementRule, ...]]:
    found: dict[str, list[StatementRule]] = {}
    groups = (
        (MemoryType.PROCEDURE, PROCEDURES + NOTED_PROCEDURES),
        (MemoryType.DECISION, DECISIONS),
        (MemoryType.GOAL, GOALS + NOTED_GOALS),
        (MemoryType.CONSTRAINT, CONSTRAINTS + NOTED_CONSTRAINTS),
        (MemoryType.PREFERENCE, PREFERENCES + NOTED_PREFERENCES),
        (MemoryType.ENTITY, ENTITIES + NOTED_ENTITIES),
        (MemoryType.FACT, FACTS + NOTED_FACTS),
        (MemoryType.DECISION, NOTED_DECISIONS),
    )
    rules = [(type_, *each) for type_, group in groups for each in group]
    for place, (type_, confidence, words, pattern) in enumerate(rules):
        rule = StatementRule(
            place, type_, confidence, re.compile(pattern), "(?P<name>" in pattern or "(?P<value>" in pattern
        )
        for word in dict.fromkeys(words.split()):
            found.setdefault(word, []).append(rule)
    return {word: tuple(each) for word, each in found.items()}


def signs_of(lower: str, words: list[str]) -> list[str]:
    """What rules are found by beside words: `:` of a note, `#` for a number, `-ing` for a verb in this form.

    >>> signs_of("roof: 40 tiles", ["roof", "40", "tiles"])
    [':', '#']
    """
    signs = [":"] if _NOTED.search(lower) else []
    if _DIGIT.search(lower):
        signs.append("#")
    if any(word.endswith("ing") for word in words[:_VERB_WITHIN]):
        signs.append("-ing")
    return signs


RULES: Mapping[str, tuple[StatementRule, ...]] = _by_word()
"""By each of the words or signs of which a clause holds one."""
