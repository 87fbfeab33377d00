"""`turntide memory mcp`: the memory of a running role as MCP tools on standard input and output."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar, cast

import httpx
import msgspec

from jobs.cli import with_examples
from jobs.shared.output import TOKEN_VARIABLE, TokenOption, UrlOption
from jobs.shared.role_api import connection
from models.errors import StoreUnavailable
from streams.api.listed import LISTINGS
from streams.api.projects.commands import ProjectCommandRoutes
from streams.api.projects.reading import ProjectReader
from streams.api.users.reading import MemoryReader
from streams.http.problems import FieldError, Problem, ProblemDetails
from streams.http.route import Accepted, Route, RouteAnswer, route_of

_ANSWER_WITHIN_S = 15.0
"""Longer than the role's own limit, so that its answer says what took so long."""
_Routes = TypeVar("_Routes")


@with_examples("turntide memory mcp", "turntide memory mcp --url https://memory.example.org --token-env MEMORY_TOKEN")
def mcp(*, url: UrlOption = None, variable: TokenOption = TOKEN_VARIABLE) -> None:
    """Serve memory of users and projects to an MCP client that starts this command."""
    asyncio.run(_serve(connection(url, variable)))


async def _serve(connection: Mapping[str, Any]) -> None:
    from mcp.server.stdio import stdio_server

    from streams.api.erase.routes import Erasures
    from streams.api.mcp.server import memory_server
    from streams.api.mcp.tools import AskedMemory
    from streams.api.sessions.changes import SessionChanges
    from streams.api.sessions.history import HistoryReader
    from streams.api.users.facts import FactRoutes

    async with httpx.AsyncClient(**connection, timeout=_ANSWER_WITHIN_S) as client:
        kinds: tuple[type[Any], ...] = (FactRoutes, HistoryReader, SessionChanges, Erasures)
        writing = [remote(each, client) for each in kinds]
        memories = remote(MemoryReader, client), remote(ProjectReader, client), remote(ProjectCommandRoutes, client)
        server = memory_server(AskedMemory(*memories, [remote(each, client) for each in LISTINGS], *writing))
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())


def remote(declares: type[_Routes], client: httpx.AsyncClient) -> _Routes:
    """The routes that a class declares, asked of a role over HTTP: the same methods, the same answers."""
    return cast("_Routes", _Remote(declares, client))


class _Remote:
    def __init__(self, declares: type, client: httpx.AsyncClient) -> None:
        self._declares = declares
        self._client = client

    def __getattr__(self, name: str) -> Any:
        route = route_of(getattr(self._declares, name))

        async def asking(*given: msgspec.Struct, body: msgspec.Struct | None = None, **named: Any) -> Any:
            asked = {name: value for each in given for name, value in msgspec.to_builtins(each).items()}
            return await self._ask(route, asked | named, body)

        return asking

    async def _ask(self, route: Route, asked: Mapping[str, Any], body: msgspec.Struct | None) -> Any:
        """One request.

        Raises:
            Problem: The role says what is wrong.
            StoreUnavailable: It does not answer, or not as a role does.
        """
        path, params = route.target(asked)
        content = None if body is None else msgspec.json.encode(body)
        headers = None if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._client.request(route.method, path, content=content, params=params, headers=headers)
        except httpx.TransportError as error:
            raise StoreUnavailable(
                f"the index role does not answer at {self._client.base_url}: start `turntide worker index` there"
            ) from error
        status = HTTPStatus(answer.status_code)
        try:
            if answer.is_success:
                given = msgspec.json.decode(answer.content, type=route.answers[status])
                if route.headers:
                    return RouteAnswer(given, answer.headers)
                return Accepted(given) if status is HTTPStatus.ACCEPTED else given
            problem = msgspec.json.decode(answer.content, type=ProblemDetails)
        except (msgspec.DecodeError, KeyError) as error:
            raise StoreUnavailable(
                f"{self._client.base_url} answers {answer.status_code} and is not an index role: check --url"
            ) from error
        errors = [FieldError(each.field, each.detail) for each in problem.errors]
        raise Problem(status, problem.code, problem.detail, errors=errors)
