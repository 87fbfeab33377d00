"""Topics of conversations in clusters, which grow, are new or risky, and sessions that go in circles.

Texts are the titles and summaries of a session's topics and the key words of its segments. A text leaves this module as
a vector and marks of its words (`topic_names`); the words that name a cluster are looked up in the archive again.

Of a day with more texts than the policy wants, only the sessions with the lowest lots are kept. Each session has its
lot by its id, so days are compared at the lowest rate of them all: a busy day counts as much as it is busy.
"""

from collections.abc import Mapping
from zlib import crc32

import ibis
import polars as pl
from scipy.stats import mannwhitneyu

from jobs.analyse.mining.coverage import COUNTED, share, smaller_side
from jobs.analyse.mining.job import Finding, Frames, Job, JobFindings, MiningInput
from jobs.analyse.mining.likeness import kept_vectors
from jobs.analyse.mining.source import Tables, beside, with_alerted
from jobs.analyse.mining.statistics import ByUser
from jobs.analyse.mining.topic_clusters import cluster_findings, cluster_table, clustered, members
from jobs.analyse.mining.topic_names import Words, examples_of, marks_of, named_by, names_of, naming_marks
from jobs.analyse.mining.wording import JOBS, figure, finding
from models.policy.archive import ArchivePolicy

_PER_TURNS = 100


_RETURNS = ("returned", "unpacked")
"""Causes of a change of a topic by which the session came back to it."""
_OF_TEXT = "day", "session_id", "user_id", "place"


def heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """The different texts of each session, and each session's returns to topics that it had left."""
    topics, segments = tables["topics"], tables["segments"]
    titles = topics.mutate(
        text=topics.title.fill_null("") + ibis.literal(" ") + topics.summary.fill_null(""), place=topics.topic_id
    )
    words = segments.mutate(text=segments.key_topics.join(" "), place=segments.id)
    texts = titles.select(*_OF_TEXT, "text").union(words.select(*_OF_TEXT, "text"))
    distinct = texts.filter(texts.text.length() > 1).group_by("day", "session_id", "user_id", "text")
    return {"texts": distinct.agg(place=texts.place.min()), "sessions": _sessions(tables)}


def _sessions(tables: Tables) -> ibis.Table:
    topics, changes = tables["topics"], tables["topic_changes"]
    sessions = topics.group_by("day", "session_id").agg(
        user_id=topics.user_id.max(), app_id=topics.app_id.max(), topics=topics.count(), turns=topics.turn.max() + 1
    )
    came_back = changes.filter(changes.cause.isin(_RETURNS))
    returns = came_back.group_by("session_id").agg(returns=came_back.count())
    joined = with_alerted(beside(sessions, returns), tables)
    return joined.mutate(returns=joined.returns.fill_null(0))


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """Texts become vectors and marks; of a day with too many of them, those of some sessions."""
    lots = _lots(frames["texts"], policy.topics.day_texts)
    chosen = lots.filter("drawn").select("day", "session_id", "lot")
    texts = frames["texts"].join(chosen, on=["day", "session_id"]).sort("session_id", "place", "text")
    return {
        "texts": texts.drop("text").with_columns(
            vector=kept_vectors(texts["text"].to_list()), marks=marks_of(texts["text"])
        ),
        "lots": lots.group_by("day")
        .agg(below=pl.col("lot").filter(~pl.col("drawn")).min(), sessions=pl.len())
        .sort("day"),
        "sessions": frames["sessions"].sort("session_id"),
    }


