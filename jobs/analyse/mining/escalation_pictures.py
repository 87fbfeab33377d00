"""Pictures of the escalation job."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.analyse.mining.escalation_survival import ALL_APPS
from jobs.analyse.mining.job import Frames, Picture


def pictures(tables: Frames) -> Sequence[Picture]:
    """Shapes of curves, survival, slopes and changes, as far as there are any."""
    drawn = {"shape_curves": _shapes, "survival": _survival, "slopes": _slopes, "changes": _changes}
    return [draw(tables) for name, draw in drawn.items() if name in tables and tables[name].height]


def _shapes(tables: Frames) -> Picture:
    import altair as alt

    place = alt.X("done_percent:Q", title="share of the session's scored turns (%)")
    base = alt.Chart().encode(x=place)
    band = base.mark_area(opacity=0.3).encode(
        y=alt.Y("quarter_below:Q", title="risk", scale=alt.Scale(domain=[0, 1])), y2="quarter_above:Q"
    )
    line = base.mark_line().encode(y="mean_risk:Q", tooltip=["shape:N", "done_percent:Q", "mean_risk:Q", "sessions:Q"])
    chart = alt.layer(band, line, data=tables["shape_curves"]).facet(alt.Facet("shape:N", title=None), columns=3)
    return Picture("Shapes of risk curves", "Mean risk along the session; the band holds the middle half.", chart)


def _survival(tables: Frames) -> Picture:
    import altair as alt

    steps = tables["survival"]
    base = alt.Chart(steps).encode(x=alt.X("scored_turn:Q", title="scored turns"))
    share = alt.Y("calm_percent:Q", title="sessions that have not escalated (%)", scale=alt.Scale(domain=[0, 100]))
    band = (
        base.transform_filter(alt.datum.app == ALL_APPS)
        .mark_area(opacity=0.2, interpolate="step-after")
        .encode(y="low_percent:Q", y2="high_percent:Q")
    )
    line = base.mark_line(interpolate="step-after").encode(
        y=share,
        color=alt.Color("app:N", title=None),
        tooltip=["app:N", "scored_turn:Q", "calm_percent:Q", "sessions:Q"],
    )
    return Picture(
        "How long sessions stay calm",
        "Kaplan-Meier estimate by app; the band is the interval of all apps.",
        band + line,
    )


def _slopes(tables: Frames) -> Picture:
    import altair as alt

    chart = (
        alt.Chart(tables["slopes"])
        .mark_bar()
        .encode(
            x=alt.X("rise_from:Q", bin="binned", title="slope, risk over the whole session"),
            x2="rise_to:Q",
            y=alt.Y("sessions:Q", title="sessions"),
            tooltip=["rise_from:Q", "rise_to:Q", "sessions:Q", "surely_rising_percent:Q"],
        )
    )
    return Picture("Slopes of risk", "Theil-Sen slope of the sessions whose risk moves.", chart)


def _changes(tables: Frames) -> Picture:
    import altair as alt

    chart = (
        alt.Chart(tables["changes"])
        .mark_bar()
        .encode(
            x=alt.X("done_percent_from:Q", bin="binned", title="share of the session (%)"),
            x2="done_percent_to:Q",
            y=alt.Y("sessions:Q", title="sessions"),
            tooltip=["done_percent_from:Q", "sessions:Q", "mean_rise:Q", "escalated_percent:Q"],
        )
    )
    return Picture("Where risk turns upwards", "First upward change point, by share of the session.", chart)
