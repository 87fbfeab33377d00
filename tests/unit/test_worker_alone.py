"""One `turntide worker all` on a data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from jobs.operate import worker
from jobs.operate.worker import only_one
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
