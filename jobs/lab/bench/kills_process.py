"""A contender as a process that is killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from jobs.lab.bench.contender import command_of
from jobs.lab.bench.figures import SESSIONS_ROLE
from jobs.shared.role_process import RoleProcess, environment_of
from streams.settings import Settings

_KILLED_WITHIN_S = 30.0
_LOG_TAIL_CHARS = 2_000


class Process(Protocol):
    """What the harness needs of it; `RoleProcess` has it."""

    def start(self) -> None:
        """Start it."""

    def kill(self) -> None:
        """Kill −9 and wait for its end."""

    def running(self) -> bool:
        """Whether it is alive."""

    def log_tail(self) -> str:
        """The end of what it wrote."""


class ContenderProcess:
    """One `jobs.lab.bench.contender NAME`; it ends with the process that started it, whatever happens to that."""

    def __init__(self, name: str, settings: Settings, log: Path) -> None:
        self._name = name
        self._log = log
        self._environment = {**os.environ, **environment_of(settings)}
        self._environment.pop("TURNTIDE_KAFKA", None)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is appended to the log file."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command_of(self._name),
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill −9 and wait for its end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(_KILLED_WITHIN_S)

    def running(self) -> bool:
        """Whether it is alive."""
        return self._process is not None and self._process.poll() is None

    def log_tail(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text(errors="replace")[-_LOG_TAIL_CHARS:] if self._log.exists() else ""


def process_of(name: str, settings: Settings, log: Path) -> Process:
    """The process of a contender, or of the sessions role."""
    kind: Callable[..., Process] = ContenderProcess
    if name == SESSIONS_ROLE:
        return RoleProcess("sessions", settings, log=log)
    return kind(name, settings, log)
