"""Drift measures of a sample from a baseline, and calibration errors. Pure, on numpy arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
_PSEUDO_COUNT = 0.5
"""Added to each bin, so that an empty one has a logarithm (Jeffreys' prior)."""


class Moved(NamedTuple):
    """Two samples of numbers beside each other.

    Attributes:
        psi: Population stability index, see `stability`.
        psi_by_chance: What two samples of these sizes from one population have on average.
        ks: Kolmogorov-Smirnov's largest distance of the distribution functions, 0-1.
        ks_p: Its p-value.
        auc: That a value of the sample is above one of the baseline, ties half; 0.5: neither.
        auc_p: Of the Mann-Whitney test.
    """

    psi: float
    psi_by_chance: float
    ks: float
    ks_p: float
    auc: float
    auc_p: float


def moved(baseline: Values, sample: Values, bins: int) -> Moved:
    """Hold a sample against a baseline; neither may be empty.

    Args:
        baseline: Shape (n,).
        sample: Shape (m,).
        bins: For the stability index.
    """
    edges = quantile_edges(baseline, bins)
    ks = stats.ks_2samp(baseline, sample, method="asymp")
    ranks = stats.mannwhitneyu(sample, baseline, method="asymptotic")
    return Moved(
        psi=stability(counts_in(baseline, edges), counts_in(sample, edges)),
        psi_by_chance=stability_by_chance(len(edges) + 1, len(baseline), len(sample)),
        ks=float(ks.statistic),
        ks_p=float(ks.pvalue),
        auc=float(ranks.statistic) / (len(baseline) * len(sample)),
        auc_p=float(ranks.pvalue),
    )


def quantile_edges(baseline: Values, bins: int) -> Values:
    """Inner edges of bins that hold the same share of the baseline; fewer where values are the same."""
    return np.unique(np.quantile(baseline, np.arange(1, bins) / bins))


def counts_in(values: Values, edges: Values) -> NDArray[np.int64]:
    """How many values are in each bin `(edge, next edge]`, the first and last open.

    >>> counts_in(np.array([0.0, 1.0, 2.0, 9.0]), np.array([1.0, 5.0])).tolist()
    [2, 1, 1]
    """
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


def stability(baseline: NDArray[np.int64], sample: NDArray[np.int64]) -> float:
    """Population stability index of counts in the same bins: Σ (q - p) · ln(q / p), Siddiqi 2006.

    p and q are the shares of the bins in baseline and sample, with half a count added to each. It is the symmetric
    Kullback-Leibler divergence (Jeffreys).

    >>> round(stability(np.array([50, 50]), np.array([50, 50])), 3)
    0.0
    >>> round(stability(np.array([500, 500]), np.array([800, 200])), 3)
    0.415
    """
    p = (baseline + _PSEUDO_COUNT) / (baseline + _PSEUDO_COUNT).sum()
    q = (sample + _PSEUDO_COUNT) / (sample + _PSEUDO_COUNT).sum()
    return float(np.sum((q - p) * np.log(q / p)))


def stability_by_chance(bins: int, n_baseline: int, n_sample: int) -> float:
    """Mean of the index where nothing moved: (bins - 1) · (1/n + 1/m), Yurdakul 2018."""
    return (bins - 1) * (1 / n_baseline + 1 / n_sample)


class Shares(NamedTuple):
    """Two samples of categories beside each other; `p` is of the χ² test of homogeneity."""

    psi: float
    psi_by_chance: float
    p: float


def shares_moved(baseline: NDArray[np.int64], sample: NDArray[np.int64]) -> Shares:
    """Hold counts of categories against a baseline's; categories that neither has do not count."""
    known = (baseline + sample) > 0
    baseline, sample = baseline[known], sample[known]
    p = float(stats.chi2_contingency(np.vstack([baseline, sample])).pvalue) if len(baseline) > 1 else 1.0
    chance = stability_by_chance(len(baseline), int(baseline.sum()), int(sample.sum()))
    return Shares(stability(baseline, sample), chance, p)


class CalibrationFit(NamedTuple):
    """How well probabilities came true.

    Attributes:
        brier: Mean squared distance of probability and outcome: 0 is perfect (Brier 1950).
        error: Expected calibration error: distance of mean probability and share in each bin, weighed by its labels
            (Naeini et al. 2015).
    """

    brier: float
    error: float


def calibration(probabilities: Values, outcomes: Values, bins: int) -> CalibrationFit:
    """Of labelled probabilities.

    Args:
        probabilities: Shape (n,), 0-1.
        outcomes: Shape (n,), 0 or 1.
        bins: Equal ones of 0-1.
    """
    at = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    counts = np.bincount(at, minlength=bins)
    gap = np.abs(np.bincount(at, probabilities, bins) - np.bincount(at, outcomes, bins))
    return CalibrationFit(float(np.mean((probabilities - outcomes) ** 2)), float(gap.sum() / max(1, counts.sum())))
