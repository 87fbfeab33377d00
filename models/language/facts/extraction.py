"""Facts and retractions of a message by rules: the entry of this package.

`attribution` keeps the text that the user says for themselves, `statements` splits it into clauses of a canonical form,
and the rules of the other modules, selected by a clause's first words, extract facts. Presupposed facts are found, too:
a name in apposition, "my latex allergy". English; German and Spanish for names and places.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from models.events.user import ExtractedFact, FactCategory, Retraction
from models.language.facts import identity, limits, orders, preferences, vocabulary
from models.language.facts.identity import pet_key
from models.language.facts.statements import (
    FIRST_PERSON_FORMS,
    TABLES,
    Statement,
    own_words,
    plain,
    statements_of,
    supposed_from,
)
from models.language.facts.values import CONSTRAINT, IDENTITY, Build, Finding, fact, named, reading, slug
from models.language.facts.vocabulary import WORDS
from models.text.tables import PatternTables
from models.text.words import word_set, words_of

_RE = PatternTables("facts_patterns").section("extraction")

MAX_FACTS = 64
"""Maximum number of facts of a message, as in `FactsExtracted`."""


class Extraction(Struct, frozen=True):
    """Facts and retractions that a message states about its user."""

    facts: list[ExtractedFact] = []
    """At most one for each category and key."""
    retractions: list[Retraction] = []


NOTHING = Extraction()

_ENDS = (
    (re.compile(r"i'm (?:on|following) (?:an?|the|my) (?:\w+ )?diet", re.IGNORECASE), CONSTRAINT, "diet"),
    (re.compile(r"i have an? (?:\w+ )?budget", re.IGNORECASE), CONSTRAINT, "budget"),
)
_ENDED_HABIT = re.compile(r"(?:eat|drink|consume|smoke) (?P<v>.+)", re.IGNORECASE)


FactRule = tuple[re.Pattern[str], Build]
"""Pattern of a statement's beginning, and the function that builds its facts."""


