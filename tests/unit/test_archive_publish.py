"""`turntide archive publish`: what retention and erasures leave of the tables and of what was mined."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from models.events.topics import PROFILES
from streams.archive.iceberg import publish
from streams.archive.iceberg.withdraw import withdraw
from streams.archive.place import paths_of
from streams.archive.removal import FOLDER
from streams.archive.schema import TABLES
from streams.archive.writer import LakeWriter
from streams.erase.archive import WriterArchive
from streams.settings import Settings
from tests.support.bytes_left import holding
from tests.support.command_line import printed, refused, turntide
from tests.support.lake_records import NOW, buffer_of, profile, turn
from tests.support.subjects import of_session

AGED, ERASED, KEPT = "hippopotamus", "canaryfeathers", "zebrastripes"
_LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)
_SOME = ("turns", "profiles", "risk_points", "alerts")
"""Each further table takes a second; all of them: `test_iceberg_publish.py`."""
_POLICY = "[archive.retention]\nidentified_days = 3650\n"
_CANARIES = of_session(f"s-{ERASED}")


def _shape(result: dict[str, Any]) -> tuple[int, int, int]:
    return result["rows_added"], result["rows_deleted"], result["rows"]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A data directory whose archive has turns of long ago, turns of two sessions of now, and a profile."""
    monkeypatch.setattr(publish, "TABLES", {name: TABLES[name] for name in _SOME})
    (tmp_path / "policy.toml").write_text(_POLICY)
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TURNTIDE_POLICY_FILE", str(tmp_path / "policy.toml"))
    settings = Settings(data_dir=tmp_path / "data")
    with closing(LakeWriter(paths_of(settings))) as writer:
        old = [
            replace(turn(n, session_id=f"s-{AGED}", content=f"{AGED} bathes {n}"), timestamp=_LONG_AGO)
            for n in range(4)
        ]
        writer.land(buffer_of(old, received=_LONG_AGO), now=_LONG_AGO)
        mine = [turn(n, session_id=f"s-{ERASED}", content=f"{ERASED} fall {n}") for n in range(4)]
        theirs = [turn(n, session_id="s-kept", content=f"{KEPT} are white {n}") for n in range(4)]
        writer.land(buffer_of([*mine, *theirs], first=4, expected=4), now=NOW)
        writer.land(buffer_of([profile("p-1", turns=2, session_id=f"s-{ERASED}")], topic=PROFILES), now=NOW)
    return settings


@pytest.fixture
def writer(settings: Settings) -> Iterator[LakeWriter]:
    """The archive role's."""
    with closing(LakeWriter(paths_of(settings))) as writer:
        yield writer


def _told(*arguments: str) -> dict[str, dict[str, Any]]:
    """What a run says of each table, as JSON."""
    return {each["table"]: each for each in printed("archive", "publish", *arguments)}


def _run(*arguments: str) -> str:
    done = turntide(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_some_tables_alone(settings: Settings) -> None:
    """As a table for people; the others are not made, and one that there is not is told."""
    assert "no table nonsense: the tables are turns" in refused("archive", "publish", "nonsense")
    shown = _run("archive", "publish", "turns", "--dry-run")
    _told("turns", "risk_points")

    assert "rows_added" in shown
    assert "nothing was changed" in shown
    assert ["risk_points", "turns"] == sorted(
        path.name for path in (settings.data_dir / "iceberg" / "warehouse" / "turntide").iterdir()
    )


def test_what_retention_lets_go_of_is_withdrawn(settings: Settings) -> None:
    """Rows of long ago are in no file of the tables, nor in what was mined; the others stay, as in the archive."""
    _told()
    _run("mine", "overview", "--since", "2001-02-03")
    published, mined = settings.data_dir / "iceberg", settings.data_dir / FOLDER
    before = [bool(holding(folder, AGED)) for folder in (published, mined)]
    dry = _run("archive", "retain")
    still = bool(holding(published, AGED))

    _run("archive", "retain", "--apply")

    assert [True, True] == before
    assert "--apply removes it for good" in dry
    assert still
    assert [] == holding(settings.data_dir, AGED)
    assert [] != holding(published, KEPT)
    assert (0, 0, 8) == _shape(_told()["turns"])


async def test_what_the_role_erases_is_withdrawn(settings: Settings, writer: LakeWriter) -> None:
    """From every file of the tables and of what was mined, before the proof is written; the proof counts both."""
    await asyncio.to_thread(_told)
    await asyncio.to_thread(_run, "mine", "overview", "--since", "2001-02-03")
    published, mined = settings.data_dir / "iceberg", settings.data_dir / FOLDER
    before = [bool(holding(folder, ERASED)) for folder in (published, mined)]
    archive = WriterArchive(writer, asyncio.Lock(), lambda: None, mined, partial(withdraw, settings))

    proof = {store.store: store for store in await archive.erase(_CANARIES)}
    writer.close()

    assert [True, True] == before
    assert (4, 4, 1, 2) == tuple(
        proof[name].removed for name in ("archive turns", "iceberg turns", "iceberg profiles", "iceberg risk_points")
    )
    assert proof["mined days"].removed > 0
    assert {0} == {store.remaining for store in proof.values()}
    assert [] == holding(settings.data_dir, ERASED)
    assert [] != holding(published, KEPT)
