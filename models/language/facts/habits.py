"""Rules for the tools a user works with, and their time zone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.kinds import KNOWN_THINGS, ZONE
from models.language.facts.preferences import preferred
from models.language.facts.statements import Statement
from models.language.facts.values import PREFERENCE, FactRule, Finding, bare, fact, languages_in, phrase, rule

_USED = 0.75
_PURPOSE = re.compile(r"\b(?:for|to)\b")
_TOOLS = frozenset({"editor", "operating_system", "units", "theme", "coding_style", "language", "timezone"})


def _uses(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """Tools of a known kind that are in daily use; a language that is used "for" or "to" something is not."""
    found = preferred(match["v"], statement, _USED, generic=False)
    return [f for f in found if f.key in _TOOLS and (f.key != "language" or not _PURPOSE.search(match["v"]))]


def _codes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    names = languages_in(match["v"])
    if not names or names[0].lower() not in vocabulary.PROGRAMMING_LANGUAGES:
        return []
    return fact(PREFERENCE, "language", " and ".join(names), statement, 0.85)


def _switched(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return [f for f in preferred(match["v"], statement, 0.85, generic=False) if f.key in _TOOLS]


def _zone(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = ZONE.match(match["v"])
    return fact(PREFERENCE, "timezone", found[0], statement, 0.9) if found else []


def _in_zone(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(PREFERENCE, "timezone", match["v"], statement, 0.9)


def _my_thing(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = KNOWN_THINGS.get(match["thing"].lower())
    text = match["v"]
    if key is None or text.lower().startswith("not "):
        return []
    if key in {"language", "tone", "style", "units"} and not (
        match.groupdict().get("preferred") or "choice" in match["thing"].lower()
    ):
        return []
    if key == "timezone":
        return fact(PREFERENCE, key, phrase(text, 5), statement, 0.95)
    return fact(PREFERENCE, key, bare(phrase(text, 8)), statement, 0.9)


RULES: tuple[FactRule, ...] = (
    rule(
        "i use/i run/i'm/i work/i develop/i code/i do/i indent/i format",
        r"i(?:'m)? (?:use|run|on|using|indent (?:with|using)|format (?:with|using)|work (?:on|in|with)"
        r"|develop on|code (?:on|with)|do (?:all |most"
        r" of |everything )?(?:my |of my )?(?:coding|development|work|programming|everything) (?:in|on"
        r"|with)) (?P<v>.+)",
        _uses,
    ),
    rule(
        "i'm",
        r"i'm (?:an? )?(?:(?:long-time|die-hard|happy|daily|vs code) )*(?P<v>[\w+# ]{1,20}?) (?:user"
        r"|person|guy|girl|developer|dev|programmer|coder)\b",
        _uses,
    ),
    rule(
        "i code/i program/i write/i develop/i work/i do/i'm",
        r"i(?:'m)? (?:code|program|write(?: code)?|develop|work|do (?:all |most of )?(?:my )?(?:coding"
        r"|programming|development)|an?) (?:(?:everything|(?:all|most of) my \w+|my code|mainly"
        r"|mostly|primarily|exclusively|stuff|code) )*(?:in |with )?(?P<v>.+)",
        _codes,
    ),
    rule(
        "i switched/i've/i moved/i migrated/i changed",
        r"i(?:'ve)? (?:just |recently )?(?:switched|moved|migrated|converted|changed)(?: over)?(?:"
        r" from [\w ]{1,30}?)? to (?P<v>.+)",
        _switched,
    ),
    rule(
        "my",
        r"my (?P<preferred>(?:preferred|default|main|primary|usual|go-to|daily) )(?P<thing>[\w-]+(?:"
        r" [\w-]+)?)(?: is|:| are) (?P<v>.+)",
        _my_thing,
    ),
    rule(
        "my/preferred",
        r"(?:my )?(?P<preferred>preferred )?(?P<thing>[\w-]+(?: [\w-]+){0,2}?)(?: is|:| are) (?P<v>.+)",
        _my_thing,
    ),
    rule("timezone/time", r"(?P<thing>time ?zone)(?: is|:| =) (?P<v>.+)", _my_thing),
    rule(
        "i'm/i live/i work/we're/i operate",
        r"(?:i'm|i (?:live|work|operate)|we're)(?: based)? (?:in|on|at) (?:the )?(?P<v>(?:utc|gmt|cet"
        r"|cest|est|edt|pst|pdt|mst|cst|cdt|bst|ist|jst|aest|eet|(?:eastern|pacific|central|mountain"
        r"|central european)(?: \w+)? time)\b.*?)(?: time ?zone| time)?$",
        _zone,
    ),
    rule(
        "i'm/i live/my",
        r"(?:i'm|i live) (?:in|on) (?:the )?(?P<v>[\w+:/ -]{2,40}) time ?zone",
        _in_zone,
    ),
)
