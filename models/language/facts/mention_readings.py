"""Readings of presupposed facts: a name in apposition, "my latex allergy", "my flat in Bonn"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from models.events.user import ExtractedFact
from models.language.facts import vocabulary
from models.language.facts.family import pet_key
from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, IDENTITY, fact, name_of, place_of, slug
from models.text.words import word_set

_CONFIDENCE = 0.75
_WORK = 0.7
_FAMILY = 0.7
_PETS = 0.6
_HEALTH = 0.95
_NAMED = r"[A-Z\u00c0-\u00de][\w'&-]*(?: [A-Z\u00c0-\u00de][\w'&-]*){0,3}"
_PARTNER = "|".join(sorted(vocabulary.RELATIONSHIPS, key=len, reverse=True))
_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True)).replace("guinea-pig", "guinea[ -]pig")
_MEDICAL = "|".join(
    sorted(
        (re.escape(w) for w in vocabulary.MEDICAL if w not in {"add", "pots", "ms", "eds", "hiv", "bipolar"}),
        key=len,
        reverse=True,
    )
)
_EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
_NUMBER = r"\+?\d[\d\s()./-]{5,20}\d"
_MONEY = (
    r"(?:[$€£¥]\s?\d[\d.,]*k?|\d[\d.,]*k?\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|quid|bucks|kroner|"
    r"nok|sek|francs?|chf|[$€£]))"
)
_COUNT = r"(?:two|three|four|five|six|seven|eight|[2-9])"
OWN = r"\b(?:[Mm]y|[Oo]ur)"
_NO_ALLERGY = word_set(
    "the a an any no bad severe food some this that other his her their same new and nasty terrible "
    "mild seasonal worst such"
)
_NO_NAME = word_set("and but is was who has the she he i so also then because now when where please what how can does")

Read = Callable[[re.Match[str], Statement], Iterable[ExtractedFact]]


def _partner(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    if match["v"].lower() in _NO_NAME:
        return []
    return fact(IDENTITY, "partner_name", match["v"], statement, _CONFIDENCE, _FAMILY)


def _pet(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    if match["v"].lower() in _NO_NAME:
        return []
    return fact(IDENTITY, pet_key(match["kind"]), match["v"], statement, _CONFIDENCE, _PETS)


def _children(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "children", match["v"], statement, _CONFIDENCE, _FAMILY)


def _home(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "location", place_of(match["v"], statement), statement, _CONFIDENCE)


def _hometown(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "hometown", place_of(match["v"], statement), statement, _CONFIDENCE)


def _budget(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(CONSTRAINT, "budget", match["v"] or match["w"], statement, 0.6)


def _employer(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "employer", match["v"], statement, _CONFIDENCE, _WORK)


def _occupation(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    title = re.split(r" (?:at|for|in|is|and|means|has|makes|requires|keeps|by|with|where|who|i)\b", match["v"])[0]
    return fact(IDENTITY, "occupation", title, statement, _CONFIDENCE, _WORK)


def _email(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "email", match["v"] or match["w"], statement, 0.85)


def _phone(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "phone", match["v"] or match["w"], statement, 0.85)


def _allergy(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    to = match["w"] or " ".join(word for word in match["v"].split() if word.lower() not in _NO_ALLERGY)
    if "'s" in to or not to:
        return []
    return fact(CONSTRAINT, f"allergy_{slug(to)}", "allergic", statement, 0.85, _HEALTH)


def _condition(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(CONSTRAINT, f"medical_{slug(match['v'])}", "yes", statement, 0.8, _HEALTH)


def _age(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "age", match["v"], statement, 0.8)


def _signed(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(IDENTITY, "name", name_of(match["v"], statement), statement, 0.6, 1.0)


READINGS: tuple[tuple[frozenset[str], frozenset[str], re.Pattern[str], Read], ...] = tuple(
    (word_set(words), word_set(also), re.compile(pattern), read)
    for words, also, pattern, read in (
        (
            " ".join((*sorted(vocabulary.RELATIONSHIPS), "half")),
            "my our",
            (
                rf"{OWN} (?:(?:lovely|dear|late|beloved|long-suffering|new) )?(?:{_PARTNER}|(?:better|other) "
                rf"half),? (?P<v>[A-Z][a-z]+)\b(?! [a-z]+ed me)"
            ),
            _partner,
        ),
        (
            " ".join(sorted(vocabulary.RELATIONSHIPS)),
            "my our",
            rf"\b(?P<v>[A-Z][a-z]+), (?:who is |who's )?[Mm]y (?:{_PARTNER})\b(?!'s)",
            _partner,
        ),
        (
            " ".join(sorted(vocabulary.PETS)),
            "my our",
            (
                rf"{OWN} (?:(?:old|little|lovely|dear|late|eldest|youngest|rescue|elderly|poor|big|beloved) "
                rf")?(?:{_PET} )?(?P<kind>{_PET}),? (?P<v>[A-Z][a-z]+)\b"
            ),
            _pet,
        ),
        (
            " ".join(sorted(vocabulary.PETS)),
            "my our",
            (
                rf"{OWN} (?:two|three|four|2|3|4)? ?(?:\w+ )?(?P<kind>{_PET})s,? (?:called |named "
                rf")?(?P<v>[A-Z][a-z]+(?:, [A-Z][a-z]+)*,? and [A-Z][a-z]+)\b"
            ),
            _pet,
        ),
        (
            " ".join(sorted(vocabulary.PETS)),
            "my our",
            rf"\b(?P<v>[A-Z][a-z]+), (?:my|our) (?:[\w-]+ ){{0,2}}?(?P<kind>{_PET})\b(?!'s|s\b)",
            _pet,
        ),
        (
            "kids children sons daughters boys girls teenagers toddlers",
            "my our with and",
            (
                rf"\b(?:my|our|My|Our|with|and) (?P<v>{_COUNT} (?:\w+ )?(?:kids|children|sons|daughters|boys|girls|"
                rf"teenagers|toddlers))\b"
            ),
            _children,
        ),
        (
            "flat apartment house home garden allotment balcony landlord place neighbourhood neighborhood street",
            "my our",
            (
                rf"{OWN} (?!(?:old|holiday|summer|childhood|parents'?|first|former|next|dream|new hotel|"
                rf"hotel)\b)(?:\w+ )?(?:flat|apartment|house|home|garden|allotment|balcony|landlord|place|"
                rf"neighbou?rhood|street)(?: here)? in (?P<v>{_NAMED}(?:, {_NAMED})?)"
            ),
            _home,
        ),
        (
            "boss manager job team colleagues coworkers shift shifts desk office role position contract work",
            "at",
            (
                rf"{OWN} (?!(?:old|former|first|last|previous|ex|dream|next)\b)(?:\w+ )?(?:boss|manager|job|team|"
                rf"colleagues|coworkers|shifts?|desk|office|role|position|contract|work)(?: here)? at "
                rf"(?P<v>(?!January|March|April|May|June|July|Christmas|Easter){_NAMED})"
            ),
            _employer,
        ),
        ("hometown town", "my", rf"\b[Mm]y home ?town(?: of)?,? (?P<v>{_NAMED})", _hometown),
        (
            "max maximum tops",
            "max maximum tops",
            rf"\b(?:[Mm]ax(?:imum)?(?: of)?:? (?P<v>{_MONEY})|(?P<w>{_MONEY}) (?:max|maximum|tops)\b)",
            _budget,
        ),
        ("work", "where", rf"\b[Aa]t (?P<v>{_NAMED}),? where I(?:'m| work| am)\b", _employer),
        (
            "company employer firm",
            "my our",
            rf"{OWN} (?:company|employer|firm),? (?:called )?(?P<v>{_NAMED})\b",
            _employer,
        ),
        (
            "company firm place",
            "work",
            rf"\b[Tt]he (?:company|firm|place|school|shop) (?:that |where )?I work (?:for|at)?,? ?(?P<v>{_NAMED})\b",
            _employer,
        ),
        (
            "job work career role",
            "as",
            r"\b[Mm]y (?:\w+ )?(?:job|work|career|role|day job) as (?:an? |the )?(?P<v>[a-z][\w -]{2,40})",
            _occupation,
        ),
        (
            "email mail reach contact write drop line send write",
            "my me line is",
            (
                rf"\b(?:[Mm]y (?:\w+ )?(?:e-?mail|mail)|(?:e-?mail|mail|reach|contact|write(?: to)?|ping|message|"
                rf"drop) me|line)\b[^@\n]{{0,30}}?(?P<v>{_EMAIL})|(?P<w>{_EMAIL}) is (?:my|where|the best)"
            ),
            _email,
        ),
        (
            "ring call text phone reach whatsapp number cell mobile contact",
            "me my",
            (
                rf"\b(?:[Rr]ing|[Cc]all|[Tt]ext|[Pp]hone|[Rr]each|[Ww]hatsapp|[Cc]ontact) "
                rf"me\b[^\d\n+]{{0,20}}(?P<v>{_NUMBER})|(?P<w>{_NUMBER}) is my (?:\w+ )?(?:number|cell|mobile|"
                rf"phone)"
            ),
            _phone,
        ),
        (
            "allergy allergies",
            "my with to of have",
            (
                r"(?:\b(?:[Mm]y|[Ww]ith an?|to an?|of an?|have an?) (?P<v>(?:[\w'-]+ ){1,3})allerg(?:y|ies)\b|"
                r"\b[Mm]y (?:\w+ )?allerg(?:y|ies) to (?P<w>[\w-]+(?: nuts?| stings?)?))"
            ),
            _allergy,
        ),
        (
            " ".join(sorted(vocabulary.MEDICAL)),
            "my having",
            (
                rf"\b(?:[Mm]y|[Mm]y own|[Hh]aving|[Ww]ith my) (?:(?:severe|mild|chronic|terrible|bad|stupid|damn) "
                rf")?(?P<v>(?:type (?:1|2|one|two) )?(?:{_MEDICAL}))\b(?!'s| (?:medication|specialist) (?:said|"
                rf"says))"
            ),
            _condition,
        ),
        ("ms pots", "my", r"\b[Mm]y (?P<v>MS|POTS|EDS)\b", _condition),
        (
            " ".join(str(age) for age in range(10, 100)),
            "at",
            (
                r"(?:^|[.!?] )[Aa]t (?:age )?(?P<v>[1-9]\d),? (?=[Ii](?:'m| am| still| need| want| can| don't| "
                r"find| feel| have| should| prefer)\b|my \w+ (?:is|are|isn't|aren't|feels?)\b|is it|should i|what)"
            ),
            _age,
        ),
        (
            "signed regards cheers yours best thanks",
            "signed regards cheers yours best thanks",
            (
                r"(?:[Ss]igned|[Rr]egards|[Cc]heers|[Yy]ours(?: truly| sincerely)?|[Bb]est|[Tt]hanks)[,!]?[ "
                r"\t]*\n[ \t]*(?P<v>[A-Z][a-z]+(?: [A-Z][a-z]+)?)[ \t.]*\Z"
            ),
            _signed,
        ),
    )
)
"""Words of which one must be there, words of which one more must, the pattern, and what it says."""
