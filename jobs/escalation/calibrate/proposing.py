"""A proposal: the threshold of each app that keeps the target, and what it does to the traffic it was learnt from.

Thresholds that keep a target, from the highest scores of sessions, and policy files with them.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import floor
from pathlib import Path
from typing import Any

import msgspec
import tomli_w
from msgspec import Struct, structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.figures import BacktestFigures, figures_of, span_of
from jobs.escalation.backtest.judging import JudgedSession, Opening, judge, selected
from jobs.replay.command import folding
from models.errors import ConfigurationError
from models.policy import AppModes, ModePolicy, Policy, load_policy
from models.policy.escalation import ModeThreshold
from streams.ports import Embedder, TurnScorer

_STEPS = 10_000
"""Thresholds are whole ten-thousandths: what a file says is what was proposed."""


def threshold_for(highest: Sequence[float], allowed: int) -> float | None:
    """The lowest threshold that at most so many sessions reach; where scores are equal, fewer do.

    A session alerts only where a score of it reaches the threshold, so no more sessions than these can alert (beside
    single turns of a very high upstream risk, which ask for no threshold).

    Returns:
        None where every session may alert: nothing limits the threshold. 1 at most, so that sessions at a score of 1
        are still reached.

    >>> threshold_for([0.2, 0.9, 0.5, 0.4], 1), threshold_for([0.2, 0.9, 0.9, 0.4], 1), threshold_for([0.2], 1)
    (0.5001, 0.9001, None)
    >>> threshold_for([0.57], 0)
    0.5701
    """
    if allowed >= len(highest):
        return None
    just_below = sorted(highest, reverse=True)[allowed]
    steps = floor(just_below * _STEPS)
    # 0.57 * 10,000 is less than 5,700: one step more need not be above.
    while steps < _STEPS and steps / _STEPS <= just_below:
        steps += 1
    return steps / _STEPS


def moved(modes: ModePolicy, app_id: str, enter: float) -> ModePolicy:
    """The modes with another alert threshold, for one app, or for all that have none of their own.

    `elevated.leave` stays as far below `enter` as it was, and at least as high in proportion: a low threshold must not
    become one that is never left. `critical` keeps its place between `enter` and 1. `watch` gives way where it would
    lie above.
    """
    watch, elevated, critical = modes.thresholds(app_id)
    new_elevated = ModeThreshold(enter=enter, leave=_leave(elevated, enter))
    room = (1 - critical.enter) / (1 - elevated.enter) if elevated.enter < 1 else 0.0
    higher = round(1 - (1 - enter) * room, 4)
    new_critical = ModeThreshold(enter=higher, leave=max(_leave(critical, higher), new_elevated.leave))
    if app_id:
        own = AppModes(app_id=app_id, elevated=new_elevated, critical=new_critical)
        return structs.replace(modes, apps=(*(each for each in modes.apps if each.app_id != app_id), own))
    lower = ModeThreshold(enter=min(watch.enter, enter), leave=min(watch.leave, new_elevated.leave))
    return structs.replace(modes, watch=lower, elevated=new_elevated, critical=new_critical)


def _leave(present: ModeThreshold, enter: float) -> float:
    as_far = enter - (present.enter - present.leave)
    in_proportion = enter * present.leave / present.enter if present.enter else 0.0
    return round(min(enter, max(as_far, in_proportion)), 4)


def next_version(version: str) -> str:
    """The version after this one.

    >>> next_version("default-1"), next_version("night shift"), next_version("v09")
    ('default-2', 'night shift-2', 'v10')
    """
    found = re.fullmatch(r"(.*?)(\d+)", version, re.DOTALL)
    if found is None:
        return f"{version}-2"
    return found[1] + str(int(found[2]) + 1).zfill(len(found[2]))


def written(present: Path | None, version: str, modes: ModePolicy, *, said: str) -> bytes:
    """The new file as TOML: what the present one names, with the version and the thresholds.

    Args:
        present: TOML or JSON; None: the defaults, of which nothing is written out.
        version: The new one.
        modes: The new ones, written out in full.
        said: Where they come from; stands above everything, a line.
    """
    fields = {"version": "", **_fields(present), "modes": msgspec.to_builtins(modes)} | {"version": version}
    content = f"# {said}\n{tomli_w.dumps(fields)}".encode()
    load_policy(content, "toml")
    return content


def require_new(file: Path) -> None:
    """Say before hours of folding that a file is there already.

    Raises:
        ConfigurationError: It is.
    """
    if file.exists():
        raise ConfigurationError(f"{file} exists, and policies are never overwritten: give a new file")


def write_new(file: Path, content: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        ConfigurationError: It is there, or cannot be written.
    """
    require_new(file)
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise ConfigurationError(f"cannot write {file}: {error.strerror}") from error


def _fields(present: Path | None) -> dict[str, Any]:
    if present is None:
        return {}
    data = present.read_bytes()
    fields: dict[str, Any] = msgspec.json.decode(data) if present.suffix == ".json" else tomllib.loads(data.decode())
    # TOML has no null: a field of JSON that says null says what its default says.
    return _without_nulls(fields)


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }


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
        raise ConfigurationError(f"no session of {app or 'any app'}: check --app, --since and --until")
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
                "--alerts-per-day needs times: use the archive or --live. For labelled dialogues, use --target-fpr"
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
