"""Limits of a connection before it has asked anything: uvicorn has no time-out for the head of a request.

A client that sends its headers a byte at a time would keep a connection for ever (slowloris). What comes after the
head is the request's own time-out (`limits`): a body that does not end gets 504, and as long as no next head follows
in time its connection is closed here.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from streams.observe.telemetry import metrics

_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def bounded_protocol(head_timeout: timedelta, max_connections: int) -> type[asyncio.Protocol]:
    """The protocol with both limits, as uvicorn's `http` option takes it.

    Args:
        head_timeout: From the first wait for a request to the end of its headers.
        max_connections: Of one server; a further one is answered 503 and closed.
    """
    limits = {"head_timeout_s": head_timeout.total_seconds(), "max_connections": max_connections}
    return type("BoundedProtocol", (_BoundedProtocol,), limits)


class _BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    head_timeout_s: float
    max_connections: int
    _waiting_for_head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            _end(transport, _BUSY, "connections")
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answering():
            self._forget_head()
        elif self._waiting_for_head is None and not self.transport.is_closing():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._waiting_for_head = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget_head(self) -> None:
        if self._waiting_for_head is not None:
            self._waiting_for_head.cancel()
            self._waiting_for_head = None

    def _give_up(self) -> None:
        self._waiting_for_head = None
        if not self._answering() and not self.transport.is_closing():
            _end(self.transport, _TIMEOUT, "slow_head")


def _end(transport: Any, answer: bytes, reason: str) -> None:
    metrics.counter("http_refused_total", reason=reason).inc()
    transport.write(answer)
    transport.close()
