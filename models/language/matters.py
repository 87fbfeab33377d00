"""Dates, sums and places: a matter has one of each at a time, and what is said later counts.

A sentence names its matter ("the launch moved to 14 February" is of the "launch date"), or gives the last value of its
kind another one and names nothing: "change of plan, 14 February instead". English, by rules.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from models.language.statements.subjects import TECHNOLOGIES
from models.text.tables import PatternTables

_RE = PatternTables("matters_patterns").section("matters")
_KINDS = {"date": _RE.DATE, "cost": _RE.MONEY, "place": _RE.PLACE, "number": _RE.NUMBER}
_OF_ITS_OWN = frozenset({"deadline", "budget"})


_SUBJECT = re.compile(r"\b(?:date|place|cost|deadline|budget)\b")


def has_one_value(subject: str) -> bool:
    """Whether a subject is a date, a sum or a place: several statements of it cannot hold side by side.

    >>> has_one_value("launch date"), has_one_value("database")
    (True, False)
    """
    return _SUBJECT.search(subject) is not None


class StatedValue(NamedTuple):
    """A date, sum or place of a sentence, and where it stands."""

    kind: str
    start: int
    end: int
    words: frozenset[str]
    """Compared by: "14 Feb" is "February 14th"."""


@lru_cache(maxsize=1024)
def value_in(sentence: str) -> StatedValue | None:
    """The first date, sum or place; a bare number only where there is no other."""
    for kind, pattern in _KINDS.items():
        found = pattern.search(sentence)
        if found and found[0].lower() not in TECHNOLOGIES:
            words = re.findall(r"\d[\d.,]*|[^\W\d]{3}", re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", found[0].lower()))
            return StatedValue(kind, found.start(), found.end(), frozenset(words))
    return None


@lru_cache(maxsize=1024)
def matter_of(sentence: str) -> str:
    """What a sentence dates, prices or places; empty where that is not plain.

    >>> matter_of("We moved the launch to February 14"), matter_of("The budget is now 900 euros")
    ('launch date', 'budget')
    """
    value = value_in(sentence)
    found = None if value is None else _RE.OF.fullmatch(sentence, 0, value.start)
    if value is None or found is None or value.kind == "number":
        return ""
    if value.kind == "place" and _RE.ENDS.match(sentence, value.end) is None:
        return ""
    named = found.groupdict()
    what = next(named[name] for name in ("what", "noted", "moved", "does") if named[name]).lower().removesuffix(" date")
    matter = what if what.split()[-1] in _OF_ITS_OWN else f"{what} {value.kind}"
    return matter if named["of"] in {None, "project"} else f"{matter} for {named['of'].lower()}"


def revalues(later: str, earlier: str) -> bool:
    """Whether two sentences give one matter values that are not the same.

    >>> revalues("The launch moved to 14 February.", "We decided to launch on February 28.")
    True
    """
    matter = matter_of(later)
    if not matter or matter != matter_of(earlier):
        return False
    return other_value(later, earlier)


def other_value(one: str, other: str) -> bool:
    """Whether the values of two sentences are of one kind and differ; one that says more of the other does not."""
    a, b = value_in(one), value_in(other)
    return a is not None and b is not None and a.kind == b.kind and not (a.words <= b.words or b.words <= a.words)


def is_revision(said: str) -> bool:
    """Whether a sentence only says that a date, sum or place is another one by now, not of what."""
    value = value_in(said)
    if value is None:
        return False
    before, behind = _RE.BARE.fullmatch(said, 0, value.start), _RE.BEHIND.fullmatch(said, value.end)
    return before is not None and behind is not None and bool(before["mark"] or before["moved"] or behind["mark"])


def revised(earlier: str, said: str) -> str:
    """An earlier sentence with the value that a revision gives; empty where it has none of that kind.

    >>> revised("The launch is on February 28.", "change of plan, February 14 instead")
    'The launch is on February 14.'
    """
    new, old = value_in(said), value_in(earlier)
    if new is None or old is None or not is_revision(said):
        return ""
    start, end = old.start, old.end
    if new.kind == "number" and old.kind == "cost" and (number := _RE.NUMBER.search(earlier, old.start)):
        start, end = number.span()
    elif new.kind != old.kind:
        return ""
    return earlier[:start] + said[new.start : new.end] + earlier[end:]
