"""Readers of who users are: name, place, age, family, animals, work, education, what is said as "my … is …"."""

import re
from collections.abc import Iterable

from models.events.user import Retraction
from models.language.facts import vocabulary
from models.language.facts.statements import TABLES, Statement
from models.language.facts.values import IDENTITY, Finding, bare, fact, name_of, named, phrase, place_of
from models.text.tables import PatternTables, by_word, read_table
from models.text.words import word_set

_RE = PatternTables("facts_patterns", words=vocabulary.WORDS).section("identity")

_WORK = 0.7
_LEARNERS = word_set("student undergrad undergraduate postgrad freshman sophomore phd postdoc")
_AT = re.compile(r"\s+(?:at|for|with)\s+(?=(?:the |an? )?(?P<v>[A-Z\u00c0-\u00de].*|\w+$))")
_FIELD = re.compile(r" (?:in|of) ((?-i:[a-z]).+)")
_FROM = re.compile(r"\bfrom (?=[A-Z\u00c0-\u00de])")
_DETERMINER = re.compile(r"^(?:an?|the|my) ", re.IGNORECASE)
_MAX_TITLE_WORDS = 6
_MIN_TITLE_CHARS = 5
_FEW_WORDS = 3
_ENDINGS = ("ologist", "ician", "grapher", "smith", "eer", "wright", "monger", "keeper", "maker")
_COMMON_ENDINGS = ("er", "or", "ist", "ant")
"""Of titles, but also of other words: only behind a word that says more."""
_DEGREES = word_set(
    "huge big bit slow fast quick good bad visual heavy light terrible great better total "
    "complete first-time long-time frequent"
)


def _occupation(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return occupation_of(match["v"], statement, known=match.groupdict().get("known") is not None)


def occupation_of(text: str, statement: Statement, *, known: bool = False) -> list[Finding]:
    """Occupation, and what stands behind it: employer or school, place, home town.

    `known` says that it is an occupation; else its last word must be the title of one.
    """
    text = phrase(text, 16)
    head = _RE.TITLE_END.split(text, maxsplit=1)[0].strip(" \"',")
    is_title = _is_title(head.lower().split(), known=known)
    found: list[Finding] = []
    if is_title:
        found += fact(IDENTITY, "occupation", head, statement, 0.9, _WORK)
        if (at := _AT.search(text)) and head.split()[-1].lower() in _LEARNERS:
            found += fact(IDENTITY, "education", text[at.start("v") :], statement, 0.85, _WORK)
        elif (field := _FIELD.search(text)) and head.split()[-1].lower() in _LEARNERS:
            found += fact(IDENTITY, "education", field[1], statement, 0.8, _WORK)
        elif at:
            found += _employer(at["v"], statement)
        if based := _RE.BASED.search(text):
            found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.8)
    if (origin := _FROM.search(text)) and (is_title or len(head.split()) < _FEW_WORDS):
        found += fact(IDENTITY, "hometown", place_of(text[origin.end() :], statement), statement, 0.8)
    return found


def _is_title(words: list[str], *, known: bool) -> bool:
    """Whether words name an occupation, by a list and by how titles end."""
    if not 0 < len(words) <= _MAX_TITLE_WORDS:
        return False
    last = words[-1].strip(".")
    if last in vocabulary.NO_TITLES:
        return False
    if last in vocabulary.TITLES or (known and last.isalpha()):
        return True
    if len(last) < _MIN_TITLE_CHARS or words[0] in _DEGREES:
        return False
    return last.endswith(_ENDINGS) or (len(words) > 1 and last.endswith(_COMMON_ENDINGS))


def _employer(text: str, statement: Statement) -> list[Finding]:
    employer = _RE.EMPLOYER_STOP.sub("", phrase(text, 6)).strip()
    nobody = _RE.NO_EMPLOYER.match(employer) and not _RE.SOME_EMPLOYER.match(employer)
    if nobody or employer.lower() in vocabulary.PROGRAMMING_LANGUAGES:
        return []
    return [*fact(IDENTITY, "employer", _DETERMINER.sub("", employer), statement, 0.9, _WORK)]


def _works_at(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = _employer(match["v"], statement)
    if as_ := re.search(r"\bas (?:an? |the |their )(.+)", match["v"], re.IGNORECASE):
        found += occupation_of(as_[1], statement, known=True)
    return found


def _owns(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "occupation", f"{match['verb']}s {match['v']}", statement, 0.75, _WORK)


def _teaches(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 10)
    if re.match(r"(?:you|him|her|them|myself|my|people)\b", text, re.IGNORECASE):
        return []
    subject = _RE.TITLE_END.split(text, maxsplit=1)[0]
    found = fact(IDENTITY, "occupation", f"teacher ({subject})", statement, 0.75, _WORK)
    if based := re.search(r" in (?=[A-Z])", text):
        found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.75)
    return found


