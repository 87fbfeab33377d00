"""Frequent patterns of events, and those that stand before alerts more often than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobs.analyse.mining.anonymity import ABOUT, shown_percent
from jobs.analyse.mining.job import Finding, MiningInput
from jobs.analyse.mining.sequence_events import evidence
from jobs.analyse.mining.statistics import ByUser, false_discovery_rates
from models.policy.archive import ArchivePolicy, SequenceMining

Weights = NDArray[np.int64]
_NONE = 0


class Pattern(NamedTuple):
    """Items in their order, and the weight of the sequences that it stands in."""

    items: tuple[int, ...]
    weight: int


class Sequences:
    """Sequences of small integers, ready to be searched.

    Args:
        sequences: At most 254 items each.
        items: How many there are, from 0 on.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], items: int) -> None:
        longest = max(map(len, sequences), default=0)
        padded = np.full((len(sequences), longest), items, dtype=np.int64)
        for row, sequence in enumerate(sequences):
            padded[row, : len(sequence)] = sequence
        self._following = np.zeros((len(sequences), longest + 1, items + 1), dtype=np.uint8)
        rows = np.arange(len(sequences))
        for place in range(longest - 1, -1, -1):
            self._following[:, place] = self._following[:, place + 1]
            self._following[rows, place, padded[:, place]] = place + 1
        # What fills up short sequences is no item.
        self._following = self._following[:, :, :items]

    def having(self, pattern: Sequence[int]) -> NDArray[np.bool_]:
        """Which sequences the pattern stands in, `(n_sequences,)`."""
        alive, places = np.arange(len(self._following)), np.zeros(len(self._following), dtype=np.int64)
        for item in pattern:
            found = self._following[alive, places, item]
            alive, places = alive[found > _NONE], found[found > _NONE].astype(np.int64)
        having = np.zeros(len(self._following), dtype=np.bool_)
        having[alive] = True
        return having

    def frequent(self, weights: Weights, least: int, *, longest: int, most: int) -> list[Pattern] | None:
        """Patterns of a weight of at least `least`, up to `longest` items; None if there are more than `most`."""
        whole = np.arange(len(self._following))
        found: list[Pattern] = []
        waiting: list[tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.int64]]] = [
            ((), whole, np.zeros_like(whole))
        ]
        while waiting:
            prefix, alive, places = waiting.pop()
            following = self._following[alive, places]
            weight_of = weights[alive] @ (following > _NONE)
            for item in np.flatnonzero(weight_of >= max(least, 1)):
                items = (*prefix, int(item))
                found.append(Pattern(items, int(weight_of[item])))
                if len(found) > most:
                    return None
                if len(items) < longest:
                    further = following[:, item]
                    kept = further > _NONE
                    waiting.append((items, alive[kept], further[kept].astype(np.int64)))
        return found


def closed(patterns: Sequence[Pattern], share: float = 1.0) -> list[Pattern]:
    """Those that no pattern contains which is one item longer and has so large a share of the weight: it says more.

    With a share of 1 these are the closed patterns: whatever contains a pattern at equal weight contains one that is
    longer by one item and contains it at equal weight.

    >>> closed([Pattern((1,), 10), Pattern((2,), 20), Pattern((1, 2), 10)])
    [Pattern(items=(2,), weight=20), Pattern(items=(1, 2), weight=10)]
    """
    longer: dict[tuple[int, ...], int] = {}
    for items, weight in patterns:
        for n in range(len(items)):
            part = items[:n] + items[n + 1 :]
            longer[part] = max(longer.get(part, 0), weight)
    return [pattern for pattern in patterns if longer.get(pattern.items, 0) < share * pattern.weight]


THEN = " → "
_PERCENT = 100
_FREQUENT: dict[str, pl.DataType | type[pl.DataType]] = {
    "pattern": pl.String,
    "sessions": pl.Int64,
    "users": pl.Int64,
    "sessions_percent": pl.Float64,
    "alert_percent": pl.Float64,
    "alert_percent_without": pl.Float64,
    "lift": pl.Float64,
    "false_discovery_rate": pl.Float64,
}
_BEFORE: dict[str, pl.DataType | type[pl.DataType]] = {
    "pattern": pl.String,
    "sessions": pl.Int64,
    "users": pl.Int64,
    "before_alerts_percent": pl.Float64,
    "elsewhere_percent": pl.Float64,
    "times_as_often": pl.Float64,
    "false_discovery_rate": pl.Float64,
}


_Sides = dict[str, int | None]
"""`sessions` and `users`, as in columns `about_…`; None: nobody."""


