"""Fixtures of all suites: no network in unit and property tests, one real broker for the rest."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest
from pytest_socket import disable_socket, enable_socket
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from jobs.operate.broker.local_kafka import LocalKafka, answers
from jobs.operate.topics import apply_topics
from jobs.shared import role_process
from jobs.shared.role_process import environment_of, with_bytecode
from streams.kafka.producer import Producer
from streams.settings import Settings, load_settings
from tests.support.tools import FOLDER

# A busy machine must not fail a property: timings are never asserted. Each run tries the same inputs, so that what
# passed passes again: `.ci/slow` more of them, and `pytest --hypothesis-profile=searching` others.
hypothesis.settings.register_profile("turntide", deadline=None, derandomize=True, max_examples=15)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=150)
hypothesis.settings.register_profile("searching", deadline=None, max_examples=150)
hypothesis.settings.load_profile("turntide")

# Test processes draw ports before they are bound: each from its own.
_PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw")) + 1
role_process.PORTS = role_process.PORTS[_PROCESS::16]

# Test processes use all cores between them: a pool of threads in each spends its time waiting for the others.
for _library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Brokers live for seconds or minutes: what the second compiler costs never pays. `.ci/tools` keeps their classes.
_JAVA = ["-XX:TieredStopAtLevel=1"]
if (FOLDER / "kafka.aot").exists():
    _JAVA += ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:AOTCache={FOLDER / 'kafka.aot'}"]
os.environ.setdefault("JAVA_TOOL_OPTIONS", " ".join(_JAVA))

# Hundreds of child processes import the same modules; so do the test processes of the next run.
if sys.dont_write_bytecode:
    os.environ.update(with_bytecode(os.environ))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.environ["PYTHONPYCACHEPREFIX"]

_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes folders below it that are this user's alone
_FILES_BYTES, _PROCESSES_BYTES = 6 * 1024**3, 6 * 1024**3


def _has_room_for_files() -> bool:
    free, available = shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available
    return free > _FILES_BYTES and available > _FILES_BYTES + _PROCESSES_BYTES


# Stores flush every write, and a disk takes its time for each. Processes are killed here, machines are not: what is in
# memory outlives them just as well.
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and _has_room_for_files():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# What is imported and collected stays until the end: it is not looked through for garbage, now or in every test.
gc.disable()

_HERE = Path(__file__).parent
_WITHOUT_NETWORK = (_HERE / "unit", _HERE / "property", _HERE / "lab" / "unit")
_WITH_BROKER = (_HERE / "integration", _HERE / "system", _HERE / "upgrades", _HERE / "lab" / "system")
_BROKER_WITHIN_S = 90.0
_SHARING = "tests/system/stack/"
_SHORT = "tests/unit/"
_BEGINS = (
    ("tests/system/test_",),
    ("tests/upgrades/", "tests/system/", "tests/browser/"),
    ("tests/integration/",),
    ("tests/contract/", "tests/property/", "tests/golden/"),
    (_SHORT,),
)


class SharedBroker:
    """The broker of all test processes, run by the one that gives them tests; it starts while they collect."""

    def __init__(self, folder: Path) -> None:
        self._broker = LocalKafka(folder)
        self._starting = ThreadPoolExecutor(1)
        self._starting.submit(self._broker.start)
        self.bootstrap = self._broker.bootstrap

    def stop(self) -> None:
        """Stop it, also where it has just begun to start."""
        self._starting.shutdown()
        self._broker.stop()


_SHARED = pytest.StashKey[SharedBroker]()


def pytest_configure_node(node: Any) -> None:
    """Tell a test process where the shared broker is; there is none for a run of suites that need none."""
    config = node.config
    asked = [Path(config.invocation_params.dir, each.partition("::")[0]).resolve() for each in config.args]
    if not any(suite.is_relative_to(path) or path.is_relative_to(suite) for path in asked for suite in _WITH_BROKER):
        return
    if _SHARED not in config.stash:
        config.stash[_SHARED] = SharedBroker(config._tmp_path_factory.getbasetemp() / "broker")
    node.workerinput["kafka"] = config.stash[_SHARED].bootstrap


@pytest.hookimpl(tryfirst=True)  # before its files are removed
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the shared broker."""
    if shared := session.config.stash.get(_SHARED, None):
        shared.stop()


