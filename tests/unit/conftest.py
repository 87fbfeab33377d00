"""Fixtures that several files of this suite begin with; what they import is imported where it is used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from jobs.analyse.mining.job import JobResult
    from jobs.demo.play import DemoState
    from models.events import OutputEvent
    from streams.archive.catalog import LakePaths
    from streams.archive.writer import LakeWriter
    from streams.index.server import ServerStore
    from tests.support.api_doubles import Served


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LakeWriter]:
    """A writer of a new archive in the test's own folder."""
    from streams.archive.writer import LakeWriter  # noqa: PLC0415
    from tests.support.lake_records import paths  # noqa: PLC0415

    writer = LakeWriter(paths(tmp_path))
    yield writer
    writer.close()


@pytest.fixture
async def store() -> AsyncIterator[ServerStore]:
    """A vector store without network; the contract suite shows that all stores behave like it."""
    from qdrant_client import AsyncQdrantClient  # noqa: PLC0415

    from streams.index.server import ServerStore  # noqa: PLC0415

    made = ServerStore(AsyncQdrantClient(":memory:"), embedder="test")
    yield made
    await made.close()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """What the index role serves, to anybody on this machine; it knows nobody."""
    from tests.support.api_doubles import Served  # noqa: PLC0415

    made = Served()
    yield made
    await made.close()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who asks it."""
    async with served.client() as made:
        yield made


@pytest.fixture
def outputs() -> list[OutputEvent]:
    """Everything that the roles emit during the demo's play."""
    from tests.support.demo_outputs import outputs_of_the_play  # noqa: PLC0415

    return list(outputs_of_the_play())


@pytest.fixture
def played() -> DemoState:
    """The demo's state at the end of the play."""
    from tests.support.demo_outputs import played_state  # noqa: PLC0415

    return played_state()


@pytest.fixture(scope="session")
def planted_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the planted archive, to which nobody writes (`tests/support/mined_archive.py`)."""
    from tests.support.made_once import made_once  # noqa: PLC0415
    from tests.support.mined_archive import archive  # noqa: PLC0415

    home = tmp_path_factory.mktemp("planted")
    copytree(made_once(tmp_path_factory, "planted", archive), home / "archive")
    return home


@pytest.fixture(scope="session")
def planted(planted_home: Path) -> LakePaths:
    """The planted archive."""
    from tests.support.lake_records import paths  # noqa: PLC0415

    return paths(planted_home / "archive")


@pytest.fixture(scope="session")
def mining_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where jobs keep what they made of the planted archive."""
    from tests.support.made_once import made_once  # noqa: PLC0415

    return made_once(tmp_path_factory, "mining", Path.mkdir)


@pytest.fixture(scope="session")
def week(planted: LakePaths, mining_folder: Path) -> Callable[[str], JobResult]:
    """A job's result of the second planted week."""
    from jobs.analyse.mining.job import job_of  # noqa: PLC0415
    from tests.support.mined_archive import mined  # noqa: PLC0415

    return cache(lambda name: mined(job_of(name), planted, mining_folder))


@pytest.fixture(scope="session")
def ready_week(planted: LakePaths, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], JobResult]:
    """The same by rules under which each job has findings."""
    from jobs.analyse.mining.job import job_of  # noqa: PLC0415
    from tests.support.made_once import made_once  # noqa: PLC0415
    from tests.support.mined_archive import READY, mined  # noqa: PLC0415

    folder = made_once(tmp_path_factory, "mining-ready", Path.mkdir)
    return cache(lambda name: mined(job_of(name), planted, folder, policy=READY))
