"""Extractive summaries: sentences of passages chosen by statements, topics, rising risk and requests.

Topics of a turn: its content words, lightly stemmed, and the risky ones under one name (risk memory, layer 3).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain

from msgspec import Struct

from models.text.tables import PatternTables
from models.text.words import Remembered, word_set, words_of_each

_SHORTEST = 4
_LONGEST = 32
"""Longer words are keys, hashes or noise; the bound keeps the state's topics small."""
_INFLECTIONS = frozenset(
    {"", "s", "es", "ed", "er", "ers", "ing", "ings", "able", "ation", "ative", "ize", "ized", "ise", "ised", "ry"}
)
STOP_WORDS = PatternTables("words", room="text").word_set("STOP_WORDS")
"""Function words, and verbs, adverbs and courtesies that are no topics."""


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > _SHORTEST:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=16)
def topic_names(risky: tuple[str, ...] = ()) -> Callable[[str], str]:
    """The function from a folded word to the topic it stands for, or "" for a word without one.

    A word made of a risky stem and an inflection is that stem, so that the counts of Signal B are exact.

    >>> topic_of = topic_names(("hack",))
    >>> topic_of("hackers"), topic_of("hackathon"), topic_of("recipes"), topic_of("because")
    ('hack', 'hackathon', 'recipe', '')
    """
    return Remembered(partial(_topic_of, risky)).__getitem__


def _topic_of(risky: tuple[str, ...], word: str) -> str:
    word = word.removesuffix("'s")
    for stem in risky:
        if word.startswith(stem) and word[len(stem) :] in _INFLECTIONS:
            return stem
    if not _SHORTEST <= len(word) <= _LONGEST or word in STOP_WORDS or not word.isalpha():
        return ""
    return _stem(word)


def topics_of(words: Iterable[str], risky: tuple[str, ...], limit: int) -> list[str]:
    """Distinct topics of one turn: the risky ones, then up to `limit` others, the longest (most specific) first."""
    found = distinct_topics(words, risky)
    named = [topic for topic in risky if found.pop(topic, True) is None]
    return named + sorted(found, key=len, reverse=True)[:limit]


def distinct_topics(words: Iterable[str], risky: tuple[str, ...]) -> dict[str, None]:
    """Distinct topics, in order of appearance (a dict serves as ordered set)."""
    found = dict.fromkeys(map(topic_names(risky), words))
    found.pop("", None)
    return found


def count_topics(repeated: dict[str, int], topics: Iterable[str], risky: tuple[str, ...], limit: int) -> None:
    """Count one turn's topics into `repeated` (topic → turns that named it), in place.

    Bounded: beyond `limit` ordinary topics the least frequent (of those, the oldest) is removed, and counts from 0 if
    it returns. Ordinary counts are thus lower bounds; risky ones are exact.
    """
    for topic in topics:
        known = repeated.get(topic)
        if known is not None:
            repeated[topic] = known + 1
            continue
        if topic not in risky and len(repeated) >= limit:
            ordinary = [t for t in repeated if t not in risky]
            if len(ordinary) >= limit:
                del repeated[min(ordinary, key=repeated.__getitem__)]
        repeated[topic] = 1


EXTRACTIVE = "extractive"
"""`summarised_by` of summaries without a model."""

SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]*")
"""Up to a stop that blank space follows, or to the line's end; "3.5" and addresses stay whole."""
_REQUEST_WORDS = word_set(
    "please tell show give explain describe write list help how what why where which who can could"
)
_HEAD_CHARS = 800
_TAIL_CHARS = 200
"""Characters read of each passage's beginning and end, which bounds the cost of a segment of long answers."""
_FEWEST_WORDS = 3
_REQUEST_BONUS = 0.6
_TOLD_BONUS = 1.0
"""Bonus of a sentence that tells something: a third of the highest risk's."""
_NAME_OR_NUMBER = re.compile(r"\d|(?<=[a-z,] )[A-Z]\w")
_RISK_BONUS = 3.0
"""At risk 1 a sentence outweighs three more topic words: summaries must not omit escalation (risk memory)."""
Said = tuple[int, str, list[str]]
"""A sentence: the index of its passage, its text, and its folded words."""
Tells = Callable[[str, Sequence[str]], bool]
"""A test of a sentence with its folded words."""


class Passage(Struct, frozen=True, gc=False):
    """A piece of conversation to choose sentences from; `risk` 0-1. Every sentence of a `told` one tells something."""

    content: str
    risk: float = 0.0
    told: bool = False


class Summary(Struct, frozen=True, gc=False):
    """The chosen sentences in their order, and the topics that most passages share."""

    text: str
    key_topics: list[str]


class _Sentence(Struct, frozen=True, gc=False):
    place: int
    passage: int
    text: str
    topics: frozenset[str]
    bonus: float
    root: float
    """Square root of its length in topics plus one, as a penalty for long sentences."""
    told: bool
    """Whether it tells something that no other sentence says."""


