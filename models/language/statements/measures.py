"""Subjects of what is measured or dated: "api latency", "test coverage", "deadline", "api port"."""

from __future__ import annotations

import re

from models.events.project_items import MemoryType
from models.text.words import word_set

_QUANTITY = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b")
_RESPONSE = re.compile(
    r"\b(?:respond|load|answer|return|latency|response)\b.*\b(?:ms|milliseconds?|seconds?)\b"
    r"|\b(?:ms|milliseconds?|seconds?)\b.*\b(?:latency|response)\b"
)
_DUE = re.compile(r"\b(?:finished|ready|done|delivered|completed?|live|released) (?:by|before|on|until) ")
_DATE = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|(?:mon|fri)day)\b|\d"
)
_BOUND = re.compile(
    r"(?:(?:the|our|my|a|an|all|each|every|this) )*(?P<what>[\w/' -]{2,40}?) "
    r"(?:must|should|cannot|can't|needs? to|has to|have to|ought to)\b"
)
_HELD = re.compile(
    r"(?:(?:the|our|my|current|project) )*"
    r"(?P<what>(?:[\w-]+ ){0,2}?(?:deadline|budget|launch date|launch|release date|release|port|version))"
    r"(?: (?:of|for) (?:the |our )?(?P<of>[\w' ]{1,30}?))?(?: (?:is|are|will be|must|should)\b|: )"
)
_PORT = re.compile(r"(?:(?:the|our) )*(?P<what>[\w -]{2,30}?) (?:runs?|listens?)(?: locally)? on port \d")
_TEAM_SIZE = re.compile(
    r"(?:the|our) team (?:has|have|consists of|is) (?:now )?(?:\w+ )?(?:people|developers|members|engineers)\b"
)
_LASTS = re.compile(
    r"(?:(?:the|our|all|an?|each|every) )*(?P<what>[\w'-]+(?: [\w'-]+){0,2}?) (?:now )?(?:runs?|lasts?) (?:for "
    r"|about |around )*"
    r"(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twelve|an?)[ -](?:minute|hour|day|week|month|year)s?\b"
)
_OWN_BUDGET = re.compile(r"we(?:'ve| have)(?: got)? an? budget of \S*\d")
_MOVED = re.compile(
    r"\b(?:move|moved|moving|set|push|pushed|postpone|postponed|extend|extended|shift) (?:the |our )"
    r"(?P<what>deadline|launch date|launch|release date|release|budget) (?:back )?to\b"
)
_FULL = {"launch": "launch date", "release": "release date"}
_ALWAYS_ONE = ("test coverage", "uptime", "availability")
"""Measures of which a project has one."""
_NOBODY = word_set("we i it users you they")


def moved_date(lower: str) -> str:
    """What a clause gives another date or sum: "we moved the launch to May" is of the "launch date"."""
    moved = _MOVED.search(lower)
    return "" if moved is None else _FULL.get(moved["what"], moved["what"])


def measure_of(lower: str, type_: MemoryType) -> str:
    """What a constraint, goal or fact measures or dates; empty where it is not plain.

    >>> measure_of("the search api must respond within 200 ms", MemoryType.CONSTRAINT)
    'search api latency'
    >>> measure_of("the deadline for the design is 5 may", MemoryType.FACT), measure_of("we are 5", MemoryType.FACT)
    ('deadline for design', '')
    """
    if type_ is MemoryType.FACT and (named := _of_fact(lower)):
        return named
    if (held := _HELD.match(lower)) and _DATE.search(lower, held.end()):
        what, of = _FULL.get(held["what"], held["what"]), held["of"]
        return what if of in {None, "project"} else f"{what} for {of}"
    if not _QUANTITY.search(lower):
        return ""
    if type_ is MemoryType.CONSTRAINT and (bound := _of_constraint(lower)):
        return bound
    return next((measure for measure in _ALWAYS_ONE if measure in lower), "")


def _of_fact(lower: str) -> str:
    if port := _PORT.match(lower):
        return f"{port['what']} port"
    if _TEAM_SIZE.match(lower):
        return "team size"
    if lasts := _LASTS.match(lower):
        return "" if lasts["what"].split()[0] in _NOBODY else f"{lasts['what'].removesuffix('s')} duration"
    return "budget" if _OWN_BUDGET.match(lower) else ""


def _of_constraint(lower: str) -> str:
    bound = _BOUND.match(lower)
    if bound is None or bound["what"].split()[0] in _NOBODY:
        return ""
    if _RESPONSE.search(lower):
        return f"{bound['what']} latency"
    return f"{bound['what']} deadline" if _DUE.search(lower) else ""
