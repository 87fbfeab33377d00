"""Rules for what the user must not or will not eat and drink."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import Retraction
from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, FactRule, Finding, bare, fact, phrase, rule, slug, things
from models.text.words import word_set

_DIET_IMPORTANCE = 0.9
_HEALTH_IMPORTANCE = 0.95
_DIET = "|".join(sorted(vocabulary.DIETS, key=len, reverse=True)).replace("-", "[ -]")
_NOT_TO_AVOID = re.compile(
    r"(?:it|this|that|these|those|them|you|him|her|well|much|anything|enough|out|there|here|the|my"
    r"|your|another|more|mornings?|mondays?|work|lies|bullshit|nonsense|drama|exercise|homework|"
    r"people|responsibility|stupidity|excuses|fun|up|right|at all|lunch|breakfast|dinner|today|as|"
    r"any$|properly|that much)\b",
    re.IGNORECASE,
)
_INTAKE = word_set(
    "gluten dairy alcohol caffeine sugar meat pork nuts shellfish eggs lactose wheat beef fish spicy aspirin "
    "ibuprofen penicillin soy seafood coffee milk heights drugs stairs carbs salt grapefruit"
)


def _diet(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(CONSTRAINT, "diet", match["v"], statement, 0.95, _DIET_IMPORTANCE)


def _allergic(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found: list[Finding] = []
    for thing in things(re.sub(r"^(?:both|certain|some) ", "", match["v"])):
        if not _NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"allergy_{slug(thing)}", "allergic", statement, 0.95, _HEALTH_IMPORTANCE)
    return found


def _avoids(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = re.split(
        r"\s+(?:for (?:\w+ )?(?:reasons|now)|due to|at all|of any kind|in any form|any longer|because"
        r"|on \w+days?|after|before|until|today|tonight|in my|with|when|at (?:night|home|work)|by"
        r"|from)\b",
        match["v"],
    )[0]
    found: list[Finding] = []
    for thing in things(text, 3):
        if not _NOT_TO_AVOID.match(thing):
            found += fact(CONSTRAINT, f"avoids_{slug(thing)}", "avoids", statement, 0.85, _DIET_IMPORTANCE)
    return found


def _resumed(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    """As in "I eat meat again"."""
    return (
        [Retraction(category=CONSTRAINT, key="diet")]
        if match["v"].lower() in {"meat", "everything"}
        else [Retraction(category=CONSTRAINT, key=f"avoids_{slug(match['v'])}")]
    )


def _cannot(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    if re.match(r"i (?:can't|don't|won't) (?:have|do|take|handle|use|touch|tolerate)\b", statement.text, re.IGNORECASE):
        known = bare(phrase(match["v"])).split(" ")[0].lower()
        if (
            re.match(r"i (?:don't|can't) (?:have|do|use|take)\b", statement.text, re.IGNORECASE)
            and known not in _INTAKE
        ):
            return []
    return _avoids(match, statement)


RULES: tuple[FactRule, ...] = (
    rule(
        "i'm/i've/i went/i turned/i became/i eat/i follow/i keep/i stick/we're/we eat/we only/we keep/we all",
        rf"(?:i'm|we're|i(?:'ve)? (?:been|went|gone|turned|became|become|eat|follow|keep|stick to)"
        rf"|we(?: only| all)? (?:eat|keep|are)) (?:a |an |on (?:a |an )?|(?:from [\w-]+ )?to |only )?(?:(?:strict"
        rf"|strictly|lifelong|mostly|fully|100%|only|completely|also|now|been|newly|currently|devout"
        rf"|practising|practicing|committed|recently) )*(?P<v>{_DIET})\b(?!'s| curious| (?:food|recipe"
        rf"|restaurant|cook|chef|curious|friend|option|meal))",
        _diet,
    ),
    rule(
        "i'm/i follow/i have/i need",
        rf"i(?:'m)? (?:on|follow|following|have|need) (?:a |an )?(?:strict |very |medically"
        rf" )?(?P<v>{_DIET}|[\w-]+(?:[ -](?:carb|sodium|sugar|fat|protein|fodmap|calorie|fibre|fiber"
        rf"|salt|free|based))|mediterranean|liquid|vegan|diabetic) diet",
        _diet,
    ),
    rule("my", rf"my diet is (?:strictly )?(?P<v>{_DIET})", _diet),
    rule("*here", rf"(?P<v>{_DIET}) here\b", _diet),
    rule("vegan/vegetarian", rf"(?P<v>{_DIET})(?: (?:for|since)\b.*)?$", _diet),
    rule("i eat", rf"i (?:only )?eat (?:only )?(?P<v>{_DIET})\b", _diet),
    rule("i only/i have", r"i (?:only|have to) eat (?P<v>halal|kosher|vegan|vegetarian|gluten[- ]free)\b", _diet),
    rule(
        "i'm",
        r"i'm (?:(?:severely|highly|deathly|very|mildly|badly|terribly|super|extremely|slightly"
        r"|seriously) )*allergic to (?P<v>.+)",
        _allergic,
    ),
    rule("allergic", r"allergic to (?P<v>.+)", _allergic),
    rule(
        "i'm",
        r"i'm (?P<v>(?!super|very|really|also|so|quite|highly|severely|still|not|too|just)[\w-]+)["
        r" -]allergic$",
        _allergic,
    ),
    rule(
        "i have/i've/i suffer/i developed",
        r"i(?:'ve)? (?:have|developed|suffer from|got) (?:an? )?(?:(?:severe|bad|serious|mild|strong"
        r"|terrible|life-threatening|nasty|deadly) )*(?:allergy to|allergies to|allergic reactions?"
        r" to) (?P<v>.+)",
        _allergic,
    ),
    rule(
        "i have/i've/i suffer",
        r"i(?:'ve)? (?:have|suffer from|developed) (?:an? )?(?:(?:severe|bad|serious|mild|strong"
        r"|terrible|life-threatening|nasty|deadly) )*(?P<v>(?:[\w-]+ ){1,2}?)allerg(?:y|ies)\b",
        _allergic,
    ),
    rule(
        "i can't/i don't/i never/i won't/i mustn't/i shouldn't",
        r"i (?:can't|don't|never|won't|mustn't|shouldn't|can never) (?:eat|drink|consume|touch|have|do"
        r"|take|digest|tolerate|handle|smoke|use) (?:any )?(?P<v>.+)",
        _cannot,
    ),
    rule(
        "i avoid/i'm/i abstain/i stay/i steer",
        r"i(?:'m)? (?:avoid|abstain from|stay away from|steer clear of|avoiding|intolerant to)"
        r" (?:eating |drinking |all |any )?(?P<v>.+)",
        _avoids,
    ),
    rule("i'm", r"i'm not (?:allowed|able|supposed|permitted) to (?:eat|drink|have|take|consume) (?P<v>.+)", _avoids),
    rule(
        "i stopped/i quit/i've/i gave",
        r"i(?:'ve)? (?:stopped|quit|given up|gave up|cut out) (?:eating |drinking |smoking |all"
        r" )?(?P<v>meat|alcohol|dairy|gluten|sugar|caffeine|coffee|smoking|drinking|red meat|pork|fish"
        r"|eggs|bread|soda|tobacco|nicotine|wheat)\b",
        _avoids,
    ),
    rule("no", r"no (?P<v>[\w ]{3,30}?) for me\b", _avoids),
    rule("i eat", r"i eat (?P<v>meat|fish|dairy|gluten|eggs|pork|everything) again\b", _resumed),
)
