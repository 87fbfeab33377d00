"""Rules for what the user is called."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import IDENTITY, Build, FactRule, Finding, fact, name_of, rule
from models.text.words import word_set

_NAME_IMPORTANCE = 1.0


def _name(confidence: float, *, corrects: bool | None = None) -> Build:
    def build(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
        name = name_of(_SPELT.sub("", match["v"]), statement)
        if match["v"].lower().startswith("not "):
            return []
        return fact(IDENTITY, "name", name, statement, confidence, _NAME_IMPORTANCE, corrects=corrects)

    return build


_NO_GREETING = word_set(
    "same right over up down out in back still stuck alone anyone everyone nobody someone newbie "
    "user guest both team me thanks"
)
"""What may stand before "here" and is no name."""
_SPELT = re.compile(
    r"(?:spell?ed|spelt|written|pronounced|now|legally|officially|really|of course) (?:as |like )?", re.IGNORECASE
)


def _introduced(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """As in "I'm Alex": only with a capital, and nothing else that is said so."""
    text = match["v"]
    name = name_of(text, statement)
    first = name.split(" ")[0].lower() if name else ""
    rest = text[len(name) :].strip().lower()
    if (
        not name[:1].isupper()
        or first in vocabulary.FEELINGS
        or first in _NO_GREETING
        or first in vocabulary.DEMONYMS
        or first.endswith("ing")
        or first in vocabulary.TITLES
        or (name.isupper() and len(name) > 1)
        or not (
            not rest
            or rest[0] in ",.(!-"
            or rest.startswith(("and", "from", "by the way", "here", "btw", "a ", "your"))
        )
    ):
        return []
    return fact(IDENTITY, "name", name, statement, 0.85, _NAME_IMPORTANCE)


RULES: tuple[FactRule, ...] = (
    rule("my", r"my (?:name|first name|real name|actual name)(?: is| =|:) (?P<v>.+)", _name(1.0)),
    rule(
        "my",
        r"my (?:full|complete|legal|official|proper|correct|new) name(?: is|:) (?P<v>.+)",
        _name(0.95, corrects=True),
    ),
    rule("my", r"my (?:nick ?name|preferred name)(?: is|:) (?P<v>.+)", _name(0.6)),
    rule("name/the", r"(?:the )?name(?: is|:) (?P<v>.+)", _name(0.9)),
    rule("name", r"name (?P<v>(?-i:[A-Z]).{1,40})$", _name(0.8)),
    rule("call/address/refer", r"(?:call|address|refer to) me (?:as )?(?P<v>.+)", _name(0.6)),
    rule("i'm", r"i'm (?:called|named) (?P<v>.+)", _name(0.95)),
    rule(
        "i go/i usually",
        r"i (?:usually )?go by (?:the name )?(?!(?:she|he|they|any|it|the|what|a|an|my)\b)(?P<v>.+)",
        _name(0.8),
    ),
    rule(
        "people/friends/everyone/everybody/most/folks",
        r"(?:most )?(?:people|friends|everyone|everybody|folks)(?: \w+){0,3}? calls? me"
        r" (?P<v>.+)",
        _name(0.6),
    ),
    rule("my", r"my (?:friends|family|colleagues|coworkers)(?: all| just| usually)? call me (?P<v>.+)", _name(0.6)),
    rule(
        "i changed/i've",
        r"i(?:'ve)?(?: legally| officially)? changed my (?:\w+ )?name (?:from [\w ]{1,30} )?to"
        r" (?P<v>.+)",
        _name(0.95, corrects=True),
    ),
    rule(
        "i prefer/i'd",
        r"i(?:'d)? prefer (?:to be called|being called|to go by|(?:that |if )?you call me) (?P<v>.+)",
        _name(0.7),
    ),
    rule("i like", r"i like to be called (?P<v>.+)", _name(0.6)),
    rule("i'm", r"i'm (?P<v>.+)", _introduced),
    rule("this", r"this is (?P<v>(?-i:[A-Z])\w+)(?: here| from .+)?$", _name(0.7)),
    rule("*here", r"(?P<v>(?-i:[A-Z])\w+(?: (?-i:[A-Z])\w+)?) here\b", _introduced),
    # German and Spanish
    rule("ich", r"ich (?:hei(?:ß|ss)e|bin der|bin die) (?P<v>.+)", _name(1.0)),
    rule("mein", r"mein name ist (?P<v>.+)", _name(1.0)),
    rule("nenn/nenne", r"nenne? mich (?:bitte )?(?P<v>.+)", _name(0.6)),
    rule("me", r"me llamo (?P<v>.+)", _name(1.0)),
    rule("mi", r"mi nombre es (?P<v>.+)", _name(1.0)),
    rule("llámame/llamame", r"ll[aá]mame (?P<v>.+)", _name(0.6)),
)
