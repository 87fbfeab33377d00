"""The default scorer: risk of one turn by rules, for producers that send none. English; deterministic; microseconds.

It knows matters, not intentions: a lexicon gives a base in full where the turn asks for means, less where it only
mentions them, and less again in a defensive, scholarly or fictional context. It sees each turn
alone; what grows over turns is the session's business. Of a long text the first 4,000 and last 1,000 characters count
(`models.text.words`).
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.events import AnyTurn
from models.text.features import Words, probes_limits, rewrites_rules, supposes
from models.text.respelling import LEXICON
from models.text.tables import PatternTables
from models.text.words import fold_text, words_of

_TABLES = PatternTables("scorer", room="risk")
_PHRASES = re.compile(
    "|".join(rf"(?P<p{n}>\b(?:{row.pattern.pattern})\b)" for n, row in enumerate(_TABLES.rows("phrases")))
)
_PHRASE_WEIGHTS: dict[str, float] = {f"p{n}": row.cells[0] for n, row in enumerate(_TABLES.rows("phrases"))}
_HARMLESS = re.compile("|".join(rf"\b(?:{row.pattern.pattern})\b" for row in _TABLES.rows("harmless")))
_ASKS, _EXPLICIT, _PERSON = (re.compile(_TABLES.alternatives(table)) for table in ("asks", "explicit", "person"))
_PHRASE_TRIGGERS, _DEFENSIVE, _FICTION = map(_TABLES.word_set, ("PHRASE_TRIGGERS", "DEFENSIVE", "FICTION"))

_ENDINGS = ("", "s", "es", "ed", "ing", "er", "ers")


def _inflections(word: str) -> Iterable[str]:
    yield from (word + ending for ending in _ENDINGS)
    if word.endswith("e"):
        yield from (word[:-1] + ending for ending in ("ing", "ed", "er", "ers"))
    elif word.endswith("y"):
        yield from (word[:-1] + ending for ending in ("ies", "ied"))
    elif word[-1] in "bgnpt":
        yield from (word + word[-1] + ending for ending in ("ing", "ed", "er", "ers"))


_WEIGHTS = {
    form: weight
    for tiers in LEXICON.values()
    for weight, words in sorted(tiers.items())
    for word in words.split()
    for form in _inflections(word)
}
"""Every inflected form of the lexicon and its weight."""
_LEXICON = frozenset(_WEIGHTS)

_MENTION = 0.6
_DEFENCE = 0.4
_STORY = 0.5
_META = 0.4
_PROBE = 0.15
_SUPPOSE = 0.15
_TARGET = 0.25


class RuleScorer:
    """Scores turns by rules. A `TurnScorer` of the shell's ports."""

    name = "rules"
    reads = ""
    reader = None

    def score(self, turns: Sequence[AnyTurn], vectors: NDArray[np.float32] | None = None) -> list[float]:  # noqa: ARG002
        """Risk of each turn, 0-1, whatever its role; no state across turns or calls. Vectors say nothing to it."""
        return [score_text(turn.content) for turn in turns]

    def harms(self, turns: Sequence[AnyTurn], vectors: NDArray[np.float32] | None = None) -> list[tuple[int, ...]]:  # noqa: ARG002
        """Rules tell no kind of harm."""
        return [()] * len(turns)


def score_text(content: str) -> float:
    """Risk of one text, 0-1.

    Independent findings combine as noisy-or: `1 - prod(1 - w)`.

    >>> score_text("How do I bake bread?")
    0.0
    """
    folded = fold_text(content)
    return score_folded(folded, set(words_of(folded)))


def score_folded(folded: str, words: Words) -> float:
    """`score_text` of a text that is folded already (`fold_text`), with its distinct words."""
    clean = 1.0 - _matter(folded, words)
    if rewrites_rules(folded, words):
        clean *= 1.0 - _META
    if probes_limits(folded, words):
        clean *= 1.0 - _PROBE
    if clean < 1.0 and supposes(folded, words):
        clean *= 1.0 - _SUPPOSE
    return round(1.0 - clean, 4)


def _matter(folded: str, words: Words) -> float:
    """What the text is about, in its context."""
    phrased = not words.isdisjoint(_PHRASE_TRIGGERS)
    if not phrased and words.isdisjoint(_LEXICON):
        return 0.0
    plain = _HARMLESS.sub(" ", folded)
    found = [_WEIGHTS[word] for word in _LEXICON.intersection(words_of(plain))]
    if phrased:
        found += [_PHRASE_WEIGHTS[match.lastgroup or ""] for match in _PHRASES.finditer(plain)]
    if not found:
        return 0.0
    clean = 1.0
    for weight in sorted(found, reverse=True)[:4]:
        clean *= 1.0 - weight
    risk = 1.0 - clean
    if _PERSON.search(folded):
        risk = 1.0 - (1.0 - risk) * (1.0 - _TARGET)
    if not _ASKS.search(folded):
        risk *= _MENTION
    if not words.isdisjoint(_DEFENSIVE):
        risk *= _DEFENCE
    elif not words.isdisjoint(_FICTION) and not _EXPLICIT.search(folded):
        risk *= _STORY
    return risk
