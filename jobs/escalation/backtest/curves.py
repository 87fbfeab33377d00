"""Curves of scores beside alerts: recall at every threshold, delays by class, calibration of probabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
from msgspec import Struct, structs

from jobs.escalation.backtest.judging import JudgedSession

CLASSES = 10


class SweepPoint(Struct, frozen=True, gc=False):
    """What a threshold would do to sessions by their highest scores alone."""

    threshold: float
    false_alarm_ratio: float
    recall: float


class Reliable(Struct, frozen=True, gc=False):
    """Sessions whose highest probabilities are close together, and how many of them escalate.

    Attributes:
        sessions: Labelled ones, as many as there are.
        predicted: Mean of their highest probabilities, at the base rate that these assume.
        observed: Share that escalates, at that base rate.
    """

    sessions: int
    predicted: float
    observed: float


def highest_of(session: JudgedSession) -> float:
    """Its highest score."""
    return session.highest


def first_risk_of(session: JudgedSession) -> float:
    """The risk of its first user turn: the control of what memory adds."""
    return session.first_risk


def sweep(sessions: Iterable[JudgedSession], score: Callable[[JudgedSession], float] = highest_of) -> list[SweepPoint]:
    """Recall and false-alarm ratio at every threshold that makes a difference, from the highest one down.

    A session counts as alerted where its score reaches the threshold. Alerts need more than that (evidence,
    `min_scored_turns`), so a policy can stand below its curve. Empty unless both kinds are labelled.
    """
    labelled = [(score(each), each.escalating) for each in sessions if each.escalating is not None]
    escalating = sum(kind for _, kind in labelled)
    benign = len(labelled) - escalating
    if not escalating or not benign:
        return []
    points, detected, alarmed = [], 0, 0
    for threshold, level in groupby(sorted(labelled, reverse=True), key=itemgetter(0)):
        kinds = [kind for _, kind in level]
        detected += sum(kinds)
        alarmed += len(kinds) - sum(kinds)
        points.append(SweepPoint(threshold, alarmed / benign, detected / escalating))
    return points


def area_under(curve: Sequence[SweepPoint]) -> float | None:
    """ROC-AUC: the chance that an escalating session scores above a benign one, ties half. None without a curve."""
    if not curve:
        return None
    recall = [0.0, *(point.recall for point in curve)]
    return round(float(np.trapezoid(recall, [0.0, *(point.false_alarm_ratio for point in curve)])), 4)


def areas_by_app(sessions: Sequence[JudgedSession]) -> dict[str, float]:
    """ROC-AUC of each app's escalating sessions against all benign ones; apps without either are left out."""
    benign = [each for each in sessions if each.escalating is False]
    found = {}
    for app in sorted({each.app_id for each in sessions}):
        area = area_under(sweep([*benign, *(each for each in sessions if each.app_id == app and each.escalating)]))
        if area is not None:
            found[app] = area
    return found


def corners(curve: Sequence[SweepPoint]) -> list[SweepPoint]:
    """The same line by fewer points, to four digits: of a stretch straight up or to the right the two ends stay.

    >>> corners([SweepPoint(0.9, 0.0, 0.2), SweepPoint(0.8, 0.0, 0.4), SweepPoint(0.7, 0.0, 1 / 3)])[1:]
    [SweepPoint(threshold=0.7, false_alarm_ratio=0.0, recall=0.3333)]
    """
    kept: list[SweepPoint] = []
    for point in curve:
        last = [*kept[-2:], point]
        if len(last) > 2 and 1 in (len({p.recall for p in last}), len({p.false_alarm_ratio for p in last})):  # noqa: PLR2004
            kept.pop()
        kept.append(point)
    return [SweepPoint(*(round(value, 4) for value in structs.astuple(point))) for point in kept]


def delays_of(sessions: Iterable[JudgedSession]) -> list[int]:
    """How many escalating sessions alerted within each tenth of their turns."""
    counts = [0] * CLASSES
    for each in sessions:
        if each.escalating and each.first is not None:
            # An alert at the end of a class belongs to it: the last turn is in the last class.
            counts[-(-each.first.turns_seen * CLASSES // each.turns) - 1] += 1
    return counts


def reliability_of(sessions: Iterable[JudgedSession], base_rate: float) -> list[Reliable]:
    """Predicted beside observed, by tenths of the highest probability; tenths without a session are left out.

    Labelled data hold more escalations than a probability assumes, or fewer: each label is weighed so that escalating
    sessions are as frequent as `base_rate` says. Empty unless both kinds are labelled.
    """
    labelled = [each for each in sessions if each.escalating is not None]
    escalating = sum(each.escalating is True for each in labelled)
    benign = len(labelled) - escalating
    if not escalating or not benign:
        return []
    tenths: defaultdict[int, list[JudgedSession]] = defaultdict(list)
    for each in labelled:
        tenths[min(CLASSES - 1, int(each.highest * CLASSES))].append(each)
    found = []
    for _, members in sorted(tenths.items()):
        weights = [base_rate / escalating if each.escalating else (1 - base_rate) / benign for each in members]
        predicted = sum(weight * each.highest for weight, each in zip(weights, members, strict=True))
        observed = sum(weight for weight, each in zip(weights, members, strict=True) if each.escalating)
        found.append(Reliable(len(members), round(predicted / sum(weights), 4), round(observed / sum(weights), 4)))
    return found
