"""Traits of a turn that the ranker reads: made of its text once, when it is indexed, and kept as a short text.

A turn without them, indexed by an earlier release, has them made when it is found.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.retrieval.lexical import terms_of, words_in
from models.text.language import ENGLISH, UNDECIDED
from models.text.tables import PatternTables
from models.text.words import fold_text

_FORMS = PatternTables("forms", room="retrieval")
_RE = _FORMS.section("turn")
_TEMPORAL, _FIRST_PERSON = _FORMS.word_set("TEMPORAL"), _FORMS.word_set("FIRST_PERSON")
_YEARS = frozenset(map(str, range(1900, 2100)))
_HEAD_CHARS = 4_000
"""A pasted page is looked at no further."""
_MOST_NAMES = 255
_FLAGS = 4
_UNPACKED_FLAGS = [flags[::-1] for flags in product((False, True), repeat=_FLAGS)]
"""By the number that they are packed as."""
_TERM = np.dtype("<u4")


class TurnTraits(NamedTuple):
    """What a turn's text is like.

    Attributes:
        asks: Whether it ends with a question mark.
        has_question: Whether it has one at all.
        temporal: Whether it has words of time.
        first_person: Whether its speaker speaks of themselves.
        names: Proper names, as far as capitals show.
        terms: Ids of its terms without the speaker's name, ascending, each once, shape `(n_terms,)`.
    """

    asks: bool
    has_question: bool
    temporal: bool
    first_person: bool
    names: int
    terms: NDArray[np.uint32]

    def packed(self) -> str:
        """As a text."""
        flags = sum(flag << place for place, flag in enumerate(self[:_FLAGS]))
        return b64encode(bytes((flags, self.names)) + self.terms.astype(_TERM).tobytes()).decode()

    @classmethod
    def unpacked(cls, text: str) -> TurnTraits:
        """What was packed.

        >>> packed = traits_of("Anna: Did we meet Bob last week?").packed()
        >>> TurnTraits.unpacked(packed)[:5]
        (True, True, True, True, 1)
        """
        data = a2b_base64(text)
        asks, has_question, temporal, first_person = _UNPACKED_FLAGS[data[0]]
        return cls(asks, has_question, temporal, first_person, data[1], np.frombuffer(data, _TERM, -1, 2))


def traits_of(content: str, words: Sequence[str] | None = None, language: str = ENGLISH) -> TurnTraits:
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
    return TurnTraits(
        asks=text.endswith("?"),
        has_question="?" in text,
        temporal=(reads and not _TEMPORAL.isdisjoint(words)) or not _YEARS.isdisjoint(words),
        first_person=reads and not _FIRST_PERSON.isdisjoint(words),
        names=min(len(_RE.NAME.findall(text)), _MOST_NAMES),
        terms=np.array(sorted(set(terms_of(words, language))), dtype=_TERM),
    )


def speaker_of(content: str) -> str:
    """Name that a turn begins with, folded; empty where there is none.

    >>> speaker_of("Anna: at six?"), speaker_of("see https://example.org: it works")
    ('anna', '')
    """
    named = _RE.SPEAKER.match(content)
    return fold_text(named[1]).strip() if named else ""
