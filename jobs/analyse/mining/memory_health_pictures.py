"""Pictures of memory health."""

from __future__ import annotations

import polars as pl

from jobs.analyse.mining.job import Frames, Picture


def pictures(tables: Frames) -> list[Picture]:
    """What compaction keeps, and what facts are like."""
    import altair as alt

    found = []
    sizes = tables.get("compaction", pl.DataFrame())
    if sizes.height:
        bars = alt.Chart(sizes.select("layer", "app_id", "tokens_kept_ratio")).mark_bar().encode(
            x=alt.X("tokens_kept_ratio:Q", title="tokens after to tokens before", axis=alt.Axis(format="%")),
            y=alt.Y("app_id:N", title=None),
            row=alt.Row("layer:N", title=None),
        )  # fmt: skip
        found.append(Picture("What compaction keeps", "The shorter the bar, the more is left out.", bars))
    loss = tables.get("loss", pl.DataFrame())
    if loss.height:
        base = alt.Chart(loss).encode(y=alt.Y("app_id:N", title=None))
        span = base.mark_rule().encode(
            x=alt.X("loss_p10:Q", title="probes lost, a session", axis=alt.Axis(format="%")), x2="loss_p90:Q"
        )
        middle = base.mark_point(filled=True).encode(x="loss_p50:Q")
        found.append(
            Picture("What a search no longer finds", "Median of the sessions, and the middle 80 %.", span + middle)
        )
    facts = tables.get("facts", pl.DataFrame())
    if facts.height:
        shares = facts.select("category", "duplicate_ratio", "stale_ratio").unpivot(
            index="category", variable_name="trouble", value_name="ratio"
        )
        groups = alt.Chart(shares.with_columns(pl.col("trouble").str.strip_suffix("_ratio"))).mark_bar().encode(
            x=alt.X("ratio:Q", title="share of active facts", axis=alt.Axis(format="%")),
            y=alt.Y("category:N", title=None),
            yOffset="trouble:N",
            color=alt.Color("trouble:N", title=None),
        )  # fmt: skip
        found.append(Picture("Facts that stand twice or are stale", "Of each category.", groups))
    return found
