"""Clusters of texts over two periods: what is novel in the later one, grows, or holds more sessions with alerts.

K-means on the unit sphere, seen from the mean of all texts (`TopicMining` says why). What lies far from everything the
earlier period talked about is clustered by itself: a new topic of a few sessions would else be lost in a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from jobs.analyse.mining.coverage import COUNTED, counted, enough, percent, smaller_side, tells_of
from jobs.analyse.mining.job import Finding, MiningInput
from jobs.analyse.mining.likeness import BLOCK_ROWS, Vectors, scale_to_unit, unit_vectors
from jobs.analyse.mining.statistics import ByUser, Floats, false_discovery_rates
from jobs.analyse.mining.topic_names import Words, lookup, names_of
from jobs.analyse.mining.wording import finding
from models.policy.archive import ArchivePolicy, TopicMining

_SEED = 0
_STARTS = 3
_DECIMALS = 4
_Rows = NDArray[np.int64]
_MOSTLY = 0.5


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


def members(texts: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """One row per session and cluster that it is about: `here, day, session_id, user_id, group, novel_ratio`."""
    return (
        texts.group_by("here", "day", "session_id", "user_id", "group")
        .agg(texts=pl.len(), novel_ratio=pl.col("novel").cast(pl.Float64).mean())
        .with_columns(share=pl.col("texts") / pl.col("texts").sum().over("here", "session_id"))
        .filter(pl.col("share") >= policy.topics.session_share)
        .select("here", "day", "session_id", "user_id", "group", "novel_ratio")
    )


def cluster_table(texts: pl.DataFrame, sessions: pl.DataFrame, words: Words, policy: ArchivePolicy) -> pl.DataFrame:
    """One row per cluster of the period, the largest first.

    Columns: `group, topic, sessions, users, share, share_before, growth_q, alert_share, alert_share_others, alert_q,
    novel_ratio`; what needs an earlier period is null without one.
    """
    of = members(texts, policy)
    compared = texts.filter(~pl.col("learnt"))
    alerted = sessions.filter("alerted")["session_id"]
    here = of.filter("here").with_columns(alerted=pl.col("session_id").is_in(alerted.implode()))
    before = (
        of.filter(~pl.col("here"))
        .join(compared.select("session_id").unique(), on="session_id", how="semi")
        .group_by("group")
        .agg(before=COUNTED[0], users_before=COUNTED[1])
    )
    now, then = (compared.filter(pl.col("here") == each)["session_id"].n_unique() for each in (True, False))
    said = texts.filter("here")["session_id"].unique()
    all_alerts = said.is_in(alerted.implode()).sum()
    table = (
        here.group_by("group")
        .agg(
            *COUNTED,
            alerts=pl.col("alerted").sum(),
            novel_ratio=pl.col("novel_ratio").mean().round(3),
            about_alerts=smaller_side(pl.col("alerted")),
            about_novel_ratio=smaller_side(pl.col("novel_ratio") > 0),
        )
        .join(before, on="group", how="left")
        .with_columns(pl.col("before").fill_null(0))
        .with_columns(others=now - pl.col("sessions"), others_alerts=all_alerts - pl.col("alerts"))
        .sort("sessions", "group", descending=[True, False])
    )
    growth, risk = _rates(compared, of, alerted, table["group"])
    names = names_of(table["group"], words, policy.topics.name_words)
    # Of the other clusters' sessions the users are not told apart: at least one is.
    rest = pl.col("others_alerts"), pl.col("others") - pl.col("others_alerts")
    fewest = pl.min_horizontal(*(pl.when(side > 0).then(side) for side in rest)).cast(pl.UInt32)
    # All sessions' share is known, so either of the two gives the other.
    about_alerts = pl.struct(
        pl.min_horizontal(fewest, pl.col("about_alerts").struct.field(name)).alias(name)
        for name in ("sessions", "users")
    )
    return table.select(
        "group",
        pl.col("group").replace_strict(names, return_dtype=pl.String).alias("topic"),
        "sessions",
        "users",
        (pl.col("sessions") / now).round(4).alias("share"),
        ((pl.col("before") / then).round(4) if then else pl.lit(None, pl.Float64)).alias("share_before"),
        pl.Series("growth_q", growth),
        (pl.col("alerts") / pl.col("sessions")).round(4).alias("alert_share"),
        pl.when(pl.col("others") > 0)
        .then(pl.col("others_alerts") / pl.col("others"))
        .round(4)
        .alias("alert_share_others"),
        pl.Series("alert_q", risk),
        "novel_ratio",
        "about_novel_ratio",
        *tells_of(counted(pl.col("before"), pl.col("users_before")), "share_before", "growth_q"),
        *tells_of(about_alerts, "alert_share", "alert_share_others", "alert_q"),
    )


def _rates(texts: pl.DataFrame, of: pl.DataFrame, alerted: pl.Series, groups: pl.Series) -> tuple[Floats, Floats]:
    """False discovery rates of each cluster: that its share changed, and that its sessions alert as others do."""
    sessions = texts.select("session_id", "user_id", "here").unique().sort("session_id")
    alerts = sessions["session_id"].is_in(alerted.implode()).to_numpy()
    here, users = sessions["here"].to_numpy(), ByUser(sessions["user_id"])
    users_here = ByUser(sessions.filter("here")["user_id"])
    having = [
        sessions["session_id"].is_in(of.filter(pl.col("group") == group)["session_id"].implode()).to_numpy()
        for group in groups
    ]
    growth = false_discovery_rates([users.share_chance(here, each) for each in having])
    return growth, users_here.share_rates([each[here] for each in having], alerts[here])


def cluster_findings(
    texts: pl.DataFrame, sessions: pl.DataFrame, table: pl.DataFrame, words: Words, asked: MiningInput
) -> Iterator[Finding]:
    """New, growing and risky clusters that have a name."""
    here, alerted = texts.filter("here"), sessions.filter("alerted")["session_id"]
    level, k = asked.policy.topics.significance, asked.policy.anonymity
    grown = (pl.col("growth_q") <= level) & (pl.col("share") > pl.col("share_before"))
    risky = (
        (pl.col("alert_q") <= level)
        & (pl.col("alert_share") > pl.col("alert_share_others"))
        & (pl.col("alert_share") * pl.col("sessions") >= k.min_sessions)
    )
    telling = table.with_columns(grown=grown.fill_null(value=False), risky=risky.fill_null(value=False)).filter(
        enough(k), pl.col("grown") | pl.col("risky"), pl.col("group").is_in(list(words))
    )
    for row in telling.iter_rows(named=True):
        by = lookup(here["marks"], here["group"] == row["group"], words[row["group"]])
        found = here.filter(by.holds(here["marks"]))["session_id"].unique()
        told = {
            "grown_topic": (row["grown"], "share", "share_before", found),
            "risky_topic": (
                row["risky"],
                "alert_share",
                "alert_share_others",
                found.filter(found.is_in(alerted.implode())),
            ),
        }
        for name, (holds, share, other, sessions_found) in told.items():
            if holds:
                yield finding(
                    name,
                    asked.period,
                    strength=round(1 - row[other] / row[share], 3),
                    shares=(percent(100 * row[other], row[f"about_{other}"]),),
                    row=row,
                    new="New" if (row["novel_ratio"] or 0) >= _MOSTLY else "Growing",
                    told=by.about_text(sessions_found.len()),
                    holds_sql=by.sql("text"),
                )
