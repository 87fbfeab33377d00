"""One delivery that is tried again while trying again can help."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import TypeVar

import httpx
from msgspec import Struct

from models.errors import StoreUnavailable

_Taken = TypeVar("_Taken")
Pause = Callable[[float], Awaitable[object]]
"""Waits this many seconds; tests pass one that does not."""


class NotTaken(Exception):  # noqa: N818 - a signal between a try and what tries again
    """One try failed.

    Attributes:
        said: By the receiver, in a word.
        may_pass: Whether the next try can have another end.
    """

    def __init__(self, said: str, *, may_pass: bool) -> None:
        super().__init__(said)
        self.said = said
        self.may_pass = may_pass


class DeliveryRetry(Struct, frozen=True, kw_only=True):
    """Tries of a delivery.

    Attributes:
        pauses: Waits between the tries; one try more than waits.
        timeout: How long one try may take.
    """

    pauses: tuple[timedelta, ...] = tuple(timedelta(seconds=s) for s in (0.5, 1, 2, 4, 8))
    timeout: timedelta = timedelta(seconds=10)


async def taken(
    attempt: Callable[[], Awaitable[_Taken]], sink: str, host: str, retry: DeliveryRetry, pause: Pause
) -> _Taken:
    """Try until the receiver takes it.

    Args:
        attempt: One try; raises `NotTaken`.
        sink: Whose delivery it is.
        host: Where to; all that is said of the address, whose path may hold a secret.
        retry: How often and how long.
        pause: Waits between the tries.

    Raises:
        StoreUnavailable: Not delivered.
    """
    said = ""
    for wait in (timedelta(), *retry.pauses):
        if wait:
            await pause(wait.total_seconds())
        try:
            return await attempt()
        except NotTaken as trouble:
            said = trouble.said
            if not trouble.may_pass:
                break
    raise StoreUnavailable(
        f"{sink} at {host} did not accept an alert ({said}): check its address and secret, then `turntide alerts test`"
    )


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

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Post until the receiver says 2xx; give what it answers.

        Server errors, 408, 429, time-outs and refused connections are tried again; anything else is refused for good.

        Raises:
            StoreUnavailable: Not delivered.
        """
        named = {"content-type": "application/json", **(headers or {})}

        async def attempt() -> bytes:
            try:
                response = await self._client.post(self._url, content=body, headers=named)
            except httpx.RequestError as error:
                raise NotTaken(type(error).__name__, may_pass=True) from error
            if not response.is_success:
                raise NotTaken(f"status {response.status_code}", may_pass=_may_pass(response.status_code))
            return response.content

        return await taken(attempt, self._sink, httpx.URL(self._url).host, self._retry, self._pause)

    async def close(self) -> None:
        """Release connections."""
        await self._client.aclose()


def _may_pass(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
