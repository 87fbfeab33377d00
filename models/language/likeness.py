"""Similarity of two short texts: by the words that carry something, lightly stemmed."""

import re
from functools import lru_cache

from models.text.tables import PatternTables
from models.text.words import fold_text, word_set

WORD = re.compile(r"[^\W_]+(?:[.,:/'@+-][^\W_]+)*[+#%]*")
"""A word, and whole: "2.5", "14:30", "v1.2", "e-mail", "c++"."""
EMPTY_WORDS = PatternTables("words").word_set("EMPTY_WORDS")
"""Words that say little of what a memory is about. A word that denies is none of them."""
_RELATIONS = word_set(
    "prefer like enjoy love hat want need us hav liv work decid choos ask go tak mak conversation told said wa"
)
"""Plain forms that say how somebody stands to something: two memories are not alike by them."""
_NAMES = re.compile(r"\b(?:[^\W\d_a-z]\w*|\w*\d[\w.,:]*\w|\d)")
"""Words with a capital, and numbers."""
_BEGINS = "Conversation about "
_ABOUT = re.compile(_BEGINS + r"(?P<topics>[^.!?]+)\.(?=\s|$)")
_NEARLY_ALL = 0.75
_FEWEST = 2
_SHORTEST_STEMMED = 4


@lru_cache(maxsize=1_024)
def content_words(text: str) -> frozenset[str]:
    """The words that carry what a text tells.

    >>> sorted(content_words("User prefers meetings after 14:30."))
    ['14:30', 'after', 'meeting', 'prefer']
    """
    return frozenset(filter(None, map(_form, WORD.findall(fold_text(text)))))


@lru_cache(maxsize=8_192)
def _form(word: str) -> str:
    """A word as it is compared; empty for one that says little."""
    word = word.removesuffix("'s")
    return "" if word in EMPTY_WORDS else plain_form(word)


def plain_form(word: str) -> str:
    """A folded word without its inflection; verbs too, unlike topics.

    >>> [plain_form(word) for word in ("booking", "booked", "shipped", "decided", "decide", "cities", "process")]
    ['book', 'book', 'ship', 'decid', 'decid', 'city', 'process']
    """
    if not word.isalpha() or len(word) < _SHORTEST_STEMMED:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > _FEWEST and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] if ending != "es" or word[-3] in "sxzh" else word[:-1]
            break
    if len(word) > _SHORTEST_STEMMED - 1 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
        return word[:-1]
    return word.removesuffix("e")


def likeness(one: str, other: str) -> float:
    """0-1: the mean of what two texts share of both (Dice) and of what the shorter has in the longer.

    How somebody stands to a thing does not count: "prefers tea" is not half of "prefers coffee". Nor does what a
    conversation was about (`topics_in`), unless a text tells nothing else: then that is compared, and one word does not
    do.

    >>> likeness("User prefers meetings after 2pm.", "User prefers meetings after 2pm.")
    1.0
    >>> likeness("User lives in Oslo.", "User prefers tea.")
    0.0
    """
    a, b = subjects_of(one), subjects_of(other)
    bare = not (a and b)
    if bare:
        a, b = content_words(one) - _RELATIONS, content_words(other) - _RELATIONS
    if not a or not b:
        return float(one == other)
    shared = len(a & b)
    if not shared or (bare and shared < _FEWEST and one != other):
        return 0.0
    dice = 2 * shared / (len(a) + len(b))
    return dice if bare else (dice + shared / min(len(a), len(b))) / 2


@lru_cache(maxsize=256)
def subjects_of(text: str) -> frozenset[str]:
    """The words of a text by which it is like others (`likeness`)."""
    return content_words(_ABOUT.sub("", text) if _BEGINS in text else text) - _RELATIONS


def topics_in(sentence: str) -> list[str]:
    """What a sentence names with which memories of releases up to 0.2 began; nothing of any other.

    >>> topics_in("Conversation about boat, Oslo and ferry."), topics_in("User owns a boat.")
    (['boat', 'Oslo', 'ferry'], [])
    """
    found = _ABOUT.fullmatch(sentence) if sentence.startswith(_BEGINS) else None
    return re.split(r", | and ", found["topics"]) if found else []


def contained(part: str, whole: str) -> float:
    """0-1: how much of what the first text tells the second tells too."""
    words = content_words(part)
    return len(words & content_words(whole)) / len(words) if words else 1.0


def adds_nothing(sentence: str, other: str) -> bool:
    """Whether another text tells nearly all that a sentence tells, and no name or number is only in the sentence.

    >>> adds_nothing("User met Bo in Vienna at noon.", "User met Bo in Vienna at noon, by train.")
    True
    >>> adds_nothing("User met Bo in Vienna at noon.", "User met Cy in Vienna at noon.")
    False
    """
    words = content_words(sentence)
    missing = words - content_words(other)
    if words and 1 - len(missing) / len(words) < _NEARLY_ALL:
        return False
    return not missing or missing.isdisjoint(_names_in(sentence))


@lru_cache(maxsize=1_024)
def _names_in(sentence: str) -> frozenset[str]:
    return frozenset(plain_form(name.lower()) for name in _NAMES.findall(sentence))
