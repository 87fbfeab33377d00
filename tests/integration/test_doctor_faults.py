"""`turntide doctor` finds planted faults: several in a set-up that is otherwise well, each by its own check."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import typer
from typer.testing import CliRunner

from jobs.operate.doctor import CHECKS, doctor
from jobs.operate.topics import apply_topics, differences
from jobs.shared.role_process import environment_of, free_port
from models.events import SessionEnded
from streams import wiring
from streams.archive.place import paths_of
from streams.archive.writer import LakeWriter
from streams.http.health import serve
from streams.index.edge import EdgeStore
from streams.inference import wordllama
from streams.kafka.client import admin
from streams.settings import Settings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import ROLES
from tests.support.fault_driver import recorded, send, until
from tests.support.http_api import api_of
from tests.support.http_server import Request, answering

_app = typer.Typer()
_app.command()(doctor)
_TOKEN, _OTHER = "token-of-this-machine", "token-of-the-role"
_OF_THE_BROKER = ("broker", "topics", "clock", "workers")
_HOLDS_LOCK = """
import sys, time, filelock
with filelock.FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(99)
"""


class Setup(NamedTuple):
    """A set-up that is well, and what planting needs."""

    settings: Settings
    monkeypatch: pytest.MonkeyPatch
    tmp_path: Path


Environment = dict[str, str]
Plant = Callable[[Setup], AbstractAsyncContextManager[Environment]]


class Fault(NamedTuple):
    """A fault, the check that must find it, and what it must say is wrong and is to be done."""

    check: str
    plant: Plant
    found: str
    advice: str


@pytest.fixture(scope="module")
def well(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Topics with a turn in them, an archive, a vector store; made once, for a doctor changes nothing."""
    settings = load_settings(
        kafka={"bootstrap": kafka, "partitions": 4},
        topic_prefix=f"test-doctor-{uuid.uuid4().hex[:12]}",
        data_dir=tmp_path_factory.mktemp("doctor") / "data",
    )

    async def make() -> None:
        await apply_topics(settings)
        await send(settings, [recorded(SessionEnded(session_id="s", timestamp=datetime.now(UTC)))])
        await _store(settings.data_dir, "turns", "wordllama", 256)

    asyncio.run(make())
    LakeWriter(paths_of(settings)).close()
    return settings


@pytest.fixture
def setup(well: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """The same as environment variables, and no others."""
    for name in [name for name in os.environ if name.startswith("TURNTIDE_")]:
        monkeypatch.delenv(name)
    own = {f"TURNTIDE_HTTP__{role.upper()}_PORT": "0" for role in ROLES}
    for name, value in {**environment_of(well), **own}.items():
        monkeypatch.setenv(name, value)
    return Setup(well, monkeypatch, tmp_path)


async def _store(data_dir: Path, collection: str, embedder: str, dim: int) -> None:
    store = EdgeStore(data_dir / "vectors", embedder=embedder)
    await store.ensure(collection, dim)
    await store.close()


def _just(environment: Callable[[Setup], Environment]) -> Plant:
    """A fault that settings make, or something done before that needs no tidying up."""

    @asynccontextmanager
    async def plant(setup: Setup) -> AsyncIterator[Environment]:
        yield environment(setup)

    return plant


@asynccontextmanager
async def _missing_topic(setup: Setup) -> AsyncIterator[Environment]:
    async with admin(setup.settings.kafka) as client:
        await client.delete_topics([f"{setup.settings.topic_prefix}.alerts.v1"])
    yield {}
    await apply_topics(setup.settings)


def _unwritable_lake(setup: Setup) -> Environment:
    (setup.tmp_path / "file").touch()
    return {"TURNTIDE_ARCHIVE__DATA_PATH": str(setup.tmp_path / "file" / "lake")}


@asynccontextmanager
async def _wrong_token(_: Setup) -> AsyncIterator[Environment]:
    http = HttpSettings.model_validate({"tokens": [{"token": _OTHER}]})
    async with serve(api_of(http=http)) as port:
        tokens = json.dumps([{"token": _TOKEN, "name": "on-call"}])
        yield {"TURNTIDE_HTTP__INDEX_PORT": str(port), "TURNTIDE_HTTP__TOKENS": tokens}


@contextmanager
def _server(status: int, *, ahead: timedelta = timedelta(0)) -> Iterator[int]:
    """Port of a server that answers everything so, by a clock of its own."""

    def answer(request: Request) -> None:
        request.reply(status, headers={"date": format_datetime(datetime.now(UTC) + ahead, usegmt=True)})

    with answering(answer) as url:
        yield int(url.rpartition(":")[2])


@asynccontextmanager
async def _clock_of_a_role(_: Setup) -> AsyncIterator[Environment]:
    with _server(200, ahead=timedelta(minutes=-5)) as port:
        yield {"TURNTIDE_HTTP__SESSIONS_PORT": str(port)}


@asynccontextmanager
async def _stale_lock(setup: Setup) -> AsyncIterator[Environment]:
    lock = str(paths_of(setup.settings).lock)
    child = subprocess.Popen([sys.executable, "-c", _HOLDS_LOCK, lock], stdout=subprocess.PIPE)  # noqa: ASYNC220, S603
    try:
        assert child.stdout is not None
        await asyncio.to_thread(child.stdout.readline)
        child.send_signal(signal.SIGSTOP)
        await until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED, "the child is stopped")
        yield {}
    finally:
        child.kill()
        child.wait()


def _not_loaded_before(setup: Setup) -> Environment:
    """Roles of one process share an embedder; a doctor loads its own. It is not asked by the scorer here."""
    setup.monkeypatch.setattr(wiring, "_loaded", wiring._loaded.__wrapped__)
    return {"TURNTIDE_SCORER__KIND": "rules"}


