"""Topics of a turn: its content words, lightly stemmed, and the risky ones under one name (risk memory, layer 3)."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from models.text.tables import PatternTables
from models.text.words import Remembered

_SHORTEST = 4
_LONGEST = 32
"""Longer words are keys, hashes or noise; the bound keeps the state's topics small."""
_INFLECTIONS = frozenset(
    {"", "s", "es", "ed", "er", "ers", "ing", "ings", "able", "ation", "ative", "ize", "ized", "ise", "ised", "ry"}
)
STOP_WORDS = PatternTables("words", room="text").word_set("STOP_WORDS")
"""Function words, and verbs, adverbs and courtesies that carry no topic of their own."""


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
    """Topics of one turn, each once: the risky ones, then up to `limit` others, the longest (most specific) first."""
    found = distinct_topics(words, risky)
    named = [topic for topic in risky if found.pop(topic, True) is None]
    return named + sorted(found, key=len, reverse=True)[:limit]


def distinct_topics(words: Iterable[str], risky: tuple[str, ...]) -> dict[str, None]:
    """Every topic named, once, in order of appearance (a dict serves as ordered set)."""
    found = dict.fromkeys(map(topic_names(risky), words))
    found.pop("", None)
    return found


def count_topics(repeated: dict[str, int], topics: Iterable[str], risky: tuple[str, ...], limit: int) -> None:
    """Count one turn's topics into `repeated` (topic → turns that named it), in place.

    Bounded: beyond `limit` ordinary topics the least frequent (of those, the oldest) gives way, and counts anew
    should it return. Ordinary counts are thus lower bounds; risky ones are exact.
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
