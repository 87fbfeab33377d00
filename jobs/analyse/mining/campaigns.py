"""Campaigns: people who try nearly the same risky message in many sessions.

A turn leaves this module as a signature, a vector and marks of its words; the words that name a campaign are looked up
in the archive again, and only those that enough people used. Evidence is found by them and not by hashes of texts,
against which a guess at somebody's message could be tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import ibis
import numpy as np
import polars as pl

from jobs.analyse.mining.anonymity import shown_percent, smaller_side
from jobs.analyse.mining.job import Figure, Finding, Frames, Job, JobFindings, MiningInput, Shown, begun, figure
from jobs.analyse.mining.likeness import Vectors, kept_vectors, scale_to_unit, unit_vectors
from jobs.analyse.mining.near_duplicates import groups_of, signatures
from jobs.analyse.mining.tables import Tables
from jobs.analyse.mining.topic_growth import Words, names_of
from jobs.analyse.mining.topic_names import Lookup, lookup, marks_of, naming_marks, spelled, words_by_group
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import literal

if TYPE_CHECKING:
    import ibis.expr.types as ir


class Campaigns(NamedTuple):
    """What a period's probes were grouped into.

    Attributes:
        probes: All that were compared: `day, date, session_id, user_id, app_id, turn, risk, alerted, text, marks,
            group, likeness`; `likeness` is the cosine with the middle of the group.
        members: Those of groups with enough sessions and users.
        notes: Bounds that were reached.
    """

    probes: pl.DataFrame
    members: pl.DataFrame
    notes: Sequence[str]


def campaigns_of(probes: pl.DataFrame, policy: ArchivePolicy) -> Campaigns:
    """Group the near duplicates.

    Args:
        probes: As `campaigns.refine` keeps them.
        policy: How alike they are, and how many sessions and users make a campaign.
    """
    rules, k = policy.campaigns, policy.anonymity
    texts = (
        probes.sort("risk", "session_id", "turn", descending=[True, False, False])
        .unique("text", keep="first", maintain_order=True)
        .select("text", "signature", "vector")
    )
    notes = []
    if texts.height > rules.most_texts:
        notes.append(f"Of {texts.height:,} different risky messages {rules.most_texts:,}, the riskiest, were compared.")
        texts = texts.head(rules.most_texts)
    vectors = unit_vectors(texts["vector"].to_numpy())
    groups = groups_of(texts["signature"].to_numpy(), vectors, rules)
    grouped = texts.select(
        "text", group=pl.Series(groups, dtype=pl.Int32), likeness=pl.Series(_likeness(vectors, groups))
    )
    compared = probes.drop("signature", "vector").join(grouped, on="text")
    enough = (pl.col("session_id").n_unique().over("group") >= k.min_sessions) & (
        pl.col("user_id").n_unique().over("group") >= k.min_users
    )
    return Campaigns(compared, compared.filter(enough), notes)


def _likeness(vectors: Vectors, groups: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Vectors:
    """Cosine of each text with the middle of its group, `(n_texts,)`."""
    middles = np.zeros((int(groups.max(initial=-1)) + 1, vectors.shape[1]), dtype=np.float32)
    np.add.at(middles, groups, vectors)
    scale_to_unit(middles)
    likeness: Vectors = np.einsum("ij,ij->i", vectors, middles[groups])
    return likeness


def table_of(found: Campaigns, names: Mapping[int, str], k: AnonymityPolicy) -> pl.DataFrame:
    """One row per campaign, the largest first; `group` is its number.

    `first_day` is when k users had come, `last_day` when k were yet to stop: no day of a single person's.
    """
    least = max(k.min_sessions, k.min_users)
    spans = (
        found.members.group_by("group", "user_id")
        .agg(came=pl.col("date").min(), stopped=pl.col("date").max())
        .group_by("group")
        .agg(first_day=pl.col("came").bottom_k(least).max(), last_day=pl.col("stopped").top_k(least).min())
        .with_columns(
            first_day=pl.min_horizontal("first_day", "last_day"), last_day=pl.max_horizontal("first_day", "last_day")
        )
    )
    of_session = pl.col("session_id").filter("alerted").n_unique()
    return (
        found.members.group_by("group")
        .agg(
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
            apps=pl.col("app_id").n_unique(),
            turns=pl.len(),
            different_texts=pl.col("text").n_unique(),
            likeness=pl.col("likeness").mean().round(3),
            mean_risk=pl.col("risk").mean().round(3),
            alert_share=(of_session / pl.col("session_id").n_unique()).round(4),
            about_alert_share=smaller_side(pl.col("alerted")),
        )
        .join(spans, on="group")
        .with_columns(span_days=(pl.col("last_day") - pl.col("first_day")).dt.total_days() + 1)
        .sort("users", "sessions", "group", descending=[True, True, False])
        .select(pl.col("group").replace_strict(names, return_dtype=pl.String).alias("campaign"), pl.all())
    )


def days_of(found: Campaigns, names: Mapping[int, str]) -> pl.DataFrame:
    """One row per campaign and day on which its messages came."""
    return (
        found.members.group_by("group", day="date")
        .agg(turns=pl.len(), sessions=pl.col("session_id").n_unique(), users=pl.col("user_id").n_unique())
        .sort("day", "group")
        .select(
            "day",
            campaign=pl.col("group").replace_strict(names, return_dtype=pl.String),
            turns="turns",
            sessions="sessions",
            users="users",
        )
    )


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


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Near duplicates over the whole period, among enough sessions and users."""
    probes, notes = frames["probes"], _notes(frames, asked)
    if probes.is_empty():
        return JobFindings(notes=["No message of the period is risky and long enough to compare."])
    found = campaigns_of(probes, asked.policy)
    words = _words(found, asked)
    names = names_of(found.members["group"].unique(), words, asked.policy.campaigns.name_words)
    table = table_of(found, names, asked.policy.anonymity)
    return JobFindings(
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


def _words(found: Campaigns, asked: MiningInput) -> Words:
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
        figure(
            "campaigns",
            members["group"].n_unique(),
            "Groups of nearly equal risky messages in many sessions of many users.",
            {"sessions": all_sessions, "users": all_users},
            better="lower",
        ),
        figure(
            "campaign_turns_ratio",
            round(members.height / probes.height, 4),
            "Share of the risky messages compared that belong to a campaign.",
            {"sessions": all_sessions, "users": all_users},
            better="lower",
        ),
        figure("campaign_sessions", sessions, "Sessions in campaigns.", {"sessions": sessions, "users": users}),
        figure("campaign_users", users, "Users in campaigns.", {"sessions": sessions, "users": users}),
    ]


