"""Hedges that make a statement less sure than its wording: each has a name and a factor on the confidence.

Questions are no statements at all (`spoken`). Several doubts multiply. With the source confidences each of them leaves
a statement below `long_term.promote_from`, so it waits for somebody to promote it.
"""

import re
from collections.abc import Mapping

from models.events.project_items import MemoryType
from models.language.statements.spoken import Clause
from models.text.tables import PatternTables

_RE = PatternTables("statements_patterns").section("doubts")

FACTORS: Mapping[str, float] = {
    "negated": 0.3,  # "we have not decided", "no one chose"
    "hypothetical": 0.5,  # "if we chose", "we could use", "maybe"
    "opinion": 0.7,  # "I think we should"
    "third_person": 0.6,  # "they chose", "the client wants"
    "reported": 0.6,  # "the docs say we must"
    "past": 0.4,  # "we used to prefer"
    "assistant": 0.6,  # the assistant says what the team decided
    "unclear": 0.7,  # "we decided to use it": does not stand alone
}
_MAY = re.compile(r"\bmay (?!\d)(?!$)[a-z]|\bwe may\b")
_MAY_NOT = re.compile(r"\bmay (?:not|only)\b|^under no")
_IF = re.compile(r"\b(?:if|unless)\b(?! (?:possible|needed|necessary|you can))")
_WISHED = re.compile(r"\bi(?:'d| would) (?:\w+ )?(?:like|love|need)\b")
"""Of the moment, and for one person: "I'd like to plant herbs"."""
_OPINION = re.compile(r"\bi (?:think|believe|feel|assume|suspect|reckon)\b|\bin my opinion\b|\bimho\b")
_NEGATION = re.compile(r"n't\b|\b(?:not|never|nobody|none|no one|nor|neither|undecided|yet to|hardly|without)\b")
_DENIED = re.compile(r"\b(?:is|are|was|were) (?:not|never)\b|\b(?:isn't|aren't|wasn't|weren't|no longer)\b")
_UNMET = re.compile(r"\bshould\b.* but (?:it|they|instead|nothing|i get|the \w+ (?:is|was))\b")
"""What ought to be and is not: a report of a fault, no requirement."""


def doubts_of(clause: Clause, type_: MemoryType, match: re.Match[str]) -> list[str]:
    """Names of what makes a statement doubtful, as far as its wording shows it.

    Args:
        clause: Where it was found.
        type_: What the clause would say.
        match: Of the rule that it follows.
    """
    lower = clause.lower
    before, said = lower[: match.start()], lower[match.start() : match.end()]
    doubts = {
        "third_person": match.groupdict().get("other"),
        "negated": _negated(type_, before, said, clause.sentence),
        "hypothetical": _supposed(clause, type_),
        "opinion": type_ is not MemoryType.PREFERENCE and _OPINION.search(lower),
        "reported": type_ is not MemoryType.PROCEDURE and _RE.REPORTED.search(lower, 0, match.end()),
        "past": _RE.PAST.search(lower),
        "unclear": _RE.PRONOUN.search(lower),
    }
    return [doubt for doubt, found in doubts.items() if found]


def _negated(type_: MemoryType, before: str, said: str, sentence: str) -> bool:
    """Whether the saying itself is denied; what is decided, wanted or due may well be a "not"."""
    if type_ is MemoryType.DECISION:
        choosing = re.search(r"won't|will not|going to|not \w+ing|let's not|aren't", said)
        return _NEGATION.search(before.rpartition(",")[2]) is not None or (
            choosing is None and _NEGATION.search(said) is not None
        )
    if type_ is MemoryType.PREFERENCE:
        return re.search(r"(?:don't|do not|doesn't|didn't|not|never) (?:\w+ )?needs?\b", said) is not None
    if type_ is MemoryType.CONSTRAINT:
        return _RE.NO_NEED.search(said) is not None or (_UNMET.search(sentence) is not None)
    if type_ in {MemoryType.GOAL, MemoryType.ENTITY}:
        return _NEGATION.search(before) is not None or _DENIED.search(said) is not None
    return False


def _supposed(clause: Clause, type_: MemoryType) -> bool:
    conditional = type_ in {MemoryType.CONSTRAINT, MemoryType.PROCEDURE}
    lower, sentence = clause.lower, clause.sentence
    supposed = _RE.SUPPOSED.search(lower)
    # "We want to find out whether it works" is a goal all the same.
    if supposed is not None and type_ is MemoryType.GOAL and supposed[0] == "whether":
        supposed = None
    if (
        supposed
        or _RE.ASKED.search(sentence)
        or (_MAY.search(lower) and not (type_ is MemoryType.CONSTRAINT and _MAY_NOT.search(lower)))
    ):
        return True
    would = _RE.WOULD.search(lower) is not None
    if type_ is MemoryType.PREFERENCE:
        return (_IF.search(sentence) or _WISHED.search(lower) or _RE.SUPPOSED_ALL.match(sentence)) is not None
    if conditional:
        return would or (
            _RE.SUPPOSED_ALL.match(sentence) is not None and not re.match(r"\W*(?:if|once|until)\b", sentence)
        )
    return would or _IF.search(lower) is not None or _RE.SUPPOSED_ALL.match(sentence) is not None
