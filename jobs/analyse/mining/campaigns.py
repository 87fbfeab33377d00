"""Campaigns: people who try nearly the same risky message in many sessions.

A turn leaves this module as a signature, a vector and marks of its words; the words that name a campaign are looked up
in the archive again, and only those that enough people used. Evidence is found by them and not by hashes of texts,
against which a guess at somebody's message could be tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import ibis
import numpy as np
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, enough, percent, smaller_side
from jobs.analyse.mining.job import Finding, Frames, Job, JobFindings, MiningInput
from jobs.analyse.mining.likeness import Vectors, groups_of, kept_vectors, scale_to_unit, signatures, unit_vectors
from jobs.analyse.mining.source import Tables, with_alerted
from jobs.analyse.mining.topic_names import Words, examples_of, lookup, marks_of, named_by, names_of, naming_marks
from jobs.analyse.mining.wording import JOBS, figure, finding
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import literal


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
    """Group the near duplicates among what `refine` keeps."""
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
    sessions, users = (pl.col(name).n_unique().over("group") for name in ("session_id", "user_id"))
    return Campaigns(compared, compared.filter(enough(k, sessions, users)), notes)


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
    days = found.members.group_by("group", "user_id").agg(came=pl.col("date").min(), stopped=pl.col("date").max())
    ends = pl.col("came").bottom_k(least).max(), pl.col("stopped").top_k(least).min()
    spans = days.group_by("group").agg(first_day=pl.min_horizontal(*ends), last_day=pl.max_horizontal(*ends))
    alerting = pl.col("session_id").filter("alerted").n_unique()
    return (
        found.members.group_by("group")
        .agg(
            *COUNTED,
            pl.col("app_id").n_unique().alias("apps"),
            pl.len().alias("turns"),
            pl.col("text").n_unique().alias("different_texts"),
            pl.col("likeness").mean().round(3),
            pl.col("risk").mean().round(3).alias("mean_risk"),
            (alerting / pl.col("session_id").n_unique()).round(4).alias("alert_share"),
            smaller_side(pl.col("alerted")).alias("about_alert_share"),
        )
        .join(spans, on="group")
        .with_columns(span_days=(pl.col("last_day") - pl.col("first_day")).dt.total_days() + 1)
        .sort("users", "sessions", "group", descending=[True, True, False])
        .select(pl.col("group").replace_strict(names, return_dtype=pl.String).alias("campaign"), pl.all())
    )


def days_of(found: Campaigns, names: Mapping[int, str]) -> pl.DataFrame:
    """One row per campaign and day on which its messages came."""
    by_day = found.members.group_by("group", day="date").agg(pl.len().alias("turns"), *COUNTED)
    campaign = pl.col("group").replace_strict(names, return_dtype=pl.String).alias("campaign")
    return by_day.sort("day", "group").select("day", campaign, "turns", "sessions", "users")


_WORD = r"[\p{L}\p{N}']+"
_KEYS = "session_id", "turn"


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
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
    return {"probes": with_alerted(riskiest, tables), "counts": risky.group_by("day").agg(risky_turns=risky.count())}


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
    probes, most = frames["probes"], asked.policy.campaigns.most_turns
    if probes.is_empty():
        return JobFindings(notes=["No message of the period is risky and long enough to compare."])
    full = frames["counts"].filter(pl.col("risky_turns") > most).height
    crowded = f"{full} days have more than {most:,} risky messages: of each, the riskiest so many were compared."
    found = campaigns_of(probes, asked.policy)
    probes, members = found.probes, found.members
    words = _words(found, asked)
    names = names_of(members["group"].unique(), words, asked.policy.campaigns.name_words)
    table = table_of(found, names, asked.policy.anonymity)
    return JobFindings(
        figures=[
            figure("campaigns", members["group"].n_unique(), probes),
            figure("campaign_turns_ratio", members.height / probes.height, probes, digits=4),
            figure("campaign_sessions", members["session_id"].n_unique(), members),
            figure("campaign_users", members["user_id"].n_unique(), members),
        ],
        findings=list(_findings(found, table, words, asked)),
        tables={"campaigns": table.drop("group"), "campaign_days": days_of(found, names)},
        notes=[*([crowded] if full else []), *found.notes],
    )


def _words(found: Campaigns, asked: MiningInput) -> Words:
    """The words of each campaign, looked up in one message for each word."""
    groups = found.members["group"].unique().implode()
    named = naming_marks(found.probes, asked.policy.anonymity, most=asked.policy.campaigns.evidence_words)
    named = named.filter(pl.col("group").is_in(groups))
    examples = examples_of(named, found.members.sort(*_KEYS))
    turns = asked.whole["turns"]
    texts = asked.rows(
        turns.filter(
            turns.session_id.isin(examples["session_id"].unique().to_list()),
            turns.turn.isin(examples["turn"].unique().to_list()),
        ).select(text=turns.content)
    )
    return named_by(named, texts["text"])


def _findings(found: Campaigns, table: pl.DataFrame, words: Words, asked: MiningInput) -> Iterator[Finding]:
    probes, rules = found.probes, asked.policy.campaigns
    said = f"left(t.content, {rules.head_chars})"
    for row in table.filter(pl.col("group").is_in(list(words))).iter_rows(named=True):
        by = lookup(probes["marks"], probes["group"] == row["group"], words[row["group"]])
        yield finding(
            "campaign",
            asked.period,
            strength=round(min(row["likeness"], by.right), 3),
            shares=(percent(100 * row["alert_share"], row["about_alert_share"]),),
            row=row,
            rules=rules,
            told=by.about_text(probes.filter(by.holds(probes["marks"]))["session_id"].n_unique()),
            holds_sql=by.sql(said),
            said_sql=said,
            word_sql=literal(_WORD),
        )


JOB = Job("campaigns", JOBS["campaigns"], version=1, heavy=heavy, find=find, refine=refine)
