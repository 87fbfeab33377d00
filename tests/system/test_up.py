"""`turntide up --light`: started, spoken to, ended and started again as people do it, with what it started."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from jobs.shared.role_process import free_port, own_command
from tests.support.fault_driver import until

ROLES = ("sessions", "memory", "enrich", "index", "archive", "gateway")
MIB = 1024 * 1024
CHAT = '{"session_id": "s-1", "user_id": "u-1", "turns": [{"role": "user", "content": "My name is Robin."}]}\n'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A folder and ports of its own, and no cluster."""
    ports = {f"TURNTIDE_HTTP__{role.upper()}_PORT": str(free_port()) for role in ROLES}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TURNTIDE_")}
    return {**inherited, **ports, "TURNTIDE_DATA_DIR": str(tmp_path / "kept")}


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    """A command of ours, to its end."""
    return subprocess.run(  # noqa: S603 - our own command
        [*own_command(), *command], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@contextmanager
def up(environment: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """It runs and is ready: what it said and its process; afterwards it is ended by Ctrl-C, and so is all below it."""
    command = [*own_command(), "up", "--light", "--kafka-port", environment["KAFKA_PORT"]]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
        assert child.stdout is not None
        said = ""
        try:
            for line in child.stdout:
                said += line
                if "Ctrl-C" in line:
                    break
            process = psutil.Process(child.pid)
            below = process.children(recursive=True)
            yield said, process
        finally:
            child.send_signal(signal.SIGINT)
            _, code = child.stdout.read(), child.wait(60)
    _, alive = psutil.wait_procs(below, timeout=10)

    assert (code, alive) == (0, [])


async def test_what_was_said_is_remembered_by_the_next_one(environment: dict[str, str], tmp_path: Path) -> None:
    """One process below for all roles and one for the broker; a second `up` beside the first says what to do."""
    environment["KAFKA_PORT"] = str(free_port())
    chat, url = tmp_path / "chat.jsonl", f"http://127.0.0.1:{environment['TURNTIDE_HTTP__INDEX_PORT']}"
    chat.write_text(CHAT)

    async def facts() -> list[str]:
        async with httpx.AsyncClient(base_url=url) as client:
            answer = await client.get("/v1/users/u-1/facts")
            return [fact["value"] for fact in answer.json()]

    with up(environment) as (said, process):
        roles = [each for each in process.children(recursive=True) if "light" in each.cmdline()]
        sent = run(environment, "produce", str(chat))
        await until(facts, "the name is remembered")
        beside = run(environment, "up"), run({**environment, "TURNTIDE_DATA_DIR": str(tmp_path / "other")}, "up")
        resident = roles[0].memory_info().rss
    with up(environment):
        again = await facts()

    assert (len(roles), sent.returncode, again) == (1, 0, ["Robin"])
    assert f"{url}/live/" in said
    assert re.search(f"already runs on {tmp_path}/kept, as process {process.pid}: use it", beside[0].stderr)
    assert re.search(r"port \d+ of role sessions is in use.*TURNTIDE_HTTP__SESSIONS_PORT=\d+", beside[1].stderr)
    assert resident < 450 * MIB
