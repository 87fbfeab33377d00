"""Topics: planted ones are found, named and counted; what is the same in both periods is not."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import polars as pl

from jobs.analyse.mining.job import Frames, JobResult, MiningInput
from jobs.analyse.mining.likeness import kept_vectors
from jobs.analyse.mining.topic_clusters import cluster_table, clustered, members
from jobs.analyse.mining.topic_names import marks_of, named_by, naming_marks, words_of
from jobs.analyse.mining.topics import JOB, _at_one_rate, cycling
from models.policy.archive import AnonymityPolicy, ArchivePolicy, TopicMining
from streams.archive.catalog import LakePaths
from tests.support.mined_archive import WEEK, mined
from tests.support.mined_frames import sessions_of
from tests.support.mined_plan import MATTERS

POLICY = ArchivePolicy()
OLD, NEW = ("garden", "chess"), ("battery",)
NO_WORDS: dict[int, list[str]] = {}


def texts(matters: Iterable[str], *, sessions: int = 20, users: int = 20, seed: int = 0) -> pl.DataFrame:
    """Sessions of three texts, each of one matter, in the order of the matters."""
    rng, of = np.random.default_rng(seed), list(matters)
    rows = [
        {
            "day": WEEK.since,
            "session_id": f"s-{seed}-{n:03}",
            "user_id": f"u-{n % users}",
            "place": f"t-{n}-{m}",
            "text": sentence,
        }
        for n in range(sessions)
        for m, sentence in enumerate(rng.choice(MATTERS[of[n % len(of)]], 3))
    ]
    frame = pl.DataFrame(rows)
    return frame.with_columns(vector=kept_vectors(frame["text"].to_list()), marks=marks_of(frame["text"]))


def bare(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the text, as the job keeps it."""
    return frame.drop("text")


def asked() -> MiningInput:
    """A week with nothing around it."""

    def nothing(*_: object) -> Frames:
        return {}

    return MiningInput(WEEK, POLICY, nothing, None, None)  # type: ignore[arg-type]


def test_novel_is_what_the_earlier_period_does_not_know() -> None:
    """A new matter is far from all that is known; the same is not, and without an earlier period nothing is."""
    before, here = texts(OLD, sessions=60, seed=1), texts([*OLD, *NEW], sessions=60, seed=2)

    result = clustered(bare(here), bare(before), POLICY)

    of_matter = here["text"].is_in(MATTERS["battery"])
    novel = result.filter("here")["novel"]
    assert (novel.filter(of_matter).mean(), novel.filter(~of_matter).mean()) == (1.0, 0.0)

    before, here = texts(OLD, sessions=60, seed=1), texts(OLD, sessions=60, seed=2)

    result = clustered(bare(here), bare(before), POLICY)

    assert result.filter("here")["novel"].sum() == 0

    frame = bare(texts(OLD))

    result = clustered(frame, frame.clear(), POLICY)

    assert result["novel"].null_count() == frame.height


def test_a_growing_cluster_is_told_from_one_that_stays() -> None:
    """The battery is in a third of the sessions, in none before; one of eleven texts makes a session about nothing."""
    before, here = texts(OLD, sessions=90, seed=1), texts([*OLD, *NEW], sessions=90, seed=2)
    sessions = bare(here).select("session_id").unique().with_columns(alerted=False)
    ids = {"session_id": "s", "user_id": "u"}
    frame = pl.DataFrame({"here": True, "day": WEEK.since, **ids, "group": [0] * 10 + [1], "novel": False})

    result = clustered(bare(here), bare(before), POLICY)
    table = cluster_table(result, sessions, NO_WORDS, POLICY)

    grown = table.filter(pl.col("growth_q") <= POLICY.topics.significance, pl.col("share") > pl.col("share_before"))
    new = result.filter("here").filter(here["text"].is_in(MATTERS["battery"]))["group"].unique()
    assert grown["group"].to_list() != []
    assert set(grown["group"]) <= set(new)
    assert members(frame, POLICY)["group"].to_list() == [0]


def test_of_a_day_with_too_many_texts_whole_sessions_are_drawn() -> None:
    """The same ones in every run; a day with fewer texts keeps all of its sessions."""
    busy, calm = texts(OLD, sessions=40), texts(OLD, sessions=5, seed=1)
    calm = calm.with_columns(day=pl.lit(WEEK.until))
    rows = pl.concat([busy, calm]).drop("vector", "marks")
    frames = {"texts": rows, "sessions": rows.select("day", "session_id").unique()}

    made, again = (
        JOB.refine({**frames, "texts": order}, ArchivePolicy(topics=TopicMining(day_texts=50)))
        for order in (rows, rows.reverse())
    )

    assert made["texts"].equals(again["texts"])
    assert made["texts"].group_by("session_id").len()["len"].unique().to_list() == [3]
    assert dict(made["texts"].group_by("day").len().iter_rows()) == {WEEK.since: 51, WEEK.until: 15}
    lots = made["lots"].rows_by_key("day", named=True, unique=True)
    kept = made["texts"].filter(pl.col("day") == WEEK.since)["lot"]
    assert kept.max() < lots[WEEK.since]["below"]
    assert (lots[WEEK.since]["sessions"], lots[WEEK.until]["below"]) == (40, None)
    assert made["sessions"].height == 45


