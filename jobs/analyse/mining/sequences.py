"""Sequences: which events follow each other in sessions, and which come before an alert.

Events are made twice: as Ibis expressions for mining, as SQL for the evidence (`events` of `findings.toml`).

* `mode …`: the mode becomes this one (`risk_points`); sessions begin calm.
* `signal …`: a signal of the profile reaches `signal_level` for the first time (`profile_history`). The level is left
  to the mode.
* `first …`: the first hypothetical question, rephrased probe or instruction about the rules that the profile counted.
* `topic started`, `topic returned`: another topic after the first one, or one that had been left (`topic_changes`).

Those of one turn stand in alphabetical order; repeats of one event in a row count once. The archive has no event for a
refusal: what users do about one (`first probing`) stands for it.
"""

from collections.abc import Iterator, Mapping, Sequence

import ibis
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, percent
from jobs.analyse.mining.job import Finding, Frames, Job, JobFindings, MiningInput
from jobs.analyse.mining.sequence_patterns import THEN, before_alerts, frequent_table
from jobs.analyse.mining.source import Tables, beside, first_alerts
from jobs.analyse.mining.statistics import PERCENT, rounded, wilson_ends
from jobs.analyse.mining.wording import JOBS, figure, finding
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
_TOPICS = ("started", "returned")


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
    low, high = wilson_ends(table["stays"], table["of"], policy.confidence)
    return table.select(
        "mode",
        "next",
        "sessions",
        "users",
        "stays",
        share_percent=pl.col("stays") / pl.col("of") * PERCENT,
        low_percent=low * PERCENT,
        high_percent=high * PERCENT,
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
        "sessions": sessions.with_columns(pl.col("events", "turns").fill_null([]), pl.col("cut").fill_null(value=False))
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
        wanted = "%".join(f"[{event}]" for event in pattern).replace("_", "\\_")
        yield finding(
            "before_alerts",
            asked.period,
            strength=1.0 - row["elsewhere_percent"] / row["before_alerts_percent"],
            shares=(percent(row["elsewhere_percent"], row["about_elsewhere_percent"]),),
            row=row,
            rules=rules,
            pattern_sql=literal(f"%{wanted}%"),
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
            "Refusals are not archived as such: 'first probing' is the user's first rephrasing of an earlier message.",
            "The unit of the tests is the user.",
            "Intervals of transitions treat stays as independent, which those of one session are only in part.",
        ],
    )


JOB = Job("sequences", JOBS["sequences"], version=1, heavy=heavy, find=find, refine=refine)