def pytest_collection_finish() -> None:
    """Look for garbage again, in what tests make."""
    gc.freeze()
    gc.enable()


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """A file's tests go to one process, and so do those of the files that share a running system.

    Processes begin apart: two wait for roles, one for brokers, one for other servers, one calculates, so that there is
    always something to do while they wait, and none has more to wait for than the run lasts. Files of unit tests are
    short: they are shared by all that are done with theirs, so that all end at about the same time.
    """

    def _assign_work_unit(self, node: Any) -> None:
        begins = _BEGINS[self.nodes.index(node) % len(_BEGINS)]
        own = [scope for scope in self.workqueue if scope.startswith(begins)]
        short = [scope for scope in self.workqueue if scope.startswith(_SHORT)]
        self.workqueue.move_to_end((own or short or [*self.workqueue])[0], last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _SHARING if file.startswith(_SHARING) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Give tests to processes so."""
    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _network_only_where_meant(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuse sockets to unit and property tests; the pair an event loop wakes itself with is allowed."""
    if not any(request.path.is_relative_to(folder) for folder in _WITHOUT_NETWORK):
        yield
        return
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()


@pytest.fixture(scope="session", autouse=True)
def _archives_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New archives are copies of one that was made in this process; their engine plans for small tables."""
    with pytest.MonkeyPatch.context() as patch:
        if "streams.archive.writer" in sys.modules:  # of a test that was collected
            from tests.support.made_archive import Copies, for_small_tables, stand_in  # noqa: PLC0415

            for_small_tables(patch)
            stand_in(Copies(tmp_path_factory.mktemp("archives")).open, patch)
        yield


@pytest.fixture
def archives_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No copies in this test: it is about making them."""
    from streams.archive.catalog import open_writer  # noqa: PLC0415
    from tests.support.made_archive import stand_in  # noqa: PLC0415

    stand_in(open_writer, monkeypatch)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a real broker: the one `TURNTIDE_KAFKA` names, the shared one, or one of this process."""
    if existing := os.environ.get("TURNTIDE_KAFKA"):
        if not answers(existing):
            pytest.fail(f"no broker answers at TURNTIDE_KAFKA={existing}: start it or unset the variable")
        yield existing
    elif shared := getattr(request.config, "workerinput", {}).get("kafka"):
        give_up_s = time.monotonic() + _BROKER_WITHIN_S
        while not answers(shared):
            if time.monotonic() > give_up_s:
                pytest.fail(
                    f"the broker of the test processes does not answer at {shared}: see broker/kafka/broker.log"
                )
            time.sleep(0.2)  # it starts
        yield shared
    else:
        with LocalKafka(tmp_path_factory.mktemp("broker")) as broker:
            yield broker.bootstrap


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix for topics and groups that no other test has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def settings(request: pytest.FixtureRequest, kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Topics of the test's own as its module says (`PARTITIONS`, by default two, and `KAFKA`); HTTP on free ports."""
    made = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": getattr(request.module, "PARTITIONS", 2),
            "session_timeout": timedelta(seconds=6),
            "heartbeat_interval": timedelta(seconds=1),
            **getattr(request.module, "KAFKA", {}),
        },
        topic_prefix=topic_prefix,
        data_dir=tmp_path / "data",
        http={
            f"{role}_port": 0
            for role in ("sessions", "memory", "enrich", "judge", "index", "archive", "notify", "gateway")
        },
    )
    await apply_topics(made)
    return made


@pytest.fixture
async def producer(settings: Settings) -> AsyncIterator[Producer]:
    """A started producer."""
    producer = Producer(settings)
    await producer.start()
    yield producer
    await producer.stop()


@pytest.fixture
def environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings as a command's users give them; no index role answers."""
    for name, value in {**environment_of(settings), "TURNTIDE_HTTP__INDEX_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
