"""Rules for what the user likes and prefers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.facts import vocabulary
from models.facts.statements import Statement
from models.facts.values import PREFERENCE, Finding, Rule, bare, fact, languages_in, phrase, rule, slug, things

_STATED = 0.9
_USED = 0.75
_LIKED = 0.75
_LIKING_IMPORTANCE = 0.5
_HABIT_IMPORTANCE = 0.7
_NO_LIKING = re.compile(
    r"(?:it|this|that|these|those|them|him|her|you|your|how|when|what|where|the way|the idea|the fact|the (?!outdoors|ocean|sea"
    r"|mountains|beach|beatles|office|lord|rain|theat|cold|heat|smell|color|colour|snow|piano|guitar|countryside|sound|taste)|my|our|his|its|their"
    r"|to (?:know|see|hear|get|be|have|think|ask|thank|learn about|say|make sure|say|keep|use|do|call)\b|being able|something|anything|everything|nothing|one|some|both|all of|if|about|as|and|so|an? (?:good|few|lot)"
    r"|such|like|where|for|not|getting|having|doing|when)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    rf"\b({'|'.join(sorted(vocabulary.UNITS, key=len, reverse=True))})\b", re.IGNORECASE
)
_THEME = re.compile(r"\b(dark|light|solarized|high[- ]contrast|night) (?:mode|themes?)\b", re.IGNORECASE)
_LENGTH = re.compile(rf"\b({'|'.join(sorted(vocabulary.LENGTHS, key=len, reverse=True))})\b", re.IGNORECASE)
_TONE = re.compile(rf"\b({'|'.join(sorted(vocabulary.TONES, key=len, reverse=True))})\b", re.IGNORECASE)
_FORMAT = re.compile(rf"\b({'|'.join(vocabulary.FORMATS)})\b", re.IGNORECASE)
_ANSWERS = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|tone|style|language|messages?|summar(?:y|ies)|feedback|communication)\b",
    re.IGNORECASE,
)
_CODING = re.compile(
    rf"\b(?:{'|'.join(re.escape(word) for word in sorted(vocabulary.CODING_STYLE, key=len, reverse=True))}|type hints?|type annotations"
    r"|functional (?:programming|style|code)|object[- ]oriented|single quotes|double quotes|list comprehensions|early returns|small functions"
    r"|(?:\d|two|four|eight)[- ]spaces?(?: indent\w*)?|composition|line length|static typing|strict typing|descriptive (?:variable )?names|variable names"
    r"|arrow functions|async/await|one-liners|dataclasses|pure functions|guard clauses|indentation|trailing commas|snake case|camel case|test-driven)\b",
    re.IGNORECASE,
)
ZONE = re.compile(
    r"(?:(?:utc|gmt)\s*(?:[+-]\s*\d{1,2}(?::?\d\d)?)?|cest|cet|eest|eet|est|edt|pst|pdt|mst|mdt|cst|cdt|bst|wet|ist|jst|kst|aest|aedt|nzst|hst|akst|sgt|hkt|msk"
    r"|(?:eastern|pacific|central|mountain|atlantic|british|indian|central european|eastern european|east coast|west coast)(?: standard| summer| daylight)?(?: time)?"
    r"|[A-Z][a-z]+/[A-Z][A-Za-z_]+|[A-Z]\w+(?: \w+)? time)",
    re.IGNORECASE,
)


_MEDIUM = re.compile(
    r"(?:to )?(?:talk|speak|chat|write|communicate|converse|code|program|work|be answered|develop|use|using|have|get|receive|read|coding|working|writing|speaking|talking)"
    r"(?:ing)?(?: (?:with|to) (?:you|me))?(?: code)? (?:in |with )?",
    re.IGNORECASE,
)


def preferred(text: str, statement: Statement, confidence: float, *, generic: bool) -> list[Finding]:
    """What kind of thing is preferred, by its words; a thing of no known kind is just liked, if `generic`."""
    whole = re.split(r"\s+(?:over|to (?=\w+(?:ed|ing)?\b)|than|rather than|instead of|as opposed to|not)\b|,? not ", f" {text}")[0].strip()
    whole = _MEDIUM.sub("", whole)
    said = phrase(whole, 10)
    first = bare(said).split(" ")[0].lower().strip("'\"") if said else ""
    if not said:
        return []
    if (zone := ZONE.match(bare(said))) and len(zone[0]) + 6 >= len(bare(said)):
        return list(fact(PREFERENCE, "timezone", zone[0], statement, confidence))
    if (names := languages_in(said)) and not re.match(r"\S+ (?:food|cuisine|music|tea|films?|movies|restaurants|wine|beer|cheese|coffee|dishes|cooking|lessons)", bare(said), re.IGNORECASE):
        return list(fact(PREFERENCE, "language", " and ".join(names), statement, confidence))
    if first in vocabulary.EDITORS or said.lower().startswith(("vs code", "visual studio", "android studio")):
        editor = bare(said) if " " in bare(said) and said.lower().startswith(("vs ", "visual", "android")) else bare(said).split(" ")[0]
        return list(fact(PREFERENCE, "editor", editor, statement, confidence, _HABIT_IMPORTANCE))
    if first in vocabulary.OPERATING_SYSTEMS:
        return list(fact(PREFERENCE, "operating_system", bare(said), statement, confidence, _HABIT_IMPORTANCE))
    parts = re.split(r"\s*,\s*(?:and )?|\s+and\s+", said)
    if len(parts) > 1:
        each = [preferred(part, statement, confidence, generic=False) for part in parts]
        if all(each):
            return [found for several in each for found in several]
    for key, pattern, needed in _KINDS:
        if (found := pattern.search(said)) and (not needed or _ANSWERS.search(text)):
            value = found[1] if pattern in {_UNIT, _THEME} else said if pattern in {_CODING, _FORMAT} else found[1]
            return list(fact(PREFERENCE, key, value, statement, confidence, _HABIT_IMPORTANCE))
    if not generic:
        return []
    return _liked(whole, statement, "likes", confidence)


_KINDS = (
    ("theme", _THEME, False),
    ("response_format", _FORMAT, False),
    ("coding_style", _CODING, False),
    ("units", _UNIT, False),
    ("response_length", _LENGTH, True),
    ("tone", _TONE, True),
)


def _liked(text: str, statement: Statement, value: str, confidence: float = _LIKED) -> list[Finding]:
    text = re.sub(r"^to (?=\w)", "", text) if value == "likes" else text
    if _NO_LIKING.match(text) or statement.text.endswith(("?", " it")):
        return []
    found: list[Finding] = []
    cut = re.split(r"\s+(?:in (?:the|my|a)|on (?:the|my|weekends|a)|at (?:the|my|home|night)|with (?:my|a|the|some)|during|after|before|every|by the|from|about|for|to|more than|over|most|than|along|around|near|of all|whenever)\b", text)[0]
    for thing in things(cut):
        if _NO_LIKING.match(f"{thing} ") or thing.lower().endswith(("'s",)) or not re.match(r"[^\W_]", thing):
            continue
        found += fact(PREFERENCE, thing, value, statement, confidence, _LIKING_IMPORTANCE)
    return found


def _prefers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.match(r"(?:it|this|that|these|those|the (?:first|second|third|last|former|latter|other|one|blue|red)\b|your|not|to (?:see|be|know|get)\b|if|when|his|her|their|option|version|them|him)\b", text, re.IGNORECASE) and not _FORMAT.search(text) and not _ANSWERS.search(text):
        return []
    return preferred(text, statement, _STATED, generic=not text.lower().startswith("if"))


def _wishes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """"I'd prefer", "I like": counts for the kinds of things one prefers, else only as a liking."""
    return preferred(match["v"], statement, 0.8, generic=False)


def _likes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.search(r"\b(?:more|better) than\b", text):
        return preferred(re.sub(r"\s+(?:more|better|much more|way more) than\b.*", "", text), statement, 0.8, generic=True)
    if names := languages_in(text):
        if len(bare(phrase(text)).split()) == 1 and names[0].lower() in vocabulary.PROGRAMMING_LANGUAGES:
            return _liked(text, statement, "likes")
    if found := preferred(text, statement, 0.8, generic=False):
        first = found[0]
        if getattr(first, "key", "") in {"response_length", "response_format", "tone", "theme", "coding_style", "units", "timezone"}:
            return found
    return _liked(text, statement, "likes")


def _dislikes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _liked(match["v"], statement, "dislikes")


def _uses(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """Tools of a known kind that are in daily use."""
    found = preferred(match["v"], statement, _USED, generic=False)
    return [f for f in found if getattr(f, "key", "") in {"editor", "operating_system", "units", "theme", "coding_style", "language", "timezone"} and not (f.key == "language" and re.search(r"\bfor\b|\bto\b", match["v"]))]


def _codes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    names = languages_in(match["v"])
    return fact(PREFERENCE, "language", " and ".join(names), statement, 0.85) if names and names[0].lower() in vocabulary.PROGRAMMING_LANGUAGES else []


def _switched(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = preferred(match["v"], statement, 0.85, generic=False)
    return [f for f in found if getattr(f, "key", "") in {"editor", "operating_system", "language", "theme", "coding_style", "units"}]


def _zone(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = ZONE.match(match["v"])
    if not found:
        return fact(PREFERENCE, "timezone", phrase(match["v"], 4), statement, 0.9) if match.re.pattern.startswith("(?:my") else []
    return fact(PREFERENCE, "timezone", found[0], statement, 0.9)


_KNOWN_THINGS = {
    "language": "language", "programming language": "language", "coding language": "language", "editor": "editor",
    "code editor": "editor", "text editor": "editor", "ide": "editor", "os": "operating_system",
    "operating system": "operating_system", "distro": "operating_system", "units": "units", "unit system": "units",
    "tone": "tone", "theme": "theme", "color theme": "theme", "colour theme": "theme", "timezone": "timezone", "time zone": "timezone",
    "coding style": "coding_style", "response length": "response_length", "response format": "response_format",
    "answer length": "response_length", "format": "response_format", "language of choice": "language",
    "editor of choice": "editor", "style": "coding_style", "code style": "coding_style", "indentation": "coding_style",
}  # fmt: skip
KNOWN_THINGS = _KNOWN_THINGS


def _favourite(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    thing, which = match["thing"].lower(), bare(phrase(match["v"], 6))
    thing = re.sub(r"^(?:all-time|absolute|current|new|overall) ", "", re.sub(r" (?:of all time|ever|right now|by far|of choice)$", "", thing))
    if not which or re.match(r"(?:when|that|how|what|to\b|not\b|when|where|because|part|thing|so|probably when)", which, re.IGNORECASE) or thing.split(" ")[0] in {"part", "thing", "things", "way", "bit", "one"}:
        return []
    known = _KNOWN_THINGS.get(thing)
    if known in {"language", "editor", "operating_system", "theme"}:
        return fact(PREFERENCE, known, which, statement, 0.9)
    return fact(PREFERENCE, f"favourite_{slug(thing)}", which, statement, 0.9, 0.6)


def _my_thing(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = _KNOWN_THINGS.get(match["thing"].lower())
    text = match["v"]
    if key is None or text.lower().startswith("not "):
        return []
    if key in {"language", "tone", "style", "units"} and not match.groupdict().get("preferred"):
        return []
    if key == "timezone":
        return fact(PREFERENCE, key, phrase(text, 5), statement, 0.95)
    return fact(PREFERENCE, key, bare(phrase(text, 8)), statement, 0.9)


RULES: tuple[Rule, ...] = (
    rule("i prefer", r"i prefer (?!to be called|being called|you call|that you call|if you call|to go by)(?P<v>.+)", _prefers),
    rule("prefer", r"prefer (?P<v>.+)", _wishes),
    rule("i'd", r"i'd (?:rather|prefer|rather have|prefer to have)(?: to)? (?P<v>.+)", _wishes),
    rule("i favour/i favor", r"i favou?r (?P<v>.+)", _prefers),
    rule("i like/i love/i enjoy/i adore", r"i (?:like|love|enjoy|adore) (?!to be called|doing|when|it when)(?P<v>.+)", _likes),
    rule("i like/i love/i enjoy/i adore", r"i (?:like|love|enjoy|adore) (?:it when (?:you |answers |replies )?|when you |my |having |getting )(?P<v>.+)", _wishes),
    rule("i hate/i dislike/i despise/i loathe/i detest", r"i (?:hate|dislike|despise|loathe|detest) (?P<v>.+)", _dislikes),
    rule("i can't", r"i can't stand (?P<v>.+)", _dislikes),
    rule("i don't", r"i don't (?:like|enjoy|care for) (?P<v>.+)", _dislikes),
    rule("i'm", r"i'm (?:not a (?:big |huge |great )?fan of|not (?:into|fond of|keen on)|no fan of) (?P<v>.+)", _dislikes),
    rule("i'm", r"i'm (?:an? )?(?:(?:big|huge|great|massive|lifelong|long-time|die-hard) )*(?:fan of|into|fond of|keen on|obsessed with|crazy about|passionate about|in love with|addicted to) (?P<v>.+)", lambda m, s: _liked(m["v"], s, "likes")),
    rule("not", r"not a (?:big |huge )?fan of (?P<v>.+)", _dislikes),
    rule("i use/i run/i'm/i work/i develop/i code/i do", r"i(?:'m)? (?:use|run|on|using|work (?:on|in|with)|develop on|code (?:on|with)|do (?:all |most of |everything )?(?:my |of my )?(?:coding|development|work|programming|everything) (?:in|on|with)) (?P<v>.+)", _uses),
    rule("i code/i program/i write/i develop/i work/i do/i'm", r"i(?:'m)? (?:code|program|write(?: \w+)?(?: code)?|develop|work|do (?:all |most of )?(?:my )?(?:coding|programming|development)|an?) (?:(?:everything|all my code|most of my code|my code|mainly|mostly|primarily|exclusively|stuff|code) )*(?:in |with )?(?P<v>.+)", _codes),
    rule("i switched/i've/i moved/i migrated/i changed", r"i(?:'ve)? (?:just |recently )?(?:switched|moved|migrated|converted|changed)(?: over)?(?: from [\w ]{1,30}?)? to (?P<v>.+)", _switched),
    rule("my", r"my (?:(?:all-time|absolute|new|current) )?favourite (?P<thing>[\w' -]{2,40}?)(?: is| are|:| has to be| will always be|'s)(?: always| still| actually| probably| definitely)? (?P<v>.+)", _favourite),
    rule("favourite", r"favourite (?P<thing>[\w' -]{2,40}?)(?: is|:| are) (?P<v>.+)", _favourite),
    rule("*favourite", r"(?P<v>[\w' -]{2,40}?) (?:is|are) my (?:(?:all-time|absolute) )?favourite (?P<thing>[\w' -]{2,40})", _favourite),
    rule("my", r"my (?P<preferred>(?:preferred|default|main|primary|usual|go-to|daily) )(?P<thing>[\w-]+(?: [\w-]+)?)(?: is|:| are) (?P<v>.+)", _my_thing),
    rule("my/preferred", r"(?:my )?(?P<preferred>preferred )?(?P<thing>[\w-]+(?: [\w-]+){0,2}?)(?: is|:| are) (?P<v>.+)", _my_thing),
    rule("timezone/time", r"(?P<thing>time ?zone)(?: is|:| =) (?P<v>.+)", _my_thing),
    rule("i'm/i live/i work/we're/i operate", r"(?:i'm|i (?:live|work|operate)|we're)(?: based)? (?:in|on|at) (?:the )?(?P<v>(?:utc|gmt|cet|cest|est|edt|pst|pdt|mst|cst|cdt|bst|ist|jst|aest|eet|(?:eastern|pacific|central|mountain|central european)(?: \w+)? time)\b.*?)(?: time ?zone| time)?$", _zone),
    rule("i'm/i live/my", r"(?:i'm|i live) (?:in|on) (?:the )?(?P<v>[\w+:/ -]{2,40}) time ?zone", lambda m, s: fact(PREFERENCE, "timezone", m["v"], s, 0.9)),
)  # fmt: skip
