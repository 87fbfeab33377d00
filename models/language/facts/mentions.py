"""What is taken for granted in passing, also in questions: "which gloves, with my latex allergy?"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import ExtractedFact
from models.language.facts.attribution import supposed_from
from models.language.facts.mention_readings import OWN, READINGS
from models.language.facts.statements import Statement

_OWNED = frozenset(pattern for *_rest, pattern, _read in READINGS if pattern.pattern.startswith((OWN, r"\b[Mm]y ")))
"""Those that begin with whose it is: they are tried there alone."""
_OWNER = re.compile(r"\b(?:[Mm]y|[Oo]ur)\b")
_BY_WORD = {
    word: [n for n, (words, *_rest) in enumerate(READINGS) if word in words]
    for word in frozenset[str]().union(*(words for words, *_rest in READINGS))
}
_WORDS = frozenset(_BY_WORD)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_TAKING_BACK = re.compile(
    (
        r"\b(?:forget|delete|erase|remove|ignore|disregard|outgr[eo]w\w*|no longer|any ?more|used to|"
        r"what(?:'s| is)|isn't|gone|gave|sold|died|passed away)\b"
    ),
    re.IGNORECASE,
)


def mentioned(text: str, words: set[str]) -> Iterable[ExtractedFact]:
    """Facts that are taken for granted: a name in apposition, what is "mine"; `words` are the text's own, folded."""
    present = words & _WORDS
    if not present:
        return
    readings = [
        (pattern, read)
        for n in sorted({n for word in present for n in _BY_WORD[word]})
        for _cues, also, pattern, read in (READINGS[n],)
        if not also.isdisjoint(words)
    ]
    if not readings:
        return
    statement = Statement("")
    for sentence in _SENTENCE.split(text):
        meant = sentence[: supposed_from(sentence.lower(), words)]
        owned = [found.start() for found in _OWNER.finditer(meant)]
        matches = [(match, read) for pattern, read in readings for match in _matches(pattern, meant, owned)]
        if matches and not _TAKING_BACK.search(meant):
            for match, read in matches:
                yield from read(match, statement)


def _matches(pattern: re.Pattern[str], text: str, owned: list[int]) -> Iterable[re.Match[str]]:
    if pattern in _OWNED:
        return [match for start in owned if (match := pattern.match(text, start))]
    return pattern.finditer(text)
