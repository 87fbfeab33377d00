"""Rules for the user's age, pronouns, nationality, and for what is said as "my … is …"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import IDENTITY, FactRule, Finding, bare, fact, phrase, place_of, rule
from models.language.facts.work import occupation_of

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = (
    rf"(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH}\.? (?:the"
    rf" )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]?(?:\d{2,4})?|(?:19|20)\d\d)"
)
_EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
_NUMBER = r"\+?\d[\d\s()./-]{5,20}\d"
_PRONOUNS = (
    r"(?:(?:she|he|they|xe|ze|ey|it|any)(?:\s?(?:/|and|or)\s?(?:her|hers|him|his|them|theirs|they"
    r"|she|he|xem|hir|em|its))*)\b"
)


def _born(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "birthday", match["v"], statement, 0.95)


def _pronouns(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "pronouns", match["v"], statement, 0.95, 0.95)


def _email(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "email", match["v"], statement, 0.9)


def _phone(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "phone", match["v"], statement, 0.9)


_YOUNGEST = 5
_OLDEST = 120


def _age(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    age = match["v"]
    rest = (match.groupdict().get("rest") or "").strip()
    if not _YOUNGEST <= int(age) <= _OLDEST:
        return []
    return [*fact(IDENTITY, "age", age, statement, 0.95), *(occupation_of(rest, statement) if rest else [])]


def _nationality(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return (
        fact(IDENTITY, "nationality", match["v"], statement, 0.9) if match["v"].lower() in vocabulary.DEMONYMS else []
    )


def _native(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    value = match["v"]
    return (
        fact(IDENTITY, "native_language", value, statement, 0.95)
        if value.lower() in vocabulary.NATURAL_LANGUAGES
        else []
    )


MY_NOUNS = {
    "age": "age",
    "birthday": "birthday",
    "birthdate": "birthday",
    "birth date": "birthday",
    "date of birth": "birthday",
    "dob": "birthday",
    "bday": "birthday",
    "b-day": "birthday",
    "pronouns": "pronouns",
    "email": "email",
    "e-mail": "email",
    "email address": "email",
    "mail": "email",
    "e-mail address": "email",
    "phone": "phone",
    "phone number": "phone",
    "number": "phone",
    "mobile": "phone",
    "cell": "phone",
    "mobile number": "phone",
    "cell number": "phone",
    "telephone number": "phone",
    "job": "occupation",
    "occupation": "occupation",
    "profession": "occupation",
    "job title": "occupation",
    "title": "occupation",
    "day job": "occupation",
    "trade": "occupation",
    "employer": "employer",
    "company": "employer",
    "workplace": "employer",
    "nationality": "nationality",
    "citizenship": "nationality",
    "native language": "native_language",
    "mother tongue": "native_language",
    "first language": "native_language",
    "native tongue": "native_language",
    "hometown": "hometown",
    "home town": "hometown",
    "birthplace": "hometown",
    "city": "location",
    "location": "location",
    "home city": "location",
    "country": "location",
    "address": "address",
    "home address": "address",
    "mailing address": "address",
    "postal address": "address",
    "shipping address": "address",
    "delivery address": "address",
    "street address": "address",
    "marital status": "marital_status",
    "degree": "education",
    "major": "education",
    "university": "education",
}
_VALUE_FORMS = {
    "age": re.compile(r"\d{1,3}"),
    "birthday": re.compile(_DATE, re.IGNORECASE),
    "email": re.compile(_EMAIL),
    "phone": re.compile(_NUMBER),
    "pronouns": re.compile(_PRONOUNS, re.IGNORECASE),
    "address": re.compile(r".*\d.*"),
}
_ADJECTIVES = re.compile(
    r"^(?:new|current|own|personal|private|work|main|actual|real|correct|right|updated|present|own) "
)
_NO_VALUES = ("not ", "the same", "none", "private", "changed", "going", "wrong", "what", "to ", "number ")
_NO_JOB = re.compile(r"(?:ing(?: me| us)?|boring|hard|stressful|ful|great)$")


def _my(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = MY_NOUNS.get(_ADJECTIVES.sub("", match["noun"].lower()))
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


_PAIRS = ("they/them", "she/her", "he/him", "she/they", "he/they", "they/she", "they/he")

RULES: tuple[FactRule, ...] = (
    rule(
        "i'm",
        r"i'm (?:a )?(?P<v>\d{1,3})(?:[ -]?(?:years?[ -]old|yrs?(?: old)?|y/?o)\b|\s*(?=$|[,.!]|(?:and"
        r"|from|years|now|this|last|next|already|as of|today|but)\b))(?: (?P<rest>[\w -]{3,60}))?",
        _age,
    ),
    rule("i turned/i just", r"i (?:just )?turned (?P<v>\d{1,3})\b", _age),
    rule("i'm", rf"i'm (?P<v>(?=\S+/){_PRONOUNS})$", _pronouns),
    rule(
        "i use/i go",
        rf"i (?:use|go by) (?:the pronouns )?(?=\S+/|(?:she|he|they)(?: pronouns|,"
        rf"|$))(?P<v>{_PRONOUNS})",
        _pronouns,
    ),
    rule("use/refer", rf"(?:use|refer to me (?:as|with|by|using)) (?P<v>(?=\S+/){_PRONOUNS})", _pronouns),
    FactRule(_PAIRS, re.compile(rf"(?P<v>{_PRONOUNS})(?: (?:pronouns|for me|please)|$)", re.IGNORECASE), _pronouns),
    rule("pronouns/my", rf"(?:my )?pronouns(?: are|:| =)? (?P<v>{_PRONOUNS})", _pronouns),
    rule(
        "i'm",
        r"i'm (?:an? )?(?:half[ -])?(?P<v>[\w-]+)(?: by birth| citizen| national|$|[,. ](?!(?:teacher"
        r"|tutor|citizen|language|speaker|learner|literature|student|food|major|translator|history"
        r"|cuisine)))",
        _nationality,
    ),
    rule("i'm", r"i'm an? (?P<v>[\w-]+) (?:citizen|national)\b", _nationality),
    rule("i'm", r"i'm a native (?P<v>\w+)(?: speaker)?", _native),
    rule("my", r"my (?:native|first|mother) (?:language|tongue) is (?P<v>\w+)", _native),
    rule("i speak", r"i speak (?P<v>\w+) (?:natively|as my (?:first|native) language|at home)", _native),
    rule("i was/i'm", rf"i(?:'m| was) born (?:on |in )?(?P<v>{_DATE})", _born),
    rule("my", r"my (?P<noun>[\w-]+(?: [\w-]+){0,2}?)(?: is| are|:| =)(?: still| currently)? (?P<v>.+)", _my),
    rule(
        "you can/reach/contact/email/text/my/mail",
        rf"(?:you can )?(?:reach|contact|e-?mail|text|write to|call|mail)(?: me)?(?: (?:at|on|under"
        rf"|is))?:? (?P<v>{_EMAIL})",
        _email,
    ),
    rule(
        "you can/reach/contact/call/text/phone/cell/mobile",
        rf"(?:you can )?(?:reach|contact|text|call|phone|cell|mobile)(?: me)?(?: (?:at|on|under|is))?:?"
        rf" (?P<v>{_NUMBER})",
        _phone,
    ),
    rule(
        "email/e-mail/phone/pronouns/age/occupation/job/location/birthday/nationality/hometown/address/employer",
        r"(?P<noun>[\w-]+)(?: is|:| =) (?P<v>.+)",
        _my,
    ),
)
