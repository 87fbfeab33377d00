"""Over a real socket: answers leave at once, and what is refused is refused before it is read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from streams.http import health
from streams.http.health import serve
from tests.api_doubles import Served, bearer, settings_of


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Where a role with one tenant answers."""
    made = Served(settings=settings_of("a"))
    async with serve(made.app) as port:
        yield f"http://127.0.0.1:{port}"
    await made.close()


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Without it every answer on a kept connection took 40 ms: head and body are two packets."""
    listener = health._listen("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()) as _, listener.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


async def test_thirty_askers_at_once_are_answered(url: str) -> None:
    """Each its own answer, below the limit of requests under way."""
    async with httpx.AsyncClient(base_url=url, headers=bearer("a")) as client:
        asked = [client.get(f"/v1/users/user-{n}") for n in range(30)]
        answers = await asyncio.gather(*asked)

    assert [f"user-{n}" for n in range(30)] == [answer.json()["user_id"] for answer in answers]