class Searched(NamedTuple):
    """Sessions with their events, ready to be searched: alike sequences once.

    Attributes:
        names: Of the items.
        sequences: The distinct sequences.
        of: Index of its sequence for each session, `(n_sessions,)`.
        users: Number of the user of each session, `(n_sessions,)`.
    """

    names: list[str]
    sequences: Sequences
    of: NDArray[np.int64]
    users: NDArray[np.int64]

    def having(self, pattern: Pattern) -> NDArray[np.bool_]:
        """Which sessions have the pattern."""
        return self.sequences.having(pattern.items)[self.of]

    def named(self, pattern: Pattern) -> list[str]:
        """Its events."""
        return [self.names[item] for item in pattern.items]

    def sides(self, having: NDArray[np.bool_], alerted: NDArray[np.bool_]) -> _Sides:
        """Whom shares of alerts with and without a pattern tell of: the fewest of the four kinds of sessions."""
        kinds = (having & alerted, having & ~alerted, ~having & alerted, ~having & ~alerted)
        sides = [side for side in kinds if side.any()]
        return {
            "sessions": min((int(side.sum()) for side in sides), default=None),
            "users": min((len(np.unique(self.users[side])) for side in sides), default=None),
        }

    def frequent(self, least: int, policy: SequenceMining, *, among: NDArray[np.bool_] | None = None) -> list[Pattern]:
        """Closed patterns in at least so many sessions, of all or of some; the support doubles until they are few."""
        sessions = self.of if among is None else self.of[among]
        weights = np.bincount(sessions, minlength=int(self.of.max(initial=-1)) + 1)
        found = None
        while found is None:
            found = self.sequences.frequent(weights, least, longest=policy.longest_pattern, most=policy.most_patterns)
            least *= 2
        return sorted(closed(found, policy.same_share), key=lambda pattern: (-pattern.weight, pattern.items))


def searched(events: pl.Series, users: pl.Series) -> Searched:
    """Make it of lists of events, one per session."""
    names = sorted(events.explode(empty_as_null=False).drop_nulls().unique())
    number = {name: n for n, name in enumerate(names)}
    keyed = pl.DataFrame({"key": events.list.join("\n"), "events": events})
    distinct = keyed.unique("key", maintain_order=True).with_row_index("sequence")
    of = keyed.select("key").join(distinct.select("key", "sequence"), on="key", how="left", maintain_order="left")
    sequences = [[number[name] for name in sequence] for sequence in distinct["events"]]
    return Searched(
        names,
        Sequences(sequences, len(names)),
        of["sequence"].to_numpy().astype(np.int64),
        users.rank("dense").to_numpy().astype(np.int64),
    )


