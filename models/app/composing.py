"""Composition of one app memory: a few sentences of what was notable in a conversation (Memory Creation)."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from models.events.app import ConversationEnded, NotableKind, NotableSentence
from models.events.base import Role
from models.language.contradiction import conflicts, is_revision, revised, sentences_of
from models.language.days import names_a_day
from models.language.likeness import adds_nothing, content_words
from models.language.notable import DONE, clipped, corrects, is_barred, use_of
from models.language.retelling import retold
from models.policy.app import AppPolicy
from models.text.features import features_of, is_refusal


class Draft(Struct, frozen=True):
    """A memory before it has a place: its text, its importance 0-1, and its tags."""

    content: str
    importance: float
    tags: list[str]


_LEAST, _OF_USE, _EACH_FURTHER_KIND, _OF_WEIGHT, _OF_LENGTH, _MIDDLE_TURNS = 0.2, 0.4, 0.05, 0.15, 0.1, 20
_TAG_CHARS = 32
_MOST_TOPIC_TAGS = 3
_FEWEST_WORDS, _FEWEST_CHARS = 4, 60
"""Of a summary that tells something: "Hi" and "Nice to meet you!" do not."""


class _NotableLine(Struct, frozen=True, gc=False):
    text: str
    notable: NotableSentence
    use: float
    """0-1, later on: of what is ahead all."""


def compose(ended: ConversationEnded, policy: AppPolicy) -> Draft | None:
    """A memory of an ended conversation, or None if nothing was said that could be one.

    The notable sentences that fit, a decision, preference, fact and outcome before a second of any, and those of most
    weight and use; told by a third person in the order they were said. What was said later contradicts what was said
    before: the later counts. Without notable sentences the summary speaks.
    """
    chosen = _chosen(_lines(ended), policy)
    if not chosen:
        content = _from_summary(ended, policy)
        return Draft(content, _importance_of([], ended.turn_count), tags_of(ended, [], policy)) if content else None
    told = [line for line in chosen if not _declines(line.notable)]
    content = " ".join(line.text for line in chosen)
    tags = tags_of(ended, [line.notable for line in told], policy)
    return Draft(content, _importance_of(told, ended.turn_count), tags)


def _importance_of(told: Sequence[_NotableLine], turn_count: int) -> float:
    """0-1: from what is of use later on, how sure it is, how many kinds are told, how long the conversation was."""
    value = _LEAST + _OF_LENGTH * turn_count / (turn_count + _MIDDLE_TURNS)
    if told:
        value += _OF_USE * max(line.use for line in told)
        value += _EACH_FURTHER_KIND * (len({line.notable.kind for line in told}) - 1)
        value += _OF_WEIGHT * sum(line.notable.weight for line in told) / len(told)
    return round(min(max(value, 0.0), 1.0), 3)


def tags_of(ended: ConversationEnded, notables: Sequence[NotableSentence], policy: AppPolicy) -> list[str]:
    """Topics first, then the kinds of what is told, then further topics."""
    topics = [topic[:_TAG_CHARS] for topic in ended.key_topics]
    kinds = [notable.kind.value for notable in sorted(notables, key=lambda notable: -notable.weight)]
    return list(dict.fromkeys([*topics[:_MOST_TOPIC_TAGS], *kinds, *topics]))[: policy.tags]


def _lines(ended: ConversationEnded) -> list[_NotableLine]:
    """Told by a third person, in order of turn; of what contradicts itself the later."""
    lines: list[_NotableLine] = []
    said = ended.ended_at.date()
    for notable in sorted(ended.notables, key=lambda each: each.turn):
        text = retold(notable.text, notable.role)
        if text and not text.endswith("?"):
            if _declines(notable) and any(_declines(line.notable) for line in lines):
                continue
            if is_revision(notable.text):
                lines = _put_right(lines, notable.text)
                continue
            lines = [line for line in lines if not (conflicts(line.text, text) or _replaces(notable, line.notable))]
            use, day = use_of(notable.text, notable.role), names_a_day(notable.text, said)
            use = 1.0 if use > DONE and day is not None and day >= said else use
            lines.append(_NotableLine(text, notable, use))
    return lines


def _put_right(lines: list[_NotableLine], said: str) -> list[_NotableLine]:
    """The last line with a value of the kind has the new one: "change of plan, February 14 instead" names no matter."""
    place = next((n for n in reversed(range(len(lines))) if revised(lines[n].text, said)), None)
    if place is None:
        return lines
    right = msgspec.structs.replace(lines[place], text=revised(lines[place].text, said))
    return [*lines[:place], right, *lines[place + 1 :]]


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
        best = max(left, key=lambda line: (line.notable.kind not in chosen_kinds, *_rank(line)))
        left.remove(best)
        length = sum(len(line.text) + 1 for line in chosen) + len(best.text)
        said = any(adds_nothing(best.text, line.text) for line in chosen)
        if length <= policy.content_chars and not said:
            chosen.append(best)
    if not chosen and lines:
        best = max(lines, key=_rank)
        chosen = [msgspec.structs.replace(best, text=_shortened(best.text, policy.content_chars))]
    place = {id(line): number for number, line in enumerate(lines)}
    return sorted(chosen, key=lambda line: place.get(id(line), 0))


def _rank(line: _NotableLine) -> tuple[float, int]:
    return line.notable.weight + line.use, line.notable.turn


def _shortened(text: str, chars: int) -> str:
    """A sentence that does not fit, cut between clauses if that leaves half of it, else between words."""
    clause = max(text.rfind(mark, 0, chars - 1) for mark in (", ", "; ", ": ", " - "))
    return f"{text[:clause]}…" if clause > chars // 2 else clipped(text, chars)


def _from_summary(ended: ConversationEnded, policy: AppPolicy) -> str:
    sentences: list[str] = []
    known_words: set[str] = set()
    for sentence in sentences_of(ended.summary):
        # Of what was asked, supposed or tried nothing comes back as an instruction in another conversation.
        if any(msgspec.structs.astuple(features_of(sentence))) or is_barred(sentence):
            continue
        known_words.update(content_words(sentence))
        line = sentence if sentence[-1] in ".!…" else f"{sentence}."
        if len(sentences) < policy.sentences and len(" ".join([*sentences, line])) <= policy.content_chars:
            sentences.append(line)
        elif not sentences:
            sentences = [_shortened(line, policy.content_chars)]
    if len(known_words) < _FEWEST_WORDS and len(ended.summary) < _FEWEST_CHARS:
        return ""
    return " ".join(sentences)