def _lots(texts: pl.DataFrame, most: int) -> pl.DataFrame:
    """`day, session_id, lot, drawn`: by their lots, ever the same, sessions until their day has enough texts."""
    sessions = texts.group_by("day", "session_id").agg(texts=pl.len())
    lot = pl.Series([crc32(session.encode()) for session in sessions["session_id"]], dtype=pl.UInt32)
    before = pl.col("texts").cum_sum().over("day") - pl.col("texts")
    ordered = sessions.with_columns(lot=lot).sort("day", "lot", "session_id")
    return ordered.select("day", "session_id", "lot", drawn=before < most)


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Clusters of the period held against those of the earlier one, and cycling within the period."""
    if not frames["texts"].height:
        return JobFindings(notes=["No session of the period has topics or segments: these layers may be switched off."])
    lots = pl.concat([frames["lots"], asked.earlier("lots", frames["lots"])])
    both = frames["texts"], asked.earlier("texts", frames["texts"])
    here, before = (_at_one_rate(each, lots) for each in both)
    if not here.height:
        return JobFindings(notes=["The sample has no session with topics or segments."])
    texts = clustered(here, before, asked.policy)
    sessions = frames["sessions"]
    words = _words(texts, asked)
    table = cluster_table(texts, sessions, words, asked.policy)
    circles, said, novel = cycling(sessions, asked), texts.filter("here"), pl.col("novel").cast(pl.Boolean)
    return JobFindings(
        figures=[
            figure("topic_clusters", table.height, said),
            figure("topics_per_session", sessions["topics"].mean(), sessions, digits=2),
            figure("novel_texts_ratio", said.select(novel.mean()).item(), said, part=novel, digits=4),
            *circles.figures,
        ],
        findings=[*cluster_findings(texts, sessions, table, words, asked), *circles.findings],
        tables={
            "topics": table.drop("group"),
            "topic_days": _days(texts, words, asked.policy),
            "novelty": _novelty(texts),
            **circles.tables,
        },
        notes=_notes(texts, lots, asked),
    )


def _at_one_rate(texts: pl.DataFrame, lots: pl.DataFrame) -> pl.DataFrame:
    """The sessions whose lots were low enough on every day that is compared."""
    below = lots["below"].min()
    return (texts if below is None else texts.filter(pl.col("lot") < below)).drop("lot")


def _words(texts: pl.DataFrame, asked: MiningInput) -> Words:
    """The words of each cluster, looked up in one text for each word."""
    said = texts.filter("here")
    named = naming_marks(said, asked.policy.anonymity, most=asked.policy.topics.evidence_words)
    places = examples_of(named, said.sort("place"))["place"].unique().to_list()
    topics, segments = asked.whole["topics"], asked.whole["segments"]
    titles = asked.rows(topics.filter(topics.topic_id.isin(places)).select("title", "summary"))
    keys = asked.rows(segments.filter(segments.id.isin(places)).select("key_topics"))
    return named_by(named, pl.concat([titles["title"], titles["summary"], keys["key_topics"].list.join(" ")]))


def _days(texts: pl.DataFrame, words: Words, policy: ArchivePolicy) -> pl.DataFrame:
    names = names_of(texts["group"].unique(), words, policy.topics.name_words)
    here = texts.filter("here")
    return (
        members(here, policy)
        .group_by("day", "group")
        .agg(*COUNTED)
        .join(here.group_by("day").agg(of=COUNTED[0]), on="day")
        .sort("day", "group")
        .select(
            "day",
            pl.col("group").replace_strict(names, return_dtype=pl.String).alias("topic"),
            (pl.col("sessions") / pl.col("of")).round(4).alias("share"),
            "sessions",
            "users",
        )
    )


def _novelty(texts: pl.DataFrame) -> pl.DataFrame:
    novel = pl.col("novel").cast(pl.Boolean)
    return (
        texts.filter("here", pl.col("distance").is_not_null())
        .group_by("day")
        .agg(
            pl.col("distance").cast(pl.Float64).mean().round(3),
            novel.mean().round(4).alias("novel_ratio"),
            *COUNTED,
            smaller_side(novel).alias("about_novel_ratio"),
        )
        .sort("day")
    )


def cycling(sessions: pl.DataFrame, asked: MiningInput) -> JobFindings:
    """Returns (A, B, then A again) of `session_id, user_id, app_id, topics, turns, returns, alerted`."""
    rated = sessions.with_columns(rate=_PER_TURNS * pl.col("returns") / pl.col("turns").clip(lower_bound=1))
    returned = pl.col("returns") > 0
    per_turns = _PER_TURNS * int(rated["returns"].sum()) / max(1, int(rated["turns"].sum()))
    cycling_ratio = rated.select(returned.mean()).item() or 0.0
    figures = [
        figure("topic_returns_per_100_turns", per_turns, rated, digits=2),
        figure("cycling_sessions_ratio", cycling_ratio, rated, part=returned, digits=4),
    ]
    ratio, about_ratio = share("cycling_ratio", returned)
    by_app = rated.group_by("app_id", "alerted").agg(
        pl.col("returns").mean().round(2).alias("returns_per_session"),
        (_PER_TURNS * pl.col("returns").sum() / pl.col("turns").sum()).round(2).alias("returns_per_100_turns"),
        ratio.round(4),
        about_ratio,
        *COUNTED,
    )
    return JobFindings(figures, _circles(rated, asked), {"cycling": by_app.sort("app_id", "alerted")})


def _circles(rated: pl.DataFrame, asked: MiningInput) -> list[Finding]:
    """That alerting sessions cycle more, by the rate per turn: longer sessions have more of both.

    Of the test with sessions as independent and that of the ranks with users as the unit, the larger p-value counts.
    """
    k = max(asked.policy.anonymity.min_sessions, asked.policy.anonymity.min_users)
    sides = [rated.filter(pl.col("alerted") == each) for each in (True, False)]
    if min(side["user_id"].n_unique() for side in sides) < k:
        return []
    alerted, others = (side["rate"].to_numpy() for side in sides)
    test = mannwhitneyu(alerted, others, alternative="greater")
    more_often = float(test.statistic) / (len(alerted) * len(others))
    of_users = ByUser(rated["user_id"]).chance(rated["alerted"].to_numpy(), rated["rate"].rank().to_numpy())
    chance = max(float(test.pvalue), of_users)
    if chance > asked.policy.topics.significance:
        return []
    cycle = rated.filter("alerted", pl.col("returns") > 0).height
    return [
        finding(
            "circles",
            asked.period,
            strength=round(2 * more_often - 1, 3),
            alerted=alerted.mean(),
            others=others.mean(),
            more_often=more_often,
            chance=chance,
            cycle=cycle,
        )
    ]


def _notes(texts: pl.DataFrame, lots: pl.DataFrame, asked: MiningInput) -> list[str]:
    notes = []
    if lots["below"].count():
        sessions, of = texts["session_id"].n_unique(), lots["sessions"].sum()
        notes.append(
            f"Clusters, and the counts of sessions beside them, are of {sessions:,} of the {of:,} sessions of both "
            f"periods, drawn by lot so that no day has more than {asked.policy.topics.day_texts:,} texts; a rare topic "
            "may be missed. Evidence queries look at them all."
        )
    if texts["novel"].dtype != pl.Null:
        notes.append(
            "Shares before are of the half of the earlier sessions from which it was not learnt what is novel."
        )
    else:
        since, until = asked.period.earlier
        notes.append(f"{since} to {until} has too few sessions to say what is new.")
    return notes


JOB = Job("topics", JOBS["topics"], version=2, heavy=heavy, find=find, refine=refine)
