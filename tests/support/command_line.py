"""Commands run in the test's process, and what they print."""

import asyncio
import json
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from jobs.cli import app
from jobs.shared.role_api import role_api
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


class InProcess(httpx.BaseTransport):
    """Calls an app directly, each request in a loop of its own."""

    def __init__(self, served: ASGIApp) -> None:
        self._transport = httpx.ASGITransport(served)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, answered whole."""

        async def answered() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport) as client:
                return await client.send(request)

        with capture_logs():  # the role's log is none of the command's output
            found = asyncio.run(answered())
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)


def reached(transport: httpx.BaseTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands reach a role without a socket."""
    monkeypatch.setattr("jobs.shared.role_api.role_api", partial(role_api, transport=transport))
