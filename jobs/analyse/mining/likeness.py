"""Vectors of texts as the jobs keep and compare them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from streams.inference.wordllama import WordLlamaEmbedder

Vectors = NDArray[np.float32]
_LARGEST = 127
BLOCK_ROWS = 4_096
"""Rows that are compared with centroids or with each other at once."""


def kept_vectors(texts: Sequence[str]) -> pl.Series:
    """Vectors of the default embedder, a byte per dimension: only their direction is kept."""
    vectors = WordLlamaEmbedder().embed(texts)
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    return pl.Series(np.rint(scaled * _LARGEST).astype(np.int8), dtype=pl.Array(pl.Int8, WordLlamaEmbedder.dim))


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
