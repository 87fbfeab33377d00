"""Words that mean much the same as another: for each of the usual English words its nearest, with their cosines.

Made once of a sentence encoder's vectors of single words (`turntide lab train words`), so that no model runs when
somebody asks: "exercise" finds "kickboxing". `data/words.md` says of what it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

COSINE_STEPS = 255
_FILE = "words.npz"


class WordTable(NamedTuple):
    """Neighbours of terms.

    Attributes:
        terms: Ids of terms, ascending, shape `(n_terms,)` uint32.
        starts: Where each one's neighbours begin, and where the last one's end, shape `(n_terms + 1,)` uint32.
        neighbours: Rows of `terms`, ascending within a term's, shape `(n_pairs,)` uint16.
        cosines: Of each pair, in steps of 1 / `COSINE_STEPS`, uint8.
    """

    terms: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    neighbours: NDArray[np.uint16]
    cosines: NDArray[np.uint8]

    @classmethod
    def of_pairs(cls, pairs: Mapping[int, Mapping[int, float]]) -> WordTable:
        """A table of pairs: term → near term → cosine, 0-1."""
        terms = np.array(sorted(pairs.keys() | {near for each in pairs.values() for near in each}), dtype=np.uint32)
        rows = {int(term): row for row, term in enumerate(terms)}
        near = [sorted((rows[other], cosine) for other, cosine in pairs.get(int(term), {}).items()) for term in terms]
        flat = [each for found in near for each in found]
        return cls(
            terms,
            np.cumsum([0, *map(len, near)], dtype=np.uint32),
            np.array([row for row, _ in flat], dtype=np.uint16),
            np.array([round(cosine * COSINE_STEPS) for _, cosine in flat], dtype=np.uint8),
        )

    def nearest(self, term: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Ids of the terms near one, ascending, and their cosines; none of a term that is not in the table."""
        row = int(self.terms.searchsorted(np.uint32(term)))  # of another type all terms would be converted
        if row == len(self.terms) or self.terms[row] != term:
            return self.terms[:0], np.zeros(0, dtype=np.float32)
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.terms[self.neighbours[part]], (self.cosines[part] / COSINE_STEPS).astype(np.float32)


@cache
def word_table() -> WordTable:
    """The table that the package ships."""
    with (files("models.retrieval") / "data" / _FILE).open("rb") as file, np.load(file, allow_pickle=False) as saved:
        return WordTable(*(saved[name] for name in WordTable._fields))
