"""Children run our code, whatever packages lie in the folder in which a command is given."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.operate import worker
from jobs.shared.role_process import RoleProcess, with_bytecode

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


async def test_worker_all_runs_no_package_of_the_current_folder(marker: Path) -> None:
    """It would run a stranger's code, or restart for ever."""
    help_page: Any = SimpleNamespace(value="--help")
    code = await worker._run_child(help_page, with_bytecode(os.environ), asyncio.Event())

    assert (code, marker.exists()) == (0, False)  # noqa: ASYNC240


def test_roles_of_demo_and_lab_run_none_either(marker: Path) -> None:
    """They are started by another class."""
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
