"""Sentences of a turn that tell of an episode (project memory, Layer 4), by the table `narrative`.

| kind | says so | near misses, which are none |
|---|---|---|
| pivot | "we decided to switch from X to Y", "we changed our minds" | "should we switch?", "it went from 9 s to 8" |
| breakthrough | "this is huge", "it clicked", "what a breakthrough" | "we need a breakthrough" |
| problem solved | "the bug is fixed", "it works now", "no more crashes" | "it's not solved", "once it is fixed" |
| decision made | "we decided to use X", "we'll go with X" | "we haven't decided", "what if we chose X" |
| task completed | "the import is finished", "we launched" | "almost done", "has to be live by May" |
| issue identified | "there is a bug", "the pods keep crashing" | "no problem", "if it fails" |
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from models.events.base import Role
from models.events.project_items import EpisodeKind
from models.language.facts.attribution import own_words, plain
from models.language.retelling import led_off
from models.language.tables import Tables
from models.text.patterns import QUESTION_OPENING
from models.text.summary import ends_of
from models.text.words import fold_text, words_of

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]*")
_MOST_WORDS = 60
_LONG_CHARS = 60
_SUPPOSED = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|assuming|hypothetical\w*|whether|in case|wonder\w*|i wish|would have"
    r"|could have|let's say|as soon as|once|until|when|before|after we|what about|how about|where|let me know)\b"
)
_OF_OTHERS = re.compile(
    r"^(?:he|she|they|my (?:boss|friend|colleague|manager|neighbou?r)|someone|somebody|people|a friend) "
    r"(?:says?|said|thinks?|thought|told|claims?|claimed|suggest(?:s|ed)?)\b"
)
_ASKED_FOR = re.compile(
    r"^(?:please |can you |just )*(?:tell|show|list|remind|summari[sz]e|recap|give|explain|write)\b"
)
_TOLD_BEFORE = re.compile(
    r"\b(?:earlier|previously|remember|as (?:i|we|you) (?:said|decided|agreed)|years? ago|last year|back then"
    r"|in (?:19|20)\d\d|used to)\b"
)
_NEGATED = re.compile(r"\b(?:not|never|no|nobody|nothing|none|without|hardly|barely|neither|nor)\b|n't\b")
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|might|may|could|should|would|must|can|probably|possibly|hopefully|to be|be|almost|nearly|half"
    r"|need(?:s|ed)?|want(?:s|ed)?|hope|hoping|try(?:ing)?|plan(?:s|ning)?|wait(?:s|ing)?|thinking (?:of|about)"
    r"|considering|not sure|i guess|supposed|still)\b"
)
_WILL = re.compile(r"\b(?:will|won't|going to|gonna|shall)\b|'ll\b")
_CLAUSE = re.compile(r"[,;:(!]|\b(?:and|but|so|because|since|then)\b")
_MAY_LIE_AHEAD = (EpisodeKind.DECISION_MADE, EpisodeKind.PIVOT)


class NarrativeRule(Struct, frozen=True):
    """A sentence that matches tells of an episode. Of several rules the first counts.

    Attributes:
        kind: Of which.
        gain: What such a wording adds to the kind's significance.
        by_assistant: Whether it counts when an assistant says so.
        pattern: Searched in the sentence, folded and without what leads into it.
    """

    kind: EpisodeKind
    gain: float
    by_assistant: bool
    pattern: re.Pattern[str]


_TABLES = Tables("narrative")
RULES = [
    NarrativeRule(EpisodeKind(kind), gain, by_assistant, row.pattern)
    for row in _TABLES.rows("rules")
    for kind, gain, by_assistant in (row.cells,)
]
KINDS = tuple(dict.fromkeys(rule.kind for rule in RULES))
"""In the order in which they count."""
TROUBLE = _TABLES.piece("TROUBLE")
_DENIES_ITSELF = re.compile(
    rf"\bno (?:longer|more)\b|\b(?:doesn't|does not|don't|won't|cannot|can't|could not|couldn't)\b|{TROUBLE}$"
)
_NO_TROUBLE = re.compile(
    rf"\b(?:no|not an?|not the|without(?: any)?|any|n't an?) (?:\w+ )?{TROUBLE}\b"
    r"|\b(?:nobody|no one|none|never|didn't|haven't|hasn't)\b"
)


class NarrativeSentence(Struct, frozen=True):
    """A sentence, as it was written, that tells of an episode."""

    kind: EpisodeKind
    gain: float
    sentence: str


def tellings(content: str, role: Role) -> list[NarrativeSentence]:
    """Sentences of a turn that tell of an episode, one for each kind, the weightiest; in order of the table above.

    Questions, suppositions, negations, hearsay, pasted text and what lies ahead or long ago tell of none.

    >>> [(each.kind.value, each.sentence) for each in tellings("Good. We decided to use SQLite.", Role.USER)]
    [('decision_made', 'We decided to use SQLite.')]
    >>> tellings("Did that fix it? It is not fixed. Should we choose X?", Role.USER)
    []
    """
    found: dict[EpisodeKind, NarrativeSentence] = {}
    for sentence in own_sentences(content, role):
        narrative = _classified(sentence, role)
        if narrative is not None and (
            narrative.kind not in found or _weight(narrative) > _weight(found[narrative.kind])
        ):
            found[narrative.kind] = narrative
    return [found[kind] for kind in KINDS if kind in found]


def own_sentences(content: str, role: Role) -> Iterator[str]:
    """What somebody says themselves, sentence by sentence, without questions and pasted text."""
    content = plain(ends_of(content))
    if role is Role.USER or "```" in content:
        content = own_words(content, set(words_of(content.lower())))
    for sentence in _SENTENCE.findall(content):
        said = " ".join(sentence.split()).strip(" -*>#")
        if said and said[-1] != "?" and len(said.split()) <= _MOST_WORDS:
            yield said


def _weight(narrative: NarrativeSentence) -> tuple[float, int]:
    """Of two sentences the longer says more than "Fixed!"."""
    return narrative.gain, min(len(narrative.sentence), _LONG_CHARS)


def _classified(sentence: str, role: Role) -> NarrativeSentence | None:
    folded = fold_text(led_off(sentence)).strip(" .")
    asked = QUESTION_OPENING.match(folded) or _ASKED_FOR.match(folded)
    if asked or _OF_OTHERS.match(folded) or _TOLD_BEFORE.search(folded):
        return None
    for rule in RULES:
        if role is Role.ASSISTANT and not rule.by_assistant:
            continue
        match = rule.pattern.search(folded)
        if match is not None:
            return NarrativeSentence(rule.kind, rule.gain, sentence) if _stands(folded, match, rule.kind) else None
    return None


def _stands(folded: str, match: re.Match[str], kind: EpisodeKind) -> bool:
    """Whether what was found is said to be so."""
    if _SUPPOSED.search(folded, 0, match.start()) or _SUPPOSED.match(match.group().lstrip(" ,;:(!")):
        return False
    clause = max((each.end() for each in _CLAUSE.finditer(folded, 0, match.start() + 1)), default=0)
    said = folded[min(clause, match.start()) : match.end()]
    if kind not in _MAY_LIE_AHEAD and _WILL.search(said):
        return False
    if kind is EpisodeKind.ISSUE_IDENTIFIED:
        return _NO_TROUBLE.search(said) is None and _HEDGED.search(said.replace("still", "")) is None
    denied = _NEGATED.search(_DENIES_ITSELF.sub("", said) if kind is EpisodeKind.PROBLEM_SOLVED else said)
    return denied is None and _HEDGED.search(said) is None
