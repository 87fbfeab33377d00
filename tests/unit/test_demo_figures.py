"""What the demo asks of the archive: figures of the play, and checks that fail when something is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

from jobs.demo.conversations import load_play
from jobs.demo.questions import Figures, ask_archive, load_questions
from models.entities import REGISTRY
from models.events.topics import TURNS, Topic
from streams.archive.catalog import open_reader
from streams.archive.writer import LakeWriter
from tests.support.data_files import data_file
from tests.support.demo_outputs import outputs_of_the_play, turns_of_the_play
from tests.support.lake_records import land_all, paths


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The archive at the end of the play."""
    place = paths(tmp_path_factory.mktemp("play"))
    by_topic: dict[Topic, list[object]] = {TURNS: [*turns_of_the_play()]}
    for event in outputs_of_the_play():
        if (topic := REGISTRY.topic_of[type(event)]) in REGISTRY.archived_topics:
            by_topic.setdefault(topic, []).append(event)
    with closing(LakeWriter(place)) as writer:
        land_all(writer, by_topic)
    with closing(open_reader(place)) as lake:
        yield lake


@pytest.fixture(scope="module")
def tables(landed: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same as tables; each test takes its change back."""
    with duckdb.connect() as con:
        views = "SELECT DISTINCT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'"
        for (view,) in landed.execute(views).fetchall():
            rows = landed.execute(f"FROM {view}").to_arrow_table()
            con.register("rows", rows)
            con.execute(f"CREATE TABLE {view} AS FROM rows")
        yield con


def asked(lake: duckdb.DuckDBPyConnection) -> Figures:
    """What the demo makes of it."""
    return ask_archive(lake, load_play(), load_questions().users)


def test_the_play_counts_as_expected_and_has_no_problem(landed: duckdb.DuckDBPyConnection) -> None:
    """Figures are texts for people; the conversations are fixed, so are the counts of turns, users and episodes."""
    counted = asked(landed)

    assert counted.problems == []
    assert counted.figures["turns"] == "732 in 21 sessions, 1 still open"
    assert counted.figures["memory"].endswith(" segments compacted, 20 episodes closed")
    assert "assistant" in counted.figures["apps"]
    assert counted.figures["compacted"].startswith("assistant: 11 → 10, memory ")
    assert all(counted.figures.values())


@pytest.mark.parametrize(
    ("change", "problem"),
    data_file("demo_figures")["missing"],
)
def test_each_check_fails_by_name(tables: duckdb.DuckDBPyConnection, change: str, problem: str) -> None:
    """What is missing of the archive is a problem of the demo."""
    tables.execute("BEGIN")
    tables.execute(change)
    problems = asked(tables).problems
    tables.execute("ROLLBACK")

    assert any(each.startswith(problem) for each in problems)
    assert asked(tables).problems == []
