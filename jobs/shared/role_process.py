"""A role as a child process: started, asked whether it is ready, killed or stopped. For the demo, chaos and tests.

Loopback ports for a local broker and its roles.
"""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import httpx

from models.errors import TurntideError
from streams.settings import Settings

HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Below every system's ephemeral range: there, a client that retries a killed broker can be given the
broker's own port and connect to itself, and the broker cannot come back."""

_given: deque[int] = deque(maxlen=100)
"""Ports that were given last: whoever has one may not have bound it yet."""


def port_is_free(port: int, host: str = HOST) -> bool:
    """Check that a server could listen on this port now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(preferred: int | None = None) -> int:
    """`preferred` if it is free, else a random free loopback port that was not given just before."""
    port = preferred or secrets.choice(PORTS)
    while not port_is_free(port) or (port in _given and port != preferred):
        port = secrets.choice(PORTS)
    _given.append(port)
    return port


_POLL_S = 0.1
_STOP_WITHIN_S = 30.0
_LOG_TAIL_CHARS = 4_000
_LOG_LIMIT_BYTES = 8 * 1024 * 1024
_WRITE_NONE = "PYTHONDONTWRITEBYTECODE"
_PREFIX = "PYTHONPYCACHEPREFIX"


class RoleFailed(TurntideError):  # noqa: N818 - it says what happened
    """A role ended or did not become ready; the message holds the end of its log."""


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment variables that give a child these settings.

    Only what differs from one local run to the next: cluster, prefix, data directory, policy.
    """
    kafka = settings.kafka
    environment = {
        "TURNTIDE_KAFKA__BOOTSTRAP": kafka.bootstrap,
        "TURNTIDE_KAFKA__SESSION_TIMEOUT": f"PT{kafka.session_timeout.total_seconds():g}S",
        "TURNTIDE_KAFKA__HEARTBEAT_INTERVAL": f"PT{kafka.heartbeat_interval.total_seconds():g}S",
        "TURNTIDE_TOPIC_PREFIX": settings.topic_prefix,
        "TURNTIDE_DATA_DIR": str(settings.data_dir),
    }
    if kafka.partitions is not None:
        environment["TURNTIDE_KAFKA__PARTITIONS"] = str(kafka.partitions)
    if settings.state.store != "memory":
        environment["TURNTIDE_STATE__STORE"] = settings.state.store
    if settings.policy_file is not None:
        environment["TURNTIDE_POLICY_FILE"] = str(settings.policy_file)
    return environment


class RoleProcess:
    """One `turntide worker ROLE`; it ends with the process that started it, whatever happens to that.

    Args:
        role: Which one.
        settings: Cluster, prefix, data directory and policy.
        log: Where its output goes, appended; None: where ours goes.
        own_port: Whether it gets a free port of its own, or the one of the settings.
        worker_id: Static membership: started again under this name within the session time-out, it has its partitions
            back at once. Of one name, one process at a time; none: a stopped one gives its partitions away at once.
        extra_environment: Wins over the settings.
    """

    def __init__(
        self,
        role: str,
        settings: Settings,
        *,
        log: Path | None,
        own_port: bool = True,
        worker_id: str | None = None,
        extra_environment: Mapping[str, str] | None = None,
    ) -> None:
        self.role = role
        self.port = free_port() if own_port else 0
        self.log = log or Path(os.devnull)
        self._is_logged = log is not None
        self._environment = {
            **with_bytecode(os.environ),
            **environment_of(settings),
            **({f"TURNTIDE_HTTP__{role.upper()}_PORT": str(self.port)} if own_port else {}),
            **(extra_environment or {}),
        }
        self._environment.pop("TURNTIDE_KAFKA", None)
        self._environment.pop("TURNTIDE_WORKER_ID", None)
        if worker_id is not None:
            self._environment["TURNTIDE_WORKER_ID"] = worker_id
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base address of its HTTP API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; its output is appended to the log file."""
        with _appended(self.log) if self._is_logged else nullcontext() as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._command(),
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        return [*own_command(), "worker", self.role, "--exit-with-parent"]

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def running(self) -> bool:
        """Check that the process is alive."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill −9."""
        self._child.send_signal(signal.SIGKILL)
        self._child.wait(_STOP_WITHIN_S)

    def stop(self) -> int:
        """Ask it to stop; kill it if it does not.

        Returns:
            Its exit code.
        """
        if self.running():
            self._child.terminate()
        try:
            return self._child.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._child.wait()

    def wait(self, timeout_s: float) -> int:
        """Wait for it to end by itself.

        Raises:
            RoleFailed: It still runs after `timeout_s`.
        """
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RoleFailed(f"role {self.role} did not stop within {timeout_s:g} s") from error

    async def ready(self, within_s: float = 60.0) -> None:
        """Wait until /readyz says so.

        Raises:
            RoleFailed: It ended, or is not ready in time.
        """
        try:
            async with httpx.AsyncClient() as client, asyncio.timeout(within_s):
                while True:
                    answers = await self._answers(client)
                    if not self.running():  # whoever answered has its port
                        raise RoleFailed(f"role {self.role} ended while starting:\n{self.log_tail()}")
                    if answers:
                        return
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise RoleFailed(f"role {self.role} is not ready after {within_s:g} s:\n{self.log_tail()}") from error

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        try:
            answer = await client.get(f"{self.url}/readyz")
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    def log_tail(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text(errors="replace")[-_LOG_TAIL_CHARS:] if self.log.exists() else ""

    @property
    def _child(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RoleFailed(f"role {self.role} was not started")
        return self._process


def _appended(log: Path) -> IO[bytes]:
    """A log to go on with; a large one is put aside, in place of the one before."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


def own_command(module: str = "jobs.cli") -> list[str]:
    """The start of a command line that runs a module of ours in a child.

    Isolated from the current folder, where Python looks first by default: in a project with a package `jobs` of its own
    a child would run that one.
    """
    return [sys.executable, "-P", "-m", module]


def called_as() -> str:
    """How our command was called: a newcomer has `turntide` only through `uv run`."""
    return "uv run turntide" if "UV_RUN_RECURSION_DEPTH" in os.environ else "turntide"


def with_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment for children that keep their bytecode below the user's cache where Python is told to write none.

    With `PYTHONDONTWRITEBYTECODE`, as in many containers, each start of a role compiles some 2,000 modules: importing
    the sessions role took 2.9 s of processor time, 1.1 s with bytecode. Nothing is written beside the sources.
    """
    if not sys.dont_write_bytecode:
        return dict(environment)
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = {name: value for name, value in environment.items() if name != _WRITE_NONE}
    return {_PREFIX: str(Path(base) / "turntide" / "bytecode")} | kept
