"""Rules for where the user lives and comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import Retraction
from models.language.facts.statements import Statement
from models.language.facts.values import IDENTITY, Build, FactRule, Finding, fact, place_of, rule


def _place(key: str, confidence: float) -> Build:
    def build(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
        return fact(IDENTITY, key, place_of(match["v"], statement), statement, confidence)

    return build


def _moved(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    place = place_of(match["v"], statement)
    if not place:
        return []
    return [
        *fact(IDENTITY, "location", place, statement, 0.95, corrects=True),
        Retraction(category=IDENTITY, key="address"),
    ]


def _living(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.match(r"\d+[\w-]* [A-Z]", text):
        return fact(IDENTITY, "address", text, statement, 0.9)
    return fact(IDENTITY, "location", place_of(text, statement), statement, 0.95)


def _origin(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = re.split(r"\s+(?:but|and|though)\s+", match["v"])[0]
    return fact(IDENTITY, "hometown", place_of(text, statement), statement, 0.85)


RULES: tuple[FactRule, ...] = (
    rule(
        "i live/i reside/i stay",
        r"i (?:live|reside) (?:with [\w ,]{2,30} |alone |permanently |full[- ]time )?(?:in|near"
        r"|outside(?: of)?|just outside(?: of)?|on|at) (?P<v>.+)",
        _living,
    ),
    rule(
        "we live",
        r"we live (?:with [\w ,]{2,30} )?(?:in|near|outside(?: of)?|just outside) (?P<v>.+)",
        _living,
    ),
    rule(
        "my/our",
        r"(?:my|our) (?:home|house|flat|apartment|place|base|family home)(?: is| base is) (?:in|near|outside)"
        r" (?P<v>.+)",
        _place("location", 0.85),
    ),
    rule(
        "i'm",
        r"i'm (?:based|living|located|residing|settled)(?: out)? (?:in|near|outside(?: of)?|out of)"
        r" (?P<v>.+)",
        _place("location", 0.9),
    ),
    rule(
        "i've",
        r"i've (?:lived|been living|been based|resided) (?:here )?in (?P<v>.+? (?:since|for|all"
        r"|my)\b.*)",
        _place("location", 0.85),
    ),
    rule(
        "i moved/i've/i relocated/we moved/we've/we relocated/i settled",
        r"(?:i|we)(?:'ve)? (?:moved|relocated|settled)(?: back| out| down| away| over| house)?"
        r" ?(?:from [\w ,]{2,40}? )?(?:to|in) (?P<v>.+)",
        _moved,
    ),
    rule("i'm", r"i'm (?:originally |actually |all the way )?from (?P<v>.+)", _origin),
    rule("i come", r"i come from (?P<v>.+)", _place("hometown", 0.85)),
    rule("originally/from", r"(?:originally )?from (?P<v>(?-i:[A-Z]).+)", _place("hometown", 0.6)),
    rule("living", r"living in (?P<v>(?-i:[A-Z])[\w'-]*(?:,? (?-i:[A-Z])[\w'-]*){0,2})$", _place("location", 0.7)),
    rule("based", r"based in (?P<v>.+)", _place("location", 0.7)),
    rule(
        "i grew/i was",
        r"i (?:grew up|was (?:born|raised|born and raised|brought up)) (?:in|near|outside)"
        r" (?P<v>(?!(?:19|20)\d\d|jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec|the (?:19|20"
        r"|eight|nine)).+)",
        _place("hometown", 0.9),
    ),
    # German and Spanish
    rule("ich", r"ich (?:wohne|lebe)(?: jetzt)? in (?P<v>.+)", _place("location", 0.95)),
    rule("vivo/yo", r"(?:yo )?vivo en (?P<v>.+)", _place("location", 0.95)),
)
