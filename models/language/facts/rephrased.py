"""Normalisation of paraphrases to the one wording that the rules know: "home is Oslo" as "I live in Oslo"."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain

from msgspec import Struct

from models.language.facts.vocabulary import WORDS
from models.language.tables import Tables


class Way(Struct, frozen=True, gc=False):
    """A way of saying something, and the plain statements of it."""

    pattern: re.Pattern[str]
    forms: tuple[str, ...]
    starts: str = ""
    """Letters it can begin with, folded; empty: any. Cheaper to ask than the pattern."""


_STARTS = (
    *((start, "i") for start in ("i ", "i(", "i'", "(?:i'm ")),
    *((start, "iw") for start in ("(?:i|we)", "(?:i'm|we")),
    ("my ", "m"),
    ("it's ", "i"),
)
"""How patterns begin, and with what letters a clause must begin to match."""


def _by_word() -> dict[str, tuple[tuple[int, Way], ...]]:
    """Ways by each of the words of which a text has one, with their place: the first that matches counts."""
    ways: dict[str, list[tuple[int, Way]]] = defaultdict(list)
    tables = [Tables(name, words=WORDS, flags=re.IGNORECASE) for name in ("orders", "identity", "limits", "likings")]
    for n, (table, row) in enumerate((each, row) for each in tables for row in each.rows("ways")):
        words, forms = row.cells
        starts = next((letters for start, letters in _STARTS if row.pattern.pattern.startswith(start)), "")
        way = Way(row.pattern, tuple(_GROUP.sub(r"\\g<\1>", form) for form in forms.split(" | ")), starts)
        for word in table.words(words):
            ways[word].append((n, way))
    return {word: tuple(ways_of) for word, ways_of in ways.items()}


_GROUP = re.compile(r"<(\w)>")
_BY_WORD = _by_word()
_TRIGGERS = frozenset(_BY_WORD)


def ways_for(words: set[str]) -> tuple[Way, ...]:
    """The ways whose words a text has, in the order of the tables; most texts have none or a few."""
    present = words & _TRIGGERS
    if not present:
        return ()
    found = dict(chain.from_iterable(_BY_WORD[word] for word in present))
    return tuple(found[n] for n in sorted(found))


def plainly(form: str, ways: tuple[Way, ...]) -> tuple[str, ...]:
    """The plain statements of a clause; none if it is said in no way that is known.

    >>> plainly("home is Oslo these days", ways_for({"home", "is", "oslo", "these", "days"}))
    ('I live in Oslo these days',)
    """
    first = form[:1].lower()
    for way in ways:
        if (not way.starts or first in way.starts) and (found := way.pattern.match(form)):
            forms = [found.expand(template) for template in way.forms]
            return tuple(again for form in forms for again in _once_more(form, ways))
    return ()


def _once_more(form: str, ways: tuple[Way, ...]) -> tuple[str, ...]:
    for way in ways:
        if (found := way.pattern.match(form)) and (forms := tuple(found.expand(template) for template in way.forms)):
            return forms
    return (form,)
