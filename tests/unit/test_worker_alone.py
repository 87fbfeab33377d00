"""One `turntide worker all` on a data directory; its children run our code, whatever lies in the current folder."""

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from jobs.operate import worker
from jobs.operate.supervisor import only_one, tell_ready
from jobs.shared.role_process import RoleProcess, with_bytecode
from models.errors import ConfigurationError
from streams.settings import load_settings


def test_a_second_one_is_refused_by_name(tmp_path: Path) -> None:
    """Two would take their groups' partitions from each other; the first goes on, and later another may."""
    with only_one(tmp_path):
        with pytest.raises(ConfigurationError, match=f"process {os.getpid()}.*TURNTIDE_DATA_DIR"), only_one(tmp_path):
            pass
        with only_one(tmp_path / "other"):
            pass
    with only_one(tmp_path):
        pass


def test_the_command_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`worker all` starts nothing where another one runs."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(worker, "run_until_stopped", lambda *_, **__: pytest.fail("started"))
    app = typer.Typer()
    app.command()(worker.worker)
    with only_one(tmp_path):
        result = CliRunner().invoke(app, ["all"])

    assert isinstance(result.exception, ConfigurationError)


FORBIDDEN = {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": "/cache", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("forbidden", "environment", "expected"),
    [
        (True, FORBIDDEN,
         {"PYTHONPYCACHEPREFIX": "/cache/turntide/bytecode", "XDG_CACHE_HOME": "/cache", "PATH": "/bin"}),
        (True, {"PYTHONPYCACHEPREFIX": "/own", "XDG_CACHE_HOME": "/cache"},
         {"PYTHONPYCACHEPREFIX": "/own", "XDG_CACHE_HOME": "/cache"}),
        (False, {"PATH": "/bin"}, {"PATH": "/bin"}),
    ],
)  # fmt: skip
def test_bytecode_goes_below_the_cache(
    monkeypatch: pytest.MonkeyPatch, *, forbidden: bool, environment: dict[str, str], expected: dict[str, str]
) -> None:
    """Only where none would be written, and where the user has not named a folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)

    assert expected == with_bytecode(environment)


async def test_each_role_is_told_once_it_is_ready_and_all_of_them_with_the_addresses() -> None:
    """Whoever starts them waits for a line, and not for a time."""
    asked: Counter[str] = Counter()

    def answer(request: httpx.Request) -> httpx.Response:
        asked[role := {8701: "sessions", 8702: "index"}[request.url.port or 0]] += 1
        return httpx.Response(503 if role == "index" and asked[role] == 1 else 200)

    said: list[str] = []
    settings = load_settings(http={"archive_port": 0}, kafka={"bootstrap": "b1:9092"})
    roles = ("sessions", "index", "archive")
    await tell_ready(
        settings, roles, asyncio.Event(), said.append, further={"data": "here"}, transport=httpx.MockTransport(answer)
    )
    *each, all_of_them = said
    ready, *told = all_of_them.splitlines()

    assert each == ["worker sessions is ready: http://127.0.0.1:8701", "worker index is ready: http://127.0.0.1:8702"]
    assert ready.startswith("ready after ")
    assert [line.split(maxsplit=1)[1] for line in told] == [
        "page http://127.0.0.1:8702/live/",
        "http://127.0.0.1:8702/docs",
        "b1:9092, turns go to turntide.turns.v1",
        "asked archive: the port is 0 in the settings",
        "here",
    ]
    assert asked == {"sessions": 1, "index": 2}


async def test_nobody_waits_for_roles_that_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are they called ready; what they wait for is told now and then."""
    monkeypatch.setattr("jobs.operate.supervisor._SAY_AGAIN_S", 0.0)
    stop, said = asyncio.Event(), list[str]()

    def say(line: str) -> None:
        said.append(line)
        stop.set()

    down = httpx.MockTransport(lambda _: httpx.Response(503, text="recovering 3 partitions"))
    await tell_ready(load_settings(), ("sessions",), stop, say, transport=down)

    assert said == ["not ready yet: sessions (recovering 3 partitions)"]


ROOT = Path(__file__).parents[2]


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a stranger's packages write when they are run; the current folder has them."""
    for package in ("jobs", "models", "streams", "msgspec"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "jobs" / "cli.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ran"


def test_roles_run_no_package_of_the_current_folder(marker: Path) -> None:
    """They would run a stranger's code, or be started again for ever."""
    role: Any = SimpleNamespace(role="--help")
    done = subprocess.run(RoleProcess._command(role), capture_output=True, text=True, check=False)  # noqa: S603

    assert (done.returncode, marker.exists()) == (0, False)
    assert "Run a role until Ctrl-C" in done.stdout


def test_no_command_is_started_in_another_way() -> None:
    """`python -m` looks into the current folder first."""
    sources = [path for top in ("jobs", "streams") for path in (ROOT / top).rglob("*.py")]
    started = [path.name for path in sources if re.search(r"sys\.executable", path.read_text())]
    alone = [path.name for path in sources if re.search(r'sys\.executable, "-[^PI]', path.read_text())]

    assert alone == []
    assert "role_process.py" in started


_ALLOCATE_IN_THREADS = """
import ctypes, threading
from jobs.operate.worker import run_until_stopped

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fdopen.restype = ctypes.c_void_p
together = threading.Barrier(8)

def allocate():
    together.wait()
    libc.malloc(1_000)
    together.wait()

async def main(stop):
    threads = [threading.Thread(target=allocate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

run_until_stopped(main, exit_with_parent=False, within_s=5.0)
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc's malloc")
def test_threads_of_a_worker_share_two_heaps() -> None:
    """One for each thread would keep what is freed in it from all others."""
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    command = [sys.executable, "-c", _ALLOCATE_IN_THREADS]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout  # noqa: S603

    assert 1 <= told.count("<heap nr=") <= 2
