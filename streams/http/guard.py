"""Guard before every route: identifies the caller of a request, or refuses it before its body is read.

Rates are limited by token buckets in bounded memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from http import HTTPStatus
from time import monotonic
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.http import security
from streams.http.answering import asked_route, reach_of
from streams.http.problems import Problem, forbidden
from streams.observe.telemetry import metrics
from streams.settings.http import HttpSettings, TokenRole

MOST_KNOWN = 10_000
"""Maximum number of buckets; the least recently used is dropped, which would soon be full anyway."""


class Buckets:
    """Token buckets, one for each caller: a bucket refills at a rate, and each request takes one token.

    Args:
        per_second: Tokens added a second.
        burst: Capacity of a bucket.
        clock: Seconds, monotonic.

    >>> now = [0.0]
    >>> buckets = Buckets(per_second=2.0, burst=1, clock=lambda: now[0])
    >>> buckets.take("a"), buckets.take("a"), buckets.take("b")
    (0.0, 0.5, 0.0)
    >>> now[0] = 99.0
    >>> buckets.take("a"), buckets.take("a")
    (0.0, 0.5)
    """

    def __init__(self, *, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait(self, who: Hashable) -> float:
        """Seconds until the caller may send a request; 0 if now. Takes no token."""
        return max(0.0, (1.0 - self._full(who)) / self.per_second)

    def take(self, who: Hashable) -> float:
        """Take a token if there is one. Returns 0, or the seconds to wait without one."""
        left = self._full(who)
        if left < 1.0:
            return (1.0 - left) / self.per_second
        self._left[who] = (left - 1.0, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return 0.0

    def _full(self, who: Hashable) -> float:
        left, at = self._left.get(who, (float(self.burst), 0.0))
        return min(float(self.burst), left + (self._clock() - at) * self.per_second)


class Rates:
    """Limits of requests for each caller, and of wrong tokens for each address.

    Args:
        settings: The limits.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._asked = Buckets(per_second=settings.requests_per_second, burst=settings.burst)
        per_minute = settings.failed_tokens_per_minute
        self._failed = Buckets(per_second=per_minute / 60, burst=math.ceil(per_minute))
        self._trusted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def asked(self, who: Hashable) -> None:
        """Count a request of a caller.

        Raises:
            Problem: 429, too many requests.
        """
        if seconds := self._asked.take(who):
            raise _too_many("requests", self._asked, seconds)

    def trying(self, address: str, digest: bytes) -> None:
        """Check an address before its token is looked up. A token that was right from there before always passes.

        Raises:
            Problem: 429, too many wrong tokens from this address.
        """
        if (address, digest) not in self._trusted and (seconds := self._failed.wait(address)):
            raise _too_many("failed-tokens", self._failed, seconds)

    def right(self, address: str, digest: bytes) -> None:
        """Remember a right token of an address."""
        self._trusted[address, digest] = None
        self._trusted.move_to_end((address, digest))
        if len(self._trusted) > MOST_KNOWN:
            self._trusted.popitem(last=False)

    def wrong(self, address: str) -> None:
        """Count a wrong token of an address."""
        self._failed.take(address)


def _too_many(policy: str, buckets: Buckets, seconds: float) -> Problem:
    """429 with the headers of draft-ietf-httpapi-ratelimit-headers."""
    wait_s, window_s = math.ceil(seconds), math.ceil(buckets.burst / buckets.per_second)
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate_limited" if policy == "requests" else "too_many_failed_tokens",
        f"too many {policy.replace('-', ' ')}: wait {wait_s} s",
        headers={
            "Retry-After": str(wait_s),
            "RateLimit-Policy": f'"{policy}";q={buckets.burst};w={window_s}',
            "RateLimit": f'"{policy}";r=0;t={wait_s}',
        },
    )


