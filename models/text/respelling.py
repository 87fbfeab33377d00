"""Words spelt so that a filter misses them: digits and signs for letters, letters one by one, ciphers by hand.

Each is undone only where a known English word comes of it: `covid19`, `mp3`, `7pm` and the like stay as they are.

English words by which a respelled one is known again: common ones, the risky ones of the lexicon, usual targets.
"""

import re
from itertools import product

import msgspec

from models.text.hidden import Look
from models.text.summary import STOP_WORDS
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


_READINGS = dict(zip("034578@$", "oeastbas", strict=True)) | {"1": "il", "!": "il", "|": "li"}
_SIGNS = "".join(_READINGS)
_MOST_AMBIGUOUS = 4
_LONGEST_WORD = 20
_SHORTEST = 3
_RESPELT = re.compile(
    r"(?<![\w/\\@#=&$.!|-])(?=[A-Za-z]*[0-9@$!|])[\w@$|](?:[\w@$!|]*[\w@$|])?(?![\w/\\@=]|[.:]\w)", re.ASCII
)
_INNER = re.compile(r"[A-Za-z][0-9@$!|]+[A-Za-z]")

_SPELT_OUT = re.compile(
    r"(?<![^\W_])(?<![@$|%&\x00-\x08\x0e-\x1b\x7f])[A-Za-z](?=([.\-_*/~+\u00b7\u2022]|\s{1,2})[A-Za-z])(?:\1[A-Za-z](?![^\W_])){2,99}(?![@$|%&\x00-\x08\x0e-\x1b\x7f])"
)
"""A hundred letters at most at once, since their words are searched for."""
_LONG_SPELLING = 5
"""Letters from which on a word is taken for one without being known."""
_VOWELS = frozenset("aeiouy")
"""In small letters only: notes, grades and acronyms are capitals."""

_CLAUSE = re.compile(r"[^\n:\"“”]+")
_LETTERS = re.compile(r"[A-Za-z']+")
_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)
_TELLING = frozenset(word for word in ENGLISH_WORDS if len(word) >= _SHORTEST and word.isalpha())
"""Two letters turn into another word too easily: `no` is `on`."""
_FEWEST_TELLING = 2
_TELLING_RATIO = 0.25


def has_signs(look: Look) -> bool:
    """Whether digits or signs stand beside letters."""
    shape = look.shape
    return (b"1" in shape and (b"a1" in shape or b"1a" in shape or b"a!" in shape)) or (
        b"!" in shape and b"!a" in shape
    )


def unmask_signs(text: str) -> str:
    """Known words written with digits and signs, in letters; a word that is one without the signs around it stays.

    >>> unmask_signs("h4ck the p@ssw0rd by 10am, mp3 or page5")
    'hack the password by 10am, mp3 or page5'
    """
    return _RESPELT.sub(lambda found: _respelt(found[0]), text)


def _respelt(word: str) -> str:
    signs = sum(c in _READINGS for c in word)
    letters = sum(c.isalpha() for c in word)
    if not signs or not letters or signs + letters < len(word) or not _SHORTEST <= len(word) <= _LONGEST_WORD:
        return word
    mention = word[0] == "@" and signs == 1
    if mention or signs > letters or (len(word) == _SHORTEST and not _INNER.fullmatch(word)):
        return word
    if sum(len(_READINGS.get(c, c)) > 1 for c in word) > _MOST_AMBIGUOUS or is_known(word.strip(_SIGNS).lower()):
        return word
    readings = ("".join(reading) for reading in product(*(_READINGS.get(c, c) for c in word)))
    return next((reading for reading in readings if is_known(reading.lower())), word)


def is_spelt_out(look: Look) -> bool:
    """Whether three letters stand one by one."""
    padded = b" " + look.shape.replace(b"!", b" ") + b" "
    return b" a a a " in padded or b" a  a  a " in padded


def join_letters(text: str) -> str:
    """Words of letters one by one, joined: known ones (also several in a row), and long ones in small letters.

    >>> join_letters("a b.o.m.b, h o w t o h i d e; U.S.A., a b c d e")
    'a bomb, how to hide; U.S.A., a b c d e'
    """
    return _SPELT_OUT.sub(lambda found: _joined(found[0]) or found[0], text)


def _joined(spelt: str) -> str:
    letters = "".join(c for c in spelt if c.isalpha())
    words = _words_in(letters)
    if words:
        return " ".join(words)
    listed = "".join(sorted(letters)) == letters
    speakable = 0 < sum(c in _VOWELS for c in letters) < len(letters)
    return letters if len(letters) >= _LONG_SPELLING and speakable and not listed else ""


def _words_in(letters: str) -> list[str]:
    """The fewest known words that the letters are, or none; short words only beside longer ones."""
    best: list[list[str] | None] = [[]]
    for end in range(1, len(letters) + 1):
        found = None
        for start in range(max(0, end - _LONGEST_WORD), end):
            before, word = best[start], letters[start:end]
            if before is not None and (found is None or len(before) + 1 < len(found)) and is_known(word.lower()):
                found = [*before, word]
        best.append(found)
    words = best[-1] or []
    return words if len(letters) >= _SHORTEST * len(words) - 1 else []


def is_ciphered(look: Look) -> bool:
    """Whether the, how or you stands there in ROT13 or reversed."""
    text = look.text
    return "gur" in text or "ubj" in text or "lbh" in text or "eht" in text or "woh" in text or "uoy" in text


def decipher(text: str) -> str:
    """Clauses without English words that have them in ROT13 or read backwards, turned.

    >>> decipher("rot13: ubj gb znxr guvf"), decipher("siht ekam ot woh"), decipher("si no es que si")
    ('rot13: how to make this', 'how to make this', 'si no es que si')
    """
    return _CLAUSE.sub(lambda found: _turned(found[0]), text)


def _turned(clause: str) -> str:
    if _known_words(clause):
        return clause
    readings = (clause.translate(_ROT13), clause[::-1])
    reading = max(readings, key=_known_words)
    words = len(_LETTERS.findall(clause))
    return reading if _known_words(reading) >= max(_FEWEST_TELLING, _TELLING_RATIO * words) else clause


def _known_words(clause: str) -> int:
    return sum(word in _TELLING for word in _LETTERS.findall(clause.lower()))
