"""Frequent patterns of events, and those that stand before alerts more often than elsewhere."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobs.analyse.mining.coverage import ABOUT_TYPE, Coverage, tells_of
from jobs.analyse.mining.statistics import PERCENT, ByUser, false_discovery_rates
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


class SessionEvents:
    """Events of sessions, ready to be searched: alike sequences are kept once.

    Args:
        events: A list per session.
        users: The user of each.
    """

    def __init__(self, events: pl.Series, users: pl.Series) -> None:
        self.names = sorted(events.explode(empty_as_null=False).drop_nulls().unique())
        number = {name: n for n, name in enumerate(self.names)}
        of = events.list.join("\n").rank("dense").cast(pl.Int64) - 1
        distinct = pl.DataFrame({"of": of, "events": events}).unique("of").sort("of")["events"]
        self._sequences = Sequences([[number[name] for name in sequence] for sequence in distinct], len(self.names))
        self._of: NDArray[np.int64] = of.to_numpy()
        self._users = users.rank("dense").to_numpy()

    def having(self, pattern: Pattern) -> NDArray[np.bool_]:
        """Which sessions have the pattern."""
        return self._sequences.having(pattern.items)[self._of]

    def sides(self, having: NDArray[np.bool_], alerted: NDArray[np.bool_]) -> Coverage:
        """Whom shares of alerts with and without a pattern tell of: the fewest of the four kinds of sessions."""
        kinds = (having & alerted, having & ~alerted, ~having & alerted, ~having & ~alerted)
        sides = [(int(side.sum()), self.user_count(side)) for side in kinds if side.any()]
        sessions, users = (min(counts) for counts in zip(*sides, strict=True))
        return {"sessions": sessions, "users": users}

    def user_count(self, chosen: NDArray[np.bool_]) -> int:
        """How many users these sessions are of."""
        return len(np.unique(self._users[chosen]))

    def frequent(self, least: int, policy: SequenceMining, *, among: NDArray[np.bool_] | None = None) -> list[Pattern]:
        """Closed patterns in at least so many sessions, of all or of some; the support doubles until they are few."""
        sessions = self._of if among is None else self._of[among]
        weights = np.bincount(sessions, minlength=int(self._of.max(initial=-1)) + 1)
        found = None
        while found is None:
            found = self._sequences.frequent(weights, least, longest=policy.longest_pattern, most=policy.most_patterns)
            least *= 2
        return sorted(closed(found, policy.same_share), key=lambda pattern: (-pattern.weight, pattern.items))


_COUNTS: dict[str, pl.DataType | type[pl.DataType]] = {
    "pattern": pl.String,
    **dict.fromkeys(("sessions", "users", "alerting", "elsewhere"), pl.Int64),
    "sides": ABOUT_TYPE,
    "chance": pl.Float64,
}


def frequent_table(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """The most frequent closed patterns, and how often sessions with each alert, at any time, against those without."""
    alerted = sessions["alert_turn"].is_not_null().to_numpy()
    within = SessionEvents(sessions["events"], sessions["user_id"])
    patterns = within.frequent(_least(policy, sessions.height), policy.sequences)
    several = (
        pattern
        for pattern in patterns
        if len(pattern.items) > 1 and within.user_count(within.having(pattern)) >= policy.anonymity.min_users
    )
    found = _counts(within, islice(several, policy.sequences.patterns), alerted, sessions["user_id"])
    share = pl.col("alerting") / pl.col("sessions")
    without = (int(alerted.sum()) - pl.col("alerting")) / (sessions.height - pl.col("sessions"))
    return found.select(
        "pattern",
        "sessions",
        "users",
        (pl.col("sessions") / sessions.height * PERCENT).alias("sessions_percent"),
        (share * PERCENT).alias("alert_percent"),
        (without.fill_nan(None) * PERCENT).alias("alert_percent_without"),
        _ratio(share, without).alias("lift"),
        "false_discovery_rate",
        *tells_of(pl.col("sides"), "alert_percent", "alert_percent_without", "lift"),
    )


def before_alerts(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Patterns among the last events before the first alert, against the same place in sessions without one.

    A session without an alert is cut at the alert turn of a session that did alert, drawn (seeded) among those not
    beyond its own end; so patterns do not seem to precede alerts only because they come late.
    """
    windows = _windows(sessions, policy.sequences)
    alerted = windows["alerted"].to_numpy()
    own, others = int(alerted.sum()), int((~alerted).sum())
    within = SessionEvents(windows["events"], windows["user_id"])
    patterns = within.frequent(_least(policy, own), policy.sequences, among=alerted) if own and others else []
    share, elsewhere = pl.col("sessions") / own, pl.col("elsewhere") / others
    return (
        _counts(within, patterns, alerted, windows["user_id"], among=alerted)
        .select(
            "pattern",
            "sessions",
            "users",
            (share * PERCENT).alias("before_alerts_percent"),
            (elsewhere * PERCENT).alias("elsewhere_percent"),
            _ratio(share, elsewhere).alias("times_as_often"),
            "false_discovery_rate",
            *tells_of(pl.col("sides"), "elsewhere_percent", "times_as_often"),
        )
        .filter(pl.col("users") >= policy.anonymity.min_users)
        .sort("false_discovery_rate", "sessions", "pattern", descending=[False, True, False])
        .head(policy.sequences.patterns)
    )


def _counts(
    within: SessionEvents,
    patterns: Iterable[Pattern],
    alerted: NDArray[np.bool_],
    users: pl.Series,
    *,
    among: NDArray[np.bool_] | bool = True,
) -> pl.DataFrame:
    """Of each pattern the sessions that have it: how many, with an alert and without, and the chance of either."""
    of_users, rows = ByUser(users), []
    for pattern in patterns:
        having = within.having(pattern)
        sides, chance = within.sides(having, alerted), of_users.share_chance(having, alerted)
        alerting, elsewhere = int((having & alerted).sum()), int((having & ~alerted).sum())
        name = THEN.join(within.names[item] for item in pattern.items)
        rows.append((name, pattern.weight, within.user_count(having & among), alerting, elsewhere, sides, chance))
    found = pl.DataFrame(rows, schema=_COUNTS, orient="row")
    return found.with_columns(false_discovery_rate=pl.Series(false_discovery_rates(found["chance"].to_list())))


def _ratio(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Null where there is nothing to divide by."""
    return pl.when(other.fill_nan(0.0) > 0).then(one / other)


def _least(policy: ArchivePolicy, sessions: int) -> int:
    return max(policy.anonymity.min_sessions, policy.anonymity.min_users, int(policy.sequences.min_support * sessions))


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
    joined = cut.select("session_id", "user_id", "alerted").join(
        before, on="session_id", how="left", maintain_order="left"
    )
    return joined.with_columns(pl.col("events").fill_null([]))
