"""Likeness of texts as the jobs keep and compare them: by vectors, and by common shingles (MinHash, Broder 1997)."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from datasketch import MinHash
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from models.policy.archive import CampaignMining
from streams.inference.wordllama import WordLlamaEmbedder

Vectors = NDArray[np.float32]
Signatures = NDArray[np.uint32]
Labels = NDArray[np.int32]
_Places = NDArray[np.int64]
_SEED = 1
_LARGEST = 127
BLOCK_ROWS = 4_096
"""Rows that are compared with centroids or with each other at once."""
_BLOCK_ROWS = 512
"""Rows multiplied with all others at once: where all are alike, every product makes a link of 16 bytes."""


def kept_vectors(texts: Sequence[str]) -> pl.Series:
    """Vectors of the default embedder, a byte per dimension: only their direction is kept.

    Block by block: cut into tokens, a text takes 9 KB, and its vector 256 bytes.
    """
    embedder = WordLlamaEmbedder()
    kept = np.empty((len(texts), embedder.dim), dtype=np.int8)
    for first in range(0, len(texts), BLOCK_ROWS):
        vectors = embedder.embed(texts[first : first + BLOCK_ROWS])
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
        scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
        kept[first : first + len(vectors)] = np.rint(scaled * _LARGEST)
    return pl.Series(kept, dtype=pl.Array(pl.Int8, embedder.dim))


def unit_vectors(kept: NDArray[np.int8], centre: Vectors | None = None) -> Vectors:
    """Rows of unit length or zero, `(n_texts, 256)`, seen from a centre if one is given."""
    vectors: Vectors = kept.reshape(-1, WordLlamaEmbedder.dim).astype(np.float32)
    scale_to_unit(vectors)
    if centre is not None:
        vectors -= centre
        scale_to_unit(vectors)
    return vectors


def scale_to_unit(vectors: Vectors) -> None:
    """Scale each row to length 1, in place; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)


def signatures(words: Sequence[Sequence[str]], rules: CampaignMining) -> pl.Series:
    """MinHash signatures of the shingles of each text's words, `Array(UInt32, permutations)`; the same in every run."""
    size = rules.shingle_words
    shingles = [
        [" ".join(said[first : first + size]).encode() for first in range(max(1, len(said) - size + 1))]
        for said in words
    ]
    made = MinHash.bulk(shingles, num_perm=rules.permutations, seed=_SEED)
    hashes = np.array([each.hashvalues for each in made], dtype=np.uint32).reshape(-1, rules.permutations)
    return pl.Series(hashes, dtype=pl.Array(pl.UInt32, rules.permutations))


def groups_of(signed: Signatures, vectors: Vectors, rules: CampaignMining) -> Labels:
    """A number for each text; texts that are linked over any number of near duplicates have the same.

    By signatures, `(n_texts, permutations)`, and vectors of unit length, `(n_texts, 256)`.
    """
    groups = _merged(np.arange(len(signed), dtype=np.int32), *_by_shingles(signed, rules))
    # Only what is not in one group yet is linked: a thousand copies would else make half a million links.
    for first in range(0, len(vectors), _BLOCK_ROWS):
        cosines = vectors[first : first + _BLOCK_ROWS] @ vectors[first:].T
        one, other = np.nonzero(cosines >= rules.cosine)
        groups = _merged(groups, one + first, other + first)
    return groups


def _by_shingles(signed: Signatures, rules: CampaignMining) -> tuple[_Places, _Places]:
    """Links to the first text of each bucket of locality-sensitive hashing, where the estimated Jaccard is enough.

    A text that is not near the first of one bucket has other firsts in other buckets; comparing all pairs of a bucket
    would take the square of a campaign's size.
    """
    rows = rules.permutations // rules.bands
    links = []
    for first in range(0, rows * rules.bands, rows):
        band = np.ascontiguousarray(signed[:, first : first + rows]).view(np.dtype((np.void, rows * signed.itemsize)))
        _, firsts, bucket = np.unique(band.ravel(), return_index=True, return_inverse=True)
        texts = np.flatnonzero(firsts[bucket] != np.arange(len(signed)))
        links.append(texts * len(signed) + firsts[bucket][texts])
    one, other = np.divmod(np.unique(np.concatenate(links)), max(1, len(signed)))
    near = np.concatenate(
        [
            (signed[one[rows_]] == signed[other[rows_]]).mean(axis=1) >= rules.jaccard
            for rows_ in (slice(at, at + BLOCK_ROWS) for at in range(0, max(1, len(one)), BLOCK_ROWS))
        ]
    )
    return one[near], other[near]


def _merged(groups: Labels, one: _Places, other: _Places) -> Labels:
    """Groups after linking texts."""
    apart = groups[one] != groups[other]
    if not apart.any():
        return groups
    links = np.unique(np.stack([groups[one[apart]], groups[other[apart]]]), axis=1)
    graph = coo_array((np.ones(links.shape[1], dtype=np.int8), tuple(links)), shape=(len(groups), len(groups)))
    _, found = connected_components(graph, directed=False)
    merged: Labels = found[groups].astype(np.int32)
    return merged