def _package_missing(setup: Setup) -> Environment:
    setup.monkeypatch.setattr(wordllama, "find_spec", lambda _: None)
    return _not_loaded_before(setup)


def _weights_missing(setup: Setup) -> Environment:
    setup.monkeypatch.setattr(wordllama, "_folder", lambda: setup.tmp_path / "no-weights")
    return _not_loaded_before(setup)


@asynccontextmanager
async def _qdrant_refuses(_: Setup) -> AsyncIterator[Environment]:
    with _server(401) as port:
        yield {"TURNTIDE_VECTORS__URL": f"http://127.0.0.1:{port}", "TURNTIDE_VECTORS__API_KEY": "not-this-one"}


@asynccontextmanager
async def _hanging_broker(_: Setup) -> AsyncIterator[Environment]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield {"TURNTIDE_KAFKA__BOOTSTRAP": f"127.0.0.1:{silent.getsockname()[1]}"}


def _nowhere(variable: str, address: str = "http://127.0.0.1:{}", **more: str) -> Plant:
    return _just(lambda _: {variable: address.format(free_port()), **more})


FAULTS = {
    "the broker is away": {
        "wrong bootstrap": Fault(
            "broker",
            _nowhere("TURNTIDE_KAFKA__BOOTSTRAP", "127.0.0.1:{}"),
            "does not answer",
            "TURNTIDE_KAFKA__BOOTSTRAP",
        ),
        "embedder's package missing": Fault("embedder", _just(_package_missing), "not installed", "install `turntide`"),
        "wrong key": Fault("vectors", _qdrant_refuses, "rejects the API key", "TURNTIDE_VECTORS__API_KEY"),
        "sink away": Fault(
            "sinks", _nowhere("TURNTIDE_NOTIFY__ALERTMANAGER_URL"), "does not answer", "start the receiver"
        ),
    },
    "a topic is away": {
        "missing topic": Fault("topics", _missing_topic, "alerts.v1", "turntide topics apply"),
        "misspelt": Fault(
            "settings", _just(lambda _: {"TURNTIDE_KAFKA__BOOTSTRP": "x:1"}), "TURNTIDE_KAFKA__BOOTSTRAP", "rename"
        ),
        "wrong token": Fault("tokens", _wrong_token, "index at http", "TURNTIDE_HTTP__TOKENS"),
        "clock of a role": Fault("clock", _clock_of_a_role, "role sessions is ", "NTP"),
        "unwritable lake": Fault("lake", _just(_unwritable_lake), "is not writable", "TURNTIDE_ARCHIVE__DATA_PATH"),
        "stale lock": Fault("locks", _stale_lock, "which is stopped", "kill -CONT"),
        "embedder's weights missing": Fault("embedder", _just(_weights_missing), "weights", "install `turntide`"),
        "silent model": Fault(
            "llm",
            _nowhere("TURNTIDE_LLM__BASE_URL", TURNTIDE_LLM__MODEL="m"),
            "no server answers",
            "TURNTIDE_LLM__BASE_URL",
        ),
    },
    "the broker hangs": {"hanging broker": Fault("broker", _hanging_broker, "no answer within", "address")},
}
"""Set-up → what is planted there together: no two of one check, and none that disturbs another."""


def _files(*folders: Path) -> Mapping[str, int]:
    """What a doctor must leave alone: every file and when it was written. SQLite's readers share memory."""
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file): file.stat().st_mtime_ns for file in files if not file.name.endswith(("-shm", "-wal"))}


async def _report(environment: Environment, *options: str) -> tuple[int, dict[str, Any]]:
    run = await asyncio.to_thread(CliRunner().invoke, _app, [*options, "--output", "json"], env=environment)
    return run.exit_code, json.loads(run.stdout)


@pytest.mark.usefixtures("setup")
async def test_a_healthy_setup_has_no_failure(well: Settings) -> None:
    """Every check is there and none fails, and no topic is touched; a single one can be run alone."""
    code, report = await _report({})
    one_code, one = await _report({}, "--check", "broker")

    assert await differences(well) == []
    assert [check["check"] for check in report["checks"]] == list(CHECKS)
    assert (code, [check for check in report["checks"] if check["status"] == "fail"]) == (0, [])
    assert (one_code, [check["check"] for check in one["checks"]]) == (0, ["broker"])


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("planted", FAULTS.values(), ids=FAULTS)
async def test_planted_faults_are_found(setup: Setup, planted: dict[str, Fault]) -> None:
    """Each by its check, and no other check fails; with what to do, exit code 1, and nothing changed on disk."""
    environment: Environment = {}
    async with AsyncExitStack() as plants:
        for fault in planted.values():
            environment |= await plants.enter_async_context(fault.plant(setup))
        before = _files(setup.settings.data_dir, setup.tmp_path)
        # Only the hanging broker needs the time-out; a busy machine must not fail the others.
        hangs = "hanging broker" in planted
        options = ["--within", "3", *(f"--check={check}" for check in _OF_THE_BROKER)] if hangs else ["--within", "60"]
        code, report = await _report(environment, *options)
        after = _files(setup.settings.data_dir, setup.tmp_path)
    failed = {check["check"]: check for check in report["checks"] if check["status"] == "fail"}

    assert (code, {*failed}) == (1, {fault.check for fault in planted.values()})
    for name, fault in planted.items():
        assert fault.found in failed[fault.check]["detail"], name
        assert fault.advice in failed[fault.check]["advice"], name
    assert _TOKEN not in json.dumps(report)
    assert before == after
