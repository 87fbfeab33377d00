"""Readers of what users like and prefer, of the tools they work with, and of their time zone."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from models.events.user import ExtractedFact
from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import PREFERENCE, Finding, bare, fact, languages_in, named, phrase, slug, things
from models.text.tables import PatternTables, any_of, by_word, read_table

_RE = PatternTables("facts_patterns").section("preferences")

THEME = re.compile(r"\b(dark|light|solarized|high[- ]contrast|night) (?:mode|themes?)\b", re.IGNORECASE)
UNIT, LENGTH, TONE, FORMAT = (
    re.compile(rf"\b({any_of(words)})\b", re.IGNORECASE)
    for words in (vocabulary.UNITS, vocabulary.LENGTHS, vocabulary.TONES, vocabulary.FORMATS)
)
_EDITOR = re.compile(r"(?:vs ?code|visual studio(?: code)?|android studio)\b", re.IGNORECASE)
KNOWN_THINGS = by_word(read_table("nouns")["things"])
"""What "my editor" or "my preferred editor" is about → key."""
_SLACK_CHARS = 6
"""So much may follow a time zone's name: " time"."""


def tone_of(word: str) -> str:
    """The tone a word asks for: "formally" asks for formal.

    >>> tone_of("Formally"), tone_of("friendly")
    ('formal', 'friendly')
    """
    tone = word.lower()
    return tone.removesuffix("ly") if tone.removesuffix("ly") in vocabulary.TONES else tone


def kind_of(said: str, about: str) -> tuple[str, str] | None:
    """Key and value of a preference, None for things of no known kind.

    Args:
        said: What is preferred.
        about: All that was said: some kinds only count of answers.
    """
    thing = bare(said)
    if (zone := _RE.ZONE.match(thing)) and len(zone[0]) + _SLACK_CHARS >= len(thing):
        return "timezone", zone[0]
    if names := languages_in(said, alone=True):
        return "language", " and ".join(names)
    if tool := _tool_of(thing):
        return tool
    if _RE.CODING.search(said) or _RE.CODING_ALONE.search(about):
        return "coding_style", said
    of_answers = _RE.ANSWERS.search(about) is not None
    for key, pattern, whole, alone in _KINDS:
        if (found := pattern.search(said)) and (of_answers or (alone and _is_all(found, said))):
            return key, said if whole else found[1]
    return None


def _tool_of(thing: str) -> tuple[str, str] | None:
    name = thing.partition(" ")[0]
    first = name.lower().strip("'\"") if _RE.BEHIND_NAME.match(thing, len(name)) else ""
    if (editor := _EDITOR.match(thing)) or first in vocabulary.EDITORS:
        return "editor", editor[0] if editor else name
    return ("operating_system", thing) if first in vocabulary.OPERATING_SYSTEMS else None


def _is_all(found: re.Match[str], said: str) -> bool:
    """Whether nothing is said but this: "tables", not "wooden tables"."""
    before = _RE.BEFORE_MANNER.fullmatch(said, 0, found.start())
    return before is not None and _RE.BEHIND_NAME.match(said, found.end()) is not None


_KINDS = (
    ("theme", THEME, False, True),
    ("response_format", FORMAT, True, True),
    ("units", UNIT, False, True),
    ("response_length", LENGTH, False, False),
    ("tone", TONE, False, False),
)
"""Key, pattern, whether all that was said is the value, whether it also counts where nothing speaks of answers."""


_STATED = 0.9
_LIKED = 0.75
_LIKING_IMPORTANCE = 0.5
_HABIT_IMPORTANCE = 0.7
_ONE_OF_SEVERAL = re.compile(r"\b(?:ones?|version|option|approach|idea|draft|design|solution|choice)$", re.IGNORECASE)


def preferred(text: str, statement: Statement, confidence: float, *, generic: bool) -> list[ExtractedFact]:
    """What kind of thing is preferred, by its words; a thing of no known kind is just liked, if `generic`."""
    whole = _RE.MEDIUM.sub("", _RE.RIVAL.split(f" {text}")[0].strip())
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
    when, behind = _RE.QUALIFIER.search(text), _RE.QUALIFIER.search(whole)
    thing = re.sub(r"^the ", "", whole[: behind.start("q")] if behind else whole, flags=re.IGNORECASE)
    liked = _liked(thing, statement, "likes", confidence)
    limited = when is not None and not when["q"].startswith(whole)
    return [replace(each, value=_qualified(when)) if when and limited else each for each in liked]


