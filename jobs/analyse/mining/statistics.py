"""Statistics of the jobs that take users as the unit, false discovery rates, rounding.

Sessions of one user are alike, and many of them are no more evidence than few.

A session adds `(g - mean g) (y - mean y)` to the score of a grouping g and a value y that have nothing to do with each
other. These are summed by user; users are independent, so the squares of their sums are the variance of the whole
(the score test of generalised estimating equations with independence, Liang and Zeger 1986, referred to Student's t).
With few users it is all but exact under equal sums, and never surer than so many users can be.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from polars import selectors as cs
from scipy import stats

from jobs.analyse.mining.coverage import COUNTED, smaller_side, tells_of
from jobs.shared.intervals import wilson

Floats = NDArray[np.float64]
PERCENT = 100


class ByUser:
    """The users of some sessions, one per session."""

    def __init__(self, users: pl.Series) -> None:
        self._user_of = users.rank("dense").to_numpy().astype(np.int64) - 1

    def chance_of(self, scores: Floats) -> float:
        """p-value, two-sided, of scores of sessions, `(n_sessions,)`, that should sum up to nothing."""
        sums = np.bincount(self._user_of, scores)
        squares = float((sums**2).sum())
        if len(sums) < 2 or squares <= np.finfo(np.float64).eps * len(sums):  # noqa: PLR2004 - one user varies by nothing
            return 1.0
        # With t² = (n - 1) (1 - u) / u: no user's weight divides by nothing, and equal sums are told as such.
        unexplained = float(((sums - sums.mean()) ** 2).sum()) / squares
        return float(stats.beta.cdf(min(1.0, unexplained), (len(sums) - 1) / 2, 0.5))

    def chance(self, group: ArrayLike, values: ArrayLike) -> float:
        """p-value, two-sided, that sessions of a group have other values than the rest."""
        g, y = np.asarray(group, np.float64), np.asarray(values, np.float64)
        return self.chance_of((g - g.mean()) * (y - y.mean())) if g.size else 1.0

    def share_chance(self, group: NDArray[np.bool_], hits: NDArray[np.bool_]) -> float:
        """p-value, two-sided, that another share of a group's sessions are hits than of the rest.

        The larger one of the score test's and of Fisher's exact test, which takes sessions as independent: where hits
        are rare, the former takes too few of them for sure.
        """
        if group.all() or not group.any():
            return 1.0
        table = [[int((side & hit).sum()) for hit in (hits, ~hits)] for side in (group, ~group)]
        return max(float(stats.fisher_exact(table).pvalue), self.chance(group, hits))

    def share_rates(self, groups: Iterable[NDArray[np.bool_]], hits: NDArray[np.bool_]) -> Floats:
        """False discovery rates of `share_chance` of each of the groups."""
        return false_discovery_rates([self.share_chance(group, hits) for group in groups])


def false_discovery_rates(chances: Sequence[float]) -> Floats:
    """Of each of these p-values (Benjamini and Hochberg 1995), `(n,)`."""
    rates: Floats = np.asarray(stats.false_discovery_control(chances) if len(chances) else [], np.float64)
    return rates


def wilson_ends(hits: pl.Series, of: pl.Series, confidence: float = 0.95) -> list[pl.Series]:
    """The low and the high ends of Wilson's intervals of shares, 0-1."""
    intervals = [wilson(*each, confidence) for each in zip(hits, of, strict=True)]
    return [pl.Series([each[end] for each in intervals], dtype=pl.Float64) for end in (0, 1)]


def precision_by(
    labelled: pl.DataFrame, *by: str, also: Sequence[pl.Expr] = (), ends: Sequence[str] = ("from_ratio", "to_ratio")
) -> pl.DataFrame:
    """Of each kind, app or week: `labels`, and the share of them that were right, with its 95 % interval (Wilson).

    Args:
        labelled: Labelled alerts: `session_id`, `user_id`, `escalating` and the columns that are named.
        by: Columns whose values make a group.
        also: What else is told of each group.
        ends: Columns of the interval.
    """
    right = pl.col("escalating").cast(pl.Boolean)
    counts = labelled.group_by(by).agg(
        *COUNTED, pl.len().alias("labels"), *also, right=right.sum(), about=smaller_side(right)
    )
    cells = ("right_ratio", *ends)
    values = (counts["right"] / counts["labels"], *wilson_ends(counts["right"], counts["labels"]))
    told = counts.with_columns(**dict(zip(cells, values, strict=True))).with_columns(tells_of(pl.col("about"), *cells))
    return told.drop("right", "about").sort("labels", *by, descending=[True, *(False for _ in by)])


def rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Percents to one digit, everything else to three figures: as it is shown."""
    percents = cs.ends_with("percent") & cs.float()
    return table.with_columns(percents.round(1), (cs.float() - percents).round_sig_figs(3))
