"""Pictures of drift."""

from __future__ import annotations

import polars as pl

from jobs.analyse.mining.job import Frames, Picture

_MOST_MEASURES = 6


def pictures(tables: Frames) -> list[Picture]:
    """What moved, day by day, and whether probabilities come true."""
    import altair as alt

    found = []
    measures = tables.get("measures", pl.DataFrame())
    if measures.height:
        bars = alt.Chart(measures.select("app_id", "measure", "psi", "shifted")).mark_bar().encode(
            x=alt.X("psi:Q", title="stability index (PSI)"),
            y=alt.Y("measure:N", title=None, sort="-x"),
            color=alt.Color("shifted:N", title="shifted"),
            row=alt.Row("app_id:N", title=None),
        ).resolve_scale(y="independent")  # fmt: skip
        found.append(Picture("What moved", "Stability index of each measure; 0.2 and more is a shift.", bars))
    days = tables.get("days", pl.DataFrame())
    if days.height:
        highest = days.group_by("measure").agg(pl.col("psi").max()).top_k(_MOST_MEASURES, by="psi")["measure"]
        lines = alt.Chart(days.filter(pl.col("measure").is_in(highest.implode()))).mark_line(point=True).encode(
            x=alt.X("day:T", title=None),
            y=alt.Y("psi:Q", title="stability index (PSI)"),
            color=alt.Color("measure:N", title=None),
        )  # fmt: skip
        found.append(Picture("Day by day", "Each day against the whole baseline; the measures that moved most.", lines))
    bins = tables.get("reliability", pl.DataFrame())
    if bins.height:
        base = alt.Chart(bins).encode(x=alt.X("mean_probability:Q", title="probability of the alert"))
        band = base.mark_rule().encode(y=alt.Y("right_low:Q", title="share that was right"), y2="right_high:Q")
        points = base.mark_point(filled=True).encode(y="right_ratio:Q")
        ideal = alt.Chart(pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})).mark_line(strokeDash=[4, 4])
        diagonal = ideal.encode(x="x:Q", y="y:Q")
        found.append(
            Picture("Probability and outcome", "On the dashed line probabilities come true.", diagonal + band + points)
        )
    return found
