"""Readers of what limits the user: food, health, money, time."""

import re
from collections.abc import Iterable

from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, Finding, bare, fact, named, phrase, slug, things
from models.text.tables import PatternTables, by_word, read_table
from models.text.words import word_set

_RE = PatternTables("facts_patterns").section("limits")

_HEALTH_IMPORTANCE = 0.95
_OTHER_IMPORTANCE = 0.75
_CONDITIONS = by_word(read_table("nouns")["conditions"])


def _condition(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    condition = re.sub(r"^(?:an? )?(type (?:1|2|one|two)) diabetic$", r"\1 diabetes", match["v"].lower())
    condition = re.sub(r"^(?:an?|severe|mild|bad|chronic|really|terrible|my|some) ", "", condition)
    return fact(
        CONSTRAINT, f"medical_{slug(_CONDITIONS.get(condition, condition))}", "yes", statement, 0.9, _HEALTH_IMPORTANCE
    )


_SINCE = re.compile(r"\s+(?:at|in|when|last|since|as|aged|during|after|from|years?|this|about|over)\b.*")


def _suffers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    for said in things(match["v"], 4):
        thing = _SINCE.sub("", re.sub(r"^(?:severe|mild|bad|chronic|terrible|occasional|frequent) ", "", said.lower()))
        if not re.match(r"(?:it|this|that|boredom|fomo|jet)\b", thing):
            yield from fact(CONSTRAINT, f"medical_{slug(thing)}", "yes", statement, 0.85, _HEALTH_IMPORTANCE)


def _budget(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    amount = _RE.MONEY.search(match["v"][:120]) or _RE.BARE_AMOUNT.match(match["v"])
    said = re.sub(r"^(?:about|around|roughly|only|just) ", "", amount[0]) if amount else ""
    return fact(CONSTRAINT, "budget", said, statement, 0.85, _OTHER_IMPORTANCE)


def _available(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    when = text if _RE.TIME.search(text) else ""
    return fact(CONSTRAINT, "availability", when, statement, 0.85, _OTHER_IMPORTANCE)


def _free(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _available(match, statement) if _RE.AT_TIMES.match(match["v"]) else []


def _unavailable(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"][2:], 12)
    when = text if _RE.OF_TIME.search(text) else ""
    return fact(CONSTRAINT, "availability", when, statement, 0.8, _OTHER_IMPORTANCE)


_DIET_IMPORTANCE = 0.9
_INTAKE = word_set(
    "gluten dairy alcohol caffeine sugar meat pork nuts shellfish eggs lactose wheat beef fish spicy aspirin "
    "ibuprofen penicillin soy seafood coffee milk heights drugs stairs carbs salt grapefruit"
)


def _allergic(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    for thing in things(re.sub(r"^(?:both|certain|some) ", "", match["v"])):
        if not _RE.NOT_TO_AVOID.match(thing):
            yield from fact(CONSTRAINT, f"allergy_{slug(thing)}", "allergic", statement, 0.95, _HEALTH_IMPORTANCE)


def _avoids(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    for thing in things(_RE.AVOIDED_END.split(match["v"])[0], 3):
        if not _RE.NOT_TO_AVOID.match(thing):
            yield from fact(CONSTRAINT, f"avoids_{slug(thing)}", "avoids", statement, 0.85, _DIET_IMPORTANCE)


def _cannot(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    known = bare(phrase(match["v"])).split(" ")[0].lower()
    vague = re.match(r"i (?:don't|can't) (?:have|do|use|take)\b", statement.text, re.IGNORECASE)
    return [] if vague and known not in _INTAKE else _avoids(match, statement)


READERS = named(_condition, _suffers, _budget, _available, _free, _unavailable, _allergic, _avoids, _cannot)
