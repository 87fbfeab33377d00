"""Words of a text, its folded form and its size."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

HEAD_CHARS = 4_000
TAIL_CHARS = 1_000
"""Only the first 4,000 and last 1,000 characters of a text are examined: a long paste must not cost more than
many turns, and what is asked of it stands before or after it."""
CHARS_PER_TOKEN = 4
"""Token estimate where no tokeniser is at hand (style, measured traps)."""

REMEMBERED_WORDS = 65_536
REMEMBERED_CHARS = 40
"""What is remembered of the vocabulary in memory: nearly every word a language has, and no pasted keys."""
_T = TypeVar("_T")

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_QUOTES = str.maketrans("\u2019\u2018\u02bc`\u201c\u201d\u2026\u2013\u2014", "''''\"\".--")
_SEPARATORS = bytes(c if chr(c).isalnum() or chr(c) in "'\n" else ord(" ") for c in range(128))
_BYTES = _SEPARATORS + bytes(range(128, 256))


def fold_text(content: str) -> str:
    """Lower case; outside ASCII also NFKC, plain quotes and no invisible characters. Capped as stated above.

    >>> fold_text("H\u200bACK the \uff30lanet")
    'hack the planet'
    """
    content = capped(content)
    if not content.isascii():
        content = _INVISIBLE.sub("", unicodedata.normalize("NFKC", content)).translate(_QUOTES)
    return content.lower()


def capped(content: str) -> str:
    """The first and last characters of a long text, any other as it is."""
    if len(content) <= HEAD_CHARS + TAIL_CHARS:
        return content
    return f"{content[:HEAD_CHARS]}\n{content[-TAIL_CHARS:]}"


def words_of(folded: str) -> list[str]:
    """Words in order, without punctuation; contractions stay whole.

    >>> words_of("well, don't panic!")
    ['well', "don't", 'panic']
    """
    return _spaced(folded).split()


def _spaced(folded: str) -> str:
    """The text with spaces in place of punctuation; line breaks and apostrophes stay."""
    if folded.isascii():  # A table of bytes takes half as long as one of characters.
        return folded.encode().translate(_BYTES).decode()
    return folded.translate(_SEPARATORS.decode())


def words_of_each(texts: list[str]) -> list[list[str]]:
    """Folded words of several texts without line breaks; one pass over all, as a pass costs more than its characters.

    >>> words_of_each(["One, two", "", "three"])
    [['one', 'two'], [], ['three']]
    """
    lines = "\n".join(texts)
    # What folding does to a text that is not ASCII, or is too long, it must not do to its neighbours.
    if not texts or not lines.isascii() or len(lines) > HEAD_CHARS + TAIL_CHARS:
        return [words_of(fold_text(text)) for text in texts]
    return [line.split() for line in _spaced(fold_text(lines)).split("\n")]


class Remembered(dict[str, _T], Generic[_T]):
    """Results of a function of a word, for the words met so far: a look-up costs half of one in an `lru_cache`."""

    def __init__(self, of: Callable[[str], _T]) -> None:
        super().__init__()
        self.of = of

    def __missing__(self, word: str) -> _T:
        found = self.of(word)
        if len(word) <= REMEMBERED_CHARS:
            if len(self) >= REMEMBERED_WORDS:
                self.clear()
            self[word] = found
        return found


def word_set(text: str) -> frozenset[str]:
    """The words of a constant, so that a long list of them stays readable."""
    return frozenset(text.split())


def estimate_tokens(content: str) -> int:
    """Tokens at about four characters each, rounded up."""
    return -(-len(content) // CHARS_PER_TOKEN)


def latest_that_fit(items: Sequence[_T], room: int, size: Callable[[_T], int]) -> list[_T]:
    """The last items that together take no more room, in their order.

    >>> latest_that_fit(["12345678", "1234", "12345"], 3, estimate_tokens)
    ['1234', '12345']
    """
    for count, item in enumerate(reversed(items)):
        room -= size(item)
        if room < 0:
            return list(items[len(items) - count :])
    return list(items)


def utf8_bytes(content: str) -> int:
    """Length in UTF-8."""
    return len(content) if content.isascii() else len(content.encode("utf-8", "surrogatepass"))
