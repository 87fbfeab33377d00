"""Rules for what else limits the user: health, accessibility, money, time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, FactRule, Finding, fact, phrase, rule, slug, things

_HEALTH_IMPORTANCE = 0.95
_OTHER_IMPORTANCE = 0.75
_MEDICAL = "|".join(sorted((re.escape(word) for word in vocabulary.MEDICAL), key=len, reverse=True))
_MONEY = (
    r"(?:(?:about|around|roughly|max(?:imum)?|up to|under|at most|no more than|below|only|just"
    r"|less than)\s+)*(?:[$€£¥]\s?\d[\d.,]*\s?(?:k\b|m\b)?|\d[\d.,]*\s?(?:k\s?)?(?:euros?|eur"
    r"|dollars?|usd|pounds?|gbp|quid|bucks|kroner|nok|sek|dkk|francs?|chf|yen|rupees|inr|zloty|pln"
    r"|[$€£]))(?:\s?(?:-|to)\s?[$€£]?\d[\d.,]*k?)?(?:\s?(?:/|per|a|an|each)\s?\w+)?"
)
_TIME = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:end|day|night)s?|mornings?|afternoons?"
    r"|evenings?|nights?|before|after|between|from|until|past|\d"
)
_CONDITIONS = {
    "diabetic": "diabetes",
    "asthmatic": "asthma",
    "epileptic": "epilepsy",
    "autistic": "autism",
    "coeliac": "coeliac",
    "celiac": "celiac",
    "hypertensive": "hypertension",
    "anemic": "anemia",
    "anaemic": "anaemia",
    "dyslexic": "dyslexia",
    "bipolar": "bipolar",
    "intolerant to lactose": "lactose_intolerance",
    "intolerant to gluten": "gluten_intolerance",
    "intolerant of lactose": "lactose_intolerance",
    "intolerant of gluten": "gluten_intolerance",
    "lactose intolerant": "lactose_intolerance",
    "lactose-intolerant": "lactose_intolerance",
    "gluten intolerant": "gluten_intolerance",
    "gluten-intolerant": "gluten_intolerance",
}


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


def _accessible(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "accessibility", match["v"], statement, 0.9, _HEALTH_IMPORTANCE)


def _budget(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    amount = re.search(_MONEY, match["v"][:120], re.IGNORECASE) or re.match(
        r"(?:(?:about|around|roughly|only|max|up to|under|now) )*(\d[\d.,]*k|\d[\d.,]+(?= ?(?:$|now"
        r"|per|a month|total|max)))",
        match["v"],
    )
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


def _tight(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "budget", match["v"], statement, 0.7, _OTHER_IMPORTANCE)


def _available(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    if not re.search(rf"\b(?:{_TIME})", text, re.IGNORECASE):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.85, _OTHER_IMPORTANCE)


def _free(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if not re.match(
        r"(?:only|never|usually|generally|mostly|not)\b|\w+ only\b|.*\b(?:\w+days|weekends|mornings"
        r"|afternoons|evenings|every|nights)\b",
        text,
        re.IGNORECASE,
    ):
        return []
    return _available(match, statement)


def _unavailable(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"][2:], 12)
    if not re.search(
        r"\b(?:\w+days|weekends?|mornings?|afternoons?|evenings?|nights?|(?:before|after|past) (?:\d"
        r"|noon|lunch))\b",
        text,
        re.IGNORECASE,
    ):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.8, _OTHER_IMPORTANCE)


_NOT_FOR_ME = (
    r"(?P<v>(?:(?:early |late )?(?:mornings?|afternoons?|evenings?|nights?|weekends?|weekdays?"
    r"|\w+days?)(?: and )?)+ (?:don't|doesn't|never|only|always) works? for me)"
)

RULES: tuple[FactRule, ...] = (
    rule("*for me", _NOT_FOR_ME, _available),
    rule(
        "i'm",
        r"i'm (?:(?:severely|very|mildly|also) )?(?P<v>lactose[ -]intolerant|gluten[ -]intolerant"
        r"|diabetic|asthmatic|epileptic|autistic|coeliac|celiac|anaemic|anemic|bipolar|type (?:1|2|one"
        r"|two) diabetic|intolerant (?:to|of) (?:lactose|gluten)|a (?:type [12] )?diabetic|an?"
        r" (?:asthmatic|epileptic|coeliac|celiac))\b",
        _condition,
    ),
    rule(
        "i have/i've/i live/i suffer/i get/i got",
        rf"i(?:'ve)? (?:have|live with|suffer from|get|got)(?: an?)? (?P<v>(?:(?:severe|mild|chronic"
        rf"|type (?:1|2|one|two)|high|low|bad|terrible) )*(?:(?:{_MEDICAL})(?: disease| syndrome| "
        rf"disorder)?|lactose intolerance|high blood"
        rf" pressure|low blood pressure|heart (?:condition|disease|failure)|chronic \w+|\w+ (?:disorder"
        rf"|syndrome|disease|deficiency|intolerance|condition)|bad (?:knees?|back|hip)|back pain|back"
        rf" problems|a pacemaker|high cholesterol))\b",
        _condition,
    ),
    rule(
        "i suffer/i was/i've/i got",
        r"i(?:'ve)? (?:suffer from|(?:was |been |got )?(?:just |recently )?diagnosed with|was born"
        r" with) (?P<v>.+)",
        _suffers,
    ),
    rule(
        "i'm",
        r"i'm (?:\w+ly )?(?:an? )?(?P<v>(?:legally |partially |completely )?(?:blind|deaf)|colou?r["
        r" -]?blind|hard of hearing|visually impaired|hearing impaired|dyslexic|in a wheelchair|a"
        r" wheelchair user|wheelchair user)\b",
        _accessible,
    ),
    rule(
        "i have/i've/i navigate/i get/i operate/my/i work/i only",
        r"(?:i(?:'ve)? (?:have |got )?|my )(?P<v>(?:very )?(?:low|poor|limited|impaired|partial|failing|"
        r"tunnel) (?:vision|sight|eyesight|hearing)"
        r"|(?:eyesight|vision|hearing|sight) is (?:very |really )?(?:poor|bad|failing|limited|going)|"
        r"(?:only )?(?:navigate|get around|work|operate|use) "
        r"(?:\w+ ){0,3}?(?:with|by|using|only) (?:only )?(?:the |a |my )?(?:keyboard|voice|switch|screen "
        r"reader)(?: only| alone)?|hearing loss|one hand)\b",
        _accessible,
    ),
    rule(
        "i use/i rely/i need/i'm",
        r"i(?:'m)? (?:use|rely on|need|using) (?P<v>(?:an? |my )?(?:screen[ -]?reader|wheelchair"
        r"|braille display|hearing aids?|walking stick|cane|guide dog|captions|large (?:print|text"
        r"|fonts?)|voice control|crutches|step-free access|subtitles))\b",
        _accessible,
    ),
    rule(
        "my/our/the",
        r"(?:my|our) (?:\w+ ){0,2}?budget(?: \w+ [\w ]{1,30}?)?(?: is|:| of| was set at| has to be|"
        r" can't be)(?: over)? (?P<v>.+)",
        _budget,
    ),
    rule(
        "i have/we have/i'm/i've",
        r"(?:i|we)(?:'m)?(?: have| on| working with)? (?:an? )?(?:\w+ )?budget (?:is|of|around|about"
        r"|:) (?P<v>.+)",
        _budget,
    ),
    rule(
        "i can't/i can/i don't/we can't/we can/we have/i only/i won't/i have",
        r"(?:i|we) (?:can't|can only|don't want to|can|won't|only have|have only|have|only|never)(?:"
        r" afford| ever)?(?: to)?(?: spend| pay)? (?:more than|over|above|up to|only|at most)?"
        r" ?(?P<v>(?:[$€£]|\d).+)",
        _budget,
    ),
    rule(
        "i'm/we're",
        r"(?:i'm|we're) (?:living |travelling )?on a (?:very |pretty |fairly )?(?P<v>tight|limited"
        r"|small|student|low|shoestring|fixed) (?:budget|income)",
        _tight,
    ),
    rule("budget", r"budget(?: is|:) (?P<v>.+)", _budget),
    rule(
        "i'm/i can/i have",
        r"(?:i'm|i can|i have) (?P<v>(?:only |usually |generally |mostly |never |not )?(?:available"
        r"|free|reachable|around|off|do (?:meetings|calls)|meet|time|work|talk)(?: only)? .+)",
        _free,
    ),
    rule(
        "i only",
        r"i only (?P<v>(?:have time|work|do meetings|do calls|take calls|take meetings|have|meet) .+)",
        _available,
    ),
    rule(
        "i can't/i don't/i never/i won't",
        r"(?P<v>i (?:can't|don't|never|won't) (?:do|take|make|have|work|attend|meet|schedule)(?: any)?"
        r" ?(?:meetings?|calls?|appointments?|mornings?|afternoons?|evenings?|weekends?|nights?|on"
        r"|before|after|past|\w+days?|anything)\b.*)",
        _unavailable,
    ),
    rule(
        "i work",
        r"i (?P<v>work (?:nights?|weekends|the night shift|night shifts?|shifts|evenings|mondays"
        r"|part[- ]time|from \d+|\d+|until|till|mornings|tuesdays?|only|monday).*)",
        _available,
    ),
    rule("i'm", r"i'm (?P<v>(?:unavailable|not available|not free|busy every|off on|out of office) .+)", _available),
    rule(
        "my",
        r"my (?:availability|free time|working hours|office hours|work hours|schedule) (?:is|are)"
        r" (?P<v>.+)",
        _available,
    ),
)
