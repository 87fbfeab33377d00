"""The set of views: its contract, its version, and archives of earlier releases."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.contracts.command import NAME, breaks, write
from models.errors import ConfigurationError
from models.events import AlertStatus
from models.events.topics import ALERTS
from streams.archive.catalog import open_reader
from streams.archive.maintenance import upgrade
from streams.archive.views.definitions import VIEW_NAMES
from streams.archive.views.published import VIEWS_VERSION, columns_of_views
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, alert, buffer_of, paths, turn

CONTRACTS = Path(__file__).parents[2] / "deploy" / "contracts"


def promised(directory: Path, **changed: dict[str, str] | None) -> None:
    """A committed contract that differs from the code in some views."""
    views: dict[str, Any] = {**columns_of_views(), **changed}
    document = {"version": VIEWS_VERSION, "views": views}
    (directory / NAME).write_bytes(msgspec.json.encode(document))


def test_committed_contract_is_kept() -> None:
    """No column that readers rely on went."""
    assert [] == breaks(CONTRACTS)


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
