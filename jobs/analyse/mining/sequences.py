"""Sequences: which events follow each other in sessions, and which come before an alert.

Events are made twice: as Ibis expressions for mining, as SQL for the evidence.

* `mode …`: the mode becomes this one (`risk_points`); sessions begin calm.
* `signal …`: a signal of the profile reaches `signal_level` for the first time (`profile_history`). The level is left
  to the mode.
* `first …`: the first hypothetical question, rephrased probe or instruction about the rules that the profile counted.
* `topic started`, `topic returned`: another topic after the first one, or one that had been left (`topic_changes`).

Those of one turn stand in alphabetical order; repeats of one event in a row count once. The archive has no event for a
refusal: what users do about one (`first probing`) stands for it.
"""

# ruff: noqa: S608 - names are constants of this module, days are dates, texts are literal

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import ibis
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, percent
from jobs.analyse.mining.job import SHARE, Finding, Frames, JobFindings, MiningInput, Period, begun
from jobs.analyse.mining.sequence_patterns import THEN, before_alerts, frequent_table
from jobs.analyse.mining.source import Tables, beside, first_alerts
from jobs.analyse.mining.statistics import PERCENT, rounded
from jobs.analyse.mining.wording import figure, mining_job
from jobs.shared.intervals import wilson
from models.events import Mode
from models.policy.archive import ArchivePolicy, SequenceMining
from streams.archive.catalog import literal

END = "end"
MODE, SIGNAL, FIRST, TOPIC = "mode", "signal", "first", "topic"
_LEVEL = "level"
_BEHAVIOURS = {
    "hypothetical question": "hypothetical_count",
    "probing": "probing_attempts",
    "instruction about rules": "meta_instruction_count",
}
_BEGIN = literal(Mode.CALM)
_TOPICS = ("started", "returned")
_ALERTED = "(app_id, session_id) IN (SELECT (app_id, session_id) FROM alerted)"


