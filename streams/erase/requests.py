"""Asking for an erasure, and for its proof: what the HTTP API and the command line use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from aiokafka import TopicPartition

from models.events import EraseRequested, ErasureProved
from models.events.topics import ERASURES
from models.policy import IntakePolicy
from streams.erase.concerned import checked
from streams.erase.logs import opened
from streams.erase.record import PLACE, ErasureRecords, recorded
from streams.settings import Settings


class KafkaEraseRequests:
    """Erasures on `erasures.v1`. Each call opens clients of its own: they are rare.

    Args:
        settings: Which cluster and prefix.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def request(self, wanted: EraseRequested) -> None:
        """Ask for one; on return the log has it.

        Raises:
            ConfigurationError: It names too much or too little, or the topic is missing.
            DeliveryFailed: The log did not confirm it.
            StoreUnavailable: Kafka does not answer.
        """
        event = checked(wanted)
        async with opened(self._settings, IntakePolicy()) as logs:
            await logs.ends(ERASURES)  # a topic that is missing is said so, rather than waited for
            await logs.write({TopicPartition(logs.name(ERASURES), PLACE): [recorded(event)]})

    async def proof(self, request_id: str) -> ErasureProved | None:
        """What came of it; None while it is under way, and for one that nobody asked for.

        Raises:
            ConfigurationError: The topic is missing.
            StoreUnavailable: Kafka does not answer.
        """
        records = ErasureRecords()
        async with opened(self._settings, IntakePolicy()) as logs:
            await records.refresh(logs)
        return records.proved.get(request_id)

    async def watched(self, every_s: float) -> AsyncGenerator[ErasureRecords, None]:
        """All erasures, as they are now, and again after each so many seconds.

        Raises:
            ConfigurationError: The topic is missing.
            StoreUnavailable: Kafka does not answer.
        """
        records = ErasureRecords()
        async with opened(self._settings, IntakePolicy()) as logs:
            while True:
                await records.refresh(logs)
                yield records
                await asyncio.sleep(every_s)
