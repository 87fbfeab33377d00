"""Extractive summaries: the sentences of a passage that carry its topics, its rising risk and its requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from models.text.keywords import distinct_topics
from models.text.words import fold_text, words_of

_BREAK = re.compile(r"\s(?<=[.!?]\s|[\s\S]\n)")
"""After a full stop or at a line's end; the blank first, as a search for a look-behind alone is ten times slower."""
_REQUEST = re.compile(
    r"(?:please|tell|show|give|explain|describe|write|how|what|why|where|which|who|can you|could you)\b"
)
_HEAD_CHARS = 800
_TAIL_CHARS = 200
"""Of each passage: its opening and its end, which keeps the cost of a segment of long answers bounded."""
_FEWEST_WORDS = 3
_REQUEST_BONUS = 0.6
_RISK_BONUS = 3.0
"""At risk 1 a sentence outweighs three more topic words: escalation must not be summarised away (seed 000)."""


class Passage(Struct, frozen=True, gc=False):
    """A piece of conversation to choose sentences from; `risk` 0-1."""

    content: str
    risk: float = 0.0


class Summary(Struct, frozen=True, gc=False):
    """The chosen sentences in their order, and the topics most passages share."""

    text: str
    key_topics: list[str]


class _Sentence(Struct, gc=False):
    place: int
    text: str
    topics: dict[str, None]
    bonus: float

    def worth(self, weight: dict[str, int]) -> float:
        return sum(map(weight.__getitem__, self.topics)) / (1 + len(self.topics)) ** 0.5 + self.bonus


def _sentences(passages: Sequence[Passage], risky: tuple[str, ...]) -> list[_Sentence]:
    found: list[_Sentence] = []
    for passage in passages:
        content = passage.content
        if len(content) > _HEAD_CHARS + _TAIL_CHARS:
            content = f"{content[:_HEAD_CHARS]}\n{content[-_TAIL_CHARS:]}"
        risk_bonus = passage.risk * _RISK_BONUS
        for part in _BREAK.split(content):
            folded = fold_text(part)
            words = words_of(folded)
            if len(words) < _FEWEST_WORDS:
                continue
            request = "?" in folded or _REQUEST.match(folded) is not None
            bonus = risk_bonus + _REQUEST_BONUS if request else risk_bonus
            found.append(_Sentence(len(found), part, distinct_topics(words, risky), bonus))
    return found


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"


def summarise(
    passages: Sequence[Passage], *, sentences: int, sentence_chars: int, key_topics: int, risky: tuple[str, ...] = ()
) -> Summary:
    """Choose the sentences that say most of the passages (seed 000, layer 2).

    A sentence's worth is the frequency of its topics over its length's root (SumBasic, Nenkova and Vanderwende 2005,
    without its squaring), more for requests and for risky turns. A topic once said counts no more, so the second
    sentence adds what the first left out.

    Args:
        passages: In order, oldest first.
        sentences: How many at most.
        sentence_chars: Longest sentence; the rest is cut with an ellipsis.
        key_topics: How many topics at most.
        risky: Stems that count as one topic in all inflections.
    """
    found = _sentences(passages, risky)
    weight: dict[str, int] = {}
    for sentence in found:
        for topic in sentence.topics:
            weight[topic] = weight.get(topic, 0) + 1
    shared = [topic for topic, times in weight.items() if times > 1]
    named = shared if len(shared) >= key_topics else list(weight)
    named.sort(key=lambda topic: (-weight[topic], -len(topic)))
    chosen: list[_Sentence] = []
    while found and len(chosen) < sentences:
        worths = [sentence.worth(weight) for sentence in found]
        best = found.pop(worths.index(max(worths)))
        chosen.append(best)
        weight.update(dict.fromkeys(best.topics, 0))
    chosen.sort(key=lambda s: s.place)
    if not chosen:
        brief = " ".join(" ".join(p.content[:sentence_chars].split()) for p in passages)
        return Summary(_clip(brief.strip(), sentence_chars), named[:key_topics])
    return Summary(" ".join(_clip(s.text.strip(), sentence_chars) for s in chosen), named[:key_topics])
