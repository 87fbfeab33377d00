"""Traits of a turn that the ranker reads: made of its text once, when it is indexed, and kept as a short text.

A turn without them, indexed by an earlier release, has them made when it is found.
"""

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.retrieval.lexical import terms_of, words_in
from models.text.language import ENGLISH, UNDECIDED
from models.text.tables import PatternTables
from models.text.words import fold_text

_FORMS = PatternTables("forms", room="retrieval")
_RE = _FORMS.section("turn")
_TEMPORAL = _FORMS.word_set("TEMPORAL")
_YEARS = frozenset(map(str, range(1900, 2100)))
_HEAD_CHARS = 4_000
"""A pasted page is looked at no further."""
_MOST_NAMES = 255
_TERM = np.dtype("<u4")
_HEAD_BYTES = 2
"""Flags, of which the fourth is no longer read, and the number of names; terms follow."""


class TurnTraits(NamedTuple):
    """What the texts of turns are like, a column each.

    Attributes:
        asks: Whether it ends with a question mark, shape `(n_turns,)`, as the next three.
        has_question: Whether it has one at all.
        temporal: Whether it has words of time.
        names: Proper names, as far as capitals show.
        lengths: Terms of each.
        terms: Ids of all terms without speakers' names, turn by turn, each once in a turn, shape `(lengths.sum(),)`.
    """

    asks: NDArray[np.bool_]
    has_question: NDArray[np.bool_]
    temporal: NDArray[np.bool_]
    names: NDArray[np.uint8]
    lengths: NDArray[np.intp]
    terms: NDArray[np.uint32]


def unpacked(packed: Sequence[str]) -> TurnTraits:
    """Traits of turns, at least one, of what was packed.

    >>> traits = unpacked([packed_traits("Anna: Did we meet Bob last week?"), packed_traits("In Oslo.")])
    >>> [each.tolist() for each in traits[:5]]
    [[True, False], [True, False], [True, False], [1, 1], [4, 1]]
    """
    each = [a2b_base64(text) for text in packed]
    flags, names = np.frombuffer(b"".join([data[:_HEAD_BYTES] for data in each]), np.uint8).reshape(-1, _HEAD_BYTES).T
    terms = np.frombuffer(b"".join([data[_HEAD_BYTES:] for data in each]), _TERM)
    lengths = (np.fromiter(map(len, each), np.intp, len(each)) - _HEAD_BYTES) // _TERM.itemsize
    return TurnTraits(flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, names, lengths, terms)


def packed_traits(content: str, words: Sequence[str] | None = None, language: str = ENGLISH) -> str:
    """Traits of a text; `words` are what `words_in` gives of it, where they are known already.

    What is read by English words is not there in another language.
    """
    named = _RE.SPEAKER.match(content)
    text = content[named.end() if named else 0 :][:_HEAD_CHARS].rstrip()
    if words is None or len(content) > _HEAD_CHARS:
        words = words_in(text)
    elif named:
        words = words[len(words_in(named[0])) :]
    reads = language in {ENGLISH, UNDECIDED}
    temporal = (reads and not _TEMPORAL.isdisjoint(words)) or not _YEARS.isdisjoint(words)
    flags = text.endswith("?") | ("?" in text) << 1 | temporal << 2
    names = min(len(_RE.NAME.findall(text)), _MOST_NAMES)
    terms = np.array(sorted(set(terms_of(words, language))), dtype=_TERM)
    return b64encode(bytes((flags, names)) + terms.tobytes()).decode()


def speaker_of(content: str) -> str:
    """Name that a turn begins with, folded; empty where there is none.

    >>> speaker_of("Anna: at six?"), speaker_of("see https://example.org: it works")
    ('anna', '')
    """
    named = ":" in content and _RE.SPEAKER.match(content)  # the pattern alone takes fifty times as long
    return fold_text(named[1]).strip() if named else ""
