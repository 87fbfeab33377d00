"""Attacks on what mining shows: cells, sums, complements, tails and texts that would tell of fewer than k people."""

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from jobs.analyse.mining.anonymity import shown_figure, shown_rows, shown_text
from jobs.analyse.mining.campaigns import Campaigns, table_of
from jobs.analyse.mining.coverage import Coverage, about, beyond, beyond_cell, percent, smaller_side
from jobs.analyse.mining.escalation import survival_table
from jobs.analyse.mining.job import SHARE, Finding, MiningInput
from jobs.analyse.mining.overview import findings_of
from jobs.analyse.mining.sequence_patterns import frequent_table
from jobs.analyse.mining.topics import cycling
from jobs.analyse.mining.wording import figure
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from tests.support.mined_archive import WEEK
from tests.support.mined_frames import sessions_of

K, POLICY = AnonymityPolicy(), ArchivePolicy()


def people(*groups: tuple[str, int, int]) -> pl.DataFrame:
    """Sessions of groups, `(name, sessions, of them with an alert)`, each of a user of its own."""
    rows = [(name, n < alerting) for name, sessions, alerting in groups for n in range(sessions)]
    return sessions_of(len(rows), group=[name for name, _ in rows], alerted=[alerting for _, alerting in rows])


def table(frame: pl.DataFrame) -> pl.DataFrame:
    """Of each group the sessions, and how many alerted."""
    return frame.group_by("group", maintain_order=True).agg(
        sessions=pl.col("session_id").n_unique().cast(pl.Int64),
        users=pl.col("user_id").n_unique().cast(pl.Int64),
        alerting=pl.col("alerted").sum(),
        about_alerting=smaller_side(pl.col("alerted")),
    )


def shown(frame: pl.DataFrame, *within: str) -> pl.DataFrame:
    """What is left of a table."""
    return shown_rows(frame, K, within).kept


@pytest.mark.parametrize(
    ("alerting", "told"),
    [
        *(([few, 10, 8], [None, 10, None]) for few in (1, 4, 16, 19)),
        *(([several, 10], [several, 10]) for several in (0, 5, 15, 20)),
        ([3, 10, 8, 0], [None, 10, None, 0]),
        ([1, 1, 8, 10], [None, None, None, 10]),
    ],
)
def test_a_cell_is_about_enough_on_both_sides(alerting: list[int], told: list[int | None]) -> None:
    """Of 20 sessions; none and all tell of everybody alike. What the sum would tell takes another cell with it."""
    assert (
        told == shown(table(people(*((f"app {n}", 20, each) for n, each in enumerate(alerting)))))["alerting"].to_list()
    )


def test_a_cell_about_many_sessions_of_few_users_is_empty() -> None:
    """Ten sessions with an alert, all of one user."""
    frame = people(("a", 30, 10), ("b", 30, 15), ("c", 30, 15)).with_columns(
        user_id=pl.when(pl.col("alerted") & (pl.col("group") == "a")).then(pl.lit("u")).otherwise("user_id")
    )

    assert shown(table(frame))["alerting"][0] is None


def test_rows_that_the_sum_would_tell_go_too() -> None:
    """Three sessions left out together could be told: so are the next nine. Within a mode shares add up to one."""
    found = shown(table(people(("a", 1, 0), ("b", 2, 0), ("c", 9, 0), ("d", 20, 0))))
    sizes = [30, 20, 2, 9, 8]
    frame = pl.DataFrame({"mode": ["calm"] * 3 + ["watch"] * 2, "sessions": sizes, "users": sizes})

    assert ["d"] == found["group"].to_list()
    assert [30, 9, 8] == shown(frame, "mode")["sessions"].to_list()


def test_a_share_that_is_a_figure_tells_of_enough_on_both_sides() -> None:
    """One escalated session of a hundred is 1 %."""
    values = []
    for escalated in (0, 1, 5, 96):
        frame = people(("", 100, escalated))
        values.append(shown_figure(figure("alerting_sessions", 1.0, frame, part=pl.col("alerted")), K))

    assert [1.0, None, 1.0, None] == [each.value for each in values]
    assert {None} == {each.part for each in values}


def test_hidden_cells_are_counted_for_the_reader() -> None:
    """Where a dash stands for too few, and not for nothing."""
    kept, _, hidden = shown_rows(table(people(("a", 20, 3), ("b", 20, 9), ("c", 20, 8))), K)

    assert ([None, 9, None], 2) == (kept["alerting"].to_list(), hidden)


