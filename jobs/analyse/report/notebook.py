"""The archive in a marimo notebook: `turntide analyse notebook` opens a copy of this file.

The archive is the one that the settings name (TURNTIDE_DATA_DIR …), read-only. Change a cell, and what rests on it is
computed anew. What you ask yourself is told as it is; only what a mining job found leaves out what is about too few.
"""

# ruff: noqa: ANN001, ANN202, B018, N803 - marimo writes the cells' heads, and shows a cell's last expression
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Turntide archive")


@app.cell
def _():
    import altair as alt
    import marimo as mo

    from jobs.analyse.mining.command import mined, period_of
    from jobs.analyse.mining.source import MiningSource
    from streams.archive.catalog import open_reader, paths_of
    from streams.settings import load_settings

    return MiningSource, alt, load_settings, mined, mo, open_reader, paths_of, period_of


@app.cell
def _(MiningSource, load_settings, open_reader, paths_of, period_of):
    con = open_reader(paths_of(load_settings()))
    source = MiningSource(con)
    period = period_of(source, days=7, since=None, until=None)
    return con, period, source


@app.cell
def _(con, mo):
    headline = con.sql(
        "SELECT count(*) AS sessions, count(DISTINCT user_id) AS users, sum(turns)::BIGINT AS turns, "
        "count(*) FILTER (alerts > 0) AS alerting_sessions FROM sessions"
    ).pl()
    mo.vstack(
        [
            mo.md("# What the archive holds"),
            mo.hstack([mo.stat(f"{headline[name][0]:,}", label=name.replace("_", " ")) for name in headline.columns]),
        ]
    )
    return (headline,)


@app.cell
def _(con, mo):
    # A query: any view of `turntide archive dictionary`, in DuckDB's SQL, as a polars frame.
    by_app = con.sql(
        "SELECT app_id, count(*) AS sessions, avg(turns) AS turns_per_session, max(peak_risk) AS peak_risk "
        "FROM sessions GROUP BY app_id ORDER BY sessions DESC"
    ).pl()
    mo.vstack([mo.md("## Apps"), mo.ui.table(by_app, selection=None)])
    return (by_app,)


@app.cell
def _(con, mo):
    import polars as pl

    # The same archive in polars: risk by tenths of the session, scored turns alone.
    points = con.sql("SELECT session_id, turn, risk FROM risk_points").pl()
    along = (
        points.with_columns(tenth=(10 * pl.col("turn") // (pl.col("turn").max().over("session_id") + 1)))
        .group_by("tenth")
        .agg(pl.col("risk").mean(), pl.col("session_id").n_unique().alias("sessions"))
        .sort("tenth")
    )
    mo.vstack([mo.md("## Risk along the session"), along])
    return (along,)


@app.cell
def _(along, alt):
    picture = (
        alt.Chart(along)
        .mark_line(point=True)
        .encode(
            x=alt.X("tenth:O", title="tenth of the session"),
            y=alt.Y("risk:Q", title="mean risk"),
            tooltip=["tenth", alt.Tooltip("risk", format=".3f"), "sessions"],
        )
        .properties(width="container", height=220)
    )
    picture
    return (picture,)


@app.cell
def _(mined, mo, period, source):
    # A mining job's section, made when it is not there yet; nothing in it is about too few sessions or users.
    overview = mined("overview", source, period)
    mo.vstack(
        [
            mo.md(f"## {overview.section.title}, {period.since} to {period.until}"),
            mo.ui.table(overview.tables["funnel"], selection=None),
            *[mo.md(f"**{each.finding.title}.** {each.finding.text}") for each in overview.section.findings],
        ]
    )
    return (overview,)


if __name__ == "__main__":
    app.run()
