"""`turntide mcp`: the memory of a running role as MCP tools on standard input and output."""

from __future__ import annotations

import asyncio
import os
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import httpx
import msgspec
import typer

from jobs.cli import examples
from jobs.shared.role_api import path_part
from models.errors import ConfigurationError, StoreUnavailable
from streams.api.projects.command_messages import AddMemory, DeedAnswer, PendingDeed
from streams.api.projects.messages import BuildContext, FoundItems, ProjectContext, SearchProject
from streams.api.users.messages import AssembleContext, AssembledContext, FactAnswer, Found, SearchMemory, UserFacts
from streams.http.problems import FieldError, Problem, ProblemDetails
from streams.settings import load_settings

_ANSWER_WITHIN_S = 15.0
"""Longer than the role's own limit, so that its answer says what took so long."""
_Answer = TypeVar("_Answer")


def mcp(
    *,
    url: Annotated[
        str | None, typer.Option("--url", help="Where the index role answers; none: as the settings say.")
    ] = None,
    variable: Annotated[
        str, typer.Option("--token-env", help="Environment variable that holds the bearer token; it may be unset.")
    ] = "TURNTIDE_TOKEN",
) -> None:
    """Serve memory of users and projects to an MCP client that starts this command."""
    settings = load_settings()
    asyncio.run(_serve(url or settings.http.index_url, _token(variable)))


mcp.epilog = examples(  # type: ignore[attr-defined] # read by jobs.cli
    "turntide mcp", "turntide mcp --url https://memory.example.org --token-env MEMORY_TOKEN"
)


def _token(variable: str) -> str | None:
    token = os.environ.get(variable)
    if token is not None and not token.strip():
        raise ConfigurationError(f"{variable} is empty: give it a token of http.tokens, or unset it")
    return None if token is None else token.strip()


async def _serve(url: str, token: str | None) -> None:
    from mcp.server.stdio import stdio_server

    from streams.api.mcp.server import memory_server

    async with client_of(url, token) as client:
        asked = HttpMemory(client)
        server = memory_server(asked, asked)
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())


def client_of(url: str, token: str | None) -> httpx.AsyncClient:
    """A client of a role, with the token on every request.

    Raises:
        ConfigurationError: The address is none.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=_ANSWER_WITHIN_S)
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigurationError(f"--url {url} is no address: say http://host:port") from error


class HttpMemory:
    """A `Memory` and `ProjectMemoryTools` of `streams.api.mcp.tools` that asks a role's HTTP API."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def search(self, request: SearchMemory) -> Found:
        """Turns or episodes, best first."""
        return await self._ask("POST", "/v1/search", Found, content=msgspec.json.encode(request))

    async def context(self, request: AssembleContext) -> AssembledContext:
        """The whole prompt within a budget."""
        return await self._ask("POST", "/v1/context", AssembledContext, content=msgspec.json.encode(request))

    async def facts(self, request: UserFacts) -> list[FactAnswer]:
        """Facts of a user."""
        given = {"app_id": request.app_id, "category": request.category}
        params = {field: value for field, value in given.items() if value is not None}
        return await self._ask("GET", f"/v1/users/{path_part(request.user_id)}/facts", list[FactAnswer], params=params)

    async def project_context(self, app_id: str | None, project_id: str, request: BuildContext) -> ProjectContext:
        """What a language model is to be told of a project."""
        return await self._of_project(app_id, project_id, "context", request, ProjectContext)

    async def search_project(self, app_id: str | None, project_id: str, request: SearchProject) -> FoundItems:
        """What of a project speaks of something."""
        return await self._of_project(app_id, project_id, "search", request, FoundItems)

    async def add_project_memory(
        self, app_id: str | None, project_id: str, request: AddMemory
    ) -> DeedAnswer | PendingDeed:
        """Have a project know something."""
        told = await self._of_project(app_id, project_id, "memories", request, dict[str, Any])
        return msgspec.convert(told, PendingDeed) if "pending" in told else msgspec.convert(told, DeedAnswer)

    async def _of_project(
        self, app_id: str | None, project_id: str, end: str, request: msgspec.Struct, kind: type[_Answer]
    ) -> _Answer:
        params = {} if app_id is None else {"app_id": app_id}
        path = f"/v1/projects/{path_part(project_id)}/{end}"
        return await self._ask("POST", path, kind, content=msgspec.json.encode(request), params=params)

    async def _ask(
        self,
        method: str,
        path: str,
        kind: type[_Answer],
        *,
        content: bytes | None = None,
        params: dict[str, str] | None = None,
    ) -> _Answer:
        """One request.

        Raises:
            Problem: The role says what is wrong.
            StoreUnavailable: It does not answer, or not as a role does.
        """
        try:
            answer = await self._client.request(method, path, content=content, params=params)
        except httpx.TransportError as error:
            raise StoreUnavailable(
                f"the index role does not answer at {self._client.base_url}: is `turntide worker index` running there?"
            ) from error
        try:
            if answer.is_success:
                return msgspec.json.decode(answer.content, type=kind)
            told = msgspec.json.decode(answer.content, type=ProblemDetails)
        except msgspec.DecodeError as error:
            raise StoreUnavailable(
                f"{self._client.base_url} answers with {answer.status_code} and not as an index role does: check --url"
            ) from error
        errors = [FieldError(each.field, each.detail) for each in told.errors]
        raise Problem(HTTPStatus(answer.status_code), told.code, told.detail, errors=errors)