def _qualified(when: re.Match[str]) -> str:
    """What limits a liking, without what is liked: "after 2pm on weekdays"."""
    first, _, rest = _RE.NEXT_THING.split(when["q"])[0].partition(" ")
    return f"{first} {phrase(rest, 12)}"


def _liked(text: str, statement: Statement, value: str, confidence: float = _LIKED) -> list[ExtractedFact]:
    if _RE.OF_THE_MOMENT.search(text) or _RE.NO_LIKING.match(text):
        return []
    text = re.sub(r"^to (?=\w)", "", text) if value == "likes" else text
    if _RE.NO_LIKING.match(text) or statement.text.endswith(("?", " it")):
        return []
    if (when := _RE.QUALIFIER.search(text)) and _RE.AT_A_TIME.search(when["q"]):
        value, text = f"{value} {_qualified(when)}", text[: when.start("q")]
    found: list[ExtractedFact] = []
    for thing in things(_RE.LIKED_END.split(text)[0]):
        if not (_RE.NO_LIKING.match(f"{thing} ") or _RE.VAGUE.search(thing)):
            found += fact(PREFERENCE, thing, value, statement, confidence, _LIKING_IMPORTANCE)
    return found


def _prefers(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = match["v"]
    if _RE.NOT_PREFERRED.match(text) and not FORMAT.search(text) and not _RE.ANSWERS.search(text):
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
        more = re.sub(r"\s+(?:more|better|much more|way more) than\b.*", "", text)
        return preferred(more, statement, 0.8, generic=True)
    found = preferred(text, statement, 0.8, generic=False)
    tool = bare(phrase(text)).lower() in vocabulary.PROGRAMMING_LANGUAGES
    return found if found and found[0].key in _MANNERS and not tool else _liked(text, statement, "likes")


def _likes_so(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _liked(match["v"], statement, "likes")


def _dislikes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return _liked(match["v"], statement, "dislikes")


def _favourite(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    thing, which = match["thing"].lower(), bare(phrase(match["v"], 6))
    thing = re.sub(r" (?:of all time|ever|right now|by far|of choice)$", "", thing)
    thing = re.sub(r"^(?:all-time|absolute|current|new|overall) ", "", thing)
    vague = thing.split(" ")[0] in {"part", "thing", "things", "way", "bit", "one"}
    if vague or not which or _RE.NO_FAVOURITE.match(which):
        return []
    known = KNOWN_THINGS.get(thing)
    if known in {"language", "editor", "operating_system", "theme"}:
        return fact(PREFERENCE, known, which, statement, 0.9)
    return fact(PREFERENCE, f"favourite_{slug(thing)}", which, statement, 0.9, 0.6)


_USED = 0.75
_PURPOSE = re.compile(r"\b(?:for|to)\b")
_TOOLS = frozenset({"editor", "operating_system", "units", "theme", "coding_style", "language", "timezone"})


def _uses(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """Tools of a known kind that are in daily use; a language that is used "for" or "to" something is not."""
    found = preferred(match["v"], statement, _USED, generic=False)
    return [f for f in found if f.key in _TOOLS and (f.key != "language" or not _PURPOSE.search(match["v"]))]


def _codes(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    names = languages_in(match["v"])
    known = names and names[0].lower() in vocabulary.PROGRAMMING_LANGUAGES
    return fact(PREFERENCE, "language", " and ".join(names), statement, 0.85) if known else []


def _switched(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return [f for f in preferred(match["v"], statement, 0.85, generic=False) if f.key in _TOOLS]


def _zone(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = _RE.ZONE.match(match["v"])
    return fact(PREFERENCE, "timezone", found[0], statement, 0.9) if found else []


def _my_thing(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    key = KNOWN_THINGS.get(match["thing"].lower())
    text = match["v"]
    if key is None or text.lower().startswith("not "):
        return []
    chosen = match.groupdict().get("preferred") or "choice" in match["thing"].lower()
    if key in {"language", "tone", "style", "units"} and not chosen:
        return []
    if key == "timezone":
        return fact(PREFERENCE, key, phrase(text, 5), statement, 0.95)
    return fact(PREFERENCE, key, bare(phrase(text, 8)), statement, 0.9)


_OF_LIKINGS = named(_prefers, _wishes, _likes, _likes_so, _dislikes, _favourite)
READERS = _OF_LIKINGS | named(_uses, _codes, _switched, _my_thing, _zone)
