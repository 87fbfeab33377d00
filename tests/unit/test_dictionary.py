"""The set of views: its contract, its version, archives of earlier releases; the dictionary is complete and runs."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl
import pytest

from jobs.archive.dictionary import VIEW_MEANINGS, columns_of, document, entries
from jobs.contracts.command import NAME, breaks, write
from models.errors import ConfigurationError
from models.events import AlertStatus
from models.events.topics import ALERTS, COMPACTIONS, CONVERSATION_TOPICS, PROFILES
from streams.archive.catalog import open_reader
from streams.archive.maintenance import upgrade
from streams.archive.views.definitions import VIEW_NAMES
from streams.archive.views.published import VIEWS_VERSION, columns_of_views
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, alert, buffer_of, lineage, paths, profile, segment, topic, turn

_NUMBERS = {"BIGINT", "DOUBLE", "HUGEINT", "TIMESTAMP WITH TIME ZONE", "DATE"}
_FILLED = {"turns", "sessions", "profiles", "risk_points", "turn_risks", "alerts", "segments", "topic_turns"}
_IDS = {"memory_id", "target_memory_id", "merged_memory_id"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A small archive, opened as analysts open it."""
    place = paths(tmp_path_factory.mktemp("lake"))
    with closing(LakeWriter(place)) as writer:
        said = [turn(n, risk=0.7 if n == 3 else None) for n in range(5)]
        writer.land(buffer_of(said), now=NOW)
        writer.land(buffer_of([profile("p1", turns=3)], topic=PROFILES), now=NOW)
        writer.land(buffer_of([alert("c1", AlertStatus.FIRING)], topic=ALERTS), now=NOW)
        writer.land(buffer_of([segment("g1", "short")], topic=COMPACTIONS), now=NOW)
        packed = topic("t1", active_turns=[2], packed_turns=[0, 1], compaction=lineage(0, 1))
        writer.land(buffer_of([packed], topic=CONVERSATION_TOPICS), now=NOW)
    with closing(open_reader(place)) as con:
        yield con


def test_the_risk_that_counted_stands_beside_what_was_said(lake: duckdb.DuckDBPyConnection) -> None:
    """The scorer's and the producer's, also before a profile tells of it; nothing for what is not scored."""
    found = lake.execute("SELECT turn, risk, risk_source, content FROM turn_risks ORDER BY turn").fetchall()
    sent = lake.execute("SELECT turn, risk FROM turns WHERE risk IS NOT NULL").fetchall()

    assert [(0, 0.0, "rules"), (1, 0.1, "rules"), (2, 0.2, "rules"), (3, 0.7, "upstream"), (4, None, None)] == [
        row[:3] for row in found
    ]
    assert all(content for *_, content in found)
    assert [(3, 0.7)] == sent


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_every_column_has_meaning_unit_and_class(view: str) -> None:
    """Numbers and times have a unit, but for ids that are numbers; what is called a key is a column."""
    columns = columns_of(view)

    assert [] == [c.name for c in columns if not c.meaning or not c.privacy]
    assert [] == [c.name for c in columns if c.type in _NUMBERS and not c.unit and c.name not in _IDS]
    assert {*VIEW_MEANINGS[view].key} <= {column.name for column in columns}


@pytest.mark.parametrize("view", VIEW_NAMES)
def test_first_query_and_polars_example_run_and_agree(lake: duckdb.DuckDBPyConnection, view: str) -> None:
    """On a real archive: the same number of rows from both, and some where the archive has any."""
    rows = lake.execute(VIEW_MEANINGS[view].headline).fetchall()
    names: dict[str, Any] = {"lake": lake, "pl": pl}
    exec(VIEW_MEANINGS[view].polars, names)  # noqa: S102 - our own example

    assert len(rows) == names["frame"].height
    assert rows or view not in _FILLED


def test_unknown_view_names_the_known_ones() -> None:
    """A typing error is answered with the list, which has every view."""
    assert set(VIEW_NAMES) == set(VIEW_MEANINGS)
    with pytest.raises(ConfigurationError, match="no view 'turn': the views are turns, sessions"):
        entries("turn")


