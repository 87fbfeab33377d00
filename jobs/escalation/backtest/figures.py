"""Figures of a policy's alerts over judged sessions, and curves of their scores: recall, delays, calibration."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from statistics import median

import numpy as np
from msgspec import Struct, structs

from jobs.escalation.backtest.judging import JudgedSession
from jobs.shared.intervals import wilson

CLASSES = 10
"""Classes of equal width, of delays and of probabilities."""
_DAY = timedelta(days=1)


class BacktestFigures(Struct, frozen=True, kw_only=True):
    """Of a set of sessions under one policy; a ratio of nothing is None.

    Attributes:
        alerts: Raised, in all sessions; one session can raise several.
        alerted: Sessions that raised any.
        detected: Escalating sessions among them.
        false_alarms: Benign sessions among them.
        precision: Detected / labelled sessions that alerted.
        recall: Detected / escalating.
        recall_interval: Its 95 % interval by Wilson.
        false_alarm_ratio: False alarms / benign.
        false_alarm_interval: Likewise.
        median_delay_turns: Turns up to and with the first alert, of detected sessions.
        median_delay_ratio: The same as a share of each session's turns.
        median_first_alert_turn: Number of the turn, of all sessions that alerted.
        alerts_per_day: In event time; None where times are made up or no time passes.
    """

    sessions: int
    labelled: int
    escalating: int
    benign: int
    alerts: int
    alerted: int
    detected: int
    false_alarms: int
    precision: float | None
    recall: float | None
    recall_interval: tuple[float, float] | None
    false_alarm_ratio: float | None
    false_alarm_interval: tuple[float, float] | None
    median_delay_turns: float | None
    median_delay_ratio: float | None
    median_first_alert_turn: float | None
    alerts_per_day: float | None


class SessionDifference(Struct, frozen=True):
    """A session that two policies treat differently: the turn of its first alert under each, None for no alert."""

    session_id: str
    app_id: str
    escalating: bool | None
    turns: tuple[int | None, int | None]


def figures_of(sessions: Iterable[JudgedSession], span: timedelta | None) -> BacktestFigures:
    """Count."""
    all_of = list(sessions)
    escalating = [each for each in all_of if each.escalating is True]
    benign = [each for each in all_of if each.escalating is False]
    detected = [each for each in escalating if each.alerts]
    false_alarms = sum(bool(each.alerts) for each in benign)
    alerts = sum(len(each.alerts) for each in all_of)
    firsts = [(each, each.first) for each in all_of if each.first is not None]
    delays = [(first.turns_seen, each.turns) for each, first in firsts if each.escalating]
    return BacktestFigures(
        sessions=len(all_of),
        labelled=len(escalating) + len(benign),
        escalating=len(escalating),
        benign=len(benign),
        alerts=alerts,
        alerted=len(firsts),
        detected=len(detected),
        false_alarms=false_alarms,
        precision=_ratio(len(detected), len(detected) + false_alarms),
        recall=_ratio(len(detected), len(escalating)),
        recall_interval=wilson_interval(len(detected), len(escalating)),
        false_alarm_ratio=_ratio(false_alarms, len(benign)),
        false_alarm_interval=wilson_interval(false_alarms, len(benign)),
        median_delay_turns=_median([seen for seen, _ in delays]),
        median_delay_ratio=_median([seen / turns for seen, turns in delays]),
        median_first_alert_turn=_median([first.turn for _, first in firsts]),
        alerts_per_day=round(alerts / (span / _DAY), 4) if span else None,
    )


def figures_by_app(sessions: Sequence[JudgedSession], span: timedelta | None) -> dict[str, BacktestFigures]:
    """The same for each app, by name; in a labelled file an app is a source."""
    apps = sorted({each.app_id for each in sessions})
    return {app: figures_of((each for each in sessions if each.app_id == app), span) for app in apps}


def span_of(sessions: Sequence[JudgedSession]) -> timedelta:
    """Event time from the first turn to the last; none for no session."""
    if not sessions:
        return timedelta(0)
    return max(each.ended_at for each in sessions) - min(each.started_at for each in sessions)


def differences(one: Sequence[JudgedSession], other: Sequence[JudgedSession]) -> list[SessionDifference]:
    """Sessions whose first alert comes at another turn under the other policy, or only under one of them."""
    after: Mapping[str, JudgedSession] = {each.session_id: each for each in other}
    found = [
        SessionDifference(
            each.session_id, each.app_id, each.escalating, (_first_turn(each), _first_turn(after[each.session_id]))
        )
        for each in one
        if each.session_id in after
    ]
    return [each for each in found if each.turns[0] != each.turns[1]]


def wilson_interval(hits: int, of: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a ratio; None of nothing.

    >>> wilson_interval(0, 10), wilson_interval(5, 10)
    ((0.0, 0.2775), (0.2366, 0.7634))
    """
    low, high = wilson(hits, of)
    return (round(float(low), 4), round(float(high), 4)) if of else None


def _first_turn(session: JudgedSession) -> int | None:
    return session.first.turn if session.first else None


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _median(values: Sequence[float]) -> float | None:
    return round(float(median(values)), 4) if values else None


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


def sweep(
    sessions: Iterable[JudgedSession], score: Callable[[JudgedSession], float] = attrgetter("highest")
) -> list[SweepPoint]:
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
