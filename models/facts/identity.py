"""Rules for who the user is: names, places, work, family, animals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.facts import vocabulary
from models.facts.statements import Statement
from models.facts.values import IDENTITY, Finding, Rule, bare, fact, name_of, phrase, place_of, rule
from models.user_events import ExtractedFact, Retraction

_NAME_IMPORTANCE = 1.0
_WORK = 0.7
_FAMILY = 0.7
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = (
    rf"(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH}\.? (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]?(?:\d{2,4})?|(?:19|20)\d\d)"
)
_EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
_NUMBER = r"\+?\d[\d\s()./-]{5,20}\d"
_PRONOUNS = r"(?:(?:she|he|they|xe|ze|ey|it|any)(?:\s?(?:/|and|or)\s?(?:her|hers|him|his|them|theirs|they|she|he|xem|hir|em|its))*)\b"
_COUNT = r"(?:\d{1,2}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|twin|no)"
_CHILDREN = (
    rf"(?:{_COUNT}(?: (?:small|young|little|grown(?:-up)?|adult|teenage|beautiful|wonderful|lovely|older|younger|year-old|school-age|\w+-year-old))*"
    r" (?:kids?|children|sons?|daughters?|boys?|girls?|child|toddlers?|twins|teenagers?|baby|babies)(?: and "
    rf"{_COUNT}(?: \w+)? (?:kids?|sons?|daughters?|boys?|girls?|toddlers?|baby|twins))?)\b"
)
_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True)).replace("guinea-pig", "guinea[ -]pig")
_PARTNER = "|".join(sorted(vocabulary.RELATIONSHIPS, key=len, reverse=True))
_MARITAL = "widower|widow|single|married|divorced|engaged|widowed|separated"
_SCHOOL = re.compile(r"\b(?:university|college|school|institute|polytechnic|academy|eth|mit|uni)\b", re.IGNORECASE)


def _name(confidence: float, *, corrects: bool | None = None):  # type: ignore[no-untyped-def]
    def build(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
        name = name_of(match["v"], statement)
        if match["v"].lower().startswith("not "):
            return []
        return fact(IDENTITY, "name", name, statement, confidence, _NAME_IMPORTANCE, corrects=corrects)

    return build


def _introduced(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """"I'm Alex": only with a capital, and nothing else that is said so."""
    text = match["v"]
    name = name_of(text, statement)
    first = name.split(" ")[0].lower() if name else ""
    rest = text[len(name) :].strip().lower()
    if (
        not name[:1].isupper()
        or first in vocabulary.FEELINGS
        or first in vocabulary.DEMONYMS
        or first.endswith("ing")
        or first in vocabulary.TITLES
        or name.isupper() and len(name) > 1
        or not (not rest or rest[0] in ",.(!-" or rest.startswith(("and", "from", "by the way", "here", "btw", "a ", "your")))
    ):
        return []
    return fact(IDENTITY, "name", name, statement, 0.85, _NAME_IMPORTANCE)


def _keyed(key: str, confidence: float, importance: float = 0.8):  # type: ignore[no-untyped-def]
    def build(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
        return fact(IDENTITY, key, phrase(match["v"], 12), statement, confidence, importance)

    return build


def _place(key: str, confidence: float):  # type: ignore[no-untyped-def]
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


def _age(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    age = match["v"]
    rest = (match.groupdict().get("rest") or "").strip()
    if not 5 <= int(age) <= 120:
        return []
    return [*fact(IDENTITY, "age", age, statement, 0.95), *(_title(rest, statement) if rest else [])]


def _occupation(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _title(match["v"], statement, known=match.groupdict().get("known") is not None)


_AT = re.compile(r"\s+(?:at|for|with)\s+(?=(?:the |an? )?(?P<v>[A-Z\u00c0-\u00de].*|\w+$))")
_TITLE_END = re.compile(r"\s+(?:at|for|in|from|with|on|of|by|to|near|based|living|working|here|and|who|during|doing|whose|called|named|trying|looking|hoping|struggling|wanting|thinking|planning|learning|using|building|writing|getting|starting|moving|seeking|speciali[sz]ing|so|myself)\b")
_FROM = re.compile(r"\bfrom (?=[A-Z\u00c0-\u00de])")
_BASED = re.compile(r"\b(?:based|living|here|located) (?:in|out of) (?=\w)|^[\w -]{1,40}? in (?=[A-Z\u00c0-\u00de])")


def _title(text: str, statement: Statement, *, known: bool = False) -> list[Finding]:
    """Occupation, and what stands behind it: employer, home town, place."""
    found: list[Finding] = []
    text = phrase(text, 16)
    head = _TITLE_END.split(text, maxsplit=1)[0].strip(" \"',")
    words = head.split()
    if not words or len(words) > 6:
        return found
    last = words[-1].lower().strip(".")
    is_title = last not in vocabulary.NO_TITLES and (
        last in vocabulary.TITLES
        or (known and last.isalpha())
        or (len(last) > 5 and last.endswith(("ologist", "ician", "grapher", "smith", "eer", "wright", "monger", "keeper", "ographer", "maker")))
        or (len(words) > 1 and len(last) > 4 and last.endswith(("er", "or", "ist", "ant")))
    )
    if words[0].lower() in {"huge", "big", "bit", "slow", "fast", "quick", "good", "bad", "visual", "heavy", "light", "terrible", "great", "better", "total", "complete", "first-time", "long-time", "frequent"} and not known and last not in vocabulary.TITLES:
        return found
    if is_title:
        found += fact(IDENTITY, "occupation", head, statement, 0.9, _WORK)
        if at := _AT.search(text):
            found += _employer(at["v"], statement)
        if based := _BASED.search(text):
            found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.8)
    if (origin := _FROM.search(text)) and (is_title or len(words) < 3):
        found += fact(IDENTITY, "hometown", place_of(text[origin.end() :], statement), statement, 0.8)
    return found


_EMPLOYER_STOP = re.compile(r"\s+(?:in|as|on|and|for|since|from|doing|where|which|near|based|with|full|part|now|remotely|but|over|at|these|here|until|by|right|during|currently)\b.*", re.IGNORECASE | re.DOTALL)
_NO_EMPLOYER = re.compile(
    r"(?:home|night|nights|an? |my|the (?!\w+ (?:\w+ )?(?:company|firm|bank|hospital|school|university|council|library|government))|me|you|them|him|her|myself|fun|free|it|this|that|work|least|all|living|money|peace|hire|different|several|two|many|most|day|weekends)",
    re.IGNORECASE,
)


def _employer(text: str, statement: Statement, confidence: float = 0.9) -> list[Finding]:
    employer = _EMPLOYER_STOP.sub("", phrase(text, 6)).strip()
    if _SCHOOL.search(text[: len(employer) + 24]) and " of " in text:
        employer = phrase(text, 6)
    if _NO_EMPLOYER.match(employer) and not (m := re.match(r"(?:an?|my|the) [\w -]*(?:hospital|school|university|bank|library|bakery|startup|start-up|company|firm|agency|clinic|restaurant|hotel|shop|store|council|government|ministry|factory|farm|nonprofit|charity|law firm|cafe|lab)\b", employer, re.IGNORECASE)):
        return []
    return list(fact(IDENTITY, "employer", re.sub(r"^(?:an?|the|my) ", "", employer, flags=re.IGNORECASE), statement, confidence, _WORK))


def _works_at(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = _employer(match["v"], statement)
    if as_ := re.search(r"\bas (?:an? |the |their )(.+)", match["v"], re.IGNORECASE):
        found += _title(as_[1], statement, known=True)
    return found


def _works_in(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    field = phrase(match["v"], 5)
    if field[:1].isupper() and field.upper() not in {"IT", "HR", "PR", "QA", "UX"}:
        return []
    if re.match(r"(?:an?|the|my|this|that|shifts?|teams?|silence|bed|pairs?|groups?|person|progress)\b", field):
        return []
    field = _TITLE_END.split(field, maxsplit=1)[0]
    return fact(IDENTITY, "occupation", field, statement, 0.7, _WORK)


def _teaches(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 10)
    if re.match(r"(?:you|him|her|them|myself|my|people)\b", text, re.IGNORECASE):
        return []
    subject = _TITLE_END.split(text, maxsplit=1)[0]
    found: list[Finding] = list(fact(IDENTITY, "occupation", f"teacher ({subject})", statement, 0.75, _WORK))
    if based := re.search(r" in (?=[A-Z])", text):
        found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.75)
    return found


def _nationality(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "nationality", match["v"], statement, 0.9) if match["v"].lower() in vocabulary.DEMONYMS else []


def _native(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    value = match["v"]
    return fact(IDENTITY, "native_language", value, statement, 0.95) if value.lower() in vocabulary.NATURAL_LANGUAGES else []


def _partner(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    name = name_of(match["v"], statement)
    if not name[:1].isupper() and not statement.lower:
        return []
    return fact(IDENTITY, "partner_name", name, statement, 0.85, _FAMILY)


def _marital(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = list(fact(IDENTITY, "marital_status", match["v"].lower(), statement, 0.9, _FAMILY))
    rest = match.groupdict().get("rest") or ""
    if rest and (named := re.match(rf"to (?:(?:my|an?) (?:\w+ )?(?:{_PARTNER}|man|woman|guy) ?,? ?(?:called |named )?)?([A-Z].*)", rest)):
        found += fact(IDENTITY, "partner_name", name_of(named[1], statement), statement, 0.85, _FAMILY)
    return found


def _children(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    value = match["v"]
    return [] if value.lower().startswith("no ") else fact(IDENTITY, "children", value, statement, 0.85, _FAMILY)


def _pet_key(kind: str) -> str:
    return f"pet_{vocabulary.PETS.get(kind.lower().replace(' ', '-'), kind.lower())}"


def _pet(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    kind, plural = match["kind"], match.groupdict().get("plural")
    name = name_of(match["v"], statement) if match.groupdict().get("v") else ""
    if match.groupdict().get("v") and not name:
        return []
    if name and plural and (both := re.match(rf"{re.escape(name)}(?:, [A-Z]\w+)*,? and [A-Z][\w'-]+", match["v"])):
        name = both[0]
    return fact(IDENTITY, _pet_key(kind), name or "yes", statement, 0.9 if name else 0.8, 0.6)


def _study(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    if re.match(r"(?:an?|the|this|that|my|these|for|with|at (?:home|night)|in the|how|what|every|hard|on|it|all|together|by|best|better|from)\b", text, re.IGNORECASE):
        return []
    return fact(IDENTITY, "education", re.sub(r"^(?:at|in) ", "", text), statement, 0.85, _WORK)


def _degree(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "education", phrase(match["v"], 12), statement, 0.9, _WORK)


def _retired(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = list(fact(IDENTITY, "occupation", match["v"].lower(), statement, 0.9, _WORK))
    if match["v"].lower() in {"retired", "unemployed"}:
        found.append(Retraction(category=IDENTITY, key="employer"))
    return found


_MY_NOUNS = {
    "age": "age", "birthday": "birthday", "birthdate": "birthday", "birth date": "birthday", "date of birth": "birthday",
    "dob": "birthday", "bday": "birthday", "b-day": "birthday",
    "pronouns": "pronouns", "email": "email", "e-mail": "email", "email address": "email", "mail": "email",
    "e-mail address": "email", "phone": "phone", "phone number": "phone", "number": "phone", "mobile": "phone",
    "cell": "phone", "mobile number": "phone", "cell number": "phone", "telephone number": "phone",
    "job": "occupation", "occupation": "occupation", "profession": "occupation", "job title": "occupation",
    "title": "occupation", "day job": "occupation", "trade": "occupation", "employer": "employer", "company": "employer", "workplace": "employer",
    "nationality": "nationality", "citizenship": "nationality", "native language": "native_language",
    "mother tongue": "native_language", "first language": "native_language", "native tongue": "native_language",
    "hometown": "hometown", "home town": "hometown", "birthplace": "hometown", "city": "location", "location": "location",
    "home city": "location", "country": "location", "address": "address", "home address": "address",
    "mailing address": "address", "postal address": "address", "shipping address": "address",
    "delivery address": "address", "street address": "address", "marital status": "marital_status",
    "degree": "education", "major": "education", "university": "education",
}  # fmt: skip
MY_NOUNS = _MY_NOUNS
_VALUE_FORMS = {"age": r"\d{1,3}", "birthday": _DATE, "email": _EMAIL, "phone": _NUMBER}


def _my(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = _MY_NOUNS.get(match["noun"].lower())
    text = match["v"].strip()
    if key is None or text.lower().startswith(("not ", "the same", "none", "private", "changed", "going", "wrong", "what", "to ")):
        return []
    if form := _VALUE_FORMS.get(key):
        exact = re.search(form, text[:80], re.IGNORECASE)
        return fact(IDENTITY, key, exact[0], statement, 0.95) if exact else []
    if key == "pronouns":
        said = re.match(_PRONOUNS, text, re.IGNORECASE)
        return fact(IDENTITY, key, said[0], statement, 0.95, 0.95) if said else []
    if key == "address":
        return fact(IDENTITY, key, text, statement, 0.95) if re.search(r"\d", text) else []
    if key in {"location", "hometown"}:
        return fact(IDENTITY, key, place_of(text, statement), statement, 0.9)
    if key == "occupation" and text.lower().endswith(("ing", "boring", "hard", "stressful", "ful", "great")):
        return []
    if key == "employer" and not text[:1].isupper() and not text.lower().startswith("called "):
        return []
    return fact(IDENTITY, key, bare(phrase(re.sub(r"^called ", "", text))), statement, 0.9)


_IN_PASSING = re.compile(
    rf"\b(?:my|our) (?:(?:old|little|lovely|dear|late|eldest|youngest) )?(?:(?P<who>{_PARTNER})|(?P<kind>{_PET})),? (?P<v>[A-Z][a-z]+)\b(?! [a-z]+ed me)"
    rf"|\b(?:my|our) (?P<children>(?:two|three|four|five|six|[2-9]) (?:\w+ )?(?:kids|children|sons|daughters|boys|girls))\b"
)
_RELATED = frozenset((*vocabulary.RELATIONSHIPS, *vocabulary.PETS, "kids", "children", "sons", "daughters", "boys", "girls"))


def named_in_passing(text: str, words: set[str]) -> Iterable[ExtractedFact]:
    """"My cat Muffin needs a passport": whose name or number is taken for granted, also in questions."""
    if _RELATED.isdisjoint(words):
        return
    for match in _IN_PASSING.finditer(text):
        statement = Statement(match[0])
        if match["who"]:
            yield from fact(IDENTITY, "partner_name", match["v"], statement, 0.75, _FAMILY)
        elif match["kind"]:
            yield from fact(IDENTITY, _pet_key(match["kind"]), match["v"], statement, 0.75, 0.6)
        else:
            yield from fact(IDENTITY, "children", match["children"], statement, 0.75, _FAMILY)


RULES: tuple[Rule, ...] = (
    rule("my", r"my (?:name|first name|real name|actual name)(?: is| =|:) (?P<v>.+)", _name(1.0)),
    rule("my", r"my (?:full|complete|legal|official|proper|correct|new) name(?: is|:) (?P<v>.+)", _name(0.95, corrects=True)),
    rule("my", r"my (?:nick ?name|preferred name)(?: is|:) (?P<v>.+)", _name(0.6)),
    rule("name/the", r"(?:the )?name(?: is|:) (?P<v>.+)", _name(0.9)),
    rule("name", r"name (?P<v>[A-Z].{1,40})$", _name(0.8)),
    rule("call/address/refer", r"(?:call|address|refer to) me (?:as )?(?P<v>.+)", _name(0.6)),
    rule("i'm", r"i'm (?:called|named) (?P<v>.+)", _name(0.95)),
    rule("i go/i usually", r"i (?:usually )?go by (?:the name )?(?!(?:she|he|they|any|it|the|what|a|an|my)\b)(?P<v>.+)", _name(0.8)),
    rule("people/friends/everyone/everybody/most", r"(?:most )?(?:people|friends|everyone|everybody|my friends)(?: just| usually)? calls? me (?P<v>.+)", _name(0.6)),
    rule("my", r"my (?:friends|family|colleagues|coworkers)(?: all| just| usually)? call me (?P<v>.+)", _name(0.6)),
    rule("i changed/i've", r"i(?:'ve)?(?: legally| officially)? changed my (?:\w+ )?name (?:from [\w ]{1,30} )?to (?P<v>.+)", _name(0.95, corrects=True)),
    rule("i prefer/i'd", r"i(?:'d)? prefer (?:to be called|being called|to go by|(?:that |if )?you call me) (?P<v>.+)", _name(0.7)),
    rule("i like", r"i like to be called (?P<v>.+)", _name(0.6)),
    rule("i'm", r"i'm (?P<v>.+)", _introduced),
    rule("this", r"this is (?P<v>[A-Z]\w+)(?: here)?$", _name(0.7)),
    rule("*here", r"(?P<v>[A-Z]\w+(?: [A-Z]\w+)?) here\b", _introduced),
    # Where
    rule("i live/i reside/i stay", r"i (?:live|reside) (?:with [\w ,]{2,30} |alone |permanently |full[- ]time )?(?:in|near|outside(?: of)?|just outside(?: of)?|on|at) (?P<v>.+)", lambda m, s: _living(m, s)),
    rule("we live", r"we live (?:with [\w ,]{2,30} )?(?:in|near|outside(?: of)?|just outside) (?P<v>.+)", lambda m, s: _living(m, s)),
    rule("my", r"my (?:home|house|flat|apartment|place|base|family home)(?: is| base is) (?:in|near|outside) (?P<v>.+)", _place("location", 0.85)),
    rule("i'm", r"i'm (?:based|living|located|residing|settled)(?: out)? (?:in|near|outside(?: of)?|out of) (?P<v>.+)", _place("location", 0.9)),
    rule("i've", r"i've (?:lived|been living|been based|resided) (?:here )?in (?P<v>.+? (?:since|for|all|my)\b.*)", _place("location", 0.85)),
    rule("i moved/i've/i relocated/we moved/we've/we relocated/i settled", r"(?:i|we)(?:'ve)? (?:moved|relocated|settled)(?: back| out| down| away| over| house)? ?(?:from [\w ,]{2,40}? )?(?:to|in) (?P<v>.+)", _moved),
    rule("i'm", r"i'm (?:originally |actually |all the way )?from (?P<v>.+)", lambda m, s: _origin(m, s)),
    rule("i come", r"i come from (?P<v>.+)", _place("hometown", 0.85)),
    rule("originally/from", r"(?:originally )?from (?P<v>[A-Z].+)", _place("hometown", 0.6)),
    rule("based/living", r"(?:based|living) in (?P<v>.+)", _place("location", 0.7)),
    rule("i grew/i was", r"i (?:grew up|was (?:born|raised|born and raised|brought up)) (?:in|near|outside) (?P<v>(?!(?:19|20)\d\d|jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec|the (?:19|20|eight|nine)).+)", _place("hometown", 0.9)),
    rule("i was/i'm", rf"i(?:'m| was) born (?:on |in )?(?P<v>{_DATE})", _keyed("birthday", 0.95)),
    # Age, pronouns, nation
    rule("i'm", r"i'm (?:a )?(?P<v>\d{1,3})(?:[ -]?(?:years?[ -]old|yrs?(?: old)?|y/?o)\b|\s*(?=$|[,.!]|(?:and|from|years)\b))(?: (?P<rest>[\w -]{3,60}))?", _age),
    rule("i turned/i just", r"i (?:just )?turned (?P<v>\d{1,3})\b", _age),
    rule("i'm", rf"i'm (?P<v>{_PRONOUNS})$", lambda m, s: fact(IDENTITY, "pronouns", m["v"], s, 0.8, 0.95) if "/" in m["v"] else []),
    rule("i use/i go", rf"i (?:use|go by) (?:the pronouns )?(?P<v>{_PRONOUNS})(?: pronouns)?", lambda m, s: fact(IDENTITY, "pronouns", m["v"], s, 0.95, 0.95)),
    rule("pronouns/my", rf"(?:my )?pronouns(?: are|:| =)? (?P<v>{_PRONOUNS})", lambda m, s: fact(IDENTITY, "pronouns", m["v"], s, 0.95, 0.95)),
    rule("i'm", r"i'm (?:an? )?(?:half[ -])?(?P<v>[\w-]+)(?: by birth| citizen| national|$|[,. ](?!(?:teacher|tutor|citizen|language|speaker|learner|literature|student|food|major|translator|history|cuisine)))", _nationality),
    rule("i'm", r"i'm an? (?P<v>[\w-]+) (?:citizen|national)\b", _nationality),
    rule("i'm", r"i'm a native (?P<v>\w+)(?: speaker)?", _native),
    rule("my", r"my (?:native|first|mother) (?:language|tongue) is (?P<v>\w+)", _native),
    rule("i speak", r"i speak (?P<v>\w+) (?:natively|as my (?:first|native) language|at home)", _native),
    # Work and school
    rule("i'm", r"i'm (?:currently )?(?:an?|the) (?P<v>(?!\d).+)", _occupation),
    rule("i work/i've", r"i(?:'ve)? work(?:ed)? as (?:an? |the )?(?P<known>)(?P<v>.+)", _occupation),
    rule("i'm", r"i'm (?:employed|working) as (?:an? |the )?(?P<known>)(?P<v>.+)", _occupation),
    rule("i became/i've", r"i(?:'ve)? (?:became|become) an? (?P<v>.+)", _occupation),
    rule("i work/i joined/i've", r"i(?:'ve)?(?: been)? (?:work(?:ed|ing)? (?:full[- ]time |part[- ]time |remotely )?(?:at|for|with)|join(?:ed)?) (?P<v>.+)", _works_at),
    rule("i'm", r"i'm (?:employed (?:at|by)|with) (?P<v>[A-Z].+)", _works_at),
    rule("i started/i got/i began/i took/i've", r"i(?:'ve)? (?:(?:started|began)(?: working| a (?:new )?(?:job|role|position))?|got (?:a|my) (?:new )?(?:job|position)|took a (?:new )?(?:job|role|position)) (?:at|with|for) (?P<v>[A-Z].+)", _works_at),
    rule("i work", r"i work in (?P<v>.+)", _works_in),
    rule("i teach", r"i teach (?P<v>.+)", _teaches),
    rule("i run/i own", r"i (?:run|own) (?P<v>(?:an?|my own) (?:\w+ ){0,2}?(?:business|bakery|shop|cafe|café|restaurant|company|startup|farm|store|agency|studio|salon|bookshop|consultancy|clinic|hotel|gym|brewery|garage|practice|firm)\b)", lambda m, s: fact(IDENTITY, "occupation", f"{'runs' if s.text[2:5] == 'run' else 'owns'} {m['v']}", s, 0.75, _WORK)),
    rule("i'm", r"i'm (?:now )?(?P<v>retired|unemployed|self-employed|freelancing|freelance)\b", _retired),
    rule("i study/i studied/i major/i majored", r"i (?:study|studied|major(?:ed)? in) (?P<v>.+)", _study),
    rule("i'm", r"i'm (?:studying|majoring in|doing (?=(?:my|a|an) (?:ph\.?d|master|bachelor|degree|mba|msc|bsc))) ?(?P<v>.+)", _study),
    rule("i have/i hold/i did/i've/i finished/i completed/i earned", r"i(?:'ve)? (?:have|hold|did|finished|completed|earned|done) (?:an? |my )?(?P<v>(?:\w+(?:'s)? )?(?:ph\.?d|mba|msc|bsc|ba|ma|degree|master'?s?|bachelor'?s?|doctorate|diploma|llb|md)\b.*)", _degree),
    rule("i graduated", r"i graduated (?:(?:in|with) (?!\d)[\w ,]{2,40}? )?(?:from|at) (?P<v>.+)", _degree),
    rule("i went/i go/i attend/i attended", r"i (?:went to|go to|attend(?:ed)?) (?P<v>(?:the )?(?:[\w.]+ ){0,4}?(?:university|college|polytechnic|institute|school)\b.*)", lambda m, s: _degree(m, s) if re.search(r"[A-Z]", m["v"]) else []),
    # Family
    rule("my", rf"my (?:\w+ )?(?:{_PARTNER})(?:'s name is| is (?:called|named)|,? (?=[A-Z])) ?(?P<v>.+)", _partner),
    rule("i'm", rf"i'm (?:an? )?(?:happily |recently |newly |still |now |legally )?(?P<v>{_MARITAL})\b ?(?P<rest>.*)", _marital),
    rule("i got/we got/i've", rf"(?:i|we)(?:'ve)? (?:just |recently |finally )?(?:got|gotten) (?P<v>{_MARITAL})\b ?(?P<rest>.*)", _marital),
    rule("i have/i've/we have", rf"(?:i|we)(?:'ve)? (?:have )?(?:raised )?(?P<v>{_CHILDREN})", _children),
    rule("i'm", rf"i'm (?:an? )?(?:(?:single|proud|new|working|stay-at-home|busy) )*(?:mum|mom|dad|father|mother|parent)(?: of|to) (?P<v>{_COUNT}\b(?:[ \w-]{{0,30}}?(?:kids?|children|sons?|daughters?|boys?|girls?|twins))?)", _children),
    rule("my", rf"my (?:\w+ )?(?P<kind>{_PET})(?P<plural>s)?(?:'s name is|s?' names are| is (?:called|named)| are (?:called|named)| goes by|,? (?=[A-Z][a-z])) ?(?P<v>.+)", _pet),
    rule("i have/we have/i own/i adopted/i got/we got/we adopted/i've", rf"(?:i|we)(?:'ve)? (?:have|own|(?:have |just |recently )*(?:adopted|got|gotten|rescued)) (?:an?|my|one|two|three|\d) (?:[\w-]+ ){{0,4}}?(?P<kind>{_PET})(?P<plural>s)?(?:,? (?:(?:and )?(?:(?:he|she|it|they)(?:'s| is| are) )?(?:called|named)|(?:her|his|its|their) names? (?:is|are)|whose names? (?:is|are)) (?P<v>.+)|,? (?P<v2>)(?=[A-Z])|\b)", _pet),
    rule("my", r"my (?P<noun>[\w-]+(?: [\w-]+){0,2}?)(?: is| are|:| =)(?: still| currently)? (?P<v>.+)", _my),
    rule("you can/reach/contact/email/text/my/mail", rf"(?:you can )?(?:reach|contact|e-?mail|text|write to|call|mail)(?: me)?(?: (?:at|on|under|is))?:? (?P<v>{_EMAIL})", lambda m, s: fact(IDENTITY, "email", m["v"], s, 0.9)),
    rule("you can/reach/contact/call/text/phone/cell/mobile", rf"(?:you can )?(?:reach|contact|text|call|phone|cell|mobile)(?: me)?(?: (?:at|on|under|is))?:? (?P<v>{_NUMBER})", lambda m, s: fact(IDENTITY, "phone", m["v"], s, 0.9)),
    rule("email/e-mail/phone/pronouns/age/occupation/job/location/birthday/nationality/hometown/address/employer", r"(?P<noun>[\w-]+)(?: is|:| =) (?P<v>.+)", _my),
    # German and Spanish, names and places only
    rule("ich", r"ich (?:hei(?:ß|ss)e|bin der|bin die) (?P<v>.+)", _name(1.0)),
    rule("mein", r"mein name ist (?P<v>.+)", _name(1.0)),
    rule("nenn/nenne", r"nenne? mich (?:bitte )?(?P<v>.+)", _name(0.6)),
    rule("ich", r"ich (?:wohne|lebe)(?: jetzt)? in (?P<v>.+)", _place("location", 0.95)),
    rule("me", r"me llamo (?P<v>.+)", _name(1.0)),
    rule("mi", r"mi nombre es (?P<v>.+)", _name(1.0)),
    rule("llámame/llamame", r"ll[aá]mame (?P<v>.+)", _name(0.6)),
    rule("vivo/yo", r"(?:yo )?vivo en (?P<v>.+)", _place("location", 0.95)),
)  # fmt: skip


def _living(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.match(r"\d+[\w-]* [A-Z]", text):
        return fact(IDENTITY, "address", text, statement, 0.9)
    return fact(IDENTITY, "location", place_of(text, statement), statement, 0.95)


def _origin(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = re.split(r"\s+(?:but|and|though)\s+", match["v"])[0]
    return fact(IDENTITY, "hometown", place_of(text, statement), statement, 0.85)
