"""Composition of one app memory: a few sentences of what was notable in a conversation (Memory Creation)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from models.events.app import ConversationEnded, NotableKind, NotableSentence
from models.events.base import Role
from models.language.contradiction import conflicts, sentences_of
from models.language.likeness import EMPTY_WORDS, about, adds_nothing, content_words
from models.language.notable import clipped, corrects, is_barred
from models.language.retelling import retold
from models.policy.app import AppPolicy
from models.text.features import features_of, is_refusal


class Draft(Struct, frozen=True):
    """A memory before it has a place: its text, its importance 0-1, and its tags."""

    content: str
    importance: float
    tags: list[str]


_KIND_IMPORTANCE = {
    NotableKind.DECISION: 0.3,
    NotableKind.PREFERENCE: 0.25,
    NotableKind.OUTCOME: 0.2,
    NotableKind.FACT: 0.15,
}
_LEAST, _EACH_FURTHER_KIND, _OF_WEIGHT, _OF_LENGTH, _MIDDLE_TURNS = 0.2, 0.08, 0.2, 0.15, 20
_TAG_CHARS = 32
_MOST_TOPIC_TAGS = 3
_PERSON_BEHIND = re.compile(
    r"(?:'s)? (?:should|would|will|says?|said|asks?|asked|wants?|wanted|told|owes?|pays?|paid)\b"
)
"""Behind a word that opens a sentence: it names somebody."""
_FEWEST_WORDS, _FEWEST_CHARS = 4, 60
"""Of a summary that tells something: "Hi" and "Nice to meet you!" do not."""


class _NotableLine(Struct, frozen=True, gc=False):
    text: str
    notable: NotableSentence


def compose(ended: ConversationEnded, policy: AppPolicy) -> Draft | None:
    """A memory of an ended conversation, or None if nothing was said that could be one.

    The weightiest notable sentences that fit, a decision, preference, fact and outcome before a second of any, told by
    a third person in the order they were said. What was said later contradicts what was said before: the later counts.
    Without notable sentences the summary speaks.
    """
    chosen = _chosen(_lines(ended.notables), policy)
    if not chosen:
        content = _from_summary(ended, policy)
        return Draft(content, importance_of([], ended.turn_count), tags_of(ended, [], policy)) if content else None
    notables = [line.notable for line in chosen if not _declines(line.notable)]
    content = " ".join(line.text for line in chosen)
    if len(chosen) == 1 or len(notables) < len(chosen):
        content = _with_topics(content, ended, policy)
    return Draft(content, importance_of(notables, ended.turn_count), tags_of(ended, notables, policy))


def importance_of(notables: Sequence[NotableSentence], turn_count: int) -> float:
    """0-1: from the kinds that are told, how sure they are, and how long the conversation was."""
    kinds = {notable.kind for notable in notables}
    value = _LEAST + _OF_LENGTH * turn_count / (turn_count + _MIDDLE_TURNS)
    if kinds:
        value += max(_KIND_IMPORTANCE[kind] for kind in kinds) + _EACH_FURTHER_KIND * (len(kinds) - 1)
        value += _OF_WEIGHT * sum(notable.weight for notable in notables) / len(notables)
    return round(min(max(value, 0.0), 1.0), 3)


def tags_of(ended: ConversationEnded, notables: Sequence[NotableSentence], policy: AppPolicy) -> list[str]:
    """Topics first, then the kinds of what is told, then further topics."""
    topics = [topic[:_TAG_CHARS] for topic in ended.key_topics]
    kinds = [notable.kind.value for notable in sorted(notables, key=lambda notable: -notable.weight)]
    return list(dict.fromkeys([*topics[:_MOST_TOPIC_TAGS], *kinds, *topics]))[: policy.tags]


def _lines(notables: Sequence[NotableSentence]) -> list[_NotableLine]:
    """Told by a third person, in order of turn; of what contradicts itself the later."""
    lines: list[_NotableLine] = []
    for notable in sorted(notables, key=lambda each: each.turn):
        text = retold(notable.text, notable.role)
        if text and not text.endswith("?"):
            if _declines(notable) and any(_declines(line.notable) for line in lines):
                continue
            lines = [line for line in lines if not (conflicts(line.text, text) or _replaces(notable, line.notable))]
            lines.append(_NotableLine(text, notable))
    return lines


def _declines(notable: NotableSentence) -> bool:
    """Whether it says what an assistant would not do; the first of these speaks for all."""
    return notable.role is Role.ASSISTANT and is_refusal(notable.text)


def _replaces(later: NotableSentence, earlier: NotableSentence) -> bool:
    """Whether a decision corrects an earlier one of the same kind: "Actually, let's use … instead."."""
    same = later.kind is earlier.kind is NotableKind.DECISION and later.role is earlier.role
    return same and corrects(later.text) and not content_words(later.text).isdisjoint(content_words(earlier.text))


def _chosen(lines: list[_NotableLine], policy: AppPolicy) -> list[_NotableLine]:
    left, chosen = list(lines), list[_NotableLine]()
    while left and len(chosen) < policy.sentences:
        chosen_kinds = {line.notable.kind for line in chosen}
        best = max(
            left, key=lambda line: (line.notable.kind not in chosen_kinds, line.notable.weight, line.notable.turn)
        )
        left.remove(best)
        length = sum(len(line.text) + 1 for line in chosen) + len(best.text)
        said = any(adds_nothing(best.text, line.text) for line in chosen)
        if length <= policy.content_chars and not said:
            chosen.append(best)
    if not chosen and lines:
        best = max(lines, key=lambda line: (line.notable.weight, line.notable.turn))
        chosen = [_NotableLine(_shortened(best.text, policy.content_chars), best.notable)]
    place = {id(line): number for number, line in enumerate(lines)}
    return sorted(chosen, key=lambda line: place.get(id(line), 0))


def _shortened(text: str, chars: int) -> str:
    """A sentence that does not fit, cut between clauses if that leaves half of it, else between words."""
    clause = max(text.rfind(mark, 0, chars - 1) for mark in (", ", "; ", ": ", " - "))
    return f"{text[:clause]}…" if clause > chars // 2 else clipped(text, chars)


def _with_topics(content: str, ended: ConversationEnded, policy: AppPolicy) -> str:
    opening = _about(ended)
    fits = len(sentences_of(content)) < policy.sentences and len(opening) + 1 + len(content) <= policy.content_chars
    return f"{opening} {content}" if opening and fits else content


def _about(ended: ConversationEnded) -> str:
    said = " ".join([*(notable.text for notable in ended.notables), ended.summary])
    topics = [topic[:_TAG_CHARS] for topic in ended.key_topics if topic not in EMPTY_WORDS]
    return about([_as_written(topic, said) for topic in topics[:_MOST_TOPIC_TAGS]])


def _as_written(topic: str, said: str) -> str:
    """A topic with a capital if it is always written with one, and not only where a sentence opens.

    >>> _as_written("noor", "Noor should pay. We asked Noor."), _as_written("share", "Share it. A share each.")
    ('Noor', 'share')
    """
    named: list[str] = []
    for found in re.finditer(rf"\b{re.escape(topic)}s?\b", said, re.IGNORECASE):
        if not found[0][0].isupper():
            return topic
        opens = said[: found.start()].rstrip(" '\"")[-1:] in {"", ".", "!", "?", ":", "\n"}
        if not opens or _PERSON_BEHIND.match(said, found.end()):
            named.append(found[0])
    return min(named, key=len, default=topic)[:_TAG_CHARS]


def _from_summary(ended: ConversationEnded, policy: AppPolicy) -> str:
    sentences = [_about(ended)] if ended.key_topics else []
    known_words: set[str] = set()
    for sentence in sentences_of(ended.summary):
        # Of what was asked, supposed or tried nothing comes back as an instruction in another conversation.
        if any(msgspec.structs.astuple(features_of(sentence))) or is_barred(sentence):
            continue
        known_words.update(content_words(sentence))
        line = sentence if sentence[-1] in ".!…" else f"{sentence}."
        if len(sentences) < policy.sentences and len(" ".join([*sentences, line])) <= policy.content_chars:
            sentences.append(line)
    if len(known_words) < _FEWEST_WORDS and len(ended.summary) < _FEWEST_CHARS:
        return ""
    return clipped(" ".join(sentences), policy.content_chars)
