"""Pictures of the overview: the funnel, risk by day, sessions and alerts by day, alerts by app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jobs.analyse.mining.job import Frames, Picture

if TYPE_CHECKING:
    import polars as pl

_MOST_APPS = 20
_ROOM = 1.4
"""Right of the longest bar, for its numbers."""


def pictures(tables: Frames) -> list[Picture]:
    """Of the tables that are shown; none of an empty one."""
    return list(_drawn({name: frame for name, frame in tables.items() if not frame.is_empty()}))


def _drawn(tables: Frames) -> Iterator[Picture]:
    if "funnel" in tables:
        yield Picture("How far sessions went", "Sessions that came to each stage, of all.", _funnel(tables["funnel"]))
    if "risk_by_day" in tables:
        yield Picture(
            "Risk by day",
            "The highest risk of a session, by the day on which it began: the higher a line, the more its sessions "
            "carried.",
            _risk(tables["risk_by_day"]),
        )
    if "days" in tables:
        yield Picture("Sessions by day", "By the day of their first turn, UTC.", _by_day(tables["days"], "sessions"))
        told = tables["days"].drop_nulls("alerts_per_1000_sessions")
        if told.height:
            yield Picture(
                "Alerts per 1,000 sessions by day",
                "Days with alerts in too few sessions to be shown are left out.",
                _by_day(told, "alerts_per_1000_sessions"),
            )
    apps = tables["apps"].drop_nulls("alerts_per_1000_sessions") if "apps" in tables else None
    if apps is not None and apps.height:
        yield Picture("Alerts per 1,000 sessions by app", "Apps with the most sessions.", _apps(apps.head(_MOST_APPS)))


def _funnel(frame: pl.DataFrame) -> Any:
    import altair as alt

    order = frame["stage"].to_list()
    base = alt.Chart(frame).encode(
        y=alt.Y("stage:N", sort=order, title=None),
        x=alt.X("sessions:Q", title="sessions")
        .scale(domainMax=_ROOM * float(frame["sessions"].sort()[-1]))
        .axis(format="~s"),
        tooltip=[
            "stage",
            alt.Tooltip("sessions", format=","),
            alt.Tooltip("share_ratio", title="of all", format=".2%"),
        ],
    )
    words = "format(datum.sessions, ',') + ' (' + format(datum.share_ratio, '.1%') + ')'"
    told = base.transform_calculate(told=words)
    return base.mark_bar() + told.mark_text(align="left", dx=4).encode(text="told:N")


def _risk(frame: pl.DataFrame) -> Any:
    import altair as alt

    order = frame["quantile"].unique().sort(descending=True).to_list()
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=_day(alt),
            y=alt.Y("peak_risk:Q", title="highest risk").scale(domain=[0, 1]),
            color=alt.Color("quantile:N", title=None, sort=order),
            tooltip=["day:T", "quantile", alt.Tooltip("peak_risk", format=".2f"), alt.Tooltip("sessions", format=",")],
        )
    )


def _by_day(frame: pl.DataFrame, column: str) -> Any:
    import altair as alt

    title = column.replace("_", " ").replace("1000", "1,000")
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=_day(alt, band=True),
            y=alt.Y(f"{column}:Q", title=title).axis(format="~s"),
            tooltip=["day:T", alt.Tooltip(column, title=title, format=",")],
        )
    )


def _day(alt: Any, *, band: bool = False) -> Any:
    if band:
        return alt.X("yearmonthdate(day):O", title=None).axis(format="%d %b", labelAngle=0)
    return alt.X("day:T", title=None).axis(format="%d %b")


def _apps(frame: pl.DataFrame) -> Any:
    import altair as alt

    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("app_id:N", sort="-x", title=None),
            x=alt.X("alerts_per_1000_sessions:Q", title="alerts per 1,000 sessions"),
            tooltip=[
                "app_id",
                alt.Tooltip("alerts_per_1000_sessions", format=","),
                alt.Tooltip("sessions", format=","),
            ],
        )
    )
