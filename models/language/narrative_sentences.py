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

import re
from collections.abc import Iterator
from math import prod, sqrt

from msgspec import Struct

from models.events.base import Role
from models.events.project_items import EpisodeKind
from models.language.facts.statements import own_words, plain
from models.language.retelling import led_off
from models.text.features import QUESTION_OPENING
from models.text.summary import SENTENCE, ends_of
from models.text.tables import PatternTables, by_word, read_table
from models.text.words import fold_text, word_set, words_of

_RE = PatternTables("statements_patterns").section("narrative_sentences")

_MOST_WORDS = 60
_LONG_CHARS = 60
_NEGATED = re.compile(r"\b(?:not|never|no|nobody|nothing|none|without|hardly|barely|neither|nor)\b|n't\b")
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


_TABLES = PatternTables("narrative")
RULES = [
    NarrativeRule(EpisodeKind(row.cells[0]), row.cells[1], row.cells[2], row.pattern) for row in _TABLES.rows("rules")
]
KINDS = tuple(dict.fromkeys(rule.kind for rule in RULES))
"""In the order in which they count."""
_NO_TROUBLE = _TABLES.pattern("NO_TROUBLE")
_DENIES_ITSELF = _TABLES.pattern("DENIES_ITSELF")


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
    told = [each for sentence in own_sentences(content, role) if (each := _classified(sentence, role))]
    of_kinds = ([each for each in told if each.kind is kind] for kind in KINDS)
    return [max(of_kind, key=_weight) for of_kind in of_kinds if of_kind]


def own_sentences(content: str, role: Role) -> Iterator[str]:
    """What somebody says themselves, sentence by sentence, without questions and pasted text."""
    content = plain(ends_of(content))
    if role is Role.USER or "```" in content:
        content = own_words(content, set(words_of(content.lower())))
    for sentence in SENTENCE.findall(content):
        said = " ".join(sentence.split()).strip(" -*>#")
        if said and said[-1] != "?" and len(said.split()) <= _MOST_WORDS:
            yield said


def _weight(narrative: NarrativeSentence) -> tuple[float, int]:
    """Of two sentences the longer says more than "Fixed!"."""
    return narrative.gain, min(len(narrative.sentence), _LONG_CHARS)


def _classified(sentence: str, role: Role) -> NarrativeSentence | None:
    folded = fold_text(led_off(sentence)).strip(" .")
    asked = QUESTION_OPENING.match(folded) or _RE.ASKED_FOR.match(folded)
    if asked or _RE.OF_OTHERS.match(folded) or _RE.TOLD_BEFORE.search(folded):
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
    if _RE.SUPPOSED.search(folded, 0, match.start()) or _RE.SUPPOSED.match(match.group().lstrip(" ,;:(!")):
        return False
    clause = max((each.end() for each in _CLAUSE.finditer(folded, 0, match.start() + 1)), default=0)
    said = folded[min(clause, match.start()) : match.end()]
    if kind not in _MAY_LIE_AHEAD and _WILL.search(said):
        return False
    if kind is EpisodeKind.ISSUE_IDENTIFIED:
        return _NO_TROUBLE.search(said) is None and _RE.HEDGED.search(said.replace("still", "")) is None
    denied = _NEGATED.search(_DENIES_ITSELF.sub("", said) if kind is EpisodeKind.PROBLEM_SOLVED else said)
    return denied is None and _RE.HEDGED.search(said) is None


_NORMALISED = 15.0
_TURNED_ROUND = -0.74
_EXCLAIMED, _MOST_EXCLAIMED = 0.29, 4
_REACH = 3
"""VADER's numbers, and so many words an intensifier or a negation reaches."""
_VALENCE = read_table("valence")
_LEXICON, _INTENSIFIERS = (
    {word: float(weight) for word, weight in by_word(_VALENCE[of]).items()} for of in ("strengths", "intensifiers")
)
_NEGATIONS = word_set("not no never nobody nothing none without hardly neither nor cannot")
_OVER = word_set("solved fixed resolved gone")
"""What they stand beside is bad no longer: "the problem is solved" is good."""


def valence(content: str) -> float:
    """Emotional valence of a text, −1 to 1, three decimals.

    >>> valence("This is great!"), valence("This is not great."), valence("The table has two columns.")
    (0.57, -0.417, 0.0)
    >>> valence("The problem is finally solved.") > 0 > valence("It is a very serious problem.")
    True
    """
    folded = fold_text(content)
    words = words_of(folded)
    over = not _OVER.isdisjoint(words)
    sum_ = sum(_strength(words, place, over=over) for place in range(len(words)))
    if sum_:
        sum_ += _EXCLAIMED * min(folded.count("!"), _MOST_EXCLAIMED) * (1 if sum_ > 0 else -1)
    return round(sum_ / sqrt(sum_ * sum_ + _NORMALISED), 3)


def _strength(words: list[str], place: int, *, over: bool) -> float:
    strength = _LEXICON.get(words[place], 0.0)
    if not strength:
        return 0.0
    before = words[max(0, place - _REACH) : place]
    denied = any(word in _NEGATIONS or word.endswith("n't") for word in before)
    if strength < 0 and over and not denied:
        return 0.0
    return strength * prod(_INTENSIFIERS.get(word, 1.0) for word in before) * (_TURNED_ROUND if denied else 1.0)
