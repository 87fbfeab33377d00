"""A proposal: the threshold of each app that keeps the target, and what it does to the traffic it was learnt from."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import floor

from msgspec import Struct, structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.figures import BacktestFigures, figures_of, span_of
from jobs.escalation.backtest.judging import JudgedSession, judge, selected
from jobs.escalation.backtest.traffic import Opening
from jobs.escalation.calibrate.thresholds import moved, next_version, threshold_for
from jobs.replay.command import folding
from models.errors import ConfigurationError
from models.policy import ModePolicy, Policy
from streams.ports import Embedder, TurnScorer

FEW_SESSIONS = 200
"""Fewer give a 5 % rate to within some 3 % at best (Wilson)."""
_DAY = timedelta(days=1)


class ShadowSessions(Struct, frozen=True):
    """Sessions as a policy sees them.

    Attributes:
        traffic: What was judged.
        span: Event time over which it goes; None: times are made up.
        learnt_from: Sources of it that the scorer was trained on.
    """

    traffic: str
    sessions: list[JudgedSession]
    span: timedelta | None
    learnt_from: list[str] = []


class Shadow(Struct, frozen=True):
    """The same traffic, for one policy after another.

    Attributes:
        watched_for: How long live traffic was read; None: it is not live. Then only sessions count that were seen from
            their first turn (0 or 1): of one that was under way already the score is not known.
    """

    opening: Opening
    embedder: Embedder
    scorer: TurnScorer
    since: datetime | None = None
    until: datetime | None = None
    watched_for: timedelta | None = None

    def judged(self, policy: Policy) -> ShadowSessions:
        """Fold all of it, with a progress bar."""
        contender = Contender(policy, self.scorer)
        with self.opening() as traffic, folding(traffic.count) as progress:
            (judging,) = judge(traffic, [contender], self.embedder, progress)
        found = selected(judging.judged(), since=self.since, until=self.until)
        if self.watched_for is not None:
            return ShadowSessions(traffic.name, [each for each in found if each.first_turn <= 1], self.watched_for)
        if traffic.timed:
            return ShadowSessions(traffic.name, found, span_of(found))
        return ShadowSessions(traffic.name, found, None, contender.learnt_from([each.app_id for each in found]))


class Target(Struct, frozen=True):
    """What a threshold is to keep: exactly one of the two.

    Attributes:
        false_alarm_ratio: Most of the benign sessions that may alert.
        alerts_per_day: Most sessions that may alert on a day of the traffic.
    """

    false_alarm_ratio: float | None = None
    alerts_per_day: float | None = None

    def __str__(self) -> str:
        if self.false_alarm_ratio is not None:
            return f"at most {self.false_alarm_ratio:.2%} false alarms"
        return f"at most {self.alerts_per_day:g} alerts per day"


class Proposal(Struct, frozen=True, kw_only=True):
    """Of one app, or of all together.

    Attributes:
        app: Empty: all.
        learnt_from: Sessions whose highest scores it rests on.
        present: Threshold until now.
        enter: The proposed one; alerts are raised from it.
        leave: Below it the mode falls again.
        critical_enter: From it an alert is critical.
        expected: Measured: the traffic folded again under the proposal; sessions without a label count as benign.
        notes: What has to be known before it is used.
    """

    app: str
    learnt_from: int
    present: float
    enter: float
    leave: float
    critical_enter: float
    critical_leave: float
    expected: BacktestFigures
    notes: list[str]


class CalibrationProposals(Struct, frozen=True, kw_only=True):
    """Proposals for one policy.

    Attributes:
        traffic: What they were learnt from.
        target: What they are to keep.
        span_days: Event time of the traffic; None: times are made up.
        policy: Version of the present policy.
        proposed: The next version.
        proposals: By app.
        modes: The present modes with all proposals.
    """

    traffic: str
    target: str
    span_days: float | None
    policy: str
    proposed: str
    proposals: list[Proposal]
    modes: ModePolicy


class Basis(Struct, frozen=True):
    """What the threshold of an app is learnt from: highest scores of sessions, and how many of them may alert."""

    highest: list[float]
    allowed: int
    notes: list[str]


def basis_of(app: str, judged: Sequence[JudgedSession], target: Target, span: timedelta | None) -> Basis:
    """Choose the sessions to learn from.

    For a ratio of false alarms these are the sessions not labelled escalating. Mostly alerts are labelled, so of the
    archive and of live traffic those labelled benign are those that have alerted: they alone say nothing of benign
    sessions, and those without a label are counted with them. Where all are labelled escalating, all are taken, and
    the threshold is rather too high. For alerts per day they are all sessions.

    Raises:
        ConfigurationError: There is none, or a rate by day is asked of traffic without time.
    """
    sessions = selected(judged, apps=[app] if app else ())
    if not sessions:
        raise ConfigurationError(f"no session of {app or 'any app'}: look at --app, --since and --until")
    notes = []
    if unlabelled := sum(each.escalating is None for each in sessions):
        notes.append(
            f"{unlabelled} of {len(sessions)} sessions have no label and count as benign, since mostly alerts are "
            "labelled: where some of them escalate there are fewer false alarms; nobody knows the recall"
        )
    if target.false_alarm_ratio is not None:
        learnt = [each for each in sessions if each.escalating is not True]
        if not learnt:
            learnt = sessions
            notes.append("all sessions are labelled escalating: all are taken, so the threshold is rather too high")
        allowed = floor(target.false_alarm_ratio * len(learnt))
    else:
        if not span:
            raise ConfigurationError(
                "--alerts-per-day needs traffic with times: the archive or --live. For labelled dialogues, --target-fpr"
            )
        learnt, allowed = sessions, floor((target.alerts_per_day or 0.0) * (span / _DAY))
        if span < _DAY:
            notes.append(f"a rate by day from {span / timedelta(hours=1):.1f} hours: other hours may differ")
    if len(learnt) < FEW_SESSIONS:
        notes.append(f"learnt from {len(learnt)} sessions, fewer than {FEW_SESSIONS}: a rough threshold")
    return Basis([each.highest for each in learnt], allowed, notes)


def _expected(judged: Sequence[JudgedSession], app: str, span: timedelta | None) -> BacktestFigures:
    """What a proposal does, by the same reading of labels as its basis: without a label is benign.

    Where there are such, labels come from alerts: recall and precision would be of what has alerted anyway, so they
    are empty.
    """
    sessions = selected(judged, apps=[app] if app else ())
    found = figures_of([structs.replace(each, escalating=each.escalating is True) for each in sessions], span)
    if all(each.escalating is not None for each in sessions):
        return found
    return structs.replace(found, precision=None, recall=None, recall_interval=None)


def missed(target: Target, expected: BacktestFigures) -> list[str]:
    """A note where what was measured is above the target, or below half of it."""
    if target.false_alarm_ratio is not None:
        # Where all are labelled escalating, all are taken as benign.
        wanted, measured = target.false_alarm_ratio, expected.false_alarm_ratio
        if measured is None:
            measured = expected.alerted / expected.sessions
        said = f"{measured:.2%} of the sessions alert"
    else:
        wanted, measured = target.alerts_per_day or 0.0, expected.alerts_per_day or 0.0
        said = f"{measured:g} alerts per day"
    if measured > wanted:
        return [f"misses the target: {said} ({expected.alerts} alerts of {expected.alerted} sessions)"]
    if measured < wanted / 2:
        return [f"stays far below the target: {said}; scores are equal, or lack the evidence that an alert needs"]
    return []


def calibrated(
    judged: Callable[[Policy], ShadowSessions], before: Policy, target: Target, apps: Sequence[str]
) -> CalibrationProposals:
    """Learn thresholds from traffic under the present policy, and measure them on it under the proposed one."""
    seen = judged(before)
    bases = {app: basis_of(app, seen.sessions, target, seen.span) for app in apps or [""]}
    modes = before.modes
    for app, basis in bases.items():
        if (enter := threshold_for(basis.highest, basis.allowed)) is None:
            basis.notes.append("the target allows every session to alert: the present threshold stays")
        else:
            modes = moved(modes, app, enter)
    after = structs.replace(before, version=next_version(before.version), modes=modes)
    again = judged(after)
    proposals = []
    for app, basis in bases.items():
        _, elevated, critical = modes.thresholds(app)
        expected = _expected(again.sessions, app, again.span)
        if known := [source for source in seen.learnt_from if app in {"", source}]:
            basis.notes.append(
                f"the scorer was trained on {', '.join(known)}: it is surer there than elsewhere, measure on other "
                "traffic"
            )
        proposals.append(
            Proposal(
                app=app,
                learnt_from=len(basis.highest),
                present=before.modes.thresholds(app)[1].enter,
                enter=elevated.enter,
                leave=elevated.leave,
                critical_enter=critical.enter,
                critical_leave=critical.leave,
                expected=expected,
                notes=basis.notes + missed(target, expected),
            )
        )
    return CalibrationProposals(
        traffic=seen.traffic,
        target=str(target),
        span_days=None if seen.span is None else round(seen.span / _DAY, 4),
        policy=before.version,
        proposed=after.version,
        proposals=proposals,
        modes=modes,
    )
