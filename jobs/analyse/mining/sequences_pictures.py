"""Pictures of the sequences job."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from jobs.analyse.mining.job import Frames, Picture
from models.events import Mode

_SHOWN = 12
"""Patterns in a picture; the table has more."""
_LONGEST_LABEL_PIXELS = 260


def pictures(tables: Frames) -> Sequence[Picture]:
    """What comes before alerts and after modes, as far as there is anything."""
    drawn = {"before_alerts": _before, "transitions": _transitions}
    return [draw(tables[name]) for name, draw in drawn.items() if name in tables and tables[name].height]


def _before(patterns: pl.DataFrame) -> Picture:
    import altair as alt

    before, elsewhere = "before the first alert", "same place, no alert"
    shares = (
        patterns.head(_SHOWN)
        .select("pattern", pl.col("before_alerts_percent").alias(before), pl.col("elsewhere_percent").alias(elsewhere))
        .unpivot(index="pattern", variable_name="where", value_name="percent")
    )
    chart = (
        alt.Chart(shares)
        .mark_bar()
        .encode(
            x=alt.X("percent:Q", title="sessions (%)"),
            y=alt.Y("pattern:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LONGEST_LABEL_PIXELS)),
            yOffset=alt.YOffset("where:N", sort=[before, elsewhere]),
            color=alt.Color("where:N", title=None, sort=[before, elsewhere]),
            tooltip=["pattern:N", "where:N", "percent:Q"],
        )
    )
    return Picture(
        "What comes before an alert",
        "Share of sessions with the pattern before their first alert, and of others.",
        chart,
    )


def _transitions(cells: pl.DataFrame) -> Picture:
    import altair as alt

    modes = [mode.value for mode in Mode]
    base = alt.Chart(cells).encode(
        x=alt.X("next:N", title="comes next", sort=[*modes, "end"]), y=alt.Y("mode:N", title="after mode", sort=modes)
    )
    shade = base.mark_rect().encode(
        color=alt.Color("share_percent:Q", title="stays (%)", scale=alt.Scale(domain=[0, 100])),
        tooltip=["mode:N", "next:N", "share_percent:Q", "low_percent:Q", "high_percent:Q", "independent_percent:Q"],
    )
    # In the middle of the scale neither black nor white is lost.
    number = base.mark_text(stroke="white", strokeWidth=3).encode(text=alt.Text("share_percent:Q", format=".0f"))
    plain = base.mark_text(color="black").encode(text=alt.Text("share_percent:Q", format=".0f"))
    return Picture(
        "What follows a mode",
        "Percent of the stays in a mode; cells of few sessions are left out.",
        shade + number + plain,
    )
