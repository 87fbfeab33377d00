"""Subjects, categories and tags of statements, by the technologies that they name and which of them were chosen.

A subject is a slot ("database"), or a slot for a purpose ("language for cli"): two decisions of one subject are rivals,
and the newer retires the older. So a subject is given only where the wording leaves no doubt:

| wording | subject |
|---|---|
| a technology is what was chosen | its slot |
| … for, or as, what names that slot, the backend, or the project as a whole | that slot |
| … for what another slot can be filled for: Redis for the queue | the other slot |
| … for, or to build, something else | the slot, and for what |
| two technologies of different slots were chosen | none |
| a refusal ("we decided against MongoDB") | none: it must not retire what stands in that slot |
| a number for something that is measured | see `measure_of`; a date, a sum, a place: `matters` |
| anything else | none |

A slot is what one technology takes the place of another in: two databases are rivals, a database and a cache are not.
Names that are ordinary words too ("go", "rest", "express") count only where something is chosen, as all names do.
Technologies, nouns of slots and words of categories are those of `data/technologies.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from models.events.project_items import MemoryType
from models.text.tables import PatternTables, read_table
from models.text.words import word_set

_GROUPS: dict[str, dict[str, str]] = read_table("technologies")


def _entries(groups: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """From a name as it is written to its slot and its fixed form."""
    entries = {}
    for slot, names in groups.items():
        for entry in names.split():
            name, _, fixed = entry.replace("_", " ").partition("=")
            entries[name] = (slot, fixed or name)
    return entries


TECHNOLOGIES: Mapping[str, tuple[str, str]] = _entries(_GROUPS["slots"])
"""From a name, folded, to its slot and its fixed form: `postgres` is (`database`, `postgresql`)."""
SLOTS: Mapping[str, str] = {name: slot for name, (slot, _) in _entries(_GROUPS["nouns"]).items()}
"""From a noun, folded, to the slot that it names."""
CATEGORIES_OF_SLOTS: Mapping[str, str] = {
    slot: category for category, slots in _GROUPS["category_of_slots"].items() for slot in slots.split("|")
}
CATEGORIES: Mapping[str, str] = {
    word: category for category, words in reversed(_GROUPS["words_of_categories"].items()) for word in words.split()
}
"""From a word, folded, to what it speaks of; of a word in two, the one named first counts."""
AMBIGUOUS = frozenset({"go", "rest", "express", "spring", "render", "swift", "spaces", "tabs", "gin", "phoenix"})
"""Names that are tags only where they were chosen."""
PURPOSES = frozenset(
    slot.replace("_", " ")
    for slot in word_set(
        "database vector_database cache message_queue search_engine monitoring auth_method state_management"
    )
)
"""Slots that a technology of another one can fill: a database serves as a queue, a cache as a database."""

_RE = PatternTables("statements_patterns").section("subjects")

_QUANTITY = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b")
_DUE = re.compile(r"\b(?:finished|ready|done|delivered|completed?|live|released) (?:by|before|on|until) ")
_PORT = re.compile(r"(?:(?:the|our) )*(?P<what>[\w -]{2,30}?) (?:runs?|listens?)(?: locally)? on port \d")
_ALWAYS_ONE = ("test coverage", "uptime", "availability")
"""Measures of which a project has one."""
_NOBODY = word_set("we i it users you they")


def measure_of(lower: str, type_: MemoryType) -> str:
    """What a constraint, goal or fact measures; empty where it is not plain.

    >>> measure_of("the search api must respond within 200 ms", MemoryType.CONSTRAINT)
    'search api latency'
    >>> measure_of("we are 5", MemoryType.FACT)
    ''
    """
    if type_ is MemoryType.FACT and (named := _of_fact(lower)):
        return named
    if not _QUANTITY.search(lower):
        return ""
    if type_ is MemoryType.CONSTRAINT and (bound := _of_constraint(lower)):
        return bound
    return next((measure for measure in _ALWAYS_ONE if measure in lower), "")


def _of_fact(lower: str) -> str:
    if port := _PORT.match(lower):
        return f"{port['what']} port"
    if _RE.TEAM_SIZE.match(lower):
        return "team size"
    lasts = _RE.LASTS.match(lower)
    what = "" if lasts is None or lasts["what"].split()[0] in _NOBODY else lasts["what"].removesuffix("s")
    return f"{what} duration" if what else ""


def _of_constraint(lower: str) -> str:
    bound = _RE.BOUND.match(lower)
    if bound is None or bound["what"].split()[0] in _NOBODY:
        return ""
    if _RE.RESPONSE.search(lower):
        return f"{bound['what']} latency"
    return f"{bound['what']} deadline" if _DUE.search(lower) else ""


MAX_TAGS = 6
MAX_SUBJECT_CHARS = 80
REJECTED, PIVOT = "rejected", "pivot"
"""Tags of decisions: against something, and in the place of an earlier one."""
_SHORTEST_TAG = 3
_END = r"(?!(?:in|on|from|and|because|with|instead|over|so|of|since|to|we|i|for|as|here|now|then|too|going)\b)"
_FOR = re.compile(rf"\b(?:for|as) (?:(?:the|our|a|an|my|all|whole|entire) )*(?P<what>[\w/-]+(?: {_END}[\w/-]+){{0,2}})")
_OF_NO_WEIGHT = re.compile(r"^(?:whole|entire|complete|new|public) (?=\w+$)| (?:layer|part|side)$")
_ANY_PURPOSE = PatternTables("words").word_set("ANY_PURPOSE")
_DEPLOYED = frozenset({"deployment target", "orchestration", "container runtime"})
_DEPLOYMENT = re.compile(r"\bdeploy(?:s|ed|ing|ments?)?\b")
"""Where a project runs takes the place of where it ran, be it a cloud, a cluster or a container."""
_LEFT = re.compile(r"\b(?:switch|chang|mov|migrat)\w* (?:the |our )(?P<what>[\w-]+(?: [\w-]+)?) from\b")
_ROLE = re.compile(r"\b(?:our|the) (?:main |primary )?(?P<what>[\w-]+(?: [\w-]+)?)")
Word = tuple[str, int]
"""A word, folded, and where it begins."""

_WORD = re.compile(r"[a-z0-9](?:[\w+#/'-]|\.(?=\w))*")
_BARE = re.compile(r"\b(?:in|at|on|to|by|is|are|with) (?:the |a |an |our )?$")
_JOINED = (" and ", " or ", ", ")


class StatementSubject(NamedTuple):
    """What a statement is about."""

    subject: str
    category: str
    tags: list[str]


def about(lower: str, type_: MemoryType, *, opener: str = "") -> StatementSubject:
    """Subject, category and tags of a clause.

    Args:
        lower: The clause, folded.
        type_: What it says.
        opener: What led into it: "scrap that" marks a change.

    >>> about("we decided to use postgresql", MemoryType.DECISION)
    StatementSubject(subject='database', category='database', tags=['postgresql', 'database'])
    >>> about("we decided to add an index in postgresql", MemoryType.DECISION).subject
    ''
    """
    positions = positions_of(lower)
    words = [word for word, _ in positions]
    named = technologies_in(lower, positions)
    refusal = type_ in {MemoryType.DECISION, MemoryType.PREFERENCE} and _RE.REFUSAL.search(lower) is not None
    subject = "" if refusal else _subject(lower, type_, named)
    slot = subject.partition(" for ")[0]
    tagged = [each for each in named if each.chosen or each.name not in AMBIGUOUS]
    tags = dict.fromkeys([each.name for each in tagged] + ([slot] if slot else []))
    if type_ is MemoryType.DECISION:
        marks = {PIVOT: _RE.CHANGE.search(opener + lower) is not None, REJECTED: refusal}
        tags |= dict.fromkeys(mark for mark, holds in marks.items() if holds)
    tags |= dict.fromkeys(word for word in words if word in CATEGORIES and len(word) >= _SHORTEST_TAG)
    slots = [slot, *(each.slot for each in tagged)]
    of_slots = (CATEGORIES_OF_SLOTS[each] for each in slots if each in CATEGORIES_OF_SLOTS)
    category = next(of_slots, "") or next((CATEGORIES[word] for word in words if word in CATEGORIES), "")
    return StatementSubject(subject[:MAX_SUBJECT_CHARS], category, list(tags)[:MAX_TAGS])


def _subject(lower: str, type_: MemoryType, named: list[Named]) -> str:
    if type_ in {MemoryType.DECISION, MemoryType.PREFERENCE}:
        chosen = [each for each in named if each.chosen]
        return _slot_filled(lower, chosen) if chosen else _slot_left(lower, named)
    if type_ in {MemoryType.CONSTRAINT, MemoryType.GOAL, MemoryType.FACT}:
        return measure_of(lower, type_)
    role = _ROLE.search(lower) if type_ is MemoryType.ENTITY else None
    if role is None or len({each.slot for each in named}) != 1:
        return ""
    known = role["what"] in SLOTS or role["what"].partition(" ")[0] in SLOTS
    return named[0].slot if known or "tool" in role["what"] else ""


def _slot_filled(lower: str, chosen: list[Named]) -> str:
    """The slot that the chosen technologies fill, and for what if not for the project as a whole."""
    if len({each.slot for each in chosen}) > 1:
        return ""
    slot = chosen[0].slot
    if slot in _DEPLOYED and _DEPLOYMENT.search(lower):
        return "deployment target"
    purpose = _purpose(lower, chosen[0])
    words = purpose.split()
    if not words or words[0] in _ANY_PURPOSE or words[-1] in _ANY_PURPOSE:
        return slot
    other = SLOTS.get(purpose, "")
    if other == slot or (other == "backend framework" and slot != "language"):
        return slot
    return other if other in PURPOSES and slot != "language" else f"{slot} for {purpose}"


def _slot_left(lower: str, named: list[Named]) -> str:
    """The slot that a known technology leaves: "switch the deployment from Kubernetes to a single server"."""
    left = _LEFT.search(lower)
    slot = "" if left is None else SLOTS.get(left["what"], "")
    slots = {each.slot for each in named}
    return slot if slot in slots or (slot in _DEPLOYED and not slots.isdisjoint(_DEPLOYED)) else ""


def _purpose(lower: str, chosen: Named) -> str:
    found = _RE.MADE.search(lower, 0, chosen.start) or _FOR.search(lower, chosen.end) or _RE.FOR_AHEAD.match(lower)
    return "" if found is None else _OF_NO_WEIGHT.sub("", found["what"]).strip()


class Named(NamedTuple):
    """A technology that a clause names: its fixed form, its slot, where it stands, whether it was chosen."""

    name: str
    slot: str
    start: int
    end: int
    chosen: bool


def positions_of(lower: str) -> list[Word]:
    """Words of a clause with their places; "node.js", "c++" and "ci/cd" are one each."""
    return [(match[0].rstrip("/'-"), match.start()) for match in _WORD.finditer(lower)]


def technologies_in(lower: str, words: list[Word]) -> list[Named]:
    """Technologies that a folded clause of these words names, in order.

    >>> clause = "we replace mysql with postgres"
    >>> [(each.name, each.chosen) for each in technologies_in(clause, positions_of(clause))]
    [('mysql', False), ('postgresql', True)]
    """
    found: list[Named] = []
    end = 0
    for (word, start), (following, _) in zip(words, [*words[1:], ("", 0)], strict=False):
        pair = f"{word} {following}"
        name = pair if pair in TECHNOLOGIES else word
        if name not in TECHNOLOGIES or start < end:
            continue
        slot, fixed = TECHNOLOGIES[name]
        before, end = lower[:start], start + len(name)
        joined = bool(found) and found[-1].chosen and before.endswith(_JOINED) and found[-1].end > start - len(" and  ")
        found.append(Named(fixed, slot, start, end, joined or _is_choice(before)))
    return found


def _is_choice(before: str) -> bool:
    """Whether what stands before says that what follows was chosen."""
    if _RE.REFUSED.search(before) or not _RE.CHOSEN.search(before):
        return False
    return _BARE.search(before) is None or _RE.LED.search(before) is not None