_POLICY_VIOLATION = 1008
_REFUSALS = {
    "rate_limited": "rate",
    "too_many_failed_tokens": "failed_tokens",
    "secret_in_url": "secret_in_url",
}
"""Codes of problems that are counted → label of the metric."""
SECRET_PARAMETERS = frozenset({
    "token", "access_token", "auth_token", "api_key", "apikey", "api-key", "authorization", "password", "secret",
})  # fmt: skip
"""Names of query parameters for secrets, case-insensitive; no route has one of them."""
_MOST_FIELDS = 1_000
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestGuard:
    """ASGI middleware: identifies the caller of a request, or responds with 400, 401, 403, 415, 421 or 429.

    Args:
        app: The next app.
        access: Tokens and their permissions; None: open to everybody, for apps without memory and for tests.
        rates: Limits of requests and wrong tokens.
    """

    def __init__(self, app: ASGIApp, access: security.ReadAccess | None, rates: Rates) -> None:
        self._app = app
        self._access = access
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        if scope["type"] == "websocket":
            # No route is a websocket; a future one must not be open without a rule.
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if reach_of(scope) not in {"open", "probe"}:
            send = _kept_by_nobody(send)
        try:
            require_one_length(scope)
            found = self._let_in(scope)
            if scope["method"] not in _READING:
                security.require_own_page(
                    _header(scope, b"host"), _all(scope, b"origin"), _all(scope, b"sec-fetch-site")
                )
                require_json(scope)
        except Problem as problem:
            if (reason := _REFUSALS.get(problem.document.code)) is not None:
                metrics.counter("http_refused_total", reason=reason).inc()
            await problem.response()(scope, receive, send)
            return
        if found is None:
            await self._app(scope, receive, send)
            return
        with security.reading_for(found):
            await self._app(scope, receive, send)

    def _let_in(self, scope: Scope) -> security.Caller | None:
        """The caller; None for open routes and probes."""
        access, address, reach = self._access, _address(scope), reach_of(scope)
        if reach == "probe":
            return None
        require_no_secret(scope, _header(scope, b"host"))
        if reach == "open":
            self._rates.asked(address)
            return None
        if access is None or (access.loopback and reach == "metrics"):
            return security.Caller(role=TokenRole.ADMIN)
        if not access.callers:
            security.require_this_machine(_header(scope, b"host"))
            self._rates.asked(address)
            return security.Caller(role=TokenRole.ADMIN)
        found = self._known(access, address, _header(scope, b"authorization"))
        if reach == "metrics" and not found.admin:
            raise forbidden("metrics cover all tenants: use an admin token")
        if reach != "metrics":
            self._rates.asked(id(found))  # holders live as long as the settings do
        return found

    def _known(self, access: security.ReadAccess, address: str, authorization: str) -> security.Caller:
        digest = security.digest_of(_bearer(authorization))
        self._rates.trying(address, digest)
        found = access.holder_of(digest)
        if found is None:
            self._rates.wrong(address)
            raise security.unauthorized("this token is unknown: use one of http.tokens", error="invalid_token")
        self._rates.right(address, digest)
        return found


def require_no_secret(scope: Scope, host: str) -> None:
    """Refuse a request with a secret in its URL: proxies, browsers and logs store URLs. The secret is not used.

    Args:
        scope: Scope of the request.
        host: Its `Host` header.

    Raises:
        Problem: 400.
    """
    try:
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, "bad_query", f"the query has more than {_MOST_FIELDS} fields") from None
    in_query = any(name.lower() in SECRET_PARAMETERS for name, _ in fields)
    target: bytes = scope.get("raw_path") or b""
    authority = b"" if target.startswith(b"/") else target.partition(b"://")[2].partition(b"/")[0]
    if in_query or b"@" in authority or "@" in host:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "secret_in_url",
            "the URL contains a token, and URLs are logged: send `Authorization: Bearer …`, and revoke this token",
        )


def require_one_length(scope: Scope) -> None:
    """Refuse a request whose end a proxy and this server could see differently (request smuggling).

    Raises:
        Problem: 400.
    """
    if _all(scope, b"transfer-encoding") and _all(scope, b"content-length"):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "ambiguous_length",
            "send Content-Length or Transfer-Encoding, not both",
            headers={"Connection": "close"},
        )


def require_json(scope: Scope) -> None:
    """Refuse a body of the wrong media type: pages of other sites can send forms and plain text without preflight.

    Raises:
        Problem: 415.
    """
    route = asked_route(scope)
    declared = None if route is None else route.declared
    allowed = (declared is not None and declared.bodies) or ("application/json",)
    kinds = _all(scope, b"content-type")
    has_body = bool(_all(scope, b"transfer-encoding")) or bool(set(_all(scope, b"content-length")) - {"0"})
    if (kinds or has_body) and [each.partition(";")[0].strip().lower() for each in kinds] not in [
        [it] for it in allowed
    ]:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            f"send the body with `Content-Type: {'` or `'.join(allowed)}`; `curl --json` sends JSON",
        )


def _kept_by_nobody(send: Send) -> Send:
    """`send` with headers that prevent browsers and proxies from caching a response or guessing its type."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Cache-Control", "no-store")
            headers.setdefault("X-Content-Type-Options", "nosniff")
        await send(message)

    return sent


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _header(scope: Scope, name: bytes) -> str:
    values = _all(scope, name)
    return values[0] if len(values) == 1 else ""


def _all(scope: Scope, name: bytes) -> Sequence[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _bearer(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise security.unauthorized("send `Authorization: Bearer …` with one of the tokens in http.tokens")
    return token.strip()
