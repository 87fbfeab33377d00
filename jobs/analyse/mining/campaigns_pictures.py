"""Pictures of campaigns."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.analyse.mining.job import Frames, Picture

_LARGEST = 8
"""Campaigns that are drawn: more cannot be told apart."""


def pictures(tables: Frames) -> Sequence[Picture]:
    """How large campaigns are, and when they came."""
    drawn = [_sizes(tables), _days(tables)]
    return [picture for picture in drawn if picture is not None]


def _sizes(tables: Frames) -> Picture | None:
    import altair as alt

    campaigns = tables.get("campaigns")
    if campaigns is None or campaigns.is_empty():
        return None
    largest = campaigns.head(_LARGEST)
    chart = (
        alt.Chart(largest)
        .mark_bar()
        .encode(
            x=alt.X("users:Q", title="users"),
            y=alt.Y("campaign:N", title=None, sort=largest["campaign"].to_list()),
            color=alt.Color("alert_share:Q", title="with an alert", legend=alt.Legend(format="%")),
        )
    )
    return Picture("Campaigns", "Users of the largest campaigns, and how many of their sessions have an alert.", chart)


def _days(tables: Frames) -> Picture | None:
    import altair as alt
    import polars as pl

    days, campaigns = tables.get("campaign_days"), tables.get("campaigns")
    if days is None or campaigns is None or days.is_empty():
        return None
    names = campaigns["campaign"].head(_LARGEST).to_list()
    chart = (
        alt.Chart(days.filter(pl.col("campaign").is_in(names)))
        .mark_bar()
        .encode(
            x=alt.X("day:O", timeUnit="yearmonthdate", title=None),
            y=alt.Y("turns:Q", title="messages"),
            color=alt.Color("campaign:N", title=None, sort=names),
        )
    )
    return Picture("Campaigns by day", "Messages by day; days with too few sessions are left out.", chart)
