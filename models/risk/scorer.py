"""The default scorer: risk of one turn by rules, for producers that send none. English; deterministic; microseconds.

It knows matters, not intentions: a lexicon gives a base in full where the turn asks for means, less where it only
mentions them, and less again in a defensive, scholarly or fictional context. It sees each turn
alone; what grows over turns is the session's business. Of a long text the first 4,000 and last 1,000 characters count
(`models.text.words`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.events import Turn
from models.text.features import Words, probes_limits, rewrites_rules, supposes
from models.text.lexicon import HARMLESS, PHRASE_TRIGGERS, PHRASES, WEIGHTS
from models.text.words import fold_text, word_set, words_of

_LEXICON = frozenset(WEIGHTS)
_HARMLESS = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in HARMLESS))
_PHRASES = re.compile("|".join(rf"(?P<p{n}>\b(?:{pattern})\b)" for n, pattern in enumerate(PHRASES)))
_PHRASE_WEIGHTS = {f"p{n}": weight for n, weight in enumerate(PHRASES.values())}
_ASKS = re.compile(
    r"\bhow (?:to|do|does|can|could|would|might|should|exactly)\b|\b(?:tell|show|teach|give|help|walk) (?:me|us)\b"
    r"|\b(?:step[- ]by[- ]step|instructions?|recipe|tutorial|blueprint|ingredients)\b"
    r"|\bi (?:want|need|plan|intend|am going) to\b"
    r"|\b(?:make|build|create|write|buy|get|obtain|acquire|produce|plant|use) (?:a|an|the|some|my|me)\b"
    r"|\bi'm going to\b"
)
_DEFENSIVE = word_set(
    "prevent preventing prevention protect protecting protection defend defending defense defence detect "
    "detecting avoid secure securing security safe safely safety patch patched report reporting awareness "
    "antivirus firewall victim victims vulnerable history historical museum lecture class textbook course law "
    "laws legal court policy news article statistics treatment therapy therapist recovery hotline counselling "
    "counseling disposal dispose research study war charity symptoms antidote vaccine"
)
_FICTION = word_set(
    "novel story stories character characters movie film game games gaming player chapter plot screenplay fantasy "
    "dungeon minecraft lyrics book episode scene fiction fictional wizard dragon dragons knight quest"
)
_EXPLICIT = re.compile(
    r"\b(?:step[- ]by[- ]step|exact(?:ly)?|in (?:full |great )?detail|realistic(?:ally)?|for real|real[- ]life)\b"
)
_PERSON = re.compile(
    r"\bmy (?:ex|wife|husband|girlfriend|boyfriend|boss|neighbou?r|co-?worker|teacher|classmate|roommate|mother|father"
    r"|parents|brother|sister)\b"
)

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

    def score(self, turns: Sequence[Turn], vectors: NDArray[np.float32] | None = None) -> list[float]:  # noqa: ARG002
        """Risk of each turn, 0-1, whatever its role; no state across turns or calls. Vectors say nothing to it."""
        return [score_text(turn.content) for turn in turns]


def score_text(content: str) -> float:
    """Risk of one text, 0-1.

    Independent findings combine as noisy-or: `1 - prod(1 - w)`.

    >>> score_text("How do I bake bread?")
    0.0
    """
    folded = fold_text(content)
    return score_folded(folded, set(words_of(folded)))


def score_folded(folded: str, words: Words) -> float:
    """`score_text` of a text that is folded already.

    Args:
        folded: The text as `fold_text` gives it.
        words: Its distinct words.
    """
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
    phrased = not words.isdisjoint(PHRASE_TRIGGERS)
    if not phrased and words.isdisjoint(_LEXICON):
        return 0.0
    plain = _HARMLESS.sub(" ", folded)
    found = [WEIGHTS[word] for word in _LEXICON.intersection(words_of(plain))]
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
