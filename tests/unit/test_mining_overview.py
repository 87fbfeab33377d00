"""The overview: funnel, quantiles, counts that may be shown, findings, on frames and on the planted archive."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from jobs.analyse.mining import overview as tables
from jobs.analyse.mining.anonymity import shown_figure
from jobs.analyse.mining.job import Figure, JobResult, MiningInput, Period
from jobs.analyse.mining.overview import findings_of
from models.policy.archive import AnonymityPolicy, ArchivePolicy, OverviewMining
from streams.archive.catalog import LakePaths, reading
from tests.support.mined_archive import WEEK
from tests.support.mined_plan import FIRST, PLAN

DAY = date(2026, 3, 2)
K = AnonymityPolicy()
NOBODY_HIDDEN = AnonymityPolicy(min_sessions=1, min_users=1)
COLUMNS = {
    "mode_rank": 0,
    "alerts": 0,
    "critical_alerts": 0,
    "open_alerts": 0,
    "hour": 9,
    "labels": 0,
    "right_labels": 0,
    "peak_risk": 0.1,
    "unread": None,
    "categories": None,
}


def sessions(*rows: dict[str, Any]) -> pl.DataFrame:
    """Sessions, each of a user of its own unless told; what is not told is calm."""
    plain = {"day": DAY, "app_id": "support", "turns": 4, "user_turns": 2, "json_bytes": 1_000, **COLUMNS}
    return pl.DataFrame(
        [{"session_id": f"s-{n}", "user_id": f"u-{n}", **plain, **row} for n, row in enumerate(rows)],
        schema_overrides={"peak_risk": pl.Float64, "unread": pl.String, "categories": pl.List(pl.String)},
    )


def test_funnel_counts_each_stage() -> None:
    """Each stage that a session came to and no other; a stage that all but one came to would tell of the one."""
    frame = sessions(
        {}, {"peak_risk": 0.3}, {"peak_risk": 0.8, "mode_rank": 2, "alerts": 1, "labels": 1}, {"mode_rank": 3}
    )

    funnel = tables.funnel(frame, NOBODY_HIDDEN)

    assert [4, 2, 2, 1, 1, 0] == funnel["sessions"].to_list()
    assert [1.0, 0.5] == funnel["share_ratio"].to_list()[:2]

    frame = sessions({}, *({"mode_rank": 1} for _ in range(9)))

    found = tables.funnel(frame, K)

    assert ["all sessions", "elevated"] == found["stage"].to_list()[:2]


def test_quantile_says_how_many_reach_it() -> None:
    """Of a hundred sessions with risks 0.00-0.99, the median is reached by fifty, the last percentile by one."""
    frame = sessions(*({"peak_risk": n / 100} for n in range(100)))

    found = tables.risk_by_day(frame, OverviewMining()).sort("peak_risk")

    assert [0.49, 0.89, 0.98] == found["peak_risk"].to_list()
    assert [51, 11, 2] == found["sessions"].to_list()


def test_app_with_more_alerts_stands_out() -> None:
    """Twenty of fifty against five of a hundred is found; the same shares in both are not."""
    planted = [{"app_id": "o'hare", "alerts": int(n < 20)} for n in range(50)]
    planted += [{"alerts": int(n < 5)} for n in range(100)]
    even = [{"app_id": app, "alerts": int(n < 10)} for app in ("a", "b") for n in range(50)]
    week = Period(DAY, DAY)

    found = list(findings_of(sessions(*planted), sessions(*planted).clear(), week, ArchivePolicy()))

    assert ["More alerts in app o'hare"] == [finding.title for finding in found]
    assert "app_id = 'o''hare'" in found[0].evidence
    assert 0.875 == pytest.approx(found[0].strength)
    assert not list(findings_of(sessions(*even), sessions(*even).clear(), week, ArchivePolicy()))


def test_one_critical_session_of_six_is_counted_and_what_is_hidden_is_said() -> None:
    """Such a week is not calm: what is about too few is told from what there is nothing to tell of."""
    rows = [{"judgements": 0, "judge_ms": 0}] * 5 + [
        {"judgements": 0, "judge_ms": 0, "peak_risk": 0.9, "mode_rank": 3, "alerts": 2, "critical_alerts": 1}
        | {"open_alerts": 1, "labels": 1, "hour": 14, "categories": ["fraud", "other", "privacy"]}
    ]
    frame = sessions(*rows)
    of_segments = {"summarised_by": str, "summaries": int, "tokens_before": int, "tokens_after": int}
    frames = {
        "sessions": frame,
        "summaries": pl.DataFrame(schema={"session_id": str, "user_id": str, **of_segments}),
        "operations": pl.DataFrame(schema={"kind": str, "count": int, "elapsed_ms": int}),
    }
    asked = MiningInput(Period(DAY, DAY), ArchivePolicy(), lambda _: {}, None, None)  # type: ignore[arg-type]
    found = tables.find(frames, asked)
    figures = {each.name: shown_figure(each, K) for each in found.figures}

    counted = ("alerts", "alerting_sessions", "critical_sessions", "open_alerts", "false_alerts", "right_alerts")
    assert [2, 1, 1, 1, 1, 0] == [figures[name].value for name in counted]
    assert [("fraud", 1), ("privacy", 1)] == found.tables["kinds"].select("category", "sessions").rows()
    assert [(9, 5), (14, 1)] == found.tables["hours"].select("hour", "sessions").rows()
    assert pytest.approx(333.3, abs=0.1) == figures["alerts_per_1000_sessions"].value
    assert ("at_risk_ratio", None, True) == (figures["at_risk_ratio"].name, *_told(figures["at_risk_ratio"]))
    assert [(None, True), (None, False)] == [
        _told(figures[name]) for name in ("label_precision_ratio", "seconds_per_judgement")
    ]
    assert {False} == {figures[name].hidden for name in counted}

    all_but_one = sessions(*[{**rows[0], "peak_risk": 0.9}] * 9, rows[0])
    at_risk = next(each for each in tables.find({**frames, "sessions": all_but_one}, asked).figures if each.better)

    assert ("at_risk_ratio", None, True) == (at_risk.name, *_told(shown_figure(at_risk, K)))


def _told(figure: Figure) -> tuple[float | None, bool]:
    return figure.value, figure.hidden


def test_turns_in_languages_that_are_not_read_are_told_by_language() -> None:
    """Of all turns of users; sessions of which nothing is known, and those that are read whole, have none."""
    rows: list[dict[str, Any]] = [
        {},
        {"unread": "{}"},
        {"unread": '{"es":2,"fr":1}', "user_turns": 4},
        {"unread": '{"es":2}'},
    ]
    found = tables.unread_languages(sessions(*rows))

    assert found.rows() == [("es", 2, 2, 4, 0.4), ("fr", 1, 1, 1, 0.1)]
    assert tables.unread_languages(sessions({})).is_empty()


def test_planted_week_is_counted(
    week: Callable[[str], JobResult], ready_week: Callable[[str], JobResult], planted: LakePaths
) -> None:
    """Headline figures are those of the views, and of the plan; more sessions alert than before.

    With 70 sessions a week that is not beyond the level of one in a hundred that is asked for by default.
    """
    planned = [planted for planted in PLAN if FIRST + timedelta(days=planted.day) in WEEK]
    figures = {figure.name: figure.value for figure in week("overview").section.figures}
    findings = {each.finding.title: each for each in ready_week("overview").section.findings}
    with reading(planted) as con:
        (views,) = con.execute(
            "SELECT count(*) FILTER (alerts > 0), sum(turns) FROM sessions WHERE first_at >= $1", [WEEK.since]
        ).fetchall()
        ((size,),) = con.execute("SELECT sum(record_bytes) FROM turns WHERE date >= $1", [WEEK.since]).fetchall()

    assert len(planned) == figures["sessions"]
    assert 2 * sum(planted.questions for planted in planned) == figures["turns"]
    assert (figures["alerting_sessions"], figures["turns"]) == views
    assert size / 1_000_000 == pytest.approx(figures["turns_as_json_mb"])
    assert (findings["More sessions alert than before"].sessions or 0) > (figures["alerting_sessions"] or 0)
