"""Characters that are read as Latin letters, and marks heaped on letters.

The pairs are some of Unicode's `confusables.txt` (UTS 39): what a reader takes for the Latin letter. Greek letters that
mostly stand in formulas and units, as mu, pi and sigma, are no lookalikes here.
"""

import re
import unicodedata
from itertools import chain

from models.text.hidden import Look, characters_in
from models.text.tables import read_table

_MARKS = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
"""Marks that combine with letters of any script; part of a character class."""
_LATIN_LETTERS = r"A-Za-z\u00c0-\u024f"
_LAST_LATIN = "\u024f"
_MOST_MARKS = 2
"""Vietnamese heaps two on one letter; more are there to hide it."""
_SHORTEST = 3
"""Letters of a word that shows a disguise: `kΩ` and `1ˢᵗ` are no words."""

_STRIKES = r"\u0332-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6"
_HEAPED = re.compile(rf"[{_LATIN_LETTERS}][{_MARKS}]{{{_MOST_MARKS + 1},}}|(?:[A-Za-z][{_STRIKES}]){{2}}")
_ALL_MARKS = characters_in(_MARKS)
_MARKS_ON_LATIN = re.compile(rf"(?<=[{_LATIN_LETTERS}])[{_MARKS}]+")

_CYRILLIC, _GREEK, _SMALL_CAPITALS = (
    dict(zip(pairs["characters"], pairs["read_as"], strict=True)) for pairs in read_table("lookalikes", "text").values()
)
_STYLED_RANGES = (
    range(0x2B0, 0x2B9), range(0x1D2C, 0x1D6B), range(0x2090, 0x209D), range(0x2100, 0x2150), range(0x249C, 0x24EA),
    range(0xFF10, 0xFF5B), range(0x1D400, 0x1D800), range(0x1F110, 0x1F18A),
)  # fmt: skip
"""Modifier, subscript, letter-like, parenthesised and circled, full-width, mathematical, squared letters."""
_NAMED_LETTER = re.compile(r"(?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])$")
"""The negative ones have no decomposition, only a name."""


def _plain_of(code: int) -> str:
    letter = unicodedata.normalize("NFKC", chr(code)).strip("()")
    if letter.isascii() and letter.isalnum() and len(letter) == 1:
        return letter
    named = _NAMED_LETTER.search(unicodedata.name(chr(code), ""))
    return named[1] if named else ""


_STYLED = _SMALL_CAPITALS | {chr(code): plain for code in chain(*_STYLED_RANGES) if (plain := _plain_of(code))}
_FOREIGN = _CYRILLIC | _GREEK
LOOKALIKES = _FOREIGN | _STYLED
"""Character → the Latin letter or digit it is read as."""
_ALL_LOOKALIKES = frozenset(LOOKALIKES)
_TRANSLATION = str.maketrans(LOOKALIKES)
_WORD = re.compile(r"(?:[^\W_]|[\u249c-\u24e9\U0001f110-\U0001f189])+")
"""Letters in brackets, circles and squares are signs to Unicode."""
_SYMBOL_AT_END = re.compile(r"[A-Za-z0-9]+[\u03ac-\u03c9]")
"""TNFα, cosα: a Greek letter closes a name."""


def has_lookalikes(look: Look) -> bool:
    """Whether any character could be taken for a Latin one."""
    return bool(look.odd) and not look.odd.isdisjoint(_ALL_LOOKALIKES)


def unmask_lookalikes(text: str) -> str:
    r"""Latin letters for those that only look so, where the text is otherwise Latin; else the text as it is.

    A word of lookalikes and Latin letters, or of styled letters, shows the disguise; then every word that can be read
    as Latin is. Text in another script has longer words that no lookalike explains, and stays as it is.

    >>> unmask_lookalikes("b\u043emb"), unmask_lookalikes("5 k\u03a9, TNF\u03b1")
    ('bomb', '5 kΩ, TNFα')
    """
    words = _WORD.findall(text)
    latin = sum(map(len, filter(str.isascii, words)))
    others = sum(len(word) for word in words if not _reads_as_latin(word))
    if others > latin or not any(map(_shows_disguise, words)):
        return text
    return _WORD.sub(lambda found: found[0].translate(_TRANSLATION) if _reads_as_latin(found[0]) else found[0], text)


def _reads_as_latin(word: str) -> bool:
    return all(c <= _LAST_LATIN or c in LOOKALIKES for c in word)


def _shows_disguise(word: str) -> bool:
    if word.isascii() or not _reads_as_latin(word):
        return False
    plain = "".join(c for c in word if c <= _LAST_LATIN and c.isalpha())
    styled = sum(c in _STYLED and _STYLED[c].isalpha() for c in word)
    foreign = [c for c in word if c in _FOREIGN]
    if len(plain) + styled + len(foreign) < _SHORTEST:
        return False
    if styled >= _SHORTEST:
        return True
    # A lower-case letter among capitals is a symbol: NFκB.
    symbol = plain.isupper() and "".join(foreign).islower()
    return bool(plain and foreign) and not symbol and _SYMBOL_AT_END.fullmatch(word) is None


def has_marks(look: Look) -> bool:
    """Whether there are marks apart from their letters."""
    return bool(look.odd) and not look.odd.isdisjoint(_ALL_MARKS)


def strip_marks(text: str) -> str:
    r"""A text with marks heaped on a Latin letter, or striking through several, without any mark on Latin letters.

    Letters composed with their marks stay, and so do a few marks: some languages are written so.

    >>> strip_marks("b\u0336o\u0336m\u0336b\u0336")
    'bomb'
    """
    return _MARKS_ON_LATIN.sub("", text) if _HEAPED.search(text) else text