def _relative(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """Health facts of a relative, with the person in the key: `daughter_allergy_peanuts`."""
    verb, said = match["verb"].lower(), match["v"]
    own = f"I'm {said}" if verb in {"is", "are"} else f"I {FIRST_PERSON_FORMS.get(verb, verb.removesuffix('s'))} {said}"
    for each in _said(replace(statement, text=own)):
        if isinstance(each, ExtractedFact) and each.key.startswith(_OF_HEALTH):
            yield replace(each, key=slug(f"{match['who']}_{each.key}"))


_OF_HEALTH = ("allergy_", "medical_", "avoids_", "diet", "accessibility")
_READERS = identity.READERS | limits.READERS | preferences.READERS | orders.READERS | named(_relative)
_OPENED: dict[str, list[FactRule]] = defaultdict(list)
"""Rules by a statement's first word; for "I", "we" and "you" by its first two."""
_ANYWHERE: list[tuple[str, FactRule]] = []


for _row in chain(
    TABLES["orders"].rows("taken_back"),
    TABLES["limits"].rows("relatives"),
    *(TABLES[name].rows("rules") for name in ("identity", "limits", "likings")),
    TABLES["orders"].rows("orders"),
):
    _openings, _says = _row.cells
    _rule = (_row.pattern, reading(_says, _READERS))
    for _opening in " ".join(_openings.split()).split(", "):
        if _opening.startswith("*"):
            _ANYWHERE.append((_opening[1:], _rule))
        else:
            _OPENED[_opening].append(_rule)


def extract(content: str) -> Extraction:
    """Extract facts and retractions of a user from their message; of a long message, only its head and tail are read.

    The wording determines the confidence (user memory: "My name is" 1.0, "I prefer" 0.9, "Call me" 0.6); hedges lower
    it. Questions, suppositions, quotes, temporary, past and others' facts, and wishes for one answer are ignored.

    >>> [f"{fact.key}={fact.value} {fact.confidence}" for fact in extract("My name is Alex and I prefer Python").facts]
    ['name=Alex 1.0', 'language=Python 0.9']
    >>> extract("If my name was Alex, would you prefer Python?").facts
    []
    """
    text = plain(content)
    words = set(words_of(text.lower()))
    if vocabulary.CUES.isdisjoint(words):
        return NOTHING
    text = own_words(text, words)
    facts: dict[tuple[FactCategory, str], ExtractedFact] = {}
    taken_back: dict[tuple[FactCategory | None, str | None], Retraction] = {}
    for each in mentioned(text, words):
        facts[each.category, each.key] = each
    for statement in statements_of(text, words):
        if _is_passing(statement.said or statement.text):
            continue
        for finding in _findings(statement):
            if isinstance(finding, Retraction):
                if statement.weight == 1.0:
                    taken_back.setdefault((finding.category, finding.key), finding)
                continue
            place = (finding.category, finding.key)
            if place not in facts or finding.confidence >= facts[place].confidence:
                facts[place] = finding
    changed = [gone for of, gone in taken_back.items() if None in of or of not in facts]
    return Extraction(list(facts.values())[:MAX_FACTS], changed[:MAX_FACTS])


def _is_passing(text: str) -> bool:
    text = text.lower()
    if _RE.PASSING.search(text):
        return _RE.NO_LONGER.match(text) is None
    return _RE.RECENT.search(text) is not None and not _RE.LASTING.search(text)


def _findings(statement: Statement) -> Iterable[Finding]:
    ended = _RE.NO_LONGER.match(statement.text)
    return _said(statement) if ended is None else _ended(ended, statement)


def _said(statement: Statement) -> Iterable[Finding]:
    lower = statement.text.lower()
    first, _, rest = lower.partition(" ")
    opening = f"{first} {rest.partition(' ')[0]}" if first in {"i", "we", "you"} else first
    opened = (*_OPENED.get(opening, ()), *(_OPENED.get(first, ()) if opening != first else ()))
    for pattern, build in chain(opened, (rule for word, rule in _ANYWHERE if word in lower)):
        if (match := pattern.match(statement.text)) and (found := list(build(match, statement))):
            return found
    return ()


def _ended(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """Retractions from "I no longer …": what "I …" would state; "no longer eat …" is a fact instead."""
    said = next(value for name, value in match.groupdict().items() if name.startswith("v") and value)
    subject = next((value for name, value in match.groupdict().items() if name.startswith("s") and value), "")
    if habit := _ENDED_HABIT.match(said):
        return _said(Statement(f"I don't eat {habit['v']}", lower=statement.lower))
    be = match["be"] or ""
    if match["s4"]:
        subject = "I'm"
    positive = said if not subject else f"{subject}{be} {said}"
    if positive.lower().startswith("i am "):
        positive = f"I'm {positive[5:]}"
    findings = _said(Statement(positive, lower=statement.lower))
    taken_back: list[Finding] = [
        Retraction(category=fact.category, key=fact.key, value=fact.value)
        for fact in findings
        if isinstance(fact, ExtractedFact)
    ]
    if not taken_back and re.match(r"(?:i|we) live (?:there|here|at)\b", positive, re.IGNORECASE):
        return [Retraction(category=IDENTITY, key=key) for key in ("location", "address")]
    if not taken_back and re.match(r"i work (?:there|here)\b", positive, re.IGNORECASE):
        return [Retraction(category=IDENTITY, key="employer")]
    known = [Retraction(category=category, key=key) for pattern, category, key in _ENDS if pattern.match(positive)]
    return taken_back or orders.rule_named(said) or known


_CONFIDENCE = 0.75
_FAMILY = 0.7
_PETS = 0.6
_HEALTH = 0.95
_NO_ALLERGY = word_set(
    "the a an any no bad severe food some this that other his her their same new and nasty terrible "
    "mild seasonal worst such"
)
_NO_NAME = word_set("and but is was who has the she he i so also then because now when where please what how can does")


def _name_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    name = "" if match["v"].lower() in _NO_NAME else match["v"]
    if kind := match.groupdict().get("kind"):
        return fact(IDENTITY, pet_key(kind), name, statement, _CONFIDENCE, _PETS)
    return fact(IDENTITY, "partner_name", name, statement, _CONFIDENCE, _FAMILY)


def _allergy_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    who = match.groupdict().get("who")
    to = match["w"] or " ".join(word for word in match["v"].split() if word.lower() not in _NO_ALLERGY)
    key = f"{who} allergy {to}" if who else f"allergy {to}"
    return [] if "'s" in to or not slug(to) else fact(CONSTRAINT, key, "allergic", statement, 0.85, _HEALTH)


def _condition_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(CONSTRAINT, f"medical_{slug(match['v'])}", "yes", statement, 0.8, _HEALTH)


_BESIDE = named(_name_beside, _allergy_beside, _condition_beside)
_TABLES = PatternTables("mentions", words=WORDS)
_READINGS = [
    (frozenset(_TABLES.words(words)), row.pattern, reading(says, _BESIDE))
    for row in _TABLES.rows("mentions")
    for words, says in (row.cells,)
]
"""Words of which one must be there, the pattern, and what it says."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def mentioned(text: str, words: set[str]) -> Iterable[ExtractedFact]:
    """Facts that are taken for granted: a name in apposition, what is "mine"; `words` are the text's own, folded."""
    readings = [(pattern, read) for cues, pattern, read in _READINGS if not cues.isdisjoint(words)]
    if not readings:
        return
    statement = Statement("")
    for sentence in _SENTENCE.split(text):
        meant = sentence[: supposed_from(sentence.lower())]
        matches = [(match, read) for pattern, read in readings for match in pattern.finditer(meant)]
        if matches and not _RE.TAKING_BACK.search(meant):
            ends: set[int] = set()  # "my son's nut allergy" is not the user's too
            for match, read in matches:
                if match.end() in ends:
                    continue
                ends.add(match.end())
                yield from (fact for fact in read(match, statement) if isinstance(fact, ExtractedFact))
