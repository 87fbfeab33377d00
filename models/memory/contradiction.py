"""Whether two memories say something else of the same (seed 003, phase 3: conflict resolution). By rules, English.

| what contradicts | not |
|---|---|
| one denies what the other says in otherwise the same words | "eats no raw meat" beside "eats meat" |
| other numbers, dates, times in otherwise the same words | one says more than the other; numbers of orders, tickets … |
| another value of a fact that `facts.extraction` knows | two likes, two allergies; "Oslo" beside "Oslo, Norway" |
| another value of what has only one: a deadline, a plan … | |
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from msgspec import Struct

from models.facts.extraction import extract
from models.memory.likeness import EMPTY_WORDS, WORD, plain_form, told_words
from models.text.words import fold_text, word_set

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]*")
_NO = word_set(
    "not no never don't doesn't didn't isn't aren't wasn't weren't won't can't cannot couldn't shouldn't wouldn't "
    "haven't hasn't hadn't without nor neither"
)
_SHADES = word_set("always usually often still already ever longer anymore any now currently generally normally mostly")
"""Words in which two sentences may differ and still be of the same."""
_NUMBER = re.compile(
    r"[$€£]?\d[\d.,:/-]*(?:am|pm|st|nd|rd|th|k|m|kg|g|km|cm|gb|mb|tb|h|min|ms|s|%|eur|usd)?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|fifty|hundred"
)
_TIMES = word_set(
    "monday tuesday wednesday thursday friday saturday sunday weekday weekend january february march april june july "
    "august september october november december jan feb mar apr jun jul aug sep sept oct nov dec today tomorrow "
    "morning afternoon evening night noon midnight before after spring summer autumn winter am pm"
)
_NUMBERED = word_set(
    "order orders invoice ticket case number no nr id flight room issue pr request booking reservation gate error code "
    "reference ref account customer tracking line seat chapter page table iphone windows"
)
"""A number behind one of these, or its "is", names a thing: another number is another thing."""
_ONE_VALUED = word_set(
    "deadline budget name email address phone plan size colour color favourite favorite language timezone currency "
    "role job employer database framework version birthday diet password theme location city country title "
    "subscription tier stack editor branch region due launch release"
)
_ONE_VALUED_FORMS = frozenset(map(plain_form, _ONE_VALUED))
_ATTRIBUTE = re.compile(
    r"(?P<of>[^,;:]{3,60}?) (?:is|are|was|will be) (?:now )?(?P<value>[^,;:]{1,60}?)[.!]*", re.IGNORECASE
)
_FEW_WORDS = 4


class _Told(Struct, frozen=True, gc=False):
    words: frozenset[str]
    """Without negations, shades and values."""
    values: frozenset[str]
    denies: bool
    facts: dict[str, str]
    attribute: tuple[frozenset[str], frozenset[str]] | None
    done: bool
    """What an assistant did: that it did so again with another number contradicts nothing."""


def sentences_of(content: str) -> list[str]:
    """The sentences of a memory; "2.5" and addresses stay whole."""
    return [said.strip() for said in _SENTENCE.findall(content) if any(map(str.isalnum, said))]


def conflicts(one: str, other: str) -> bool:
    """Whether a sentence of one text contradicts one of the other; the same both ways round.

    >>> conflicts("User prefers meetings after 2pm.", "User prefers meetings after 4pm.")
    True
    >>> conflicts("User prefers meetings after 2pm.", "User prefers meetings after 2pm on weekdays.")
    False
    """
    return any(_contradict(_told(a), _told(b)) for a, b in product(sentences_of(one), sentences_of(other)))


def _contradict(one: _Told, other: _Told) -> bool:
    if one.words and one.words == other.words:
        if one.values == other.values:
            return one.denies != other.denies
        apart = one.values - other.values and other.values - one.values
        if apart and (len(one.words) > 1 or not _ONE_VALUED_FORMS.isdisjoint(one.words)) and one.denies == other.denies:
            return not (one.done and other.done)
    if any(_differ(value, other.facts[of]) for of, value in one.facts.items() if of in other.facts):
        return True
    if one.attribute is None or other.attribute is None or one.denies or other.denies:
        return False
    return one.attribute[0] == other.attribute[0] and one.attribute[1].isdisjoint(other.attribute[1])


def _differ(one: str, other: str) -> bool:
    """Two values, neither of which only says the other more exactly."""
    a, b = told_words(one) or {one}, told_words(other) or {other}
    return not (a <= b or b <= a)


@lru_cache(maxsize=1024)
def _told(sentence: str) -> _Told:
    folded = fold_text(sentence)
    words: set[str] = set()
    values: set[str] = set()
    denies, before = 0, ""
    for found in WORD.finditer(folded):
        word = found[0].removesuffix("'s")
        if word in _NO:
            denies += 1
        elif (_NUMBER.fullmatch(word) and not _names_a_thing(folded, found.start(), before)) or word in _TIMES:
            values.add(word.replace(",", "").rstrip(".:"))
        elif plain_form(word) in _TIMES:
            values.add(plain_form(word))
        elif word not in EMPTY_WORDS and word not in _SHADES:
            words.add(plain_form(word))
        before = before if word in {"is", "was"} else word
    facts = {f"{fact.category} {fact.key}": fact.value for fact in extract(_as_said(sentence)).facts}
    told = frozenset(words)
    return _Told(told, frozenset(values), denies % 2 == 1, facts, _attribute(sentence), folded.startswith("assistant "))


def _names_a_thing(folded: str, start: int, before: str) -> bool:
    return before in _NUMBERED or folded[start - 1 : start] == "#"


def _attribute(sentence: str) -> tuple[frozenset[str], frozenset[str]] | None:
    found = _ATTRIBUTE.fullmatch(sentence.strip())
    if found is None or len(found["value"].split()) > _FEW_WORDS:
        return None
    of, value = told_words(found["of"]), told_words(found["value"])
    named = _ONE_VALUED.isdisjoint(word.removesuffix("'s") for word in fold_text(found["of"]).split())
    return None if named or not of or not value else (of, value)


_AS_SAID = (
    (re.compile(r"\b(?:the )?user's\b", re.IGNORECASE), "my"),
    (re.compile(r"\b(?:the )?user is\b", re.IGNORECASE), "I'm"),
    (re.compile(r"\b(?:the )?user has\b", re.IGNORECASE), "I have"),
    (re.compile(r"\b(?:the )?user (?:does not|doesn't)\b", re.IGNORECASE), "I don't"),
    (re.compile(r"\b(?:the )?user (?:cannot|can not|can't)\b", re.IGNORECASE), "I can't"),
    (re.compile(r"\b(?:the )?user asked to (?=(?:always|never)\b)", re.IGNORECASE), ""),
    (
        re.compile(r"\b(?:the )?user (?P<how>(?:\w+ly|always|never) )?(?P<verb>\w+?)s\b", re.IGNORECASE),
        r"I \g<how>\g<verb>",
    ),
    (re.compile(r"\b(?:the )?user\b", re.IGNORECASE), "I"),
    (re.compile(r"\btheir\b", re.IGNORECASE), "my"),
    (re.compile(r"\bthey(?= \w)", re.IGNORECASE), "I"),
)


def _as_said(sentence: str) -> str:
    """As the user would have said it: that is what facts are found in."""
    for told, said in _AS_SAID:
        sentence = told.sub(said, sentence)
    return sentence
