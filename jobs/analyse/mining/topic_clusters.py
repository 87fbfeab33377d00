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
from threadpoolctl import threadpool_limits

from jobs.analyse.mining.likeness import BLOCK_ROWS, Vectors, scale_to_unit, unit_vectors
from models.policy.archive import ArchivePolicy, TopicMining

_SEED = 0
_STARTS = 3
_DECIMALS = 4
_Rows = NDArray[np.int64]


def clustered(here: pl.DataFrame, before: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Cluster the texts of a period together with those of the earlier one.

    Args:
        here: `day, session_id, user_id, place, vector, marks` of the period, one text at least.
        before: The same of the earlier period; may be empty.
        policy: Rules.

    Returns:
        The texts without their vectors, first those of the period (`here`), with their cluster (`group`), the
        `distance` from the earlier period's topics, 0-2, and whether that makes them `novel`; these two are null where
        there is too little of an earlier period. Texts of which those topics were `learnt` are never far from them: the
        share of a cluster is to be compared without them.
    """
    rules = policy.topics
    texts = pl.concat([here.with_columns(here=True), before.with_columns(here=False)])
    space = _Space(texts["vector"], rules)
    texts = texts.drop("vector")
    of_period = texts["here"].to_numpy()
    distance = _novelty(texts["session_id"], np.flatnonzero(~of_period), space, policy)
    nothing = np.zeros(len(of_period), dtype=bool)
    learnt = nothing if distance is None else distance.learnt
    far = nothing if distance is None else ~learnt & (distance.of_texts > distance.far)
    # Clusters of what is far are made of both periods' texts: made of the period's alone, they would suit it better.
    novel = far & of_period
    old_sessions, new_sessions = (texts.filter(chosen)["session_id"].n_unique() for chosen in (~novel, novel))
    clusters = min(rules.clusters, old_sessions // rules.sessions_per_cluster)
    centroids = space.fit(np.flatnonzero(~far), clusters)
    if new_sessions >= policy.anonymity.min_sessions:
        clusters = min(rules.novel_clusters, new_sessions // rules.sessions_per_cluster)
        centroids = np.concatenate([centroids, space.fit(np.flatnonzero(far), clusters)])
    group, _ = space.nearest(centroids)
    return texts.with_columns(
        group=pl.Series(group),
        distance=None if distance is None else pl.Series(distance.of_texts),
        novel=None if distance is None else pl.Series(novel),
        learnt=pl.Series(learnt),
    )


class _Distance(NamedTuple):
    of_texts: NDArray[np.float32]
    far: float
    learnt: NDArray[np.bool_]


def _novelty(sessions: pl.Series, before: _Rows, space: _Space, policy: ArchivePolicy) -> _Distance | None:
    """Distances of all texts from the earlier period's clusters, and from where on one is far.

    The clusters are learnt from half of its sessions, drawn by lot; the others say how far an ordinary text is.
    """
    session = sessions.gather(before).rank("dense").to_numpy().astype(np.int64) - 1
    half = (int(session.max(initial=-1)) + 1) // 2
    if half < policy.topics.sessions_per_cluster:
        return None
    learnt = (np.random.default_rng(_SEED).permutation(session.max() + 1) < half)[session]
    centroids = space.fit(before[learnt], min(policy.topics.novelty_clusters, half))
    _, distances = space.nearest(centroids)
    of_learnt = np.zeros(len(sessions), dtype=bool)
    of_learnt[before[learnt]] = True
    far = float(np.quantile(distances[before[~learnt]], policy.topics.novel_quantile))
    return _Distance(distances, far, of_learnt)


class _Space:
    """The texts' vectors as they are kept, seen from the middle of all of them.

    A million texts are 256 MB so, and would be a gigabyte as numbers: they are that block by block.
    """

    def __init__(self, kept: pl.Series, rules: TopicMining) -> None:
        self._kept, self._most = kept.to_numpy(), rules.fitted_texts
        self._centre: Vectors = unit_vectors(self._kept[_evenly(np.arange(len(kept)), self._most)]).mean(axis=0)

    def fit(self, rows: _Rows, clusters: int) -> Vectors:
        """Centroids of unit length of these texts, `(n_clusters, 256)`; one at least, and no more than texts."""
        sample = unit_vectors(self._kept[_evenly(rows, self._most)], self._centre)
        wanted = max(1, min(clusters, len(sample)))
        # Batches are too small to share: on a busy machine threads that spin for each other took ten times the
        # processor time of one.
        with threadpool_limits(1):
            means = MiniBatchKMeans(wanted, random_state=_SEED, n_init=_STARTS, batch_size=BLOCK_ROWS).fit(sample)
        centroids: Vectors = means.cluster_centers_.astype(np.float32)
        scale_to_unit(centroids)
        return centroids

    def nearest(self, centroids: Vectors) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The nearest centroid of each text, and the cosine distance from it."""
        group = np.empty(len(self._kept), dtype=np.int32)
        distance = np.empty(len(self._kept), dtype=np.float32)
        for first in range(0, len(self._kept), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            cosines = unit_vectors(self._kept[rows], self._centre) @ centroids.T
            group[rows] = cosines.argmax(axis=1)
            # Rounded, so that the same text twice is at no distance at all.
            distance[rows] = np.round(1 - cosines.max(axis=1), _DECIMALS)
        return group, distance


def _evenly(rows: _Rows, most: int) -> _Rows:
    """At most so many of the rows, spread over all of them."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
