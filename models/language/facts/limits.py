"""Readers of what limits the user: food, health, money, time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, Finding, bare, fact, keys_by_noun, named, phrase, slug, things
from models.text.tables import PatternTables, read_table
from models.text.words import word_set

_RE = PatternTables("facts_patterns").section("limits")

_HEALTH_IMPORTANCE = 0.95
_OTHER_IMPORTANCE = 0.75
_CONDITIONS = keys_by_noun(read_table("nouns")["conditions"])


def _condition(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    condition = re.sub(r"^(?:an? )?(type (?:1|2|one|two)) diabetic$", r"\1 diabetes", match["v"].lower())
    condition = re.sub(r"^(?:an?|severe|mild|bad|chronic|really|terrible|my|some) ", "", condition)
    return fact(
        CONSTRAINT, f"medical_{slug(_CONDITIONS.get(condition, condition))}", "yes", statement, 0.9, _HEALTH_IMPORTANCE
    )


_SINCE = re.compile(r"\s+(?:at|in|when|last|since|as|aged|during|after|from|years?|this|about|over)\b.*")


def _suffers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = []
    for said in things(match["v"], 4):
        thing = _SINCE.sub("", re.sub(r"^(?:severe|mild|bad|chronic|terrible|occasional|frequent) ", "", said.lower()))
        if not re.match(r"(?:it|this|that|boredom|fomo|jet)\b", thing):
            found += fact(CONSTRAINT, f"medical_{slug(thing)}", "yes", statement, 0.85, _HEALTH_IMPORTANCE)
    return found


def _budget(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    amount = _RE.MONEY.search(match["v"][:120]) or _RE.BARE_AMOUNT.match(match["v"])
    if amount:
        return fact(
            CONSTRAINT,
            "budget",
            re.sub(r"^(?:about|around|roughly|only|just) ", "", amount[0]),
            statement,
            0.85,
            _OTHER_IMPORTANCE,
        )
    return []


def _available(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    if not _RE.TIME.search(text):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.85, _OTHER_IMPORTANCE)


def _free(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if not _RE.AT_TIMES.match(text):
        return []
    return _available(match, statement)


def _unavailable(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"][2:], 12)
    if not _RE.OF_TIME.search(text):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.8, _OTHER_IMPORTANCE)


_DIET_IMPORTANCE = 0.9
_INTAKE = word_set(
    "gluten dairy alcohol caffeine sugar meat pork nuts shellfish eggs lactose wheat beef fish spicy aspirin "
    "ibuprofen penicillin soy seafood coffee milk heights drugs stairs carbs salt grapefruit"
)


def _allergic(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = []
    for thing in things(re.sub(r"^(?:both|certain|some) ", "", match["v"])):
        if not _RE.NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"allergy_{slug(thing)}", "allergic", statement, 0.95, _HEALTH_IMPORTANCE)
    return found


def _avoids(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = _RE.AVOIDED_END.split(match["v"])[0]
    found: list[Finding] = []
    for thing in things(text, 3):
        if not _RE.NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"avoids_{slug(thing)}", "avoids", statement, 0.85, _DIET_IMPORTANCE)
    return found


def _cannot(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    if re.match(r"i (?:can't|don't|won't) (?:have|do|take|handle|use|touch|tolerate)\b", statement.text, re.IGNORECASE):
        known = bare(phrase(match["v"])).split(" ")[0].lower()
        if (
            re.match(r"i (?:don't|can't) (?:have|do|use|take)\b", statement.text, re.IGNORECASE)
            and known not in _INTAKE
        ):
            return []
    return _avoids(match, statement)


READERS = named(_condition, _suffers, _budget, _available, _free, _unavailable, _allergic, _avoids, _cannot)