def frequent_table(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """The most frequent closed patterns, and how often sessions with each alert, at any time, against those without."""
    rules = policy.sequences
    within = searched(sessions["events"], sessions["user_id"])
    alerted = sessions["alert_turn"].is_not_null().to_numpy()
    of_users, chances = ByUser(sessions["user_id"]), []
    rows: list[tuple[str, int, int, int, _Sides]] = []
    for pattern in within.frequent(_least(policy, sessions.height), rules):
        having = within.having(pattern)
        users = len(np.unique(within.users[having]))
        if len(pattern.items) > 1 and users >= policy.anonymity.min_users:
            name, sides = THEN.join(within.named(pattern)), within.sides(having, alerted)
            rows.append((name, pattern.weight, users, int(alerted[having].sum()), sides))
            chances.append(of_users.share_chance(having, alerted))
        if len(rows) == rules.patterns:
            break
    if not rows:
        return pl.DataFrame(schema=_FREQUENT)
    found = pl.DataFrame(rows, schema=["pattern", "sessions", "users", "alerting", "sides"], orient="row")
    alerts, total = int(alerted.sum()), sessions.height
    share = pl.col("alerting") / pl.col("sessions")
    without = ((alerts - pl.col("alerting")) / (total - pl.col("sessions"))).fill_nan(None)
    return found.select(
        "pattern",
        "sessions",
        "users",
        sessions_percent=pl.col("sessions") / total * _PERCENT,
        alert_percent=share * _PERCENT,
        alert_percent_without=without * _PERCENT,
        lift=_ratio(share, without),
        false_discovery_rate=pl.Series(false_discovery_rates(chances)),
        **_about("alert_percent", "alert_percent_without", "lift"),
    )


def _about(*cells: str) -> dict[str, pl.Expr]:
    return {f"{ABOUT}{cell}": pl.col("sides") for cell in cells}


def _ratio(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Null where there is nothing to divide by."""
    return pl.when(other > 0).then(one / other)


def _least(policy: ArchivePolicy, sessions: int) -> int:
    return max(policy.anonymity.min_sessions, policy.anonymity.min_users, int(policy.sequences.min_support * sessions))


def before_alerts(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Patterns among the last events before the first alert, against the same place in sessions without one.

    A session without an alert is cut at the alert turn of a session that did alert, drawn (seeded) among those not
    beyond its own end; so patterns do not seem to precede alerts only because they come late.
    """
    rules = policy.sequences
    windows = _windows(sessions, rules)
    alerted = windows["alerted"].to_numpy()
    own, others = int(alerted.sum()), int((~alerted).sum())
    if not own or not others:
        return pl.DataFrame(schema=_BEFORE)
    within = searched(windows["events"], windows["user_id"])
    of_users, chances = ByUser(windows["user_id"]), []
    rows: list[tuple[str, int, int, int, _Sides]] = []
    for pattern in within.frequent(_least(policy, own), rules, among=alerted):
        having = within.having(pattern)
        users = len(np.unique(within.users[having & alerted]))
        name, sides = THEN.join(within.named(pattern)), within.sides(having, alerted)
        rows.append((name, pattern.weight, users, int((having & ~alerted).sum()), sides))
        chances.append(of_users.share_chance(alerted, having))
    if not rows:
        return pl.DataFrame(schema=_BEFORE)
    found = pl.DataFrame(rows, schema=["pattern", "sessions", "users", "elsewhere", "sides"], orient="row")
    share, elsewhere = pl.col("sessions") / own, pl.col("elsewhere") / others
    return (
        found.select(
            "pattern",
            "sessions",
            "users",
            before_alerts_percent=share * _PERCENT,
            elsewhere_percent=elsewhere * _PERCENT,
            times_as_often=_ratio(share, elsewhere),
            false_discovery_rate=pl.Series(false_discovery_rates(chances)),
            **_about("elsewhere_percent", "times_as_often"),
        )
        .filter(pl.col("users") >= policy.anonymity.min_users)
        .sort(["false_discovery_rate", "sessions", "pattern"], descending=[False, True, False])
        .head(rules.patterns)
    )


def _windows(sessions: pl.DataFrame, rules: SequenceMining) -> pl.DataFrame:
    """The last events before the alert, or before the turn that stands for it: `user_id, events, alerted`."""
    ordered = sessions.sort("session_id")
    alert_turns = np.sort(ordered["alert_turn"].drop_nulls().to_numpy())
    # How many alerts lie within the session's length, and one of them.
    within = np.searchsorted(alert_turns, ordered["last_turn"].to_numpy(), side="right")
    drawn = (np.random.default_rng(0).random(ordered.height) * within).astype(np.int64)
    turn_of = np.where(within > 0, alert_turns[np.minimum(drawn, len(alert_turns) - 1)] if len(alert_turns) else -1, -1)
    cut = ordered.with_columns(
        alerted=pl.col("alert_turn").is_not_null(), at=pl.coalesce("alert_turn", pl.Series(turn_of))
    ).filter(pl.col("at") >= 0)
    before = (
        cut.select("session_id", "at", "events", "turns")
        .explode("events", "turns")
        .filter(pl.col("turns") < pl.col("at"))
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("events").tail(rules.before_alert))
    )
    nothing = pl.lit([], pl.List(pl.String))
    joined = cut.select("session_id", "user_id", "alerted").join(
        before, on="session_id", how="left", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce("events", nothing))


def preceding(table: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """The strongest patterns before alerts, none of them part of another one that is told."""
    rules = asked.policy.sequences
    often = pl.col("before_alerts_percent") >= rules.lift * pl.col("elsewhere_percent")
    significant = table.filter(pl.col("false_discovery_rate") <= rules.significance, often)
    told: list[list[str]] = []
    for row in significant.iter_rows(named=True):
        pattern = row["pattern"].split(THEN)
        if len(told) == rules.findings or any(_within(pattern, other) or _within(other, pattern) for other in told):
            continue
        told.append(pattern)
        share, elsewhere = row["before_alerts_percent"], row["elsewhere_percent"]
        rare = shown_percent(elsewhere, row["about_elsewhere_percent"], asked.policy.anonymity)
        yield Finding(
            title=f"Before alerts: {row['pattern']}",
            text=(
                f"{row['sessions']:,} sessions have it among the last {rules.before_alert} events before their first "
                f"alert, {share:.1f} % of those that alert; of the others {rare} have it at the same place "
                f"(false discovery rate {row['false_discovery_rate']:.2g})."
            ),
            evidence=evidence(pattern, asked.period, rules),
            strength=1.0 - elsewhere / share,
        )


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(event in rest for event in part)