def test_a_tail_needs_enough_beyond_it_and_nobody_is_no_user() -> None:
    """The ninth decile of 40 sessions is the value of four; null and the empty name beside four users are four."""
    sizes = [8, 40, 45, 60]
    frame = pl.DataFrame({"sessions": sizes, "users": sizes, "high": [0.9, 0.8, 0.7, 0.6]})
    nobody = pl.DataFrame({"session_id": ["a", "b", "c", "d", "e", None], "user_id": ["1", "2", "3", "4", "", None]})

    assert [None, None, None, 0.6] == shown(frame.with_columns(about_high=beyond_cell(0.9)))["high"].to_list()
    assert {"sessions": 4, "users": 4} == beyond({"sessions": 9, "users": 9})
    assert {"sessions": 5, "users": 4} == about(nobody)


def test_texts_tell_no_share_of_few() -> None:
    """Nor of all but few."""
    few: Coverage = {"sessions": 2, "users": 2}
    finding = Finding(
        title="",
        text=f"{SHARE}, {SHARE}, {SHARE}",
        evidence="",
        strength=1.0,
        shares=(percent(2.0, few), percent(98.0, few), percent(2.0, None)),
    )

    assert "few, most, 2.0 %" == shown_text(finding, K)


def scored(*escalated_at: int | None) -> pl.DataFrame:
    """Sessions of 40 scored turns, each of a user of its own."""
    at = pl.Series(escalated_at, dtype=pl.Int64)
    return sessions_of(len(at), app_id="support", scored=40, escalated_at=at)


def test_survival_takes_no_step_of_few() -> None:
    """Between two rows that are shown nobody escalates, or five do; ten sessions of one user are no five."""
    sessions = scored(*[3] * 7, *range(4, 16), *[None] * 40)

    found = survival_table(sessions, POLICY).filter(pl.col("app") == "all apps")

    escalated = [sum(1 for at in sessions["escalated_at"].drop_nulls() if at <= turn) for turn in found["scored_turn"]]
    assert [0, 7, 12, 17] == escalated

    sessions = scored(*range(1, 20), *[None] * 40).with_columns(
        user_id=pl.when(pl.col("escalated_at") <= 10).then(pl.lit("u")).otherwise("user_id")
    )

    found = survival_table(sessions, POLICY).filter(pl.col("app") == "all apps")

    assert [0, 14, 19, 40] == found["scored_turn"].to_list()


def test_sequences_tell_no_few_alerts() -> None:
    """Of thirty sessions with a pattern two alert."""
    events = [["mode watch", "mode elevated"]] * 30 + [["mode calm"]] * 30
    sessions = sessions_of(60, events=events, alert_turn=[4, 4, *[None] * 58])

    found = shown(frequent_table(sessions, POLICY))

    assert [(30, None, None)] == found.select("sessions", "alert_percent", "lift").rows()


def test_few_alerting_sessions_of_an_app_are_not_told_by_the_others() -> None:
    """The app's sessions without an alert go with those that have one: the app's total is in another table."""
    rated = people(("", 60, 3)).with_columns(
        app_id=pl.lit("support"), returns=pl.lit(0), turns=pl.lit(9), alerted=pl.col("alerted")
    )

    asked = MiningInput(WEEK, POLICY, lambda _: {}, None, None)  # type: ignore[arg-type]

    (table,) = cycling(rated, asked).tables.values()

    assert 0 == shown_rows(table, K)[0].height


def test_a_campaign_tells_no_day_of_one_person() -> None:
    """One user began a month before all others, another went on for a month."""
    day = date(2026, 3, 10)
    days = [day - timedelta(30), *[day] * 8, day + timedelta(30)]
    of: dict[str, Any] = {
        "app_id": "support",
        "text": 1,
        "likeness": 1.0,
        "risk": 0.7,
        "alerted": [n < 2 for n in range(10)],
    }
    members = sessions_of(10, group=0, date=days, **of)

    found = shown(table_of(Campaigns(members, members, []), {0: "words"}, K))

    assert [(day, day, 1, None)] == found.select("first_day", "last_day", "span_days", "alert_share").rows()


def test_a_finding_does_not_tell_of_the_few_in_the_rest() -> None:
    """Half of an app's sessions alert, and three of all others."""
    apps = ((60, 30, "loud"), (300, 3, "calm"))
    frame = pl.concat(
        sessions_of(count, prefix=app, day=WEEK.since, app_id=app, alerts=[int(n < alerting) for n in range(count)])
        for count, alerting, app in apps
    )

    (found,) = findings_of(frame, frame.clear(), WEEK, POLICY)

    assert "in the other apps fewer than 5 sessions" in shown_text(found, K)
