"""`turntide lab bench archive`: what is made and what is measured. Never how fast."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from jobs.lab.bench.archive import Filled, fill, read_views, speed, stored
from jobs.lab.bench.archive_traffic import ArchiveSize, ArchiveTraffic
from models.errors import ConfigurationError
from streams.archive.catalog import LakePaths, reading
from streams.settings.archive import ArchiveSettings

TINY = ArchiveSize(sessions=40, turns_per_session=30, days=3, seed=7)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LakePaths, Filled]:
    """A data directory with a tiny archive."""
    home = tmp_path_factory.mktemp("bench")
    paths = LakePaths(home / "archive" / "catalog.sqlite", f"{home}/archive/data/")
    return home, paths, fill(home, paths, TINY, progress=lambda *_: None)


def test_lengths_are_many_short_and_few_long() -> None:
    """The mean is what was asked for, half of the sessions are far below it."""
    lengths = ArchiveTraffic(ArchiveSize(sessions=4_000, turns_per_session=400)).lengths

    assert lengths.mean() == pytest.approx(400, rel=0.02)
    assert np.median(lengths) < 200
    assert lengths.max() > 3_000


def test_the_same_seed_gives_the_same_records() -> None:
    """And another one others."""
    first, again, other = (
        [chunk.fetched for chunk in ArchiveTraffic(msgspec.structs.replace(TINY, seed=seed)).chunks()]
        for seed in (7, 7, 8)
    )

    assert first == again
    assert first != other


def test_what_was_made_is_in_the_archive(filled: tuple[Path, LakePaths, Filled]) -> None:
    """Every record is a true event and every turn there once; the user's turns of ended sessions have risk points."""
    _, paths, found = filled
    with reading(paths) as con:
        counted = con.execute(
            "WITH ended AS (SELECT session_id FROM raw.controls WHERE type = 'session_ended') "
            "SELECT (SELECT count(*) FROM raw.turns), (SELECT count(*) FROM raw.episodes), "
            "(SELECT count(*) FROM raw.turns SEMI JOIN ended USING (session_id) WHERE role = 'user') "
            "- (SELECT count(*) FROM raw.risk_points SEMI JOIN ended USING (session_id)), "
            "(SELECT count(*) FROM raw.skipped)"
        ).fetchall()

    ((turns, episodes, without_risk, skipped),) = counted
    assert (turns, without_risk, skipped) == (found.turns, 0, 0)
    assert TINY.sessions / 2 < episodes


def test_a_kept_archive_is_used_again_and_another_is_left_alone(filled: tuple[Path, LakePaths, Filled]) -> None:
    """A repeat does not make twenty million turns again; a wrong folder is not overwritten."""
    home, paths, before = filled

    assert fill(home, paths, TINY, progress=lambda *_: None) == before
    with pytest.raises(ConfigurationError, match="--data-dir"):
        fill(home, paths, ArchiveSize(sessions=41), progress=lambda *_: None)


def test_views_are_asked_and_files_counted(filled: tuple[Path, LakePaths, Filled]) -> None:
    """One day reads fewer files than there are; a query that fails is named, the others go on."""
    _, paths, _ = filled
    holds, latest = stored(paths)
    read = read_views(paths, {"turns": "SELECT count(*) FROM turns", "none": "SELECT * FROM none"}, latest)

    assert set(read["query_s"]) == {"turns"}
    assert read["query_failed"] == {"none": "CatalogException"}
    assert 0 < read["files_read"] < read["files_of_turns"]
    assert holds["bytes"] == sum(holds["table_bytes"].values())


def test_landing_and_the_limit_take_the_same_turns(tmp_path: Path) -> None:
    """And nothing of it is left behind."""
    folder = tmp_path / "speed"
    folder.mkdir()
    spent, raw = speed(folder, ArchiveTraffic(TINY).chunks(), ArchiveSettings())

    assert spent.turns == raw.turns > 0
    assert not folder.exists()
