"""The table of near words is made of the words that a search may look for."""

from collections.abc import Sequence

import numpy as np

from jobs.lab.train.words import table_of, words_of
from models.retrieval.lexical import terms
from streams.ports import Embedder, Vectors

DIRECTIONS = {
    "kayak": (1, 0, 9),
    "kayaks": (1, 0.2, 9),
    "canoe": (1, 0.6, 9),
    "tax": (-1, 0.1, 9),
    "rent": (-1, -0.9, 9),
}
"""The last one is what all words have in common."""


class Known(Embedder):
    """Vectors of these words; whoever takes them for texts gets none."""

    name, dim, topic_similarity, episode_distance = "known", 3, 0.5, 0.5

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Nothing of them is known."""
        raise AssertionError(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """By word."""
        return np.array([DIRECTIONS[text] for text in texts], dtype=np.float32)


def test_words_are_those_of_one_term() -> None:
    """In order, with what follows them ignored; stop words, short ones and numbers are looked for by nobody."""
    lines = ["the 999", "kayaks 50", "it's 9", "ox 8", "2020 7", "kayak 6", "", "canoe"]

    assert list(words_of(lines)) == ["kayaks", "kayak", "canoe"]


def test_near_words_are_found_by_term() -> None:
    """Once what all have in common is taken away: two forms of a word are one term, which is not near itself."""
    table = table_of(words_of(DIRECTIONS), Known())
    kayak, canoe, tax, rent = (terms(word)[0] for word in ("kayak", "canoe", "tax", "rent"))
    near = {term: dict(zip(*map(np.ndarray.tolist, table.nearest(term)), strict=True)) for term in (kayak, canoe, tax)}

    assert [set(near[term]) for term in (kayak, canoe, tax)] == [{canoe}, {kayak}, {rent}]
    assert 0.3 <= near[canoe][kayak] < 1.0
