"""Embedders where nothing is searched for."""

from collections.abc import Sequence

import numpy as np

from streams.ports import Embedder, Vectors


class ZeroEmbedder(Embedder):
    """One zero row for each text."""

    name = "zero"
    dim = 4
    topic_similarity = 0.5
    episode_distance = 0.6

    def embed(self, texts: Sequence[object]) -> Vectors:
        """Of no meaning."""
        return np.zeros((len(texts), self.dim), dtype=np.float32)


class NoEmbedder(ZeroEmbedder):
    """The same, by the name of none."""

    name = "none"
