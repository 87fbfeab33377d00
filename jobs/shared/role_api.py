"""Asking a running role over HTTP, for commands: one client, and errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import typer

from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from streams.http.problems import ProblemDetails
from streams.settings import load_settings

_ANSWER_WITHIN_S = 30.0
"""Longer than the role's own limit, so that its answer says what took so long."""
_DO = {
    HTTPStatus.UNAUTHORIZED: "put an admin token of http.tokens into the variable that --token-env names",
    HTTPStatus.FORBIDDEN: "use a token of http.tokens with `admin: true` and this app, or with no apps",
}

UrlOption = Annotated[
    str | None, typer.Option("--url", help="Where the index or api role answers; none: as the settings say.")
]
TokenOption = Annotated[
    str, typer.Option("--token-env", help="Environment variable with an admin token; may be unset.")
]
TOKEN_VARIABLE = "TURNTIDE_TOKEN"  # noqa: S105 - the name of a variable


class RoleAnswer(NamedTuple):
    """What a role answered; `pending` if a command is in the log, but not carried out yet."""

    body: dict[str, Any]
    pending: bool


class RequestTooLargeError(ConfigurationError):
    """The body has more bytes than the role takes at once."""


class RoleApi:
    """A running role.

    Args:
        client: With the role's address, and the token on every request.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> RoleAnswer:
        """One request.

        Args:
            method: Of HTTP.
            path: With its parts quoted (`path_part`).
            params: Of the query; those that are None or empty are left out.
            body: As JSON.

        Raises:
            RequestTooLargeError: The body is larger than the role takes.
            ConfigurationError: The role refuses; the message says why and what to do.
            StoreUnavailable: It does not answer, or not as a role does.
        """
        given = {name: value for name, value in (params or {}).items() if value not in (None, "")}
        try:
            response = self._client.request(method, path, params=given, json=body)
        except httpx.TransportError as error:
            raise StoreUnavailable(
                f"no role answers at {self._client.base_url}: is `turntide worker index` running there? Else say --url"
            ) from error
        if response.is_success:
            return RoleAnswer(self._decoded(response, dict[str, Any]), response.status_code == HTTPStatus.ACCEPTED)
        raise self._refusal(response)

    def _decoded(self, response: httpx.Response, kind: Any) -> Any:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.DecodeError as error:
            raise StoreUnavailable(
                f"{self._client.base_url} answers with {response.status_code} and not as a role does: check --url"
            ) from error

    def _refusal(self, response: httpx.Response) -> TurntideError:
        told = self._decoded(response, ProblemDetails)
        if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return RequestTooLargeError(f"{told.detail}: raise the role's http.max_body_bytes")
        what_to_do = _DO.get(HTTPStatus(response.status_code))
        text = told.detail if what_to_do is None else f"{told.detail}: {what_to_do}"
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return StoreUnavailable(text)
        return ConfigurationError(text)


@contextmanager
def role_api(
    url: str | None, token_variable: str, *, transport: httpx.BaseTransport | None = None
) -> Iterator[RoleApi]:
    """A running role, by default the index role of the settings.

    Args:
        url: Where it answers.
        token_variable: Environment variable that holds the bearer token.
        transport: How it is reached; None: over the network.

    Raises:
        ConfigurationError: The address is none, or the token is empty.
    """
    settings = load_settings()
    address = url or settings.http.index_url
    token = os.environ.get(token_variable)
    if token is not None and not token.strip():
        raise ConfigurationError(f"{token_variable} is empty: give it an admin token of http.tokens, or unset it")
    headers = {"Accept": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token.strip()}"})
    try:
        client = httpx.Client(base_url=address, headers=headers, timeout=_ANSWER_WITHIN_S, transport=transport)
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigurationError(f"--url {address} is no address: say http://host:port") from error
    with client:
        yield RoleApi(client)


def path_part(name: str) -> str:
    """A name as one part of a path, whatever it holds; clients would take `.` and `..` for steps.

    >>> path_part("shop/eu ü"), path_part("..")
    ('shop%2Feu%20%C3%BC', '%2E%2E')
    """
    return quote(name, safe="").replace(".", "%2E")
