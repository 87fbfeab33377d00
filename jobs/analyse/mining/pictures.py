"""Pictures of what jobs show, by job: each of a table that is shown, none of an empty one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from jobs.analyse.mining.job import ALL_APPS, Frames, Picture
from models.events import Mode

_MOST_APPS, _MOST_CAMPAIGNS, _MOST_MEASURES, _MOST_PATTERNS, _MOST_TOPICS = 20, 8, 6, 12, 6
"""That are drawn: more cannot be told apart; the tables have them all."""
_ROOM = 1.4
"""Right of the longest bar, for its numbers."""
_LONGEST_LABEL_PIXELS = 260
_PERCENT = alt.Axis(format="%")
_Draw = Callable[[Frames], Picture | None]


def pictures_of(job: str, tables: Frames) -> list[Picture]:
    """All pictures of a job's tables."""
    return list(_drawn(_OF_JOB.get(job, ()), tables))


def _drawn(drawings: Sequence[tuple[str, _Draw]], tables: Frames) -> Iterator[Picture]:
    for table, draw in drawings:
        if table in tables and tables[table].height and (picture := draw(tables)) is not None:
            yield picture


def _bars(frame: pl.DataFrame, **channels: Any) -> alt.Chart:
    chart: alt.Chart = alt.Chart(frame).mark_bar().encode(**channels)
    return chart


def _lines(frame: pl.DataFrame, **channels: Any) -> alt.Chart:
    chart: alt.Chart = alt.Chart(frame).mark_line(point=True).encode(**channels)
    return chart


# --- overview


