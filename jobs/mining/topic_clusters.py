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
_DECIMALS = 4


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
    old_sessions, new_sessions = (texts.filter(chosen)["session_id"].n_unique() for chosen in (~novel, novel))
    centroids = _fit(vectors[~novel], rules, min(rules.clusters, old_sessions // rules.sessions_per_cluster))
    known = len(centroids)
    if new_sessions >= policy.anonymity.min_sessions:
        clusters = min(rules.novel_clusters, new_sessions // rules.sessions_per_cluster)
        centroids = np.concatenate([centroids, _fit(vectors[novel], rules, clusters)])
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

    The clusters are learnt from half of its sessions, drawn by lot; the others say how far an ordinary text is.
    """
    if before["session_id"].n_unique() < 2 * policy.topics.sessions_per_cluster:
        return None
    session = before["session_id"].rank("dense").to_numpy().astype(np.int64) - 1
    sessions = before["session_id"].n_unique() // 2
    learnt = (np.random.default_rng(_SEED).permutation(session.max() + 1) < sessions)[session]
    centroids = _fit(known[learnt], policy.topics, min(policy.topics.novelty_clusters, sessions))
    _, ordinary = _nearest(known[~learnt], centroids)
    _, distances = _nearest(vectors, centroids)
    return _Distance(distances, float(np.quantile(ordinary, policy.topics.novel_quantile)))


def _fit(vectors: Vectors, rules: TopicMining, clusters: int) -> Vectors:
    """Centroids of unit length, `(n_clusters, 256)`; one at least, and no more than texts."""
    sample = _sample(vectors, rules.fitted_texts)
    means = MiniBatchKMeans(
        max(1, min(clusters, len(sample))), random_state=_SEED, n_init=_STARTS, batch_size=BLOCK_ROWS
    ).fit(sample)
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
        # Rounded, so that the same text twice is at no distance at all.
        distance[rows] = np.round(1 - cosines.max(axis=1), _DECIMALS)
    return group, distance