def transition_table(sessions: pl.DataFrame, policy: SequenceMining) -> pl.DataFrame:
    """One row per mode and what comes next, counted by stays: a stay is a run of turns in one mode.

    Beside each share Wilson's interval and the share that the next thing would have if it did not depend on the mode:
    its part of all that follows any stay, without the mode itself, which cannot follow. Every session
    begins calm; those whose events were cut have no last stay.
    """
    is_mode = pl.element().str.starts_with(f"{MODE} ")
    begins = pl.lit([f"{MODE} {Mode.CALM.value}"])
    stays = (
        sessions.select("session_id", "user_id", "cut", mode=pl.concat_list(begins, "events").list.filter(is_mode))
        .explode("mode")
        .with_columns(pl.col("mode").str.strip_prefix(f"{MODE} "))
        .with_columns(next=pl.col("mode").shift(-1).over("session_id"))
        .filter(pl.col("next").is_not_null() | ~pl.col("cut"))
        .with_columns(pl.col("next").fill_null(END))
    )
    table = (
        stays.group_by("mode", "next")
        .agg(*COUNTED, stays=pl.len())
        .with_columns(of=pl.col("stays").sum().over("mode"), following=pl.col("stays").sum().over("next"))
        .sort("mode", "next")
    )
    own = pl.col("mode").replace_strict(
        dict(table.select("next", "following").iter_rows()), default=0, return_dtype=pl.Int64
    )
    intervals = [wilson(stays, of, policy.confidence) for stays, of in table.select("stays", "of").iter_rows()]
    low, high = ([each[side] * PERCENT for each in intervals] for side in (0, 1))
    return table.select(
        "mode",
        "next",
        "sessions",
        "users",
        "stays",
        share_percent=pl.col("stays") / pl.col("of") * PERCENT,
        low_percent=pl.Series(low, dtype=pl.Float64),
        high_percent=pl.Series(high, dtype=pl.Float64),
        independent_percent=pl.col("following") / (pl.col("stays").sum() - own) * PERCENT,
    )


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """Events, and a row per session with its first alert."""
    points = tables["risk_points"]
    sessions = points.group_by("day", "session_id").agg(
        user_id=points.user_id.min(), app_id=points.app_id.min(), last_turn=points.turn.max()
    )
    return {"sessions": beside(sessions, first_alerts(tables)), "events": events(tables, policy.sequences)}


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row per session with its `events` and their `turns`; `cut`: it had more than are kept."""
    most = policy.sequences.longest_sequence
    told = (
        frames["events"]
        .sort("session_id", "turn", "event")
        .filter(pl.col("event").ne_missing(pl.col("event").shift().over("session_id")))
        .group_by("session_id", maintain_order=True)
        .agg(events=pl.col("event").head(most), turns=pl.col("turn").head(most), cut=pl.len() > most)
    )
    sessions = frames["sessions"].join(told, on="session_id", how="left").sort("session_id")
    return {
        "sessions": sessions.with_columns(
            pl.col("events").fill_null(pl.lit([], pl.List(pl.String))),
            pl.col("turns").fill_null(pl.lit([], pl.List(pl.Int64))),
            pl.col("cut").fill_null(value=False),
        )
    }


def events(tables: Tables, policy: SequenceMining) -> ibis.Table:
    """All events: `day, session_id, turn, event`."""
    profiles = tables["profile_history"]
    behaviours = [_first(profiles, name, column) for name, column in _BEHAVIOURS.items()]
    return ibis.union(_modes(tables), _signals(profiles, policy), *behaviours, _topics(tables), distinct=False)


def _modes(tables: Tables) -> ibis.Table:
    points = tables["risk_points"].select("day", "session_id", "turn", "mode")
    before = points["mode"].lag().over(ibis.window(group_by="session_id", order_by="turn"))
    points = points.mutate(before=before.fill_null(Mode.CALM.value))
    changed = points.filter(points.before != points["mode"])
    return changed.select("day", "session_id", "turn", event=ibis.literal(f"{MODE} ").concat(changed["mode"]))


def _signals(profiles: ibis.Table, policy: SequenceMining) -> ibis.Table:
    each = profiles.select("day", "session_id", turn=profiles.last_turn, signal=profiles.signals.unnest())
    each = each.mutate(name=each.signal["name"], value=each.signal["value"])
    strong = each.filter(each.value >= policy.signal_level, each.name != _LEVEL)
    first = strong.group_by("day", "session_id", "name").agg(turn=strong.turn.min())
    return first.select("day", "session_id", "turn", event=ibis.literal(f"{SIGNAL} ").concat(first.name))


def _first(profiles: ibis.Table, name: str, column: str) -> ibis.Table:
    counted = profiles.filter(profiles[column] > 0)
    first = counted.group_by("day", "session_id").agg(turn=counted.last_turn.min())
    return first.select("day", "session_id", "turn", event=ibis.literal(f"{FIRST} {name}"))


def _topics(tables: Tables) -> ibis.Table:
    changes = tables["topic_changes"]
    changes = changes.mutate(begun=changes.turn.min().over(ibis.window(group_by="session_id")))
    told = changes.filter(changes.cause.isin(_TOPICS), changes.turn > changes.begun)
    return told.select("day", "session_id", "turn", event=ibis.literal(f"{TOPIC} ").concat(told.cause))


def _sources(policy: SequenceMining) -> Iterator[str]:
    """SQL of `app_id, session_id, user_id, turn, event`, for each kind of event."""
    yield (
        f"SELECT app_id, session_id, user_id, turn, '{MODE} ' || mode AS event FROM risk_points "
        f"WHERE {_ALERTED} QUALIFY mode <> lag(mode, 1, {_BEGIN}) OVER (PARTITION BY app_id, session_id ORDER BY turn)"
    )
    yield (
        f"SELECT app_id, session_id, user_id, min(last_turn), '{SIGNAL} ' || signal.name "
        f"FROM (SELECT app_id, session_id, user_id, last_turn, unnest(signals) AS signal "
        f"FROM profile_history WHERE {_ALERTED}) "
        f"WHERE signal.value >= {policy.signal_level} AND signal.name <> {literal(_LEVEL)} GROUP BY ALL"
    )
    for name, column in _BEHAVIOURS.items():
        yield (
            f"SELECT app_id, session_id, user_id, min(last_turn), {literal(f'{FIRST} {name}')} "
            f"FROM profile_history WHERE {column} > 0 AND {_ALERTED} GROUP BY ALL"
        )
    yield (
        f"SELECT app_id, session_id, user_id, turn, '{TOPIC} ' || cause FROM (SELECT app_id, session_id, user_id, "
        f"turn, cause, min(turn) OVER (PARTITION BY app_id, session_id) AS begun FROM topic_changes WHERE {_ALERTED}) "
        f"WHERE cause IN ({', '.join(map(literal, _TOPICS))}) AND turn > begun"
    )


def evidence(pattern: Sequence[str], period: Period, policy: SequenceMining) -> str:
    """SQL of the sessions begun in the period whose last events before the first alert hold the pattern.

    It makes of the views what `sequences.refine` makes of the events, for sessions that alert.
    """
    union = "\n  UNION ALL ".join(_sources(policy))
    wanted = "%".join(f"[{event}]" for event in pattern).replace("_", "\\_")
    return (
        f"WITH alerted AS (SELECT app_id, session_id, min(turn) AS alert_turn FROM alert_changes WHERE {begun(period)} "
        f"GROUP BY ALL),\nevents AS (\n  {union}\n),\n"
        "changed AS (SELECT * FROM events QUALIFY event IS DISTINCT FROM "
        "lag(event) OVER (PARTITION BY app_id, session_id ORDER BY turn, event)),\n"
        "kept AS (SELECT * FROM changed QUALIFY "
        f"row_number() OVER (PARTITION BY app_id, session_id ORDER BY turn, event) <= {policy.longest_sequence}),\n"
        "before AS (SELECT * FROM kept JOIN alerted USING (app_id, session_id) WHERE turn < alert_turn QUALIFY "
        "row_number() OVER (PARTITION BY app_id, session_id ORDER BY turn DESC, event DESC) "
        f"<= {policy.before_alert})\n"
        "SELECT app_id, session_id, any_value(user_id) AS user_id, any_value(alert_turn) AS alert_turn, "
        "string_agg('[' || event || ']', ' ' ORDER BY turn, event) AS last_events\n"
        f"FROM before GROUP BY app_id, session_id HAVING last_events LIKE {literal(f'%{wanted}%')} ESCAPE '\\'"
    )


def preceding(table: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """The strongest patterns before alerts, none of them part of another one that is told."""
    rules = asked.policy.sequences
    often = pl.col("before_alerts_percent") >= rules.lift * pl.col("elsewhere_percent")
    told: list[list[str]] = []
    for row in table.filter(pl.col("false_discovery_rate") <= rules.significance, often).iter_rows(named=True):
        pattern = row["pattern"].split(THEN)
        if len(told) == rules.findings or any(_within(pattern, other) or _within(other, pattern) for other in told):
            continue
        told.append(pattern)
        here, elsewhere = row["before_alerts_percent"], row["elsewhere_percent"]
        yield Finding(
            title=f"Before alerts: {row['pattern']}",
            text=(
                f"{row['sessions']:,} sessions have it among the last {rules.before_alert} events before their first "
                f"alert, {here:.1f} % of those that alert; of the others {SHARE} have it at the same place "
                f"(false discovery rate {row['false_discovery_rate']:.2g})."
            ),
            shares=(percent(elsewhere, row["about_elsewhere_percent"]),),
            evidence=evidence(pattern, asked.period, rules),
            strength=1.0 - elsewhere / here,
        )


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(event in rest for event in part)


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Patterns, what precedes alerts, and transitions of the mode."""
    sessions, rules = frames["sessions"], asked.policy.sequences
    before = before_alerts(sessions, asked.policy)
    events = pl.col("events").list.len()
    mean = sessions.select(events.mean(), changing=(events > 0).mean() * PERCENT)
    return JobFindings(
        figures=[
            figure("events_per_session", mean.item(0, 0) or 0.0, sessions, digits=2),
            figure("sessions_with_events_percent", mean.item(0, 1) or 0.0, sessions, part=events > 0, digits=2),
        ],
        findings=list(preceding(before, asked)),
        tables={
            "before_alerts": rounded(before),
            "patterns": rounded(frequent_table(sessions, asked.policy)),
            "transitions": rounded(transition_table(sessions, rules)),
        },
        notes=[
            "Refusals are not archived by themselves: 'first probing' is the user's first rephrasing of what was said.",
            "Tests take users as the unit.",
            "Intervals of transitions take stays as independent; those of one session are not quite.",
        ],
    )


JOB = mining_job("sequences", version=1, heavy=heavy, find=find, refine=refine)
