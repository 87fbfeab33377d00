"""One `turntide worker all` on a data directory; its children keep their bytecode also where this process may not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from jobs.operate import worker
from jobs.operate.worker import only_one
from jobs.shared.role_process import with_bytecode
from models.errors import ConfigurationError


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
    with only_one(tmp_path):
        result = CliRunner().invoke(_app(), ["all"])

    assert isinstance(result.exception, ConfigurationError)


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(worker.worker)
    return app


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
