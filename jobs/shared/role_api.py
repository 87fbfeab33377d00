"""Asking a running role over HTTP, for commands: by the operations that its routes declare.

Errors say what to do. A command that asks a role is declared by `role_command`: where the role is, its token and the
form of what is printed come with it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import msgspec
import typer

from jobs.cli import examples
from jobs.shared.output import TOKEN_VARIABLE, OutputFormat, OutputOption, Printer, TokenOption, UrlOption
from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from streams.http.problems import ProblemDetails
from streams.settings import load_settings

if TYPE_CHECKING:
    from streams.http.route import Route

EXIT_PENDING = 1
_ANSWER_WITHIN_S = 30.0
"""Longer than the role's own limit, so that its answer says what took so long."""
_DO = {
    HTTPStatus.UNAUTHORIZED: "put an admin token of http.tokens into the variable that --token-env names",
    HTTPStatus.FORBIDDEN: "use a token of http.tokens with role `admin` and this app, or with no apps",
}


_POSITIONAL, _OPTION = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
NOTHING: Mapping[str, Any] = {}
_SHARED: Mapping[str, tuple[Any, Any]] = {
    "url": (UrlOption, None),
    "token": (TokenOption, TOKEN_VARIABLE),
    "output": (OutputOption, OutputFormat.TABLE),
}


class RoleAnswer(NamedTuple):
    """Answer of a role, a list as `items`; `pending` if a command is in the log, but not carried out yet."""

    body: dict[str, Any]
    pending: bool


class RequestTooLargeError(ConfigurationError):
    """The body has more bytes than the role takes at once."""


