"""Clusters of texts over two periods, and what is novel in the later one.

K-means on the unit sphere, seen from the mean of all texts (`TopicMining` says why). What lies far from everything the
earlier period talked about is clustered by itself: a new topic of a few sessions would else be lost in a large one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from jobs.mining.likeness import BLOCK_ROWS, Vectors, scale_to_unit, unit_vectors
from models.archive_policy import ArchivePolicy, TopicMining

_SEED = 0
_STARTS = 3


class Clustered(NamedTuple):
    """The texts of both periods, and what they were grouped into.

    Attributes:
        texts: `day, session_id, user_id, place, marks`, whether the text is of the period (`here`), its cluster
            (`group`), its `distance` from the earlier period's topics, 0-2, and whether that makes it `novel`; these
            two are null where there is too little of an earlier period.
        known: Clusters with a lower number are of both periods, the others of novel texts.
    """

    texts: pl.DataFrame
    known: int


def clustered(here: pl.DataFrame, before: pl.DataFrame, policy: ArchivePolicy) -> Clustered:
    """Cluster the texts of a period together with those of the earlier one.

    Args:
        here: `day, session_id, user_id, vector, marks` of the period.
        before: The same of the earlier period; may be empty.
        policy: Rules.
    """
    rules = policy.topics
    texts = pl.concat([here.with_columns(here=True), before.with_columns(here=False)])
    centre = _sample(unit_vectors(texts["vector"]), rules.fitted_texts).mean(axis=0)
    vectors = unit_vectors(texts["vector"], centre)
    texts = texts.drop("vector")
    of_period = texts["here"].to_numpy()
    distance = _novelty(texts.filter(~pl.col("here")), vectors[~of_period], vectors, policy)
    novel = np.zeros(len(vectors), dtype=bool) if distance is None else of_period & (distance.far < distance.of_texts)
    centroids = _fit(vectors[~novel], texts.filter(~novel), rules, rules.clusters)
    known = len(centroids)
    if texts.filter(novel)["session_id"].n_unique() >= policy.anonymity.min_sessions:
        centroids = np.concatenate([centroids, _fit(vectors[novel], texts.filter(novel), rules, rules.novel_clusters)])
    group, _ = _nearest(vectors, centroids)
    return Clustered(
        texts.with_columns(
            group=pl.Series(group),
            distance=None if distance is None else pl.Series(distance.of_texts),
            novel=None if distance is None else pl.Series(novel),
        ),
        known,
    )


class _Distance(NamedTuple):
    of_texts: NDArray[np.float32]
    far: float


def _novelty(before: pl.DataFrame, known: Vectors, vectors: Vectors, policy: ArchivePolicy) -> _Distance | None:
    """Distances of all texts from the earlier period's clusters, and from where on one is far.

    The clusters are learnt from every other session of it; the rest say how far an ordinary text is.
    """
    if before["session_id"].n_unique() < 2 * policy.topics.sessions_per_cluster:
        return None
    learnt = (before["session_id"].rank("dense") % 2 == 0).to_numpy()
    centroids = _fit(known[learnt], before.filter(learnt), policy.topics, policy.topics.clusters)
    _, ordinary = _nearest(known[~learnt], centroids)
    _, distances = _nearest(vectors, centroids)
    return _Distance(distances, float(np.quantile(ordinary, policy.topics.novel_quantile)))


def _fit(vectors: Vectors, texts: pl.DataFrame, rules: TopicMining, most: int) -> Vectors:
    """Centroids of unit length, `(n_clusters, 256)`, as many as the sessions give."""
    sessions = texts["session_id"].n_unique()
    sample = _sample(vectors, rules.fitted_texts)
    clusters = max(1, min(most, sessions // rules.sessions_per_cluster, len(sample)))
    means = MiniBatchKMeans(clusters, random_state=_SEED, n_init=_STARTS, batch_size=BLOCK_ROWS).fit(sample)
    centroids: Vectors = means.cluster_centers_.astype(np.float32)
    scale_to_unit(centroids)
    return centroids


def _sample(vectors: Vectors, most: int) -> Vectors:
    """At most so many of the rows, evenly."""
    if len(vectors) <= most:
        return vectors
    return vectors[np.linspace(0, len(vectors) - 1, most).astype(np.int64)]


def _nearest(vectors: Vectors, centroids: Vectors) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The nearest centroid of each row, and the cosine distance from it."""
    group = np.empty(len(vectors), dtype=np.int32)
    distance = np.empty(len(vectors), dtype=np.float32)
    for first in range(0, len(vectors), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        cosines = vectors[rows] @ centroids.T
        group[rows] = cosines.argmax(axis=1)
        distance[rows] = 1 - cosines.max(axis=1)
    return group, distance
