"""A secret in an address is a secret lost: proxies, browsers and logs keep addresses. So it is refused, unused."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import parse_qsl

from starlette.types import Scope

from streams.http.problems import Problem

SECRET_PARAMETERS = frozenset({
    "token", "access_token", "auth_token", "api_key", "apikey", "api-key", "authorization", "password", "secret",
})  # fmt: skip
"""Names of query parameters that no route has, in any case."""
_MOST_FIELDS = 1_000


def require_no_secret(scope: Scope, host: str) -> None:
    """Refuse a request whose address holds what looks like a secret; that is not looked at.

    Args:
        scope: Of the request.
        host: Its `Host` header.

    Raises:
        Problem: 400.
    """
    try:
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, "bad_query", f"a query has {_MOST_FIELDS} fields at most") from None
    in_query = any(name.lower() in SECRET_PARAMETERS for name, _ in fields)
    target: bytes = scope.get("raw_path") or b""
    authority = b"" if target.startswith(b"/") else target.partition(b"://")[2].partition(b"/")[0]
    if in_query or b"@" in authority or "@" in host:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "secret_in_url",
            "send it as a header, `Authorization: Bearer …`: addresses are logged on the way. Take this one out of use",
        )
