"""Negation between two statements of a project's talk: one denies what the other affirms. By rules, English.

| denies | does not |
|---|---|
| "We won't use MongoDB", "decided against MongoDB" | "Use PostgreSQL, not MongoDB", "REST instead of GraphQL" |
| "The API must not expose ids", "never deploy on Fridays" | "Use Redis because Memcached does not persist" |

A denial is opposed by a statement that has all words of what is denied: "must not use MongoDB in production" leaves
"use MongoDB for sessions" alone. What says other numbers, dates or values of the same is `language.contradiction`'s.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from models.language.contradiction import Facts, conflicts, sentences_of
from models.language.likeness import content_words
from models.language.tables import PatternTables
from models.text.words import fold_text, word_set

_RE = PatternTables("statements_patterns").section("negation")

"""Where what is said aside begins."""
_NOT_ONLY = re.compile(r"\bnot (?:only|just|yet|sure)\b")
_GENERIC = frozenset().union(
    *map(
        content_words,
        word_set(
            "use using used adopt adopting go going choose chose chosen pick picked select selected decide decided "
            "agree agreed opt opted prefer need want take switch move deploy store keep run add support allow should "
            "must will to be it any all ever always team project decision to for against on"
        ),
    )
)
"""Words in which a denial and what it denies may differ."""
_NO_FACTS: Facts = {}


class _Polarity(Struct, frozen=True, gc=False):
    denies: bool
    words: frozenset[str]
    """Of what is denied, or of all that is affirmed."""
    stated: frozenset[str]
    """Of the whole statement."""


def denies(content: str) -> bool:
    """Whether a statement says that something is not to be.

    >>> [denies(said) for said in ("We won't use MongoDB.", "Use PostgreSQL, not MongoDB.")]
    [True, False]
    """
    return _polarity(content).denies


def opposed(one: str, other: str) -> bool:
    """Whether one statement denies what the other affirms; the same both ways round.

    >>> opposed("We decided to use MongoDB for the catalogue.", "The team must not use MongoDB.")
    True
    >>> opposed("Use MongoDB for sessions.", "Must not use MongoDB in production.")
    False
    """
    a, b = _polarity(one), _polarity(other)
    if a.denies == b.denies:
        return False
    denied, affirmed = (a, b) if a.denies else (b, a)
    return bool(denied.words) and denied.words <= affirmed.words


def contradicting(one: str, other: str) -> bool:
    """Whether two statements cannot both be followed: opposite, or other values of the same.

    >>> contradicting("The API must answer within 100 ms.", "The API must answer within 200 ms.")
    True
    """
    # Whatever contradicts shares a word with it; most pairs do not, and comparing costs most.
    if _polarity(one).stated.isdisjoint(_polarity(other).stated):
        return False
    if opposed(one, other):
        return True
    # Personal facts are not looked for: two people of a project may live in different towns.
    without_facts = dict.fromkeys((*sentences_of(one), *sentences_of(other)), _NO_FACTS)
    return conflicts(one, other, without_facts)


@lru_cache(maxsize=2_048)
def _polarity(content: str) -> _Polarity:
    folded = fold_text(content).strip()
    stated = content_words(folded)
    main = _RE.SIDE.split(folded, maxsplit=1)[0] or folded
    found = None if _NOT_ONLY.search(main) else _RE.DENIAL.search(main)
    if found is None:
        return _Polarity(denies=False, words=content_words(main.split(" not ", 1)[0]) - _GENERIC, stated=stated)
    return _Polarity(denies=True, words=content_words(main[found.end() :]) - _GENERIC, stated=stated)
