"""Rules for what the user cannot or must not: food, health, money, time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.facts import vocabulary
from models.facts.statements import Statement
from models.facts.values import CONSTRAINT, Finding, Rule, bare, fact, phrase, rule, slug, things
from models.user_events import Retraction

_DIET_IMPORTANCE = 0.9
_HEALTH_IMPORTANCE = 0.95
_OTHER_IMPORTANCE = 0.75
_DIET = "|".join(sorted(vocabulary.DIETS, key=len, reverse=True)).replace("-", "[ -]")
_MEDICAL = "|".join(sorted((re.escape(word) for word in vocabulary.MEDICAL), key=len, reverse=True))
_MONEY = r"(?:(?:about|around|roughly|max(?:imum)?|up to|under|at most|no more than|below|only|just|less than)\s+)*(?:[$€£¥]\s?\d[\d.,]*\s?(?:k\b|m\b)?|\d[\d.,]*\s?(?:k\s?)?(?:euros?|eur|dollars?|usd|pounds?|gbp|quid|bucks|kroner|nok|sek|dkk|francs?|chf|yen|rupees|inr|zloty|pln|[$€£]))(?:\s?(?:-|to)\s?[$€£]?\d[\d.,]*k?)?(?:\s?(?:/|per|a|an|each)\s?\w+)?"
_TIME = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:end|day|night)s?|mornings?|afternoons?|evenings?|nights?|before|after|between|from|until|past|\d"
_NOT_TO_AVOID = re.compile(
    r"(?:it|this|that|these|those|them|you|him|her|well|much|anything|enough|out|there|here|the|my|your|up|right|at all|lunch|breakfast|dinner|today|as|any$|properly|that much)\b",
    re.IGNORECASE,
)
_SENSES = {"deaf", "blind", "colour-blind", "color-blind", "colourblind", "colorblind", "dyslexic"}
_CONDITIONS = {
    "diabetic": "diabetes", "asthmatic": "asthma", "epileptic": "epilepsy", "autistic": "autism", "coeliac": "coeliac",
    "celiac": "celiac", "hypertensive": "hypertension", "anemic": "anemia", "anaemic": "anaemia", "dyslexic": "dyslexia",
    "bipolar": "bipolar", "lactose intolerant": "lactose_intolerance", "lactose-intolerant": "lactose_intolerance",
    "gluten intolerant": "gluten_intolerance", "gluten-intolerant": "gluten_intolerance",
}  # fmt: skip


def _diet(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "diet", match["v"], statement, 0.95, _DIET_IMPORTANCE)


def _allergic(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = []
    for thing in things(re.sub(r"^(?:both|certain|some) ", "", match["v"])):
        if not _NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"allergy_{slug(thing)}", "allergic", statement, 0.95, _HEALTH_IMPORTANCE)
    return found


def _avoids(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = re.split(r"\s+(?:for (?:\w+ )?(?:reasons|now)|due to|at all|of any kind|in any form|any longer|because|on \w+days?|after|before|until|today|tonight|in my|with|when|at (?:night|home|work)|by|from)\b", match["v"])[0]
    found: list[Finding] = []
    for thing in things(text, 3):
        if not _NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"avoids_{slug(thing)}", "avoids", statement, 0.85, _DIET_IMPORTANCE)
    return found


def _condition(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    condition = re.sub(r"^(?:an?|severe|mild|bad|chronic|really|terrible|my|some) ", "", match["v"].lower())
    return fact(CONSTRAINT, f"medical_{slug(_CONDITIONS.get(condition, condition))}", "yes", statement, 0.9, _HEALTH_IMPORTANCE)


def _suffers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = []
    for thing in things(match["v"], 4):
        thing = re.sub(r"^(?:severe|mild|bad|chronic|terrible|occasional|frequent) ", "", thing.lower())
        if not re.match(r"(?:it|this|that|boredom|fomo|jet)\b", thing):
            found += fact(CONSTRAINT, f"medical_{slug(thing)}", "yes", statement, 0.85, _HEALTH_IMPORTANCE)
    return found


def _accessible(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "accessibility", match["v"], statement, 0.9, _HEALTH_IMPORTANCE)


def _budget(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    amount = re.search(_MONEY, match["v"][:120], re.IGNORECASE) or re.match(r"\d[\d.,]+k?(?= ?(?:$|now|per|a month|total|max))", match["v"])
    if amount:
        return fact(CONSTRAINT, "budget", re.sub(r"^(?:about|around|roughly|only|just) ", "", amount[0]), statement, 0.85, _OTHER_IMPORTANCE)
    return []


def _tight(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "budget", match["v"], statement, 0.7, _OTHER_IMPORTANCE)


def _available(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    if not re.search(rf"\b(?:{_TIME})", text, re.IGNORECASE):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.85, _OTHER_IMPORTANCE)


def _resumed(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """"I eat meat again"."""
    return [Retraction(category=CONSTRAINT, key="diet"), Retraction(category=CONSTRAINT, key=f"avoids_{slug(match['v'])}")]


RULES: tuple[Rule, ...] = (
    rule("i'm/i've/i went/i turned/i became/i eat/i follow/i keep/i stick/we're/we eat/we only/we keep/we all", rf"(?:i'm|we're|i(?:'ve)? (?:been|went|gone|turned|became|become|eat|follow|keep|stick to)|we(?: only| all)? (?:eat|keep|are)) (?:a |an |on (?:a |an )?|to |only )?(?:(?:strict|strictly|lifelong|mostly|fully|100%|only|completely|also|now|been|newly|currently|devout|practising|practicing|committed|recently) )*(?P<v>{_DIET})\b(?! (?:food|recipe|restaurant|cook|chef|curious|friend|option|meal))", _diet),
    rule("i'm/i follow/i have/i need", rf"i(?:'m)? (?:on|follow|following|have|need) (?:a |an )?(?:strict |very |medically )?(?P<v>{_DIET}|[\w-]+(?:[ -](?:carb|sodium|sugar|fat|protein|fodmap|calorie|fibre|fiber|salt|free|based))|mediterranean|liquid|vegan|diabetic) diet", _diet),
    rule("my", rf"my diet is (?:strictly )?(?P<v>{_DIET})", _diet),
    rule("*here", rf"(?P<v>{_DIET}) here\b", _diet),
    rule("vegan/vegetarian", rf"(?P<v>{_DIET})(?: (?:for|since)\b.*)?$", _diet),
    rule("i eat", rf"i (?:only )?eat (?:only )?(?P<v>{_DIET})\b", _diet),
    rule("i only/i have", r"i (?:only|have to) eat (?P<v>halal|kosher|vegan|vegetarian|gluten[- ]free)\b", _diet),
    rule("i'm", r"i'm (?:(?:severely|highly|deathly|very|mildly|badly|terribly|super|extremely|slightly|seriously) )*allergic to (?P<v>.+)", _allergic),
    rule("allergic", r"allergic to (?P<v>.+)", _allergic),
    rule("i'm", r"i'm (?P<v>[\w-]+)[ -]allergic$", _allergic),
    rule("i have/i've/i suffer/i developed", r"i(?:'ve)? (?:have|developed|suffer from|got) (?:an? )?(?:(?:severe|bad|serious|mild|strong|terrible|life-threatening|nasty|deadly) )*(?:allergy to|allergies to|allergic reactions? to) (?P<v>.+)", _allergic),
    rule("i have/i've/i suffer", r"i(?:'ve)? (?:have|suffer from|developed) (?:an? )?(?:(?:severe|bad|serious|mild|strong|terrible|life-threatening|nasty|deadly) )*(?P<v>(?:[\w-]+ ){1,2}?)allerg(?:y|ies)\b", _allergic),
    rule("i'm", r"i'm (?:(?:severely|very|mildly|also) )?(?P<v>lactose[ -]intolerant|gluten[ -]intolerant|diabetic|asthmatic|epileptic|autistic|coeliac|celiac|anaemic|anemic|bipolar|a (?:type [12] )?diabetic|an? (?:asthmatic|epileptic|coeliac|celiac))\b", _condition),
    rule("i have/i've/i live/i suffer", rf"i(?:'ve)? (?:have|live with|suffer from)(?: an?)? (?P<v>(?:(?:severe|mild|chronic|type (?:1|2|one|two)|high|low|bad|terrible) )*(?:{_MEDICAL}|lactose intolerance|high blood pressure|low blood pressure|heart (?:condition|disease|failure)|chronic \w+|\w+ (?:disorder|syndrome|disease|deficiency|intolerance|condition)|bad (?:knees?|back|hip)|back pain|back problems|a pacemaker|high cholesterol))\b", _condition),
    rule("i suffer/i was/i've/i got", r"i(?:'ve)? (?:suffer from|(?:was |been |got )?(?:just |recently )?diagnosed with|was born with) (?P<v>.+)", _suffers),
    rule("i'm", r"i'm (?:\w+ly )?(?:an? )?(?P<v>(?:legally |partially |completely )?(?:blind|deaf)|colou?r[ -]?blind|hard of hearing|visually impaired|hearing impaired|dyslexic|in a wheelchair|a wheelchair user|wheelchair user)\b", _accessible),
    rule("i use/i rely/i need/i'm", r"i(?:'m)? (?:use|rely on|need|using) (?P<v>(?:an? |my )?(?:screen[ -]?reader|wheelchair|braille display|hearing aids?|walking stick|cane|guide dog|captions|large (?:print|text|fonts?)|voice control|crutches|step-free access|subtitles))\b", _accessible),
    rule("i can't/i don't/i never/i won't/i mustn't/i shouldn't", r"i (?:can't|don't|never|won't|mustn't|shouldn't|can never) (?:eat|drink|consume|touch|have|do|take|digest|tolerate|handle|smoke|use) (?:any )?(?P<v>.+)", lambda m, s: _cannot(m, s)),
    rule("i avoid/i'm", r"i(?:'m)? (?:avoid|abstain from|stay away from|steer clear of|avoiding|intolerant to) (?:eating |drinking |all |any )?(?P<v>.+)", _avoids),
    rule("i'm", r"i'm not (?:allowed|able|supposed|permitted) to (?:eat|drink|have|take|consume) (?P<v>.+)", _avoids),
    rule("i stopped/i quit/i've/i gave", r"i(?:'ve)? (?:stopped|quit|given up|gave up|cut out) (?:eating |drinking |smoking |all )?(?P<v>meat|alcohol|dairy|gluten|sugar|caffeine|coffee|smoking|drinking|red meat|pork|fish|eggs|bread|soda|tobacco|nicotine|wheat)\b", _avoids),
    rule("no", r"no (?P<v>[\w ]{3,30}?) for me\b", _avoids),
    rule("my/our/the", r"(?:my|our) (?:\w+ ){0,2}?budget(?: \w+ [\w ]{1,30}?)?(?: is|:| of| was set at| has to be| can't be)(?: over)? (?P<v>.+)", _budget),
    rule("i have/we have/i'm/i've", r"(?:i|we)(?:'m)?(?: have| on| working with)? (?:an? )?(?:\w+ )?budget (?:is|of|around|about|:) (?P<v>.+)", _budget),
    rule("i can't/i can/i don't/we can't/i only/i won't/i have", r"(?:i|we) (?:can't|can only|don't want to|can|won't|only have|have only|have|only|never)(?: afford| ever)?(?: to)?(?: spend| pay)? (?:more than|over|up to|only|at most)? ?(?P<v>(?:[$€£]|\d).+)", _budget),
    rule("i'm/we're", r"(?:i'm|we're) (?:living |travelling )?on a (?:very |pretty |fairly )?(?P<v>tight|limited|small|student|low|shoestring|fixed) (?:budget|income)", _tight),
    rule("budget", r"budget(?: is|:) (?P<v>.+)", _budget),
    rule("i'm/i can/i have", r"(?:i'm|i can|i have) (?P<v>(?:only |usually |generally |mostly |never |not )?(?:available|free|reachable|around|off|do (?:meetings|calls)|meet|time|work|talk)(?: only)? .+)", lambda m, s: _free(m, s)),
    rule("i only", r"i only (?P<v>(?:have time|work|do meetings|do calls|take calls|take meetings|have|meet) .+)", _available),
    rule("i can't/i don't/i never/i won't", r"(?P<v>i (?:can't|don't|never|won't) (?:do|take|make|have|work|attend|meet|schedule)(?: any)? ?(?:meetings?|calls?|appointments?|mornings?|afternoons?|evenings?|weekends?|nights?|on|before|after|past|\w+days?|anything)\b.*)", lambda m, s: _unavailable(m, s)),
    rule("i work", r"i (?P<v>work (?:nights?|weekends|the night shift|night shifts?|shifts|evenings|mondays|part[- ]time|from \d+|\d+|until|till|mornings|tuesdays?|only|monday).*)", _available),
    rule("i'm", r"i'm (?P<v>(?:unavailable|not available|not free|busy every|off on|off|out of office) .+)", _available),
    rule("my", r"my (?:availability|free time|working hours|office hours|work hours|schedule) (?:is|are) (?P<v>.+)", _available),
    rule("i eat", r"i eat (?P<v>meat|fish|dairy|gluten|eggs|pork|everything) again\b", _resumed),
)  # fmt: skip


def _cannot(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    if re.match(r"i (?:can't|don't|won't) (?:have|do|take|handle|use|touch|tolerate)\b", statement.text, re.IGNORECASE):
        known = bare(phrase(match["v"])).split(" ")[0].lower()
        if re.match(r"i (?:don't|can't) (?:have|do|use|take)\b", statement.text, re.IGNORECASE) and known not in _INTAKE:
            return []
    return _avoids(match, statement)


_INTAKE = frozenset(
    "gluten dairy alcohol caffeine sugar meat pork nuts shellfish eggs lactose wheat beef fish spicy aspirin ibuprofen "
    "penicillin soy seafood coffee milk heights drugs stairs carbs salt grapefruit".split()
)


def _free(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if not re.match(r"(?:only|never|usually|generally|mostly|not)\b|\w+ only\b|.*\b(?:\w+days|weekends|mornings|afternoons|evenings|every|nights)\b", text, re.IGNORECASE):
        return []
    return _available(match, statement)


def _unavailable(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"][2:], 12)
    if not re.search(r"\b(?:\w+days|weekends?|mornings?|afternoons?|evenings?|nights?|(?:before|after|past) (?:\d|noon|lunch))\b", text, re.IGNORECASE):
        return []
    return fact(CONSTRAINT, "availability", text, statement, 0.8, _OTHER_IMPORTANCE)
