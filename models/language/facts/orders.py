"""Readers of standing orders, and of what users take back: "forget my address", "I'm no longer vegetarian"."""

import re
from collections.abc import Iterable

from models.events.user import FactCategory, Retraction
from models.language.facts import vocabulary
from models.language.facts.identity import MY_NOUNS, pet_key
from models.language.facts.preferences import FORMAT, KNOWN_THINGS, LENGTH, TONE, UNIT, tone_of
from models.language.facts.statements import TABLES, Statement
from models.language.facts.values import CONSTRAINT, IDENTITY, INSTRUCTION, PREFERENCE, Finding, fact, named, slug
from models.text.tables import PatternTables, by_word, read_table
from models.text.words import word_set

_PARTNERS = ["partner", *vocabulary.RELATIONSHIPS, *(f"{who}'s_name" for who in vocabulary.RELATIONSHIPS)]
_NOUNS = {
    **{noun: f"identity.{key}" for noun, key in MY_NOUNS.items()},
    **{noun: f"preference.{key}" for noun, key in KNOWN_THINGS.items()},
    **by_word(read_table("nouns")["forgettable"] | {"identity.partner_name": " ".join(_PARTNERS)}),
}
"""From what users call a thing to the category and the key under which it is kept."""
_STYLE_RULES = [(row.pattern, str(row.cells[0])) for row in TABLES["orders"].rows("style")]


def _forget(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return taken_back(match["v"])


def taken_back(noun_phrase: str) -> list[Finding]:
    """What "my address and my phone number" names."""
    found: list[Finding] = []
    for part in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", noun_phrase)[:6]:
        noun = _RE.NAMED_END.sub("", part.strip(" .!\"'").lower())
        noun = re.sub(r"^(?:my|the|where|that|your|all) (?!i )|^(?:about )?my ", "", noun).strip()
        noun = re.sub(r"^(?:old|current|new|previous|saved|stored|exact) ", "", noun)
        noun = re.sub(r"^[\w-]+ (?=diet$)", "", noun)
        if noun in _NOUNS:
            category, _, key = _NOUNS[noun].partition(".")
            found.append(Retraction(category=FactCategory(category), key=key))
        elif allergy := re.match(r"(\w+'s? )?(?:([\w-]+(?: [\w-]+)?) allergy|allerg(?:y|ies) to ([\w ]+))$", noun):
            whose = (allergy[1] or "").strip().removesuffix("'").removesuffix("'s")
            found.append(Retraction(category=CONSTRAINT, key=slug(f"{whose} allergy {allergy[2] or allergy[3]}")))
        elif favourite := re.match(r"favourite ([\w -]+)$", noun):
            found.append(Retraction(category=PREFERENCE, key=f"favourite_{slug(favourite[1])}"))
        elif (kind := noun.removesuffix("'s name")) in vocabulary.PETS:
            found.append(Retraction(category=IDENTITY, key=pet_key(kind)))
    return found


def _rule_dropped(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return rule_named(match.groupdict().get("also") or match["v"])


def rule_named(text: str) -> list[Finding]:
    """The rule about answers that is taken back: "answers in French"."""
    for pattern, key in _STYLE_RULES:
        if pattern.search(text):
            return [Retraction(category=INSTRUCTION, key=key)]
    return []


def _left(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key="employer", value=match["v"])]


def _pet_gone(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key=pet_key(match["kind"]))]


_RE = PatternTables("facts_patterns", words=vocabulary.WORDS).section("orders")

_STANDING = 0.9
_STYLE = 0.65
"""Of an order about answers as such, not said to hold from now on."""
_IMPORTANCE = 0.85
_MAX_RULE_WORDS = 24
_FORBIDDING = re.compile(r"never|don't|stop", re.IGNORECASE)
_ONE_TASK = re.compile(r"(?:write|give me|make|show|explain|list|tell)\b", re.IGNORECASE)
_WANTED = re.compile(r"^i(?:'d like| (?:want|need|expect))(?: you to)? ", re.IGNORECASE)
_MIN_RULE_WORDS = 2
_MAX_KEY_WORDS = 5
_EMOJI = re.compile(r"\bemoji(?:s|es)?\b|\bemoticons?\b|\bsmileys?\b", re.IGNORECASE)
_CITE = re.compile(r"\b(?:cite|citations?|sources?|references)\b", re.IGNORECASE)
_MINOR = word_set(
    "a an the to of in on at for with and or but by as is are be my your me you i it that this when whenever if "
    "please always then any all from so do before after unless without"
)