def test_page_needs_no_network_and_shows_everything() -> None:
    """One file: nothing is loaded, every view and the search are there. In Markdown each column has a row."""
    markdown = document(entries("sessions"), "markdown")
    page = document(entries(None), "html")

    assert re.findall(r'(?:src|href)="(?!#)[^"]*"|@import|url\(', page) == []
    assert [view for view in VIEW_NAMES if f'<section id="{view}">' not in page] == []
    assert '<input id="search" type="search"' in page
    assert len(columns_of("sessions")) == len(re.findall(r"^\| \w+ \| [A-Z]", markdown, re.MULTILINE))


def promised(directory: Path, **changed: dict[str, str] | None) -> None:
    """A committed contract that differs from the code in some views."""
    views: dict[str, Any] = {**columns_of_views(), **changed}
    document = {"version": VIEWS_VERSION, "views": views}
    (directory / NAME).write_bytes(msgspec.json.encode(document))


def test_lost_column_and_changed_type_break(tmp_path: Path) -> None:
    """A column more than before does not; `contracts write` does not hide it."""
    promised(tmp_path, topic_turns={"session_id": "BIGINT", "gone": "VARCHAR"})

    assert ["topic_turns.session_id was BIGINT, is VARCHAR", "topic_turns.gone is gone"] == breaks(tmp_path)
    with pytest.raises(ConfigurationError, match=r"topic_turns\.gone is gone"):
        write(tmp_path)


def test_both_names_of_a_view_have_the_contracts_columns(tmp_path: Path) -> None:
    """In the schema of the version, and without a schema; any client can ask for the version."""
    with closing(LakeWriter(paths(tmp_path))) as writer:
        found = {
            name: {row[0]: row[1] for row in writer.con.execute(f"DESCRIBE {name}").fetchall()}
            for view in VIEW_NAMES
            for name in (view, f"v{VIEWS_VERSION}.{view}")
        }
        told = writer.con.execute("SELECT views_version FROM archive_version").fetchall()

    assert {name: columns_of_views()[name.rpartition(".")[2]] for name in found} == found
    assert [(VIEWS_VERSION,)] == told


def aged(writer: LakeWriter) -> None:
    """Make it an archive of two releases ago: fewer columns, one table less, no versions of views."""
    con = writer.con
    for view in reversed(VIEW_NAMES):
        con.execute(f"DROP VIEW main.{view}")
        con.execute(f"DROP VIEW v{VIEWS_VERSION}.{view}")
    con.execute(f"DROP VIEW main.archive_version; DROP SCHEMA v{VIEWS_VERSION}; DROP TABLE raw.repeats")
    con.execute("DROP TABLE raw.projects; ALTER TABLE raw.turns DROP COLUMN risk")
    con.execute("ALTER TABLE raw.alerts DROP COLUMN escalation; ALTER TABLE raw.alerts DROP COLUMN policy_digest")
    con.execute(
        "CREATE VIEW main.turns AS SELECT * FROM raw.turns; CREATE VIEW main.alerts AS SELECT * FROM raw.alerts"
    )
    con.execute("COMMENT ON TABLE raw.offsets IS 'two releases ago'")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder of such an archive, with a turn and an alert."""
    with closing(LakeWriter(paths(tmp_path))) as writer:
        writer.land(buffer_of([turn(0, risk=0.5)]), now=NOW)
        writer.land(buffer_of([alert("c1", AlertStatus.FIRING)], topic=ALERTS), now=NOW)
        aged(writer)
    return tmp_path


def test_old_archive_is_upgraded_and_its_rows_are_served_with_null(old: Path) -> None:
    """A schema two versions old: columns and tables that came since. Before, a reader is told what to do."""
    with pytest.raises(ConfigurationError, match="turntide archive upgrade"):
        open_reader(paths(old))
    added = upgrade(paths(old))

    with closing(open_reader(paths(old))) as con:
        turns = con.execute("SELECT content, risk FROM turns").fetchall()
        alerts = con.execute("SELECT alert_id, probability, policy_digest FROM alerts").fetchall()
        projects = con.execute("SELECT count(*) FROM projects").fetchall()

    assert ([("what about 0?", None)], [("a-1", None, None)], [(0,)]) == (turns, alerts, projects)
    assert set(VIEW_NAMES) == set(added)
    assert [] == upgrade(paths(old))
