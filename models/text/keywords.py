"""Topics of a turn: its content words, lightly stemmed, and the risky ones under one name (risk memory, layer 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from models.text.words import word_set

_SHORTEST = 4
_LONGEST = 32
"""Longer words are keys, hashes or noise; the bound keeps the state's topics small."""
_REMEMBERED_WORDS = 65_536
_REMEMBERED_CHARS = 40
"""What is remembered of the vocabulary in memory: nearly every word a language has, and no pasted keys."""
_INFLECTIONS = frozenset(
    {"", "s", "es", "ed", "er", "ers", "ing", "ings", "able", "ation", "ative", "ize", "ized", "ise", "ised", "ry"}
)
STOP_WORDS = word_set(
    # Function words, and verbs, adverbs and courtesies that carry no topic of their own.
    "about above across actually after again against ahead almost alone along already also although always among "
    "another anybody anymore anyone anything anyway anywhere around asked aren't away back because become been "
    "before began begin behind being believe below best better between beyond both bring brought call called came "
    "can't cannot come comes coming could couldn't course didn't different does doesn't doing done don't down "
    "during each easy either else enough especially even ever every everybody everyone everything everywhere "
    "exactly example explain fact feel feels felt find fine first follow following found from gave getting give "
    "given gives giving goes going gone gonna good gotta great guess hadn't happen happened happens hard hasn't "
    "have haven't having hello help helped helpful helps here here's hers herself he's himself hope idea i'd i'll "
    "i'm important including indeed instead isn't itself i've just keep kept kind kinds knew know known knows "
    "last later least less let's like liked likely little long longer look looked looking looks lots love made "
    "mainly make makes making many matter maybe mean meant means might mine more most much must myself name near "
    "need needed needs neither never nevertheless next nice nobody none nothing now of often okay once ones only "
    "other others otherwise ourselves over part particular people perhaps place please point possible pretty "
    "probably provide quite rather read ready really reason right said same saying says seem seemed seems seen "
    "sense several shall she's should shouldn't show shown side simple simply since some somebody someone "
    "something sometimes somewhere soon sorry sort sounds start started still stop such sure take taken takes "
    "taking talk talking tell telling than thank thanks that that's their them themselves then there there's "
    "therefore these they they'd they'll they're they've thing things think thinking this those though thought "
    "through thus time times today together told tomorrow took totally toward towards tried tries true trying "
    "turn under understand unless until upon usually using very want wanted wants wasn't ways we'd welcome well "
    "we'll went we're were weren't we've what whatever what's when whenever where where's wherever whether which "
    "while whole whom who's whose will wish with within without wonder won't word words work works would wouldn't "
    "wrong yeah year years yes yesterday yet you'd you'll your you're yours yourself you've able certain "
    "certainly definitely"
)


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
    return _Topics(risky).__getitem__


class _Topics(dict[str, str]):
    """Topics of the words met so far: a look-up in a dict costs half of one in an `lru_cache`."""

    def __init__(self, risky: tuple[str, ...]) -> None:
        super().__init__()
        self._risky = risky

    def __missing__(self, word: str) -> str:
        topic = self._topic_of(word.removesuffix("'s"))
        if len(word) <= _REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[word] = topic
        return topic

    def _topic_of(self, word: str) -> str:
        for stem in self._risky:
            if word.startswith(stem) and word[len(stem) :] in _INFLECTIONS:
                return stem
        if not _SHORTEST <= len(word) <= _LONGEST or word in STOP_WORDS or not word.isalpha():
            return ""
        return _stem(word)


def topics_of(words: Iterable[str], risky: tuple[str, ...], limit: int) -> list[str]:
    """Topics of one turn, each once: the risky ones, then up to `limit` others, the longest (most specific) first.

    Args:
        words: The turn's words in order, folded.
        risky: Stems that are always kept.
        limit: Ordinary topics at most.
    """
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
