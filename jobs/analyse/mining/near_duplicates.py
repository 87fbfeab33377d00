"""Near-duplicate detection among many texts: by common shingles (MinHash, Broder 1997) or by vectors.

Texts are linked directly; those that hang together over any number of links are one group (connected components).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from datasketch import MinHash
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jobs.analyse.mining.likeness import BLOCK_ROWS, Vectors
from models.policy.archive import CampaignMining

Signatures = NDArray[np.uint32]
Labels = NDArray[np.int32]
_Places = NDArray[np.int64]
_SEED = 1
_BLOCK_ROWS = 512
"""Rows multiplied with all others at once: where all are alike, every product makes a link of 16 bytes."""


def signatures(words: Sequence[Sequence[str]], rules: CampaignMining) -> pl.Series:
    """MinHash signatures of the texts' shingles, `Array(UInt32, permutations)`; the same in every run.

    Args:
        words: Of each text, in their order, at least one.
        rules: Length of a shingle and of a signature.
    """
    size = rules.shingle_words
    shingles = [
        [" ".join(said[first : first + size]).encode() for first in range(max(1, len(said) - size + 1))]
        for said in words
    ]
    made = MinHash.bulk(shingles, num_perm=rules.permutations, seed=_SEED)
    hashes = np.array([each.hashvalues for each in made], dtype=np.uint32).reshape(-1, rules.permutations)
    return pl.Series(hashes, dtype=pl.Array(pl.UInt32, rules.permutations))


def groups_of(signed: Signatures, vectors: Vectors, rules: CampaignMining) -> Labels:
    """A number for each text; texts of one group have the same.

    Args:
        signed: Signatures, `(n_texts, permutations)`.
        vectors: Of unit length, `(n_texts, 256)`.
        rules: How alike near duplicates are.
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
