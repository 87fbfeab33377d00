"""Limits of one request: size, time, and a place among those under way. Probes and metrics are not limited."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from datetime import timedelta
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.http.answering import asked_route, reach_of
from streams.http.problems import Problem, unavailable

_deadline: ContextVar[asyncio.Timeout | None] = ContextVar("deadline", default=None)
_READING = "turntide.reading"
_GONE_S = 0.0
"""Deadline of a request whose client closed the connection."""
_BUSY_RETRY_S = 1
_MOST_DIGITS = 18


class Limits:
    """ASGI middleware: 413 for a body that is too large, 504 after the time, 503 when too many are under way.

    What only reads is ended as soon as its client has closed the connection; a change is carried out.

    Args:
        app: What stands behind.
        max_concurrent_requests: Under way at once.
        max_body_bytes: Of a request; more are not read. Routes may say another number.
        request_timeout: Of a request from its head to the end of its answer.
    """

    def __init__(
        self, app: ASGIApp, *, max_concurrent_requests: int, max_body_bytes: int, request_timeout: timedelta
    ) -> None:
        self._app = app
        self._most = max_concurrent_requests
        self._max_body_bytes = max_body_bytes
        self._timeout_s = request_timeout.total_seconds()
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer within the limits."""
        lasting = (route := asked_route(scope)) is not None and route.lasting
        if scope["type"] != "http" or reach_of(scope) in {"probe", "metrics"} or lasting:
            await self._app(scope, receive, send)
            return
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._limited(scope, receive, noting)
        except Problem as problem:
            if started:
                raise
            await problem.response()(scope, receive, send)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._under_way >= self._most:
            raise unavailable(
                f"{self._most} requests are in progress", code="too_many_requests", retry_after_s=_BUSY_RETRY_S
            )
        route = asked_route(scope)
        most_bytes = (route is not None and route.max_body_bytes) or self._max_body_bytes
        _require_small(_declared_bytes(scope), most_bytes)
        self._under_way += 1
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                token = _deadline.set(deadline)
                if route is not None and route.reads:
                    scope[_READING] = deadline
                try:
                    await self._app(scope, _counted(receive, most_bytes), send)
                finally:
                    _deadline.reset(token)
                    scope.pop(_READING, None)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            if deadline.when() == _GONE_S:
                raise Problem(HTTPStatus.REQUEST_TIMEOUT, "client_gone", "the connection was closed") from error
            changed = "" if scope["method"] == "GET" else "; the change may still be carried out"
            raise Problem(
                HTTPStatus.GATEWAY_TIMEOUT,
                "timeout",
                f"no response within {self._timeout_s:g} s: request less, or try later{changed}",
            ) from error
        finally:
            self._under_way -= 1


def _counted(receive: Receive, most_bytes: int) -> Receive:
    """`receive` that gives no more than the limit, whatever the request's head had said."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            _require_small(received, most_bytes)
        return message

    return counted


def _require_small(n_bytes: int, most_bytes: int) -> None:
    if n_bytes > most_bytes:
        # The rest of the body is never read, so the connection cannot serve another request.
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            f"the request body has more than {most_bytes} bytes",
            headers={"Connection": "close"},
        )


def extend_deadline(seconds: float) -> None:
    """Give the request that is being answered more time, for a wait that its caller asked for."""
    deadline = _deadline.get()
    if deadline is not None and (when := deadline.when()) is not None:
        deadline.reschedule(when + seconds)


def abandon(scope: Scope) -> None:
    """End the work on a request that only reads: nobody waits for the response."""
    if (deadline := scope.get(_READING)) is not None:
        deadline.reschedule(_GONE_S)


def _declared_bytes(scope: Scope) -> int:
    """Content-Length; 0 where there is none or it is no number, then the body itself is counted."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value[:_MOST_DIGITS]) if value.isdigit() else 0
    return 0