def test_a_busy_day_that_was_cut_short_makes_no_topic_grow() -> None:
    """A tenth of the sessions is about chess, before and now; one day of now has three times as many sessions."""
    policy = ArchivePolicy(topics=TopicMining(day_texts=300))
    days = [(WEEK.since, 100, 1), (WEEK.until, 300, 2), (WEEK.earlier.since, 100, 3), (WEEK.earlier.until, 100, 4)]
    made = {}
    for day, sessions, seed in days:
        rows = texts(["garden"] * 9 + ["chess"], sessions=sessions, users=sessions, seed=seed)
        rows = rows.with_columns(day=pl.lit(day), user_id=pl.col("user_id") + str(seed)).drop("vector", "marks")
        of = rows.select("day", "session_id", "user_id").unique().with_columns(alerted=False)
        made[day] = JOB.refine({"texts": rows, "sessions": of}, policy)
    here, earlier = (
        {name: pl.concat([made[day][name] for day in (period.since, period.until)]) for name in ("texts", "lots")}
        for period in (WEEK, WEEK.earlier)
    )
    lots = pl.concat([here["lots"], earlier["lots"]])
    now, then = _at_one_rate(here["texts"], lots), _at_one_rate(earlier["texts"], lots)
    by_day = dict(now.group_by("day").agg(pl.col("session_id").n_unique()).iter_rows())

    assert 2 < by_day[WEEK.until] / by_day[WEEK.since] < 4
    assert 0.7 < then["session_id"].n_unique() / (2 * by_day[WEEK.since]) < 1.4


def circles(returns: Iterable[int], alerted: Iterable[bool]) -> pl.DataFrame:
    """Sessions of 100 turns."""
    dealt = list(alerted)
    return sessions_of(len(dealt), returns=list(returns), alerted=dealt, app_id="support", topics=4, turns=100)


def test_circles_before_alerts_are_found() -> None:
    """Ten with an alert come back eight times, others once or twice; alerts dealt out evenly show nothing."""
    sessions = circles([8] * 10 + [1, 2] * 10, [True] * 10 + [False] * 20)

    found = cycling(sessions, asked()).findings

    assert [(finding.title, finding.strength) for finding in found] == [("Sessions with alerts go in circles", 1.0)]

    sessions = circles([8] * 10 + [1, 2] * 10, [n % 3 == 0 for n in range(30)])

    assert cycling(sessions, asked()).findings == []


def test_the_planted_new_matter_is_found(ready_week: Callable[[str], JobResult]) -> None:
    """Nobody spoke of the battery before: 14 sessions of 70 against none of 35 in each of two clusters, q = 0.027."""
    titles = [shown.finding.title for shown in ready_week("topics").section.findings]

    assert any(title.startswith("New topic:") and "battery" in title for title in titles)


def test_the_planted_matters_are_as_planned(week: Callable[[str], JobResult]) -> None:
    """Those who press have alerts; what was spoken of all along stays."""
    titles = [shown.finding.title for shown in week("topics").section.findings]

    assert any(title.startswith("Risky topic:") and "sluice" in title for title in titles)

    grown = [title for title in titles if title.startswith(("New", "Growing"))]

    assert not [title for title in grown for word in ("tomato", "chess", "sourdough", "railway") if word in title]


def test_a_sample_is_called_one(planted: LakePaths, tmp_path: Path) -> None:
    """Clusters are of some sessions; what needs no texts is of all."""
    sampled = ArchivePolicy(topics=TopicMining(day_texts=60))

    section = mined(JOB, planted, tmp_path, policy=sampled).section

    sessions = {figure.name: figure.sessions for figure in section.figures}
    assert "of the 140 sessions of both periods, drawn by lot" in section.notes[0]
    assert 10 < sessions.pop("topic_clusters") == sessions.pop("novel_texts_ratio") < 50
    assert sessions == dict.fromkeys(
        ("topics_per_session", "topic_returns_per_100_turns", "cycling_sessions_ratio"), 70
    )


K = AnonymityPolicy()


def said(texts: dict[int, list[str]], *, users: int = 5) -> pl.DataFrame:
    """Each group's texts come round among so many users; every text is a session."""
    rows = [
        {"group": group, "session_id": f"s-{group}-{n}", "user_id": f"u-{n % users}", "text": text}
        for group, of_group in texts.items()
        for n, text in enumerate(of_group)
    ]
    frame = pl.DataFrame(rows)
    return frame.with_columns(marks=marks_of(frame["text"]))


def named(frame: pl.DataFrame, most: int = 3) -> dict[int, list[str]]:
    """The words of each group."""
    found = naming_marks(frame, K, most=most)
    return named_by(found, frame["text"])


def test_words_of_the_group_alone_name_it() -> None:
    """Everybody says parcel, one group refund; words of four users, numbers, addresses and small words name nothing."""
    words = words_of(pl.Series(["Send 555-1234 the PARCEL, the parcel is at 10.0.0.1", None]))

    assert words.to_list() == [["parcel", "send"], []]

    texts = {0: ["refund parcel"] * 6, 1: ["weather parcel"] * 6}

    assert named(said(texts)) == {0: ["refund", "parcel"], 1: ["weather", "parcel"]}

    few, many = said({0: ["refund"] * 12}, users=4), said({1: ["parcel"] * 12}, users=6)

    assert named(pl.concat([few, many])) == {1: ["parcel"]}

    frame = pl.concat([said({0: ["refund parcel"] * 4}), said({1: ["refund"] * 9})])

    assert named(frame) == {1: ["refund"]}