def _funnel(tables: Frames) -> Picture:
    frame = tables["funnel"]
    base = alt.Chart(frame).encode(
        y=alt.Y("stage:N", sort=frame["stage"].to_list(), title=None),
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
    chart = base.mark_bar() + told.mark_text(align="left", dx=4).encode(text="told:N")
    return Picture("How far sessions went", "Sessions that came to each stage, of all.", chart)


def _risk(tables: Frames) -> Picture:
    frame = tables["risk_by_day"]
    order = frame["quantile"].unique().sort(descending=True).to_list()
    chart = _lines(
        frame,
        x=alt.X("day:T", title=None).axis(format="%d %b"),
        y=alt.Y("peak_risk:Q", title="highest risk").scale(domain=[0, 1]),
        color=alt.Color("quantile:N", title=None, sort=order),
        tooltip=["day:T", "quantile", alt.Tooltip("peak_risk", format=".2f"), alt.Tooltip("sessions", format=",")],
    )
    caption = "The highest risk of a session, by the day on which it began: the higher a line, the more its sessions "
    return Picture("Risk by day", f"{caption}carried.", chart)


def _days(tables: Frames) -> Picture:
    return Picture("Sessions by day", "By the day of their first turn, UTC.", _by_day(tables["days"], "sessions"))


def _alerts_by_day(tables: Frames) -> Picture | None:
    told, caption = tables["days"].drop_nulls(_ALERTS), "Days with alerts in too few sessions to be shown are left out."
    return Picture("Alerts per 1,000 sessions by day", caption, _by_day(told, _ALERTS)) if told.height else None


_ALERTS = "alerts_per_1000_sessions"


def _by_day(frame: pl.DataFrame, column: str) -> alt.Chart:
    title = column.replace("_", " ").replace("1000", "1,000")
    return _bars(
        frame,
        x=alt.X("yearmonthdate(day):O", title=None).axis(format="%d %b", labelAngle=0),
        y=alt.Y(f"{column}:Q", title=title).axis(format="~s"),
        tooltip=["day:T", alt.Tooltip(column, title=title, format=",")],
    )


def _alerts_by_app(tables: Frames) -> Picture | None:
    apps = tables["apps"].drop_nulls(_ALERTS).head(_MOST_APPS)
    chart = _bars(
        apps,
        y=alt.Y("app_id:N", sort="-x", title=None),
        x=alt.X(f"{_ALERTS}:Q", title="alerts per 1,000 sessions"),
        tooltip=["app_id", alt.Tooltip(_ALERTS, format=","), alt.Tooltip("sessions", format=",")],
    )
    return Picture("Alerts per 1,000 sessions by app", "Apps with the most sessions.", chart) if apps.height else None


# --- escalation


def _shapes(tables: Frames) -> Picture:
    base = alt.Chart().encode(x=alt.X("done_percent:Q", title="share of the session's scored turns (%)"))
    band = base.mark_area(opacity=0.3).encode(
        y=alt.Y("quarter_below:Q", title="risk", scale=alt.Scale(domain=[0, 1])), y2="quarter_above:Q"
    )
    line = base.mark_line().encode(y="mean_risk:Q", tooltip=["shape:N", "done_percent:Q", "mean_risk:Q", "sessions:Q"])
    chart = alt.layer(band, line, data=tables["shape_curves"]).facet(alt.Facet("shape:N", title=None), columns=3)
    return Picture("Shapes of risk curves", "Mean risk along the session; the band holds the middle half.", chart)


def _survival(tables: Frames) -> Picture:
    base = alt.Chart(tables["survival"]).encode(x=alt.X("scored_turn:Q", title="scored turns"))
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
    caption = "Kaplan-Meier estimate by app; the band is the interval of all apps."
    return Picture("How long sessions stay calm", caption, band + line)


def _slopes(tables: Frames) -> Picture:
    chart = _bars(
        tables["slopes"],
        x=alt.X("rise_from:Q", bin="binned", title="slope, risk over the whole session"),
        x2="rise_to:Q",
        y=alt.Y("sessions:Q", title="sessions"),
        tooltip=["rise_from:Q", "rise_to:Q", "sessions:Q", "surely_rising_percent:Q"],
    )
    return Picture("Slopes of risk", "Theil-Sen slope of the sessions whose risk moves.", chart)


def _changes(tables: Frames) -> Picture:
    chart = _bars(
        tables["changes"],
        x=alt.X("done_percent_from:Q", bin="binned", title="share of the session (%)"),
        x2="done_percent_to:Q",
        y=alt.Y("sessions:Q", title="sessions"),
        tooltip=["done_percent_from:Q", "sessions:Q", "mean_rise:Q", "escalated_percent:Q"],
    )
    return Picture("Where risk turns upwards", "First upward change point, by share of the session.", chart)


# --- sequences


def _before(tables: Frames) -> Picture:
    before, elsewhere = "before the first alert", "same place, no alert"
    shares = (
        tables["before_alerts"]
        .head(_MOST_PATTERNS)
        .select("pattern", pl.col("before_alerts_percent").alias(before), pl.col("elsewhere_percent").alias(elsewhere))
        .unpivot(index="pattern", variable_name="where", value_name="percent")
    )
    chart = _bars(
        shares,
        x=alt.X("percent:Q", title="sessions (%)"),
        y=alt.Y("pattern:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LONGEST_LABEL_PIXELS)),
        yOffset=alt.YOffset("where:N", sort=[before, elsewhere]),
        color=alt.Color("where:N", title=None, sort=[before, elsewhere]),
        tooltip=["pattern:N", "where:N", "percent:Q"],
    )
    caption = "Share of sessions with the pattern before their first alert, and of others."
    return Picture("What comes before an alert", caption, chart)


def _transitions(tables: Frames) -> Picture:
    modes = [mode.value for mode in Mode]
    base = alt.Chart(tables["transitions"]).encode(
        x=alt.X("next:N", title="comes next", sort=[*modes, "end"]), y=alt.Y("mode:N", title="after mode", sort=modes)
    )
    shade = base.mark_rect().encode(
        color=alt.Color("share_percent:Q", title="stays (%)", scale=alt.Scale(domain=[0, 100])),
        tooltip=["mode:N", "next:N", "share_percent:Q", "low_percent:Q", "high_percent:Q", "independent_percent:Q"],
    )
    # In the middle of the scale neither black nor white is lost.
    number = base.mark_text(stroke="white", strokeWidth=3).encode(text=alt.Text("share_percent:Q", format=".0f"))
    plain = base.mark_text(color="black").encode(text=alt.Text("share_percent:Q", format=".0f"))
    caption = "Percent of the stays in a mode; cells of few sessions are left out."
    return Picture("What follows a mode", caption, shade + number + plain)


# --- topics


def _topics(tables: Frames) -> Picture:
    topics = tables["topics"]
    long = topics.unpivot(
        ["share", "share_before"], index="topic", variable_name="when", value_name="of_sessions"
    ).with_columns(when=pl.when(pl.col("when") == "share").then(pl.lit("period")).otherwise(pl.lit("earlier period")))
    chart = _bars(
        long.drop_nulls(),
        x=alt.X("of_sessions:Q", title="share of sessions", axis=_PERCENT),
        y=alt.Y("topic:N", title=None, sort=topics["topic"].to_list()),
        yOffset=alt.YOffset("when:N", sort=["period", "earlier period"]),
        color=alt.Color("when:N", title=None, sort=["period", "earlier period"]),
    )
    return Picture("What sessions are about", "Share of sessions about each topic, against the earlier period.", chart)


def _topic_days(tables: Frames) -> Picture | None:
    days = tables["topic_days"]
    if days["day"].n_unique() < 2:  # noqa: PLR2004 - one day is no line
        return None
    largest = days.group_by("topic").agg(pl.col("sessions").sum()).sort("sessions", "topic", descending=[True, False])
    names = largest["topic"].head(_MOST_TOPICS).to_list()
    chart = _lines(
        days.filter(pl.col("topic").is_in(names)),
        x=alt.X("day:T", title=None),
        y=alt.Y("share:Q", title="share of the day's sessions", axis=_PERCENT),
        color=alt.Color("topic:N", title=None, sort=names),
    )
    return Picture("Topics by day", "The largest topics; days with too few sessions are left out.", chart)


def _novelty(tables: Frames) -> Picture:
    chart = _bars(
        tables["novelty"],
        x=alt.X("day:O", timeUnit="yearmonthdate", title=None),
        y=alt.Y("novel_ratio:Q", title="share of novel texts", axis=_PERCENT),
    )
    caption = "Share of texts far from all topics of the earlier period; 5 % where nothing changed."
    return Picture("Novelty", caption, chart)


def _cycling(tables: Frames) -> Picture:
    named = tables["cycling"].with_columns(
        alert=pl.when("alerted").then(pl.lit("with an alert")).otherwise(pl.lit("without alert"))
    )
    chart = _bars(
        named,
        x=alt.X("returns_per_100_turns:Q", title="returns per 100 turns"),
        y=alt.Y("app_id:N", title="app"),
        yOffset=alt.YOffset("alert:N"),
        color=alt.Color("alert:N", title=None),
    )
    return Picture("Topic cycling", "How often sessions come back to a topic that they left.", chart)


# --- campaigns


def _sizes(tables: Frames) -> Picture:
    largest = tables["campaigns"].head(_MOST_CAMPAIGNS)
    chart = _bars(
        largest,
        x=alt.X("users:Q", title="users"),
        y=alt.Y("campaign:N", title=None, sort=largest["campaign"].to_list()),
        color=alt.Color("alert_share:Q", title="with an alert", legend=alt.Legend(format="%")),
    )
    return Picture("Campaigns", "Users of the largest campaigns, and how many of their sessions have an alert.", chart)


def _campaign_days(tables: Frames) -> Picture | None:
    if "campaigns" not in tables:
        return None
    names = tables["campaigns"]["campaign"].head(_MOST_CAMPAIGNS).to_list()
    chart = _bars(
        tables["campaign_days"].filter(pl.col("campaign").is_in(names)),
        x=alt.X("day:O", timeUnit="yearmonthdate", title=None),
        y=alt.Y("turns:Q", title="messages"),
        color=alt.Color("campaign:N", title=None, sort=names),
    )
    return Picture("Campaigns by day", "Messages by day; days with too few sessions are left out.", chart)


# --- memory


def _kept(tables: Frames) -> Picture:
    chart = _bars(
        tables["compaction"].select("layer", "app_id", "tokens_kept_ratio"),
        x=alt.X("tokens_kept_ratio:Q", title="tokens after to tokens before", axis=_PERCENT),
        y=alt.Y("app_id:N", title=None),
        row=alt.Row("layer:N", title=None),
    )
    return Picture("What compaction keeps", "The shorter the bar, the more is left out.", chart)


def _loss(tables: Frames) -> Picture:
    base = alt.Chart(tables["loss"]).encode(y=alt.Y("app_id:N", title=None))
    span = base.mark_rule().encode(
        x=alt.X("loss_p10:Q", title="probes lost, a session", axis=_PERCENT), x2="loss_p90:Q"
    )
    middle = base.mark_point(filled=True).encode(x="loss_p50:Q")
    return Picture("What a search no longer finds", "Median of the sessions, and the middle 80 %.", span + middle)


def _facts(tables: Frames) -> Picture:
    shares = (
        tables["facts"]
        .select("category", "duplicate_ratio", "stale_ratio")
        .unpivot(index="category", variable_name="trouble", value_name="ratio")
    )
    chart = _bars(
        shares.with_columns(pl.col("trouble").str.strip_suffix("_ratio")),
        x=alt.X("ratio:Q", title="share of active facts", axis=_PERCENT),
        y=alt.Y("category:N", title=None),
        yOffset="trouble:N",
        color=alt.Color("trouble:N", title=None),
    )
    return Picture("Facts that stand twice or are stale", "Of each category.", chart)


# --- drift


def _moved(tables: Frames) -> Picture:
    chart = _bars(
        tables["measures"].select("app_id", "measure", "psi", "shifted"),
        x=alt.X("psi:Q", title="stability index (PSI)"),
        y=alt.Y("measure:N", title=None, sort="-x"),
        color=alt.Color("shifted:N", title="shifted"),
        row=alt.Row("app_id:N", title=None),
    ).resolve_scale(y="independent")
    return Picture("What moved", "Stability index of each measure; 0.2 and more is a shift.", chart)


def _drift_days(tables: Frames) -> Picture:
    days = tables["days"]
    highest = days.group_by("measure").agg(pl.col("psi").max()).top_k(_MOST_MEASURES, by="psi")["measure"]
    chart = _lines(
        days.filter(pl.col("measure").is_in(highest.implode())),
        x=alt.X("day:T", title=None),
        y=alt.Y("psi:Q", title="stability index (PSI)"),
        color=alt.Color("measure:N", title=None),
    )
    return Picture("Day by day", "Each day against the whole baseline; the measures that moved most.", chart)


def _reliability(tables: Frames) -> Picture:
    base = alt.Chart(tables["reliability"]).encode(x=alt.X("mean_probability:Q", title="probability of the alert"))
    band = base.mark_rule().encode(y=alt.Y("right_low:Q", title="share that was right"), y2="right_high:Q")
    points = base.mark_point(filled=True).encode(y="right_ratio:Q")
    ideal = alt.Chart(pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})).mark_line(strokeDash=[4, 4])
    diagonal = ideal.encode(x="x:Q", y="y:Q")
    caption = "On the dashed line probabilities come true."
    return Picture("Probability and outcome", caption, diagonal + band + points)


_OF_JOB: Mapping[str, Sequence[tuple[str, _Draw]]] = {
    "overview": (
        ("funnel", _funnel),
        ("risk_by_day", _risk),
        ("days", _days),
        ("days", _alerts_by_day),
        ("apps", _alerts_by_app),
    ),
    "escalation": (
        ("shape_curves", _shapes),
        ("survival", _survival),
        ("slopes", _slopes),
        ("changes", _changes),
    ),
    "sequences": (("before_alerts", _before), ("transitions", _transitions)),
    "topics": (("topics", _topics), ("topic_days", _topic_days), ("novelty", _novelty), ("cycling", _cycling)),
    "campaigns": (("campaigns", _sizes), ("campaign_days", _campaign_days)),
    "memory": (("compaction", _kept), ("loss", _loss), ("facts", _facts)),
    "drift": (("measures", _moved), ("days", _drift_days), ("reliability", _reliability)),
}
"""Job → its pictures in order, each with the table that must have rows."""
