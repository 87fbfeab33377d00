"""A client is stopped whatever its library does meanwhile, and whoever wanted to end still ends."""

from __future__ import annotations

import asyncio

import pytest

from streams.kafka.client import _running
from streams.settings import KafkaSettings


class Client:
    """Doubles one whose tasks are cancelled when it stops without its broker."""

    async def start(self) -> None:
        """Connected."""

    async def stop(self) -> None:
        """As aiokafka's fetcher: it cancels a task of its own and waits for it."""
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task


async def test_a_cancellation_of_the_librarys_own_ends_nobody() -> None:
    """What went wrong is told, not that something was cancelled."""
    client = Client()

    with pytest.raises(ConnectionError, match="broker away"):
        async with _running(client, KafkaSettings(), stop=client.stop):
            raise ConnectionError("broker away")


async def test_who_is_cancelled_ends() -> None:
    """Also while its client stops."""
    client, entered = Client(), asyncio.Event()

    async def use() -> None:
        async with _running(client, KafkaSettings(), stop=client.stop):
            entered.set()
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await entered.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
