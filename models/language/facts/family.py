"""Rules for the user's family and animals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import IDENTITY, FactRule, Finding, fact, name_of, rule

_FAMILY = 0.7
_COUNT = r"(?:\d{1,2}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|twin|no)"
_CHILDREN = (
    rf"(?:{_COUNT}(?: (?:small|young|little|grown(?:-up)?|adult|teenage|beautiful|wonderful|lovely"
    rf"|older|younger|year-old|school-age|\w+-year-old))*"
    r" (?:kids?|children|sons?|daughters?|boys?|girls?|child|toddlers?|twins|teenagers?|baby|babies)(?: and "
    rf"{_COUNT}(?: \w+)? (?:kids?|sons?|daughters?|boys?|girls?|toddlers?|baby|twins))?)\b"
)
_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True)).replace("guinea-pig", "guinea[ -]pig")
_PARTNER = "|".join(sorted(vocabulary.RELATIONSHIPS, key=len, reverse=True))
_MARITAL = "widower|widow|single|married|divorced|engaged|widowed|separated"


def _partner(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    name = name_of(match["v"], statement)
    if not name[:1].isupper() and not statement.lower:
        return []
    return fact(IDENTITY, "partner_name", name, statement, 0.85, _FAMILY)


def _marital(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    if re.match(
        r"to (?:my|the|this|that|our) (?:\w+ )?(?:job|work|career|business|company|game|idea|phone|ps5|desk)\b",
        match.groupdict().get("rest") or "",
    ):
        return []
    found: list[Finding] = list(fact(IDENTITY, "marital_status", match["v"].lower(), statement, 0.9, _FAMILY))
    rest = match.groupdict().get("rest") or ""
    if rest and (
        named := re.match(
            rf"to (?:(?:my|an?) (?:\w+ )?(?:{_PARTNER}|man|woman|guy) ?,? ?(?:called |named )?)?([A-Z].*)", rest
        )
    ):
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
    if (
        name
        and match["plural"]
        and (both := re.match(rf"{re.escape(name)}(?:, (?-i:[A-Z])\w+)*,? and (?-i:[A-Z])[\w'-]+", said))
    ):
        name = both[0]
    return fact(IDENTITY, pet_key(match["kind"]), name or "yes", statement, 0.9 if name else 0.8, 0.6)


RULES: tuple[FactRule, ...] = (
    rule(
        "my", rf"my (?:\w+ )?(?:{_PARTNER})(?:'s name is| is (?:called|named)|,? (?=(?-i:[A-Z]))) ?(?P<v>.+)", _partner
    ),
    rule(
        "i'm",
        rf"i'm (?:an? )?(?:happily |recently |newly |still |now |legally )?(?P<v>{_MARITAL})\b"
        rf" ?(?P<rest>.*)",
        _marital,
    ),
    rule(
        "i got/we got/i've",
        rf"(?:i|we)(?:'ve)? (?:just |recently |finally )?(?:got|gotten) (?P<v>{_MARITAL})\b"
        rf" ?(?P<rest>.*)",
        _marital,
    ),
    rule("i have/i've/we have", rf"(?:i|we)(?:'ve)? (?:have )?(?:raised )?(?P<v>{_CHILDREN})", _children),
    rule(
        "i'm",
        rf"i'm (?:an? )?(?:(?:single|proud|new|working|stay-at-home|busy) )*(?:mum|mom|dad|father"
        rf"|mother|parent)(?: of|to) (?P<v>{_COUNT}\b(?:[ \w-]{{0,30}}?(?:kids?|children|sons?"
        rf"|daughters?|boys?|girls?|twins))?)",
        _children,
    ),
    rule(
        "my/our",
        rf"(?:my|our) (?:\w+ )?(?P<kind>{_PET})(?P<plural>s)?(?:'s name is|s?' names are| is (?:called"
        rf"|named)| are (?:called|named)| goes by|,? (?=(?-i:[A-Z])[a-z])) ?(?P<v>.+)",
        _pet,
    ),
    rule(
        "i have/we have/i own/i adopted/i got/we got/we adopted/i've/we've",
        rf"(?:i|we)(?:'ve)? (?:have|own|(?:have |just |recently )*(?:adopted|got|gotten|rescued))"
        rf" (?:an?|my|one|two|three|four|five|six|several|\d) (?:[\w-]+"
        rf" ){{0,4}}?(?P<kind>{_PET})(?P<plural>s)?\b(?!-| in (?:this|the|that) (?:fight|race))"
        rf"(?:,? (?:(?:and )?(?:(?:he|she|it|they)(?:'s| is| are) )?(?:called|named)|(?:her|his|its|their)"
        rf" names? (?:is|are)|whose names? (?:is|are)) (?P<v>.+)|,? (?P<also>(?-i:[A-Z]).+))?",
        _pet,
    ),
)
