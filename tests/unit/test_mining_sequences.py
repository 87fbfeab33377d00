"""Sequences: what stands before alerts, what follows a mode, and the planted archive."""

from collections.abc import Callable, Sequence

import polars as pl

from jobs.analyse.mining.job import JobResult
from jobs.analyse.mining.sequence_patterns import THEN, before_alerts, frequent_table
from jobs.analyse.mining.sequences import transition_table
from models.policy.archive import ArchivePolicy, SequenceMining
from tests.support.mined_frames import sessions_of

POLICY = ArchivePolicy()
RULES = POLICY.sequences
SUPPOSES = "first hypothetical question"


def seen(sessions: Sequence[tuple[str, int | None]], *, users: int = 1_000) -> pl.DataFrame:
    """Sessions of 20 turns with one event per turn from 1 on, each a letter, and the turn of their alert."""
    return sessions_of(
        len(sessions),
        users=users,
        last_turn=20,
        alert_turn=pl.Series([alert for _, alert in sessions], dtype=pl.Int64),
        events=pl.Series([[*events] for events, _ in sessions], dtype=pl.List(pl.String)),
        turns=pl.Series([[*range(1, len(events) + 1)] for events, _ in sessions], dtype=pl.List(pl.Int64)),
        cut=False,
    )


def telling(table: pl.DataFrame) -> list[str]:
    """Patterns that chance would not give."""
    return table.filter(pl.col("false_discovery_rate") <= RULES.significance)["pattern"].to_list()


def test_a_planted_pattern_before_alerts_is_found() -> None:
    """`a`, then `b`, with others in between and before; each alone is as frequent elsewhere."""
    alerting = [("xaybx", 9), ("ayyb", 9), ("axb", 9)] * 10
    others: list[tuple[str, int | None]] = [("bxya", None), ("byax", None), ("xbxa", None)] * 30

    table = before_alerts(seen([*alerting, *others]), POLICY)

    shares = table.filter(pl.col("pattern") == "a → b").select("before_alerts_percent", "elsewhere_percent")
    assert "a → b" in telling(table)
    assert [(100.0, 0.0)] == shares.rows()


def test_only_what_precedes_the_alert_counts() -> None:
    """Neither the alert's own turn nor what happened long before."""
    sessions = seen([("xxxz", 4)] * 10 + [("xxyz", 3)] * 10 + [("x", None)] * 40)

    patterns = before_alerts(sessions, POLICY)["pattern"].to_list()

    assert not any("z" in pattern or "y" in pattern for pattern in patterns)

    rules = ArchivePolicy(sequences=SequenceMining(before_alert=2))
    sessions = seen([("zab", 9)] * 10 + [("xcd", None)] * 40)

    assert ["a → b"] == telling(before_alerts(sessions, rules))


def test_frequent_patterns_hold_sessions_with_against_those_without() -> None:
    """20 sessions with `a → b` of which half alert, 20 others of which none does."""
    sessions = seen([("ab", 5 if n < 10 else None) for n in range(20)] + [("c", None)] * 20)

    row = frequent_table(sessions, POLICY).row(0, named=True)

    assert ("a → b", 20, 20, 50.0, 50.0, 0.0, None) == (
        row["pattern"],
        row["sessions"],
        row["users"],
        row["sessions_percent"],
        row["alert_percent"],
        row["alert_percent_without"],
        row["lift"],
    )


def test_patterns_of_four_users_are_not_shown() -> None:
    """Not even in many sessions, in none of the tables."""
    few, many = seen([("ab", 9)] * 40, users=4), seen([("cd", None)] * 40)
    sessions = pl.concat([few, many.with_columns(pl.col("session_id", "user_id") + "-o")])
    shown = [*frequent_table(sessions, POLICY)["pattern"], *before_alerts(sessions, POLICY)["pattern"]]

    assert ["c → d"] == shown


def test_a_support_that_gives_too_many_patterns_is_doubled() -> None:
    """Until they are few: then what is rare is gone, what is frequent stays."""
    sessions = seen([("abcdef", None)] * 40 + [("ghijkl", None)] * 6)
    few = ArchivePolicy(sequences=SequenceMining(most_patterns=70))

    patterns = frequent_table(sessions, few)["pattern"].to_list()

    assert patterns
    assert not any("g" in pattern for pattern in patterns)


def test_transitions_are_counted_by_stays() -> None:
    """Six of ten stay calm, two of four come back; what came after a cut nobody knows."""
    plain = seen([("", None)] * 6 + [("", None)] * 4)
    events: list[list[str]] = (
        [[]] * 6 + [["mode watch", "topic started"]] * 2 + [["mode watch", "topic started", "mode calm"]] * 2
    )

    table = transition_table(plain.with_columns(events=pl.Series(events, dtype=pl.List(pl.String))), RULES)

    assert [
        ("calm", "end", 8, 8, 66.7),
        ("calm", "watch", 4, 4, 33.3),
        ("watch", "calm", 2, 2, 50.0),
        ("watch", "end", 2, 2, 50.0),
    ] == table.select("mode", "next", "sessions", "stays", pl.col("share_percent").round(1)).rows()

    sessions = seen([("", None)] * 6).with_columns(
        events=pl.lit(["mode watch"], pl.List(pl.String)), cut=pl.lit(value=True)
    )

    assert [("calm", "watch")] == transition_table(sessions, RULES).select("mode", "next").rows()


def test_the_planted_week(week: Callable[[str], JobResult]) -> None:
    """All 21 sessions that rise suppose something before; whoever is critical stays so until the end."""
    found = week("sequences")
    critical = found.tables["transitions"].filter(pl.col("mode") == "critical")
    supposing = [shown for shown in found.section.findings if SUPPOSES in shown.finding.title]

    assert [(21, 17)] == [(shown.sessions, shown.users) for shown in supposing]
    assert found.tables["before_alerts"]["pattern"][0].split(THEN)[1] == SUPPOSES
    assert [("end", 24, 100.0)] == critical.select("next", "sessions", "share_percent").rows()
