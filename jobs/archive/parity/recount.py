"""All checks of all partitions, from one moment of the archive."""

# ruff: noqa: S608 - tables are constants of this project, values travel as parameters

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from jobs.archive.parity.found import Parity
from jobs.archive.parity.memories import check_alerts, check_episodes, check_segments, check_topics, check_user_turns
from jobs.archive.parity.profiles import check_profiles, check_risk_points
from jobs.archive.parity.turns import Place, drop, erased_records, lay_out, why_incomplete
from jobs.archive.parity.windows import check_app_windows, check_session_windows
from jobs.shared.progress import Progress
from models.policy import Policy
from streams.archive.schema import OFFSETS, RAW


def partitions_of(con: duckdb.DuckDBPyConnection, topic: str) -> list[Place]:
    """Partitions of `turns.v1` that the archive holds."""
    rows = con.execute(
        f"SELECT kafka_partition FROM {RAW}.{OFFSETS} WHERE topic = ? ORDER BY kafka_partition", [topic]
    ).fetchall()
    return [Place(topic, int(number)) for (number,) in rows]


def recount(
    con: duckdb.DuckDBPyConnection,
    places: Sequence[Place],
    policies: Mapping[int, Policy],
    *,
    progress: Progress = lambda *_: None,
) -> Parity:
    """Recompute what the events of sessions claim.

    Args:
        con: A reader of the archive.
        places: Partitions to look at.
        policies: By which each partition was folded.
        progress: Told how many partitions are done.
    """
    found = Parity()
    con.execute("BEGIN")
    try:
        for done, place in enumerate(places):
            progress(done, len(places))
            if why := why_incomplete(con, place):
                found.leave_out("partitions", 1, why)
                continue
            _check(con, found, place, policies[place.partition])
        progress(len(places), len(places))
    finally:
        drop(con)
        con.execute("ROLLBACK")
    return found


def _check(con: duckdb.DuckDBPyConnection, found: Parity, place: Place, policy: Policy) -> None:
    lay_out(con, place, policy)
    found.erased_records += erased_records(con, place)
    check_profiles(con, found, policy)
    check_risk_points(con, found)
    check_session_windows(con, found, place, policy)
    check_app_windows(con, found, place, policy)
    check_segments(con, found, place)
    check_episodes(con, found, place)
    check_topics(con, found, place)
    check_alerts(con, found, place)
    check_user_turns(con, found, place, policy)
    (returned,) = con.execute("SELECT count(*) FROM parity_returned").fetchone() or (0,)
    if returned:
        found.leave_out(
            "sessions",
            returned,
            "turns came after their end with lower numbers: only --fold tells whether they were forgotten by then",
        )
