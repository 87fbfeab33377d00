"""A publisher that dies anywhere, or is not alone: no row is lost or doubled, and what was erased goes all the same."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException, UnauthorizedError

from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from streams.archive.erasing import erase
from streams.archive.iceberg import catalog, publish, tables
from streams.archive.iceberg.publish import FileWriter
from streams.settings import Settings
from tests.support.iceberg_tables import Archive, at_first_call
from tests.support.lake_records import NOW, buffer_of, turn
from tests.support.subjects import of_session

CANARY = "canaryfeathers"
_CANARIES = of_session(f"s-{CANARY}")


class Killed(BaseException):
    """Nothing catches it."""


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive of its own."""
    archive = Archive(tmp_path)
    yield archive
    archive.writer.close()


def _killed_before(owner: Any, name: str) -> Any:
    return patch.object(owner, name, side_effect=Killed)


def _killed_after(owner: Any, name: str) -> Any:
    return at_first_call(owner, name, after=Mock(side_effect=Killed))


STEPS = {
    "created": lambda: _killed_after(tables, "created"),
    "written": lambda: _killed_after(FileWriter, "_write"),
    "uncommitted": lambda: _killed_before(SqlCatalog, "commit_table"),
    "committed": lambda: _killed_after(SqlCatalog, "commit_table"),
    "unlisted": lambda: _killed_after(publish, "_append_nothing"),
    "expired": lambda: _killed_after(tables, "expire"),
}
_BY_DAY = {"written", "committed"}


@pytest.mark.parametrize(
    "step",
    [pytest.param(made, id=name, marks=() if name in _BY_DAY else pytest.mark.slow) for name, made in STEPS.items()],
)
def test_killed_at_any_step_the_next_run_completes(archive: Archive, step: Callable[[], Any]) -> None:
    """While it publishes rows, and while it withdraws them: in the end what the archive has, and no byte more."""
    archive.writer.land(buffer_of([turn(0), turn(0, session_id=f"s-{CANARY}", content=CANARY)]), now=NOW)
    for _ in range(2):
        with step(), suppress(Killed):
            archive.publish("turns")
    archive.publish("turns")
    published = archive.differing("turns")
    erase(archive.writer, _CANARIES, now=NOW)
    with step(), suppress(Killed):
        archive.publish("turns")

    archive.publish("turns")

    assert published == []
    assert archive.differing("turns") == []
    assert archive.holding(CANARY) == []
    assert len(list((archive.tables / "warehouse").rglob("*.parquet"))) == 1


def test_what_a_dead_publisher_wrote_goes_though_its_rows_were_erased(archive: Archive) -> None:
    """Its files were never committed, and nothing is left to publish: they hold the words all the same."""
    archive.writer.land(buffer_of([turn(0, session_id=f"s-{CANARY}", content=CANARY)]), now=NOW)
    with _killed_before(SqlCatalog, "commit_table"), pytest.raises(Killed):
        archive.publish("turns")
    left = archive.holding(CANARY)
    erase(archive.writer, _CANARIES, now=NOW)

    archive.publish("turns")

    assert left == [] or [Path(name).suffix for name in left]
    assert archive.holding(CANARY) == []


def test_a_slower_publisher_does_not_bring_back_what_was_erased(archive: Archive) -> None:
    """It read the archive before; the erasure's own publishing moves the marks, so that its commit is refused."""
    archive.writer.land(buffer_of([turn(0)]), now=NOW)
    archive.publish("turns")
    archive.writer.land(buffer_of([turn(0, session_id=f"s-{CANARY}", content=CANARY)], first=1, expected=1), now=NOW)

    def erased() -> None:
        archive.writer.con.execute("DELETE FROM raw.turns WHERE kafka_offset = 1")
        archive.publish("turns")

    with at_first_call(SqlCatalog, "commit_table", before=erased):
        archive.publish("turns")

    assert archive.turns() == [("s-1", 0)]
    assert archive.holding(CANARY) == []


def test_always_overtaken_it_gives_up_and_says_so(archive: Archive) -> None:
    """Rather than try for ever."""
    archive.writer.land(buffer_of([turn(0)]), now=NOW)
    archive.publish("turns")
    archive.writer.land(buffer_of([turn(1)], first=1, expected=1), now=NOW)

    with (
        patch.object(SqlCatalog, "commit_table", side_effect=CommitStateUnknownException),
        pytest.raises(StoreUnavailable, match=r"turntide\.turns: other writers committed"),
    ):
        archive.publish("turns")


@pytest.mark.parametrize(
    ("failing", "told_as", "says"),
    [
        (OSError, StoreUnavailable, "are unavailable"),
        (UnauthorizedError, ConfigurationError, "TURNTIDE_ICEBERG__TOKEN"),
    ],
)
def test_a_catalog_that_fails_is_told_without_its_secrets(
    tmp_path: Path, failing: type[Exception], told_as: type[TurntideError], says: str
) -> None:
    """Neither the token nor a password in the address; what the error quotes is not passed on."""
    settings = Settings(data_dir=tmp_path, iceberg={"uri": "https://me:secret@host/api", "token": "secret"})

    with (
        patch.object(catalog, "RestCatalog", side_effect=failing("secret")) as server,
        pytest.raises(told_as, match=says) as told,
        catalog.opened(settings),
    ):
        pass

    assert server.call_args.kwargs["token"] == "secret"  # noqa: S105
    assert "secret" not in str(told.value)
