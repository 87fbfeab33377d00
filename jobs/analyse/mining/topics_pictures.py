"""Pictures of topics."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from jobs.analyse.mining.job import Frames, Picture

_LARGEST = 6
"""Topics whose days are drawn: more lines cannot be told apart."""


def pictures(tables: Frames) -> Sequence[Picture]:
    """What sessions are about, how that moves, and what is novel."""
    drawn = [_shares(tables), _days(tables), _novelty(tables), _cycling(tables)]
    return [picture for picture in drawn if picture is not None]


def _shares(tables: Frames) -> Picture | None:
    import altair as alt

    topics = tables.get("topics")
    if topics is None or topics.is_empty():
        return None
    long = topics.unpivot(
        ["share", "share_before"], index="topic", variable_name="when", value_name="of_sessions"
    ).with_columns(when=pl.when(pl.col("when") == "share").then(pl.lit("period")).otherwise(pl.lit("earlier period")))
    chart = (
        alt.Chart(long.drop_nulls())
        .mark_bar()
        .encode(
            x=alt.X("of_sessions:Q", title="share of sessions", axis=alt.Axis(format="%")),
            y=alt.Y("topic:N", title=None, sort=topics["topic"].to_list()),
            yOffset=alt.YOffset("when:N", sort=["period", "earlier period"]),
            color=alt.Color("when:N", title=None, sort=["period", "earlier period"]),
        )
    )
    return Picture("What sessions are about", "Share of sessions about each topic, against the earlier period.", chart)


def _days(tables: Frames) -> Picture | None:
    import altair as alt

    days = tables.get("topic_days")
    if days is None or days["day"].n_unique() < 2:  # noqa: PLR2004 - one day is no line
        return None
    largest = days.group_by("topic").agg(pl.col("sessions").sum()).sort("sessions", "topic", descending=[True, False])
    names = largest["topic"].head(_LARGEST).to_list()
    chart = (
        alt.Chart(days.filter(pl.col("topic").is_in(names)))
        .mark_line(point=True)
        .encode(
            x=alt.X("day:T", title=None),
            y=alt.Y("share:Q", title="share of the day's sessions", axis=alt.Axis(format="%")),
            color=alt.Color("topic:N", title=None, sort=names),
        )
    )
    return Picture("Topics by day", "The largest topics; days with too few sessions are left out.", chart)


def _novelty(tables: Frames) -> Picture | None:
    import altair as alt

    novelty = tables.get("novelty")
    if novelty is None or novelty.is_empty():
        return None
    chart = (
        alt.Chart(novelty)
        .mark_bar()
        .encode(
            x=alt.X("day:O", timeUnit="yearmonthdate", title=None),
            y=alt.Y("novel_ratio:Q", title="share of novel texts", axis=alt.Axis(format="%")),
        )
    )
    return Picture(
        "Novelty", "Share of texts far from all topics of the earlier period; 5 % where nothing changed.", chart
    )


def _cycling(tables: Frames) -> Picture | None:
    import altair as alt

    cycling = tables.get("cycling")
    if cycling is None or cycling.is_empty():
        return None
    named = cycling.with_columns(
        alert=pl.when("alerted").then(pl.lit("with an alert")).otherwise(pl.lit("without alert"))
    )
    chart = (
        alt.Chart(named)
        .mark_bar()
        .encode(
            x=alt.X("returns_per_100_turns:Q", title="returns per 100 turns"),
            y=alt.Y("app_id:N", title="app"),
            yOffset=alt.YOffset("alert:N"),
            color=alt.Color("alert:N", title=None),
        )
    )
    return Picture("Topic cycling", "How often sessions come back to a topic that they left.", chart)
