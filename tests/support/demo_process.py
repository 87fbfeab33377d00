"""`turntide demo` as a process of its own, and what becomes of those below it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

_ROOT = Path(__file__).parents[2]
WITHIN_S = 400


@contextmanager
def demo(data_dir: Path, *options: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own; killed if the test fails."""
    command = [sys.executable, "-m", "jobs.cli", "demo", "--data-dir", str(data_dir), "--output", "json", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNTIDE_")}
    # What a shell starts in the background ignores Ctrl-C, and hands that on: a suite that runs there would, too.
    with_ctrl_c = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(  # noqa: S603 - our own command
        command,
        cwd=_ROOT,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=with_ctrl_c,  # noqa: PLW1509 - it touches nothing that threads share
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], said: str) -> str:
    """Wait until the command says something on standard error, and return the line."""
    assert process.stderr
    for line in process.stderr:
        if said in line:
            return line
    pytest.fail(f"the demo ended with {process.wait()} before it said {said!r}")


def read_until(process: subprocess.Popen[str], said: str) -> list[psutil.Process]:
    """Wait until the command says something on standard error, and return the processes below it."""
    line_with(process, said)
    children: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    return children


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended within half a minute."""
    _, left = psutil.wait_procs(processes, timeout=30)
    return [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
