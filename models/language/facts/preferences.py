"""Rules for what the user likes and prefers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import ExtractedFact
from models.language.facts import vocabulary
from models.language.facts.kinds import ANSWERS, FORMAT, KNOWN_THINGS, kind_of
from models.language.facts.statements import Statement
from models.language.facts.values import PREFERENCE, FactRule, Finding, bare, fact, phrase, rule, slug, things

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


RULES: tuple[FactRule, ...] = (
    rule(
        "i prefer",
        r"i prefer (?!to be called|being called|you call|that you call|if you call|to go by)(?P<v>.+)",
        _prefers,
    ),
    rule("prefer", r"prefer (?P<v>.+)", _wishes),
    rule("i'd", r"i'd (?:rather|prefer|rather have|prefer to have)(?: to)? (?P<v>.+)", _wishes),
    rule("i favour/i favor", r"i favou?r (?P<v>.+)", _prefers),
    rule(
        "i like/i love/i enjoy/i adore",
        r"i (?:like|love|enjoy|adore) (?:love )*(?!to be called|doing|when|it when)(?P<v>.+)",
        _likes,
    ),
    rule(
        "i like/i love/i enjoy/i adore",
        r"i (?:like|love|enjoy|adore) (?:it when (?:you |answers |replies )?|when you |my |having "
        r"|getting )(?P<v>.+)",
        _wishes,
    ),
    rule(
        "i hate/i dislike/i despise/i loathe/i detest", r"i (?:hate|dislike|despise|loathe|detest) (?P<v>.+)", _dislikes
    ),
    rule("i can't", r"i can't stand (?P<v>.+)", _dislikes),
    rule("i don't", r"i don't (?:like|enjoy|care for) (?P<v>.+)", _dislikes),
    rule(
        "i'm", r"i'm (?:not a (?:big |huge |great )?fan of|not (?:into|fond of|keen on)|no fan of) (?P<v>.+)", _dislikes
    ),
    rule(
        "i'm",
        r"i'm (?:an? )?(?:(?:big|huge|great|massive|lifelong|long-time|die-hard) )*(?:fan of|into|fond"
        r" of|keen on|obsessed with|crazy about|passionate about|in love with|addicted to) (?P<v>.+)",
        lambda m, s: _liked(m["v"], s, "likes"),
    ),
    rule("not", r"not (?:a (?:big |huge )?fan of|keen on|fond of|into) (?P<v>.+)", _dislikes),
    rule("huge/big/massive/fan", r"(?:(?:huge|big|massive) )?fan of (?P<v>.+?)(?: here)?$", _likes),
    rule(
        "my",
        r"my (?:(?:all-time|absolute|new|current) )?favourite (?P<thing>[\w' -]{2,40}?)(?: is| are|:|"
        r" has to be| has always been| will always be|'s)(?: always| still| actually| probably| definitely)? (?P<v>.+)",
        _favourite,
    ),
    rule("favourite", r"favourite (?P<thing>[\w' -]{2,40}?)(?: is|:| are) (?P<v>.+)", _favourite),
    rule(
        "*favourite",
        r"(?P<v>[\w' -]{2,40}?)(?: is| are|'s) my (?:(?:all-time|absolute) )?favourite (?P<thing>[\w'"
        r" -]{2,40})",
        _favourite,
    ),
)
