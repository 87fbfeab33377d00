"""`turntide lab train words`: the table of near words that search looks up, from a list of words by frequency."""

from collections.abc import Iterable, Mapping

import numpy as np

from models.retrieval.lexical import STOP_WORDS, terms
from models.retrieval.word_table import WordTable
from streams.ports import Embedder

MOST_WORDS = 20_000
MOST_NEAR = 50
LEAST_COSINE = 0.3
"""Below it words have little to do with each other."""
_SHORTEST = 3
_OF_ONE_TERM = 10
"""Words that are looked at beyond `MOST_NEAR`: some of them are one term."""
_BLOCK = 1_000


def words_of(lines: Iterable[str]) -> dict[str, int]:
    """Of lines that begin with a word, the most frequent first: words that are one term of a search, with its id."""
    found: dict[str, int] = {}
    for word in (line.partition(" ")[0].strip() for line in lines):
        if len(word) >= _SHORTEST and word.isalpha() and word not in STOP_WORDS and len(ids := terms(word)) == 1:
            found.setdefault(word, ids[0])
        if len(found) == MOST_WORDS:
            break
    return found


def table_of(words: Mapping[str, int], embedder: Embedder) -> WordTable:
    """For the term of each word the nearest other terms; of several words that are one term the nearest one counts.

    Vectors are centred: what all single words have in common would make any two of them near.
    """
    vectors = embedder.embed_queries(list(words))
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids, pairs = list(words.values()), dict[int, dict[int, float]]()
    for first in range(0, len(ids), _BLOCK):
        for term, cosines in zip(ids[first : first + _BLOCK], vectors[first : first + _BLOCK] @ vectors.T, strict=True):
            near, found = np.flatnonzero(cosines >= LEAST_COSINE), pairs.setdefault(term, {})
            for row in near[np.argsort(-cosines[near], kind="stable")][: MOST_NEAR + _OF_ONE_TERM].tolist():
                if ids[row] != term:
                    found[ids[row]] = max(found.get(ids[row], 0.0), float(cosines[row]))
    best = {term: sorted(found.items(), key=lambda each: -each[1])[:MOST_NEAR] for term, found in pairs.items()}
    return WordTable.of_pairs({term: dict(found) for term, found in best.items()})
