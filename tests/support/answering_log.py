"""What a role that answers requests writes into, without a broker."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.errors import Fenced
from streams.kafka.producer import Record
from streams.roles import answering
from streams.roles.batch_role import BatchRole

ASKED_MS = 1_000_000_000


class AnsweringLog:
    """A producer that remembers; every key has the same partition.

    Attributes:
        writes: The records of each write.
        topics: Where they went.
        refusal: What the broker says to them instead of acknowledging.
        fenced: Whether the partition is another worker's.
    """

    def __init__(self) -> None:
        self.writes: list[list[Record]] = []
        self.topics: set[str] = set()
        self.partitions: set[int] = set()
        self.refusal: Exception | None = None
        self.fenced = False

    def stand_in(self, role: type[BatchRole], monkeypatch: pytest.MonkeyPatch) -> None:
        """Be the producer of a role, and its place in the group."""

        async def fence(_self: BatchRole) -> None:
            if self.fenced:
                raise Fenced("another worker has it")

        monkeypatch.setattr(role, "fence", fence)
        monkeypatch.setattr(answering, "Producer", lambda _settings: self)

    @property
    def records(self) -> list[Record]:
        """Of all writes."""
        return [record for records in self.writes for record in records]

    @property
    def keys(self) -> list[str]:
        """Under which key each record was written, in order."""
        return [record.key.decode() for record in self.records if record.key]

    async def partition_of(self, _topic: str, _key: bytes, known: int | None = None) -> int:
        """The one that is known, or else the first."""
        return known or 0

    async def write(self, topic: str, partition: int, records: Sequence[Record]) -> list[asyncio.Future[Any]]:
        """Acknowledged at once, or refused."""
        self.topics.add(topic)
        self.partitions.add(partition)
        self.writes.append(list(records))
        answer = asyncio.get_running_loop().create_future()
        answer.set_exception(self.refusal) if self.refusal is not None else answer.set_result(None)
        return [answer]


def poll(*values: bytes | None, asked_ms: int = ASKED_MS) -> dict[TP, list[ConsumerRecord]]:
    """A poll of records with these values."""
    records = [ConsumerRecord("t", 0, n, asked_ms, 0, b"k", each, None, 1, 1, ()) for n, each in enumerate(values)]
    return {TP("t", 0): records}