def _findings(found: Campaigns, table: pl.DataFrame, words: Words, asked: MiningInput) -> list[Finding]:
    probes = found.probes
    findings = []
    for row in table.filter(pl.col("group").is_in(list(words))).iter_rows(named=True):
        by = lookup(probes["marks"], probes["group"] == row["group"], words[row["group"]])
        sessions = probes.filter(by.holds(probes["marks"]))["session_id"].n_unique()
        findings.append(_finding(row, by, sessions, asked))
    return findings


def _finding(row: Mapping[str, Any], by: Lookup, sessions: int, asked: MiningInput) -> Finding:
    rules = asked.policy.campaigns
    said = f"left(t.content, {rules.head_chars})"
    alerting = shown_percent(100 * row["alert_share"], row["about_alert_share"], asked.policy.anonymity)
    return Finding(
        title=f"Campaign: {row['campaign']}",
        text=f"{row['sessions']} sessions of {row['users']} users sent nearly the same risky message; enough users "
        f"had come by {row['first_day']}, as many came on {row['last_day']} or later (mean cosine "
        f"{row['likeness']:.2f}); {alerting} of the sessions have an alert. {by.about_text(sessions)}",
        evidence="SELECT t.session_id, t.user_id, t.app_id, t.turn, t.timestamp, r.risk "  # noqa: S608
        "FROM turns t JOIN risk_points r USING (session_id, turn) "
        f"WHERE {begun(asked.period)} AND t.role = 'user' "
        f"AND r.risk >= {rules.risk} AND {by.sql(said)} "
        f"AND len(regexp_extract_all({said}, {literal(_WORD)})) >= {rules.min_words}",
        strength=round(min(row["likeness"], by.right), 3),
    )


def _notes(frames: Frames, asked: MiningInput) -> list[str]:
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
)
