"""Dates, sums, places, durations: a matter has one of each at a time, and what is said later counts. English, by rules.

A sentence names its matter ("the launch moved to May"), or revises the last value of its kind: "no, May 14 instead".
"""

import re
from functools import lru_cache
from typing import NamedTuple

from models.language.statements.subjects import TECHNOLOGIES
from models.text.tables import PatternTables

_MONTHS = PatternTables("words").word_set("MONTHS")
_RE = PatternTables("matters_patterns", words={"MONTH": _MONTHS}).section("matters")
_KINDS = {"date": _RE.DATE, "cost": _RE.MONEY, "place": _RE.PLACE, "duration": _RE.DURATION, "number": _RE.NUMBER}
_WORD = re.compile(r"\d[\d.,]*|[^\W\d]{3}")


class StatedValue(NamedTuple):
    """A date, sum, place or duration, where it stands, and what it is compared by: "14 Feb" is "February 14th"."""

    kind: str
    start: int
    end: int
    words: frozenset[str]


@lru_cache(maxsize=1024)
def value_in(sentence: str) -> StatedValue | None:
    """The first date, sum, place or duration; a bare number only where there is no other."""
    for kind, pattern in _KINDS.items():
        found = pattern.search(sentence)
        if found and found[0].lower() not in TECHNOLOGIES:
            words = frozenset(_WORD.findall(found[0].lower()))
            return StatedValue(kind, found.start(), found.end(), words)
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
    if value.kind in {"place", "duration"} and _RE.ENDS.match(sentence, value.end) is None:
        return ""
    named = found.groupdict()
    what = next(named[name] for name in ("what", "noted", "moved", "does") if named[name]).lower().removesuffix(" date")
    matter = what if what.endswith(("deadline", "budget")) else f"{what} {value.kind}"
    return matter if named["of"] in {None, "project"} else f"{matter} for {named['of'].lower()}"


def outdates(later: str, earlier: str) -> bool:
    """Whether two sentences give one matter different values."""
    matter = matter_of(later)
    return bool(matter) and matter == matter_of(earlier) and other_value(later, earlier)


def other_value(one: str, other: str) -> bool:
    """Whether the values of two sentences are of one kind and differ; one that says more of the other does not."""
    a, b = value_in(one), value_in(other)
    return a is not None and b is not None and a.kind == b.kind and not (a.words <= b.words or b.words <= a.words)


def is_revision(said: str) -> bool:
    """Whether a sentence only says that a date, sum or place is another one by now, not of what."""
    value = value_in(said)
    before = None if value is None else _RE.BARE.fullmatch(said, 0, value.start)
    behind = None if value is None else _RE.BEHIND.fullmatch(said, value.end)
    return bool(before and behind and (before["mark"] or before["moved"] or behind["mark"]))


def revised(earlier: str, said: str) -> str:
    """An earlier sentence with the value that a revision gives; empty where it has none of that kind.

    >>> revised("The launch is on February 28.", "change of plan, February 14 instead")
    'The launch is on February 14.'
    """
    new, old = value_in(said), value_in(earlier)
    if new is None or old is None or not is_revision(said):
        return ""
    start, end = old.start, old.end
    if (new.kind, old.kind) == ("number", "cost") and (amount := _RE.NUMBER.search(earlier, start)):
        start, end = amount.span()
    elif new.kind != old.kind:
        return ""
    return earlier[:start] + said[new.start : new.end] + earlier[end:]