class RoleApi:
    """A running role."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, operation: str, body: Mapping[str, Any] | None = None, /, **asked: Any) -> RoleAnswer:
        """One request, by the id of a route's operation; what is `asked` fills its path and query where it is given.

        Raises:
            RequestTooLargeError: The body is larger than the role takes.
            ConfigurationError: The role refuses; the message says why and what to do.
            StoreUnavailable: It does not answer, or not as a role does.
        """
        route = operations()[operation]
        path, params = route.target(asked)
        try:
            response = self._client.request(route.method, path, params=params, json=body)
        except httpx.TransportError as error:
            raise StoreUnavailable(
                f"no role answers at {self._client.base_url}: start `turntide worker index` there, or set --url"
            ) from error
        if response.is_success:
            found = self._decoded(response, dict[str, Any] | list[dict[str, Any]])
            body = {"items": found} if isinstance(found, list) else found
            return RoleAnswer(body, response.status_code == HTTPStatus.ACCEPTED)
        raise self._refusal(response)

    def _decoded(self, response: httpx.Response, kind: Any) -> Any:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.DecodeError as error:
            raise StoreUnavailable(
                f"{self._client.base_url} answers {response.status_code} and is not a role: check --url"
            ) from error

    def _refusal(self, response: httpx.Response) -> TurntideError:
        problem = self._decoded(response, ProblemDetails)
        if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return RequestTooLargeError(f"{problem.detail}: raise the role's http.max_body_bytes")
        what_to_do = _DO.get(HTTPStatus(response.status_code))
        text = problem.detail if what_to_do is None else f"{problem.detail}: {what_to_do}"
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return StoreUnavailable(text)
        return ConfigurationError(text)


@cache
def operations() -> Mapping[str, Route]:
    """Routes that commands ask, by their ids; importing what declares them takes a while."""
    from streams.api.apps.routes import AppMemoryAdmin
    from streams.api.apps.statistics import AppStatistics
    from streams.api.live.routes import SearchRoutes
    from streams.api.live.timeline import TimelineReader
    from streams.api.projects.commands import ProjectCommandRoutes
    from streams.api.projects.items import ProjectItems
    from streams.api.projects.reading import ProjectReader
    from streams.api.users.facts import FactRoutes
    from streams.api.users.reading import MemoryReader
    from streams.http.route import routes_of

    apps, users = (AppMemoryAdmin, AppStatistics, SearchRoutes), (MemoryReader, FactRoutes, TimelineReader)
    projects = (ProjectReader, ProjectCommandRoutes, ProjectItems)
    return {route.operation: route for kind in (*apps, *users, *projects) for route in routes_of(kind)}


def connection(url: str | None, token_variable: str) -> dict[str, Any]:
    """Address (None: the settings' index role) and headers of a running role, as httpx' clients take them.

    Raises:
        ConfigurationError: The address is none, or the token is empty.
    """
    address, token = url or load_settings().http.index_url, os.environ.get(token_variable)
    if token is not None and not token.strip():
        raise ConfigurationError(f"{token_variable} is empty: set it to a token of http.tokens, or unset it")
    headers = {"Accept": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token.strip()}"})
    try:
        return {"base_url": httpx.URL(address), "headers": headers}
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigurationError(f"--url {address} is not an address: write http://host:port") from error


@contextmanager
def role_api(
    url: str | None, token_variable: str, *, transport: httpx.BaseTransport | None = None
) -> Iterator[RoleApi]:
    """A running role (`connection`); `transport`, if given, reaches it in place of the network."""
    with httpx.Client(**connection(url, token_variable), timeout=_ANSWER_WITHIN_S, transport=transport) as client:
        yield RoleApi(client)


class CommandContext(NamedTuple):
    """Context of a command: the role that it asks, the printer, and what it is about."""

    api: RoleApi
    output: Printer
    named: Mapping[str, Any] = {}
    """What the command is about: parts of every request."""

    def ask(self, operation: str, body: Mapping[str, Any] | None = None, /, **asked: Any) -> RoleAnswer:
        """One request, as of `RoleApi`."""
        return self.api.ask(operation, body, **self.named, **asked)

    @property
    def project(self) -> str:
        """Id of the project that the command is about."""
        return str(self.named["project_id"])

    @property
    def whole(self) -> bool:
        """True if answers are printed unchanged, for programs."""
        return self.output.form is OutputFormat.JSON

    def rows(
        self, title: str, found: Iterable[Mapping[str, Any]], row: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        """Print a row for each that can be read; for programs all of it."""
        self.output.rows(title, found if self.whole else map(row, found))

    def record(
        self, body: Mapping[str, Any], flat: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda body: body
    ) -> None:
        """Print one thing, its inner objects laid flat for people."""
        self.output.record(body if self.whole else flat(body))

    def finish(
        self, answer: RoleAnswer, flat: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda body: body
    ) -> None:
        """Print what came of a command; exit code 1 if that is not known yet."""
        self.record(answer.body, flat)
        if answer.pending:
            raise typer.Exit(EXIT_PENDING)


def role_command(
    app: typer.Typer, *lines: str, name: str | None = None, about: Mapping[str, Any] = NOTHING
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command that takes a `CommandContext`, with these examples of it.

    `--url`, `--token-env` and `--output` are added to its own options. Its name is the function's unless given.
    Arguments of `about` (name → annotation) come before its own and fill every request.
    """

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        first = [inspect.Parameter(word, _POSITIONAL, annotation=of) for word, of in about.items()]
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        shared = [inspect.Parameter(word, _OPTION, annotation=of, default=to) for word, (of, to) in _SHARED.items()]

        def command(*, url: str | None, token: str, output: OutputFormat, **given: Any) -> None:
            named = {word: given.pop(word) for word in about}
            with role_api(url, token) as role:
                function(CommandContext(role, Printer(output), named), **given)

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {each.name: each.annotation for each in (*first, *own, *shared)}
        command.__signature__ = inspect.Signature([*first, *own, *shared])  # type: ignore[attr-defined] # what typer reads
        app.command(name, epilog=examples(*lines))(command)
        return function

    return declare


def columns(*names: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """A row of these fields."""
    return lambda found: {name: found[name] for name in names}