def _study(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    subject = "" if _RE.NO_SUBJECT.match(text) else re.sub(r"^(?:at|in) ", "", text)
    return fact(IDENTITY, "education", subject, statement, 0.85, _WORK)


_NO_GREETING = word_set(
    "same right over up down out in back still stuck alone anyone everyone nobody someone newbie "
    "user guest both team me thanks"
)
"""What may stand before "here" and is no name."""
_NO_NAMES = _NO_GREETING | vocabulary.FEELINGS | vocabulary.DEMONYMS | vocabulary.TITLES


def _introduced(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """As in "I'm Alex": only with a capital, and nothing else that is said so."""
    text = match["v"]
    name = name_of(text, statement)
    first = name.split(" ")[0].lower() if name else ""
    rest = text[len(name) :].strip().lower()
    goes_on = not rest or rest.startswith((*",.(!-", "and", "from", "by the way", "here", "btw", "a ", "your"))
    is_name = name[:1].isupper() and (not name.isupper() or len(name) == 1)
    if not is_name or not goes_on or first in _NO_NAMES or first.endswith("ing"):
        return []
    return fact(IDENTITY, "name", name, statement, 0.85, 1.0)


def _moved(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = fact(IDENTITY, "location", place_of(match["v"], statement), statement, 0.95, corrects=True)
    return [*found, Retraction(category=IDENTITY, key="address")] if found else []


_NOT_THERE = re.compile(r",? (?:and )?(?:not|no longer) (?:in )?(?=[A-Z\u00c0-\u00de])")
_NOW = re.compile(r"\b(?:now|these days)\b", re.IGNORECASE)


def _living(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.match(r"\d+[\w-]* [A-Z]", text):
        return fact(IDENTITY, "address", text, statement, 0.9)
    left = _NOT_THERE.search(text)
    put_right = True if left or _NOW.search(text) else None
    found: list[Finding] = [*fact(IDENTITY, "location", place_of(text, statement), statement, 0.95, corrects=put_right)]
    gone = place_of(text[left.end() :], statement) if left and found else ""
    # Whatever was taken for the place where they are at home: "I'm from Hamburg" names it too.
    return [*found, Retraction(category=IDENTITY, value=gone)] if gone else found


def _origin(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = re.split(r"\s+(?:but|and|though)\s+", match["v"])[0]
    return fact(IDENTITY, "hometown", place_of(text, statement), statement, 0.85)


_YOUNGEST = 5
_OLDEST = 120


def _age(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    age = match["v"]
    rest = (match.groupdict().get("rest") or "").strip()
    if not _YOUNGEST <= int(age) <= _OLDEST:
        return []
    return [*fact(IDENTITY, "age", age, statement, 0.95), *(occupation_of(rest, statement) if rest else [])]


MY_NOUNS = by_word(read_table("nouns")["mine"])
_VALUE_FORMS = {
    key: TABLES["identity"].pattern(piece)
    for key, piece in {"birthday": "DATE", "email": "EMAIL", "phone": "NUMBER", "pronouns": "PRONOUNS"}.items()
} | {"age": re.compile(r"\d{1,3}"), "address": re.compile(r".*\d.*")}
_NO_VALUES = ("not ", "the same", "none", "private", "changed", "going", "wrong", "what", "to ", "number ")
_NO_JOB = re.compile(r"(?:ing(?: me| us)?|boring|hard|stressful|ful|great)$")


def _my(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = MY_NOUNS.get(_RE.ADJECTIVES.sub("", match["noun"].lower()))
    text = match["v"].strip()
    if key is None or text.lower().startswith(_NO_VALUES):
        return []
    if key in {"location", "hometown"}:
        value = place_of(text, statement)
    elif form := _VALUE_FORMS.get(key):
        exact = form.search(text[:120])
        value = exact[0] if exact else ""
    else:
        value = bare(phrase(text.removeprefix("called ")))
        if _NO_JOB.search(text) if key == "occupation" else key == "employer" and not value[:1].isupper():
            value = ""
    return fact(IDENTITY, key, value, statement, 0.95 if key in _VALUE_FORMS else 0.9)


_FAMILY = 0.7


def _partner(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    name = name_of(match["v"], statement)
    known = name if name[:1].isupper() or statement.lower else ""
    return fact(IDENTITY, "partner_name", known, statement, 0.85, _FAMILY)


def _marital(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    rest = match.groupdict().get("rest") or ""
    if _RE.MARRIED_TO_WORK.match(rest):
        return []
    found = fact(IDENTITY, "marital_status", match["v"].lower(), statement, 0.9, _FAMILY)
    if named := _RE.MARRIED_TO.match(rest):
        found += fact(IDENTITY, "partner_name", name_of(named[1], statement), statement, 0.85, _FAMILY)
    return found


def _children(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    value = match["v"]
    return [] if value.lower().startswith("no ") else fact(IDENTITY, "children", value, statement, 0.85, _FAMILY)


def pet_key(kind: str) -> str:
    """The key of a kind of animal: a puppy is a dog."""
    return f"pet_{vocabulary.PETS.get(kind.lower().replace(' ', '-'), kind.lower())}"


def _pet(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    said = match["v"] or match.groupdict().get("also") or ""
    name = name_of(said, statement)
    if said and not name:
        return []
    several = rf"{re.escape(name)}(?:, (?-i:[A-Z])\w+)*,? and (?-i:[A-Z])[\w'-]+"
    if name and match["plural"] and (both := re.match(several, said)):
        name = both[0]
    return fact(IDENTITY, pet_key(match["kind"]), name or "yes", statement, 0.9 if name else 0.8, 0.6)


_OF_PERSONS = named(_introduced, _living, _moved, _origin, _age, _my, _partner, _marital, _children, _pet)
READERS = _OF_PERSONS | named(_occupation, _works_at, _owns, _teaches, _study)
