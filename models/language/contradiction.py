"""Contradictions between memories of an app (app memory, phase 3: conflict resolution) or a project. By rules, English.

| what contradicts | not |
|---|---|
| one denies what the other says in otherwise the same words | "eats no raw meat" beside "eats meat" |
| other numbers, dates, times in otherwise the same words | one says more than the other; numbers of orders, tickets … |
| another value of a fact that `facts.extraction` knows | two likes, two allergies; "Oslo" beside "Oslo, Norway" |
| another value of what has only one: a deadline, a plan, a date or place (`matters`) … | |

Two statements of a project are also opposed if one denies all words of what the other affirms in its main clause:
"must not use MongoDB in production" leaves "use MongoDB for sessions" alone, "PostgreSQL, not MongoDB" denies nothing.

Dates, sums, places, durations: a matter has one of each at a time, and what is said later counts. English, by rules.

A sentence names its matter ("the launch moved to May"), or revises the last value of its kind: "no, May 14 instead".
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from models.language.facts.extraction import extract
from models.language.likeness import EMPTY_WORDS, WORD, content_words, plain_form, topics_in
from models.language.statements.subjects import TECHNOLOGIES
from models.text.summary import SENTENCE
from models.text.tables import PatternTables
from models.text.words import fold_text, word_set

_MONTHS = PatternTables("words").word_set("MONTHS")
_MATTERS = PatternTables("matters_patterns", words={"MONTH": _MONTHS}).section("matters")
_KINDS = {
    "date": _MATTERS.DATE,
    "cost": _MATTERS.MONEY,
    "place": _MATTERS.PLACE,
    "duration": _MATTERS.DURATION,
    "number": _MATTERS.NUMBER,
}
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
    found = None if value is None else _MATTERS.OF.fullmatch(sentence, 0, value.start)
    if value is None or found is None or value.kind == "number":
        return ""
    if value.kind in {"place", "duration"} and _MATTERS.ENDS.match(sentence, value.end) is None:
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
    before = None if value is None else _MATTERS.BARE.fullmatch(said, 0, value.start)
    behind = None if value is None else _MATTERS.BEHIND.fullmatch(said, value.end)
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
    if (new.kind, old.kind) == ("number", "cost") and (amount := _MATTERS.NUMBER.search(earlier, start)):
        start, end = amount.span()
    elif new.kind != old.kind:
        return ""
    return earlier[:start] + said[new.start : new.end] + earlier[end:]


_RE = PatternTables("statements_patterns").section("contradiction")

_WORDS = PatternTables("words")
_NO = _WORDS.word_set("NEGATIONS")
_SHADES = word_set("always usually often still already ever longer anymore any now currently generally normally mostly")
"""Words in which two sentences may differ and still be of the same."""
_TIMES = _WORDS.word_set("TIMES", "MONTHS") - {"may"}
_NUMBERED = _WORDS.word_set("NUMBERED")
_ONE_VALUED = _WORDS.word_set("ONE_VALUED")
_ONE_VALUED_FORMS = frozenset(map(plain_form, _ONE_VALUED))
_SCHEDULED_FORMS = frozenset(map(plain_form, word_set("meeting appointment interview exam wedding flight trip party")))
_ENDS_THERE = re.compile(r"[.,;:!?)]*(?: (?:in|on|at|and|or|for|with|to|from|by|is|was)\b|\s*$)")
_FEW_WORDS = 4
Facts = Mapping[str, str]
"""Category and key of what a sentence says of its user → the value."""
NOTHING_KNOWN: Mapping[str, Facts] = {}


class _Claim(Struct, frozen=True, gc=False):
    words: frozenset[str]
    """Without negations, shades and values."""
    values: frozenset[str]
    denies: bool
    attribute: tuple[frozenset[str], frozenset[str]] | None
    done: bool
    """What an assistant did: that it did so again with another number contradicts nothing."""


@lru_cache(maxsize=512)
def sentences_of(content: str) -> tuple[str, ...]:
    """The sentences of a memory; "2.5" and addresses stay whole."""
    return tuple(said.strip() for said in SENTENCE.findall(content) if any(map(str.isalnum, said)))


def conflicts(one: str, other: str, known: Mapping[str, Facts] = NOTHING_KNOWN) -> bool:
    """Whether a sentence of one text contradicts one of the other; the same both ways round.

    Args:
        one: A text …
        other: … and another.
        known: Sentence → its facts (`facts_of`), where they were found before: to find them costs most.

    >>> conflicts("User prefers meetings after 2pm.", "User prefers meetings after 4pm.")
    True
    >>> conflicts("User prefers meetings after 2pm.", "User prefers meetings after 2pm on weekdays.")
    False
    """
    theirs, others = content_words(other), sentences_of(other)
    for sentence in sentences_of(one):
        claim = _claim(sentence)
        # Only sentences of the same words can be of the same, unless it is by their facts.
        near = (claim.words and claim.words <= theirs) or (claim.attribute is not None and claim.attribute[0] <= theirs)
        near = near or bool(matter_of(sentence))
        apart = contradicts if near else _facts_differ
        if (near or _facts_in(sentence, known)) and any(apart(sentence, each, known) for each in others):
            return True
    return False


def facts_of(content: str, known: Mapping[str, Facts] = NOTHING_KNOWN) -> list[Facts]:
    """What each sentence of a memory says of its user, in order."""
    return [_facts_in(sentence, known) for sentence in sentences_of(content)]


def contradicts(a: str, b: str, known: Mapping[str, Facts] = NOTHING_KNOWN) -> bool:
    """`conflicts` of two sentences."""
    one, other = _claim(a), _claim(b)
    if outdates(a, b):
        return True
    if one.words and one.words == other.words:
        if one.values == other.values:
            return one.denies != other.denies
        apart = one.values - other.values and other.values - one.values
        if apart and (len(one.words) > 1 or _has_one_value(one)) and one.denies == other.denies:
            return not (one.done and other.done)
    if one.attribute is not None and other.attribute is not None and not (one.denies or other.denies):
        of_one = one.attribute[0] == other.attribute[0]
        if of_one and one.attribute[1].isdisjoint(other.attribute[1]):
            return True
    return _facts_differ(a, b, known)


def _facts_differ(a: str, b: str, known: Mapping[str, Facts]) -> bool:
    # What is known costs nothing, and most sentences have no facts.
    first, second = (a, b) if a in known else (b, a)
    facts = _facts_in(first, known)
    others = _facts_in(second, known) if facts else {}
    return any(_differ(value, others[of]) for of, value in facts.items() if of in others)


def _facts_in(sentence: str, known: Mapping[str, Facts]) -> Facts:
    facts = known.get(sentence)
    return _found_in(sentence) if facts is None else facts


@lru_cache(maxsize=1_024)
def _found_in(sentence: str) -> Facts:
    return {f"{fact.category} {fact.key}": fact.value for fact in extract(as_said(sentence)).facts}


def _has_one_value(claim: _Claim) -> bool:
    """Whether what a sentence of one word is about has one value only; what is scheduled has one day."""
    return not (_ONE_VALUED_FORMS.isdisjoint(claim.words) and _SCHEDULED_FORMS.isdisjoint(claim.words))


def _differ(one: str, other: str) -> bool:
    """Two values, neither of which only says the other more exactly."""
    a, b = content_words(one) or {one}, content_words(other) or {other}
    return not (a <= b or b <= a)


@lru_cache(maxsize=1024)
def _claim(sentence: str) -> _Claim:
    folded = fold_text("" if topics_in(sentence) else sentence)
    words: set[str] = set()
    values: set[str] = set()
    denies, before = 0, ""
    for found in WORD.finditer(folded):
        word, kind, form = _read(found[0])
        if kind == "no":
            denies += 1
        elif kind == "number":
            if _names_a_thing(folded, found, before):
                words.add(plain_form(word))
            else:
                values.add(form)
        elif kind == "time":
            values.add(form)
        elif kind == "word":
            words.add(form)
        before = before if word in {"is", "was"} else word
    claim = frozenset(words)
    return _Claim(claim, frozenset(values), denies % 2 == 1, _attribute(sentence), folded.startswith("assistant "))


@lru_cache(maxsize=8_192)
def _read(word: str) -> tuple[str, Literal["no", "number", "time", "word", "empty"], str]:
    """A word without its genitive, its kind, and the form in which it is compared."""
    word = word.removesuffix("'s")
    if word in _NO:
        return word, "no", word
    if _RE.NUMBER.fullmatch(word):
        return word, "number", word.replace(",", "").rstrip(".:")
    form = plain_form(word)
    if word in _TIMES or form in _TIMES:
        return word, "time", word if word in _TIMES else form
    return word, "empty" if word in EMPTY_WORDS or word in _SHADES else "word", form


def _names_a_thing(folded: str, found: re.Match[str], before: str) -> bool:
    """Whether a number is a name: of an order, or as in "thing 2" behind what it tells apart."""
    if before in _NUMBERED or folded[found.start() - 1 : found.start()] == "#":
        return True
    if not found[0].isdigit() or _ENDS_THERE.match(folded, found.end()) is None:
        return False
    # Behind a verb or a preposition it is an amount: "paid 20", "costs 20", "until 20".
    thing = _RE.THING_BEFORE.search(folded, 0, found.start())
    return thing is not None and _read(before)[1] == "word" and plain_form(before) not in _ONE_VALUED_FORMS


def _attribute(sentence: str) -> tuple[frozenset[str], frozenset[str]] | None:
    found = _RE.ATTRIBUTE.fullmatch(sentence.strip())
    if found is None or len(found["value"].split()) > _FEW_WORDS:
        return None
    of, value = content_words(found["of"]), content_words(found["value"])
    named = _ONE_VALUED.isdisjoint(word.removesuffix("'s") for word in fold_text(found["of"]).split())
    return None if named or not of or not value else (of, value)


_OF_THE_USER = {"'s": "my", " is": "I'm", " has": "I have", " doe": "I don't", " can": "I can't", " ask": "", "": "I"}
"""By the first four letters of what stands behind "user"."""
_USER = re.compile(
    r"\b(?:the )?user(?:(?P<more>'s\b| is\b| has\b| does not\b| doesn't\b| cannot\b| can not\b| can't\b"
    r"| asked to (?=(?:always|never)\b))| (?P<how>(?:\w+ly|always|never) )?(?P<verb>\w+?)s\b|\b)",
    re.IGNORECASE,
)
_THEIRS = re.compile(r"\bthe(?:(?P<their>ir\b)|y(?= \w))", re.IGNORECASE)


def as_said(sentence: str) -> str:
    """As the user would have said it: that is what facts are found in.

    >>> as_said("User always prefers their tea black; the user's cat isn't.")
    "I always prefer my tea black; my cat isn't."
    """
    sentence = _USER.sub(_said, sentence)
    return _THEIRS.sub(lambda told: "my" if told["their"] else "I", sentence)


def _said(told: re.Match[str]) -> str:
    if told["verb"]:
        return f"I {told['how'] or ''}{told['verb']}"
    return _OF_THE_USER[(told["more"] or "").lower()[:4]]


_NOT_ONLY = re.compile(r"\bnot (?:only|just|yet|sure)\b")
_GENERIC = frozenset().union(*map(content_words, _WORDS.word_set("OF_ANY_STATEMENT")))
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