def names_something(sentence: str, words: Sequence[str]) -> bool:  # noqa: ARG001 - others look at its words
    """Whether a sentence that is no question has a number, or a capitalised word that is not its first.

    >>> [names_something(said, ()) for said in ("She is 9 metres long.", "It is near Oslo.", "Noted.", "In Oslo?")]
    [True, True, False, False]
    """
    return sentence[-1] != "?" and _NAME_OR_NUMBER.search(sentence) is not None


def ends_of(content: str) -> str:
    """The part of a passage that is read: all of it, or the beginning and the end of a long one."""
    if len(content) > _HEAD_CHARS + _TAIL_CHARS:
        return f"{content[:_HEAD_CHARS]}\n{content[-_TAIL_CHARS:]}"
    return content


def sentences_in(contents: Sequence[str]) -> list[Said]:
    """The sentences of passages in order: the passage's index, the sentence, and its folded words."""
    places: list[int] = []
    parts: list[str] = []
    for place, content in enumerate(contents):
        said = SENTENCE.findall(ends_of(content))
        parts += said
        places += [place] * len(said)
    return list(zip(places, parts, words_of_each(parts), strict=True))


def _sentences(
    passages: Sequence[Passage],
    risky: tuple[str, ...],
    said: Sequence[Said],
    tells: Tells | None,
) -> list[_Sentence]:
    found: list[_Sentence] = []
    topic_of = topic_names(risky)
    heard: set[str] = set()
    for place, part, words in said:
        if len(words) >= _FEWEST_WORDS and (text := part.strip()) not in heard:
            heard.add(text)
            topics = frozenset(map(topic_of, words))
            request = part.endswith("?") or words[0] in _REQUEST_WORDS
            told = passages[place].told or (tells is not None and tells(part, words))
            bonus = passages[place].risk * _RISK_BONUS + _REQUEST_BONUS * request + _TOLD_BONUS * told
            found.append(_Sentence(len(found), place, part, topics, bonus, (1 + len(topics)) ** 0.5, told))
    return found


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"


def _most_shared(weight: dict[str, int], limit: int) -> list[str]:
    """Topics that several sentences name, or any if those are few; ties by length, longest first, then alphabet."""
    named = [topic for topic, sentences in weight.items() if sentences > 1]
    if len(named) < limit:
        named = [topic for topic in weight if topic]
    named.sort()
    named.sort(key=len, reverse=True)
    named.sort(key=weight.__getitem__, reverse=True)
    return named[:limit]


def summarise(
    passages: Sequence[Passage],
    *,
    sentences: int,
    sentence_chars: int,
    key_topics: int,
    risky: tuple[str, ...] = (),
    said: Sequence[Said] | None = None,
    tells: Tells | None = None,
    told_chars: int = 0,
    runs: Sequence[int] = (),
) -> Summary:
    """Choose the most informative sentences of the passages (risk memory, layer 2).

    A sentence's score is the frequency of its topics over its length's root (SumBasic, Nenkova and Vanderwende 2005,
    without its squaring), plus a bonus for requests, for risky turns, and if it `tells` something. The topics of a
    chosen sentence no longer count, so the second sentence adds what the first omits.

    Args:
        passages: In order, oldest first.
        sentences: Largest number of sentences.
        sentence_chars: Longest sentence; the rest is cut with an ellipsis.
        key_topics: Largest number of topics.
        risky: Stems that count as one topic in all inflections.
        said: The passages' sentences (`sentences_in`), if the caller has them.
        tells: Whether a sentence tells something that should not be lost; None: no bonus for that.
        told_chars: Characters for further sentences that tell something, after the chosen ones.
        runs: Run of each passage: each run gets a sentence before any gets a second.
    """
    said = sentences_in([each.content for each in passages]) if said is None else said
    found = _sentences(passages, risky, said, tells)
    weight = dict(Counter(chain.from_iterable([sentence.topics for sentence in found])))
    weight[""] = 0
    named = _most_shared(weight, key_topics)
    weight_of = weight.__getitem__
    chosen: list[_Sentence] = []
    heard: set[int] = set()
    while found and len(chosen) < sentences:
        worths = [sum(map(weight_of, s.topics)) / s.root + s.bonus for s in found]
        if runs and (fresh := [n for n, s in enumerate(found) if runs[s.passage] not in heard]):
            best = found.pop(max(fresh, key=worths.__getitem__))
            heard.add(runs[best.passage])
        else:
            best = found.pop(worths.index(max(worths)))
        chosen.append(best)
        weight.update(dict.fromkeys(best.topics, 0))
    room = told_chars - sum([1 + min(len(s.text), sentence_chars) for s in chosen])
    told = [s for s in found if s.told] if room > 0 else []
    for each in sorted(told, key=lambda s: -(sum(map(weight_of, s.topics)) / s.root + s.bonus)):
        if (length := 1 + min(len(each.text), sentence_chars)) <= room:
            chosen.append(each)
            room -= length
    chosen.sort(key=lambda s: s.place)
    if not chosen:
        brief = " ".join(" ".join(p.content[:sentence_chars].split()) for p in passages)
        return Summary(_clip(brief.strip(), sentence_chars), named)
    return Summary(" ".join(_clip(s.text.strip(), sentence_chars) for s in chosen), named)
