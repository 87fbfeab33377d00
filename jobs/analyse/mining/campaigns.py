"""Campaigns: people who try nearly the same risky message in many sessions.

A turn leaves this module as a signature, a vector and marks of its words; the words that name a campaign are looked up
in the archive again, and only those that enough people used. Evidence is found by them and not by hashes of texts,
against which a guess at somebody's message could be tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import ibis
import polars as pl

from jobs.analyse.mining.anonymity import told_percent
from jobs.analyse.mining.campaign_members import Campaigns, campaigns_of, days_of, table_of
from jobs.analyse.mining.campaigns_pictures import pictures
from jobs.analyse.mining.comparing import begun, quoted
from jobs.analyse.mining.job import Asked, Figure, Finding, Found, Frames, Job, Shown
from jobs.analyse.mining.likeness import kept_vectors
from jobs.analyse.mining.near_duplicates import signatures
from jobs.analyse.mining.tables import Tables
from jobs.analyse.mining.topic_growth import Words, names_of
from jobs.analyse.mining.topic_names import Lookup, lookup, marks_of, naming_marks, spelled, words_by_group
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis.expr.types as ir

_WORD = r"[\p{L}\p{N}']+"
_KEYS = "session_id", "turn"


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    """The riskiest messages of users of each day, and how many risky ones there are."""
    rules = policy.campaigns
    turns = tables["turns"]
    said = turns.filter(turns.role == "user").select(
        "day", "session_id", "turn", "user_id", "app_id", "date", text=turns.content.left(rules.head_chars)
    )
    scored = tables["risk_points"]
    risks = scored.filter(scored.risk >= rules.risk).select("session_id", "turn", "risk")
    risky = said.inner_join(risks, _KEYS)
    place = ibis.row_number().over(
        group_by="day", order_by=[ibis.desc("risk"), ibis.asc("session_id"), ibis.asc("turn")]
    )
    riskiest = risky.mutate(place=place).filter(lambda table: table.place < rules.most_turns).drop("place")
    alerts = tables["alerts"].select("session_id").distinct().mutate(alerted=ibis.literal(True))
    marked = riskiest.left_join(alerts, "session_id").drop("session_id_right")
    return {
        "probes": marked.mutate(alerted=marked.alerted.fill_null(False)),
        "counts": risky.group_by("day").agg(risky_turns=risky.count()),
    }


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """Texts become signatures, vectors and marks; those that say the same in other spelling have one number."""
    rules = policy.campaigns
    probes = frames["probes"].sort("day", *_KEYS)
    words = probes["text"].str.to_lowercase().str.extract_all(_WORD)
    long = words.list.len() >= rules.min_words
    probes, words = probes.filter(long), words.filter(long)
    numbers = [
        int.from_bytes(blake2b(said.encode(), digest_size=8).digest(), signed=True) for said in words.list.join(" ")
    ]
    return {
        "probes": probes.drop("text").with_columns(
            text=pl.Series(numbers, dtype=pl.Int64),
            signature=signatures(words.to_list(), rules),
            vector=kept_vectors(probes["text"].to_list()),
            marks=marks_of(probes["text"]),
        ),
        "counts": frames["counts"],
    }


def find(frames: Frames, asked: Asked) -> Found:
    """Near duplicates over the whole period, among enough sessions and users."""
    probes, notes = frames["probes"], _notes(frames, asked)
    if probes.is_empty():
        return Found(notes=["No message of the period is risky and long enough to compare."])
    found = campaigns_of(probes, asked.policy)
    words = _words(found, asked)
    names = names_of(found.members["group"].unique(), words, asked.policy.campaigns.name_words)
    table = table_of(found, names, asked.policy.anonymity)
    return Found(
        figures=_figures(probes, found),
        findings=_findings(found, table, words, asked),
        tables={
            "campaigns": Shown(
                "Campaigns",
                "Groups of nearly equal risky messages in many sessions of many users. Likeness is the mean cosine "
                "with the campaign's middle; different texts are those that differ in more than case and signs. From "
                "the day by which enough users had come to the day on which as many were left.",
                table.drop("group"),
            ),
            "campaign_days": Shown("Campaigns by day", "Messages, sessions and users by day.", days_of(found, names)),
        },
        notes=[*notes, *found.notes],
    )


def _words(found: Campaigns, asked: Asked) -> Words:
    """The words of each campaign, looked up in one message for each word."""
    members = found.members
    named = naming_marks(found.probes, asked.policy.anonymity, most=asked.policy.campaigns.evidence_words).filter(
        pl.col("group").is_in(members["group"].unique().implode())
    )
    examples = (
        members.select(*_KEYS, mark="marks")
        .explode("mark", empty_as_null=False)
        .filter(pl.col("mark").is_in(named["mark"].unique().implode()))
        .sort("mark", *_KEYS)
        .unique("mark", keep="first", maintain_order=True)
    )
    turns = asked.whole["turns"]
    texts = asked.rows(
        turns.filter(turns.session_id.isin(examples["session_id"].unique().to_list()))
        .filter(lambda table: table.turn.isin(examples["turn"].unique().to_list()))
        .select(text=ibis._.content)
    )
    return words_by_group(named, spelled(named["mark"], texts["text"]))


def _figures(probes: pl.DataFrame, found: Campaigns) -> list[Figure]:
    members = found.members
    sessions, users = (members[name].n_unique() for name in ("session_id", "user_id"))
    all_sessions, all_users = (probes[name].n_unique() for name in ("session_id", "user_id"))
    return [
        Figure(
            name="campaigns",
            value=members["group"].n_unique(),
            meaning="Groups of nearly equal risky messages in many sessions of many users.",
            better="lower",
            sessions=all_sessions,
            users=all_users,
        ),
        Figure(
            name="campaign_turns_ratio",
            value=round(members.height / probes.height, 4),
            meaning="Share of the risky messages compared that belong to a campaign.",
            better="lower",
            sessions=all_sessions,
            users=all_users,
        ),
        Figure(
            name="campaign_sessions", value=sessions, meaning="Sessions in campaigns.", sessions=sessions, users=users
        ),
        Figure(name="campaign_users", value=users, meaning="Users in campaigns.", sessions=sessions, users=users),
    ]


def _findings(found: Campaigns, table: pl.DataFrame, words: Words, asked: Asked) -> list[Finding]:
    probes = found.probes
    findings = []
    for row in table.filter(pl.col("group").is_in(list(words))).iter_rows(named=True):
        by = lookup(probes["marks"], probes["group"] == row["group"], words[row["group"]])
        sessions = probes.filter(by.holds(probes["marks"]))["session_id"].n_unique()
        findings.append(_finding(row, by, sessions, asked))
    return findings


def _finding(row: Mapping[str, Any], by: Lookup, sessions: int, asked: Asked) -> Finding:
    rules = asked.policy.campaigns
    said = f"left(t.content, {rules.head_chars})"
    alerting = told_percent(100 * row["alert_share"], row["about_alert_share"], asked.policy.anonymity)
    return Finding(
        title=f"Campaign: {row['campaign']}",
        text=f"{row['sessions']} sessions of {row['users']} users sent nearly the same risky message; enough users "
        f"had come by {row['first_day']}, as many came on {row['last_day']} or later (mean cosine "
        f"{row['likeness']:.2f}); {alerting} of the sessions have an alert. {by.told(sessions)}",
        evidence="SELECT t.session_id, t.user_id, t.app_id, t.turn, t.timestamp, r.risk "  # noqa: S608
        "FROM turns t JOIN risk_points r USING (session_id, turn) "
        f"WHERE {begun(asked.period)} AND t.role = 'user' "
        f"AND r.risk >= {rules.risk} AND {by.sql(said)} "
        f"AND len(regexp_extract_all({said}, {quoted(_WORD)})) >= {rules.min_words}",
        strength=round(min(row["likeness"], by.right), 3),
    )


def _notes(frames: Frames, asked: Asked) -> list[str]:
    most = asked.policy.campaigns.most_turns
    full = frames["counts"].filter(pl.col("risky_turns") > most)
    if full.is_empty():
        return []
    return [f"{full.height} days have more than {most:,} risky messages: of each, the riskiest so many were compared."]


JOB = Job(
    name="campaigns",
    title="Campaigns",
    question="Who tries nearly the same risky message across sessions and users?",
    grouped="session",
    reads=("turns", "risk_points", "alerts"),
    version=1,
    heavy=heavy,
    find=find,
    refine=refine,
    pictures=pictures,
)
