"""English words by which a respelled one is known again: common ones, the risky ones of the lexicon, usual targets."""

import msgspec

from models.text.keywords import STOP_WORDS
from models.text.tables import PatternTables, read_table

LEXICON = msgspec.convert(read_table("lexicon", "text"), dict[str, dict[float, str]], strict=False)
"""Category of a risky matter → weight → words of that weight, as `data/lexicon.toml` has them."""
_LISTS = PatternTables("words", room="text")
ENGLISH_WORDS = _LISTS.word_set("ENGLISH_WORDS")
OTHER_WORDS = _LISTS.word_set("IBERIAN", "FRENCH", "GERMANIC", "ITALIAN", "FURTHER")
"""Words of other languages."""
KNOWN_WORDS = (
    STOP_WORDS
    | _LISTS.word_set("ENGLISH_WORDS", "SHORT_WORDS", "TARGETS")
    | frozenset(word for tiers in LEXICON.values() for words in tiers.values() for word in words.split())
)
_SHORTEST_STEM = 3
_INFLECTIONS = ("s", "es", "ed", "d", "er", "r", "ers", "rs", "ing", "ings")


def is_known(word: str) -> bool:
    """Whether a folded word, or what it inflects, is among the known ones.

    >>> is_known("hacking"), is_known("haking")
    (True, False)
    """
    if word in KNOWN_WORDS:
        return True
    if not word.endswith(_INFLECTIONS):
        return False
    for end in _INFLECTIONS:
        if word.endswith(end):
            stem = word.removesuffix(end)
            if len(stem) >= _SHORTEST_STEM and (stem in KNOWN_WORDS or stem + "e" in KNOWN_WORDS):
                return True
    return False
