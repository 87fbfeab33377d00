"""Commands run in the test's process, and what they print."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from jobs.cli import app
from models.errors import ConfigurationError


def turntide(*arguments: str, said: str = "") -> Result:
    """Run a command; `said` is what somebody types."""
    return CliRunner().invoke(app, arguments, input=said)


def printed(*arguments: str) -> Any:
    """What a command that succeeds prints as JSON."""
    result = turntide(*arguments, "--output", "json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    """What a command says that cannot do what it is asked for."""
    result = turntide(*arguments)
    assert isinstance(result.exception, ConfigurationError)
    return str(result.exception)
