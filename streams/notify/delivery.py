"""One HTTP POST that is tried again while trying again can help."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from http import HTTPStatus

import httpx
from msgspec import Struct

from models.errors import StoreUnavailable

Pause = Callable[[float], Awaitable[object]]
"""Waits this many seconds; tests pass one that does not."""


class DeliveryRetry(Struct, frozen=True, kw_only=True):
    """Tries of a delivery.

    Attributes:
        pauses: Waits between the tries; one try more than waits.
        timeout: How long one try may take.
    """

    pauses: tuple[timedelta, ...] = tuple(timedelta(seconds=s) for s in (0.5, 1, 2, 4, 8))
    timeout: timedelta = timedelta(seconds=10)


class Poster:
    """Posts JSON bodies to one address."""

    def __init__(
        self, sink: str, url: str, *, retry: DeliveryRetry | None = None, pause: Pause = asyncio.sleep
    ) -> None:
        self._sink = sink
        self._url = url
        self._retry = retry or DeliveryRetry()
        self._pause = pause
        self._client = httpx.AsyncClient(timeout=self._retry.timeout.total_seconds())

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Post until the receiver says 2xx.

        Server errors, 408, 429, time-outs and refused connections are tried again; anything else is refused for good.

        Raises:
            StoreUnavailable: Not delivered.
        """
        said = ""
        for wait in (timedelta(), *self._retry.pauses):
            if wait:
                await self._pause(wait.total_seconds())
            try:
                response = await self._client.post(
                    self._url, content=body, headers={"content-type": "application/json", **(headers or {})}
                )
            except httpx.TransportError as error:
                said = type(error).__name__
                continue
            if response.is_success:
                return
            said = f"status {response.status_code}"
            if not _may_pass(response.status_code):
                break
        # The path may hold a secret: the host is enough to find the receiver.
        raise StoreUnavailable(
            f"{self._sink} at {httpx.URL(self._url).host} did not take an alert ({said}): check its address and "
            "secret, then `turntide alerts test`"
        )

    async def close(self) -> None:
        """Release connections."""
        await self._client.aclose()


def _may_pass(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