def _order(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = " ".join(_WANTED.sub("", match[0]).split()[:_MAX_RULE_WORDS]).strip(" .,!\"'")
    standing = statement.standing or bool(_RE.MARKS.search(text))
    if _RE.TALK.match(text) and not statement.standing:
        return []
    if _RE.DONE.match(text) or re.search(r" (?:is|was) an? ", text) or _RE.MOTTO.match(text):
        return []
    known = _of_style(text, statement, standing=standing)
    if known is not None:
        return known
    if standing or (_RE.HABITS.match(text) and not statement.passing):
        return _open(text, statement, _STANDING if standing else _STYLE)
    return []


def _open(text: str, statement: Statement, confidence: float) -> list[Finding]:
    said = " ".join(_RE.STRIPPED.sub(" ", text).split()).strip(" ,.")
    if statement.condition and said:
        said = f"{statement.condition}, {said}"
    words = [
        word for word in slug(said.removeprefix(statement.condition)).split("_") if word not in _MINOR and len(word) > 1
    ]
    if len(said.split()) < _MIN_RULE_WORDS or len(words) < _MIN_RULE_WORDS:
        return []
    return list(fact(INSTRUCTION, "_".join(words[:_MAX_KEY_WORDS]), said, statement, confidence, _IMPORTANCE))


def _of_style(text: str, statement: Statement, *, standing: bool) -> list[Finding] | None:
    """A rule about answers whose key is known; None if it is about something else, empty if it is for once."""
    known = _about(text, never=_RE.NO.match(text) is not None, standing=standing)
    if known is None:
        return None
    of_answers = known[0] != "tone" or re.search(r"\b(?:me|answers?|repl\w+|responses?|tone|style)\b", text)
    if not known[1] or not (standing or (of_answers and not statement.passing and not _RE.ONE_OFF.search(text))):
        return []
    return [*fact(INSTRUCTION, *known, statement, _STANDING if standing else _STYLE, _IMPORTANCE)]


def _about(text: str, *, never: bool, standing: bool) -> tuple[str, str] | None:
    """Key and value of a rule about answers; without a value if nothing is to be kept of it."""
    frequency = "never" if never else "always"
    if _EMOJI.search(text):
        return "emojis", frequency
    if (language := _language_of(text, standing=standing)) is not None:
        return "answer_language", language
    if _RE.COMMENTS.search(text):
        return "code_comments", frequency
    if _CITE.search(text) and standing:
        return None if never else ("citations", frequency)
    if (unit := UNIT.search(text)) and _RE.MEASURING.match(text) and not never and " it " not in text:
        return "units", unit[1]
    return _shape_of(text, never=never, standing=standing)


def _language_of(text: str, *, standing: bool) -> str | None:
    """The language of answers a rule names, empty if it is for one text; None if it is about something else."""
    language = _RE.LANGUAGE.search(text) if _RE.ANSWERING.match(text) and not _FORBIDDING.match(text) else None
    if language is None or "spelling" in text.lower() or _RE.COMMENTS.search(text):
        return None
    return language[1].capitalize() if standing or _RE.IN_LANGUAGE.match(text) else ""


def _shape_of(text: str, *, never: bool, standing: bool) -> tuple[str, str] | None:
    """Length, format and tone of answers."""
    names_answers = _RE.ANSWERS.search(text, max(text.find(" "), 0)) is not None
    if (cap := _RE.CAP.search(text)) and (standing or names_answers):
        return "response_length", cap[1]
    shape, length, tone = FORMAT.search(text), LENGTH.search(text), TONE.search(text)
    if not (names_answers or _RE.MANNER.match(text)) or (not standing and _ONE_TASK.match(text)):
        return None
    if shape:
        return "response_format", f"no {shape[1]}" if never else shape[1]
    if length and not never:
        return "response_length", length[0]
    return ("tone", "" if never else tone_of(tone[0])) if tone else None


READERS = named(_forget, _rule_dropped, _left, _pet_gone, _order)
