"""Readers of what users like and prefer, of the tools they work with, and of their time zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from models.events.user import ExtractedFact
from models.language.facts import vocabulary
from models.language.facts.kinds import ANSWERS, FORMAT, KNOWN_THINGS, ZONE, kind_of
from models.language.facts.statements import Statement
from models.language.facts.values import PREFERENCE, Build, Finding, bare, fact, languages_in, phrase, slug, things

_STATED = 0.9
_LIKED = 0.75
_LIKING_IMPORTANCE = 0.5
_HABIT_IMPORTANCE = 0.7
_VAGUE = re.compile(
    r"\b(?:me|us|him|her|them|my|your|our|his|their|each other|myself|yourself|itself|i|you|is|are"
    r"|was|do|does|of|'s)$"
    r"|\b(?:me|us|him|them|my|your|our|his|their|each other|is|are|was|will|i|you) |^(?:being"
    r"|seeing|making|having|getting|spending|talking|supporting"
    r"|trying|expressing|inspiring|improving|knowing|doing|taking|through|like|with|go|just|take"
    r"|have|get|make|try|think|use|see|be|give|spend"
    r"|talk|help|helping|keep|feel|hear|watch|stay|start|work|look)\b(?! tennis)|^to$|^[\W_]",
    re.IGNORECASE,
)
"""Too little said to be a thing one likes."""
_NO_LIKING = re.compile(
    r"(?:it|this|that|these|those|them|him|her|option|version|variant|all (?:the|of|these|those|your|"
    r"my)|answers|replies|you|your|how|when|what|where|the way|the idea|the"
    r" fact|the (?!outdoors|ocean|sea"
    r"|mountains|beach|beatles|office|lord|rain|theat|cold|heat|smell|color|colour|snow|piano"
    r"|guitar|countryside|sound|taste)|my|our|his|its|their"
    r"|to (?:know|see|hear|get|be|have|think|ask|thank|learn about|say|make sure|say|keep|use|do"
    r"|call)\b|being able|something|anything|everything|nothing|one|some|both|all of|if|about|as"
    r"|and|so|an? (?:good|few|lot)"
    r"|such|yours|mine|theirs|like|where|for|not|getting|having|doing|when)\b",
    re.IGNORECASE,
)
_OF_THE_MOMENT = re.compile(
    r"\b(?:this|that|these|those|your|here)\b|\bin the (?:pic|picture|photo|image|painting|video|"
    r"story|design|draft|version|poem|song|scene|background)\b"
    r"|^\w+ing (?:an? |for |that |something|it\b|with |in |up |out |me|people|others|you)",
    re.IGNORECASE,
)
"""Said of what is being looked at, or of no one thing."""
_PAIR = re.compile(
    r"(?:black and white|rock and roll|salt and vinegar|mac and cheese|fish and chips|peanut butter and)\b",
    re.IGNORECASE,
)
_RIVAL = re.compile(
    r"\s+(?:over|to (?=\w+(?:ed|ing)?\b)|than|rather than|instead of|as opposed to|not)\b|,? not ", re.IGNORECASE
)
"""What comes behind is what is liked less."""
_ONE_OF_SEVERAL = re.compile(r"\b(?:ones?|version|option|approach|idea|draft|design|solution|choice)$", re.IGNORECASE)
_MEDIUM = re.compile(
    r"(?:to )?(?:talk|speak|chat|write|communicate|converse|code|program|work|be answered|develop"
    r"|use|using|have|get|receive|read|coding|working|writing|speaking|talking)"
    r"(?:ing)?(?: (?:with|to) (?:you|me))?(?: code)? (?:in |with )?",
    re.IGNORECASE,
)


def preferred(text: str, statement: Statement, confidence: float, *, generic: bool) -> list[ExtractedFact]:
    """What kind of thing is preferred, by its words; a thing of no known kind is just liked, if `generic`."""
    whole = _MEDIUM.sub("", _RIVAL.split(f" {text}")[0].strip())
    said = phrase(whole, 10)
    parts = re.split(r"\s*,\s*(?:and )?|\s+and\s+", said)
    kinds = [kind_of(part, text) for part in parts]
    if not all(kinds) or (kinds[0] and kinds[0][0] == "language"):
        kinds = [kind_of(said, text)]
    if kinds[0] is not None:
        return [
            each for kind in kinds if kind for each in fact(PREFERENCE, *kind, statement, confidence, _HABIT_IMPORTANCE)
        ]
    if not generic or _ONE_OF_SEVERAL.search(said):
        return []
    return _liked(re.sub(r"^the ", "", whole, flags=re.IGNORECASE), statement, "likes", confidence)


def _liked(text: str, statement: Statement, value: str, confidence: float = _LIKED) -> list[ExtractedFact]:
    if _OF_THE_MOMENT.search(text) or _NO_LIKING.match(text):
        return []
    text = re.sub(r"^to (?=\w)", "", text) if value == "likes" else text
    if _NO_LIKING.match(text) or statement.text.endswith(("?", " it")):
        return []
    found: list[ExtractedFact] = []
    cut = re.split(
        r"\s+(?:in (?:the|my|a)|on (?:the|my|weekends|a)|at (?:the|my|home|night)|with (?:my|a|the"
        r"|some)|during|after|before|every|by the|from|about|for|to|more than|over|most|than|along"
        r"|around|near|of all|whenever|at all|in general|with)\b",
        text,
    )[0]
    for thing in [bare(phrase(cut, 9))] if _PAIR.match(cut) else things(cut):
        if _NO_LIKING.match(f"{thing} ") or _VAGUE.search(thing):
            continue
        found += fact(PREFERENCE, thing, value, statement, confidence, _LIKING_IMPORTANCE)
    return found


def _prefers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if (
        re.match(
            r"(?:it|this|that|these|those|the (?:first|second|third|last|former|latter|other|one|blue"
            r"|red)\b|your|not|to (?:see|be|know|get)\b|if|when|his|her|their|option|version|them|him)\b",
            text,
            re.IGNORECASE,
        )
        and not FORMAT.search(text)
        and not ANSWERS.search(text)
    ):
        return []
    return preferred(text, statement, _STATED, generic=not text.lower().startswith("if"))


def _wishes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """As in "I'd prefer", "I like": counts for the kinds of things one prefers, else only as a liking."""
    return preferred(match["v"], statement, 0.8, generic=False)


_MANNERS = frozenset({"response_length", "response_format", "tone", "theme", "coding_style", "units", "timezone"})
"""What one likes so is a preference; a tool or a language may be just a thing one likes."""


def _likes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if re.search(r"\b(?:more|better) than\b", text):
        return preferred(
            re.sub(r"\s+(?:more|better|much more|way more) than\b.*", "", text), statement, 0.8, generic=True
        )
    if bare(phrase(text)).lower() in vocabulary.PROGRAMMING_LANGUAGES:
        return _liked(text, statement, "likes")
    found = preferred(text, statement, 0.8, generic=False)
    if found and found[0].key in _MANNERS:
        return found
    return _liked(text, statement, "likes")


def _dislikes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _liked(match["v"], statement, "dislikes")


def _favourite(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    thing, which = match["thing"].lower(), bare(phrase(match["v"], 6))
    thing = re.sub(
        r"^(?:all-time|absolute|current|new|overall) ",
        "",
        re.sub(r" (?:of all time|ever|right now|by far|of choice)$", "", thing),
    )
    if (
        not which
        or re.match(
            r"(?:when|that|how|what|to\b|not\b|when|where|because|part|thing|so|probably when)", which, re.IGNORECASE
        )
        or thing.split(" ")[0] in {"part", "thing", "things", "way", "bit", "one"}
    ):
        return []
    known = KNOWN_THINGS.get(thing)
    if known in {"language", "editor", "operating_system", "theme"}:
        return fact(PREFERENCE, known, which, statement, 0.9)
    return fact(PREFERENCE, f"favourite_{slug(thing)}", which, statement, 0.9, 0.6)


def _likes_so(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _liked(match["v"], statement, "likes")


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


READERS: Mapping[str, Build] = {
    "prefers": _prefers,
    "wishes": _wishes,
    "likes": _likes,
    "likes_so": _likes_so,
    "dislikes": _dislikes,
    "favourite": _favourite,
    "uses": _uses,
    "codes": _codes,
    "switched": _switched,
    "my_thing": _my_thing,
    "zone": _zone,
}
"""By the name that rows give."""
