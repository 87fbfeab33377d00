"""Base of roles that answer requests of folds: slow work runs outside the folds, in its own consumer group.

A slow or stopped role delays only its answers. An answer has the key of its entity; a repeated answer, after a crash
before the commit of the offset, changes nothing there.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec import Struct

from models.entities import TOPIC_OF, entity_key
from models.errors import InvalidRecord
from models.events.base import Output
from models.events.topics import TURNS
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for, key_of
from models.wire.trace_context import carried
from streams.kafka.producer import Producer, Record
from streams.observe.telemetry import metrics, stage
from streams.roles.batch_role import BatchRole
from streams.settings import Settings

log = structlog.get_logger(__name__)

WRITE_EVERY_S = 5.0
"""Time after which finished answers are written, so that one slow answer does not delay the others of its poll."""

_Request = TypeVar("_Request", bound=Output)
_Reply = TypeVar("_Reply", bound=Struct)


class ReceivedRequest(NamedTuple, Generic[_Request]):
    """A request and its record."""

    request: _Request
    record: ConsumerRecord


Answered = tuple[ReceivedRequest[_Request], _Reply]


class AnsweringRole(BatchRole, Generic[_Request, _Reply]):
    """Answers requests and writes the answers.

    Attributes:
        requests: Event types of the source that it answers.
        together: Whether answers wait up to `WRITE_EVERY_S` for each other; else each is written at once.
    """

    requests: ClassVar[tuple[type[Any], ...]]
    together: ClassVar[bool] = False

    def __init__(self, settings: Settings, *, http_port: int, at_once: int) -> None:
        super().__init__(settings, http_port=http_port)
        self._producer = Producer(settings)
        self._places = asyncio.Semaphore(at_once)

    @abstractmethod
    async def answer(self, asked: ReceivedRequest[_Request]) -> _Reply | None:
        """The answer to a request; None: no answer is needed."""

    def wanted(self, asked: Iterable[ReceivedRequest[_Request]]) -> Iterable[ReceivedRequest[_Request]]:
        """The requests of a poll that still need an answer."""
        return asked

    async def completed(self, answers: Sequence[Answered[_Request, _Reply]]) -> Sequence[Answered[_Request, _Reply]]:
        """Complete answers that are written together, with work that is done in one batch."""
        return answers

    async def open(self) -> None:
        """Connect the producer."""
        await self._producer.start()

    async def close(self) -> None:
        """Disconnect the producer."""
        await self._producer.stop()

    async def on_assigned(self, partitions: list[int]) -> None:
        """Does nothing: the role has no state."""

    async def refresh_keys(self) -> None:
        """Use the current keys for answers."""
        if self._producer.sealing is not None:
            self._producer.sealing.sealer.refresh()

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Answer every request; on return the answers are acknowledged."""
        found = self.wanted(self._readable(chain.from_iterable(batches.values())))
        waiting: _Waiting[_Request, _Reply] = [(asked, asyncio.ensure_future(self._in_turn(asked))) for asked in found]
        until = asyncio.ALL_COMPLETED if self.together else asyncio.FIRST_COMPLETED
        try:
            while waiting:
                with stage("answer"):
                    under_way = [each for _, each in waiting]
                    await asyncio.wait(under_way, timeout=WRITE_EVERY_S, return_when=until)
                self.watchdog.stir()  # waiting for slow answers is no stall
                answered, waiting = _first_answered(waiting)
                if answered:
                    await self._send(await self.completed(answered))
        finally:
            for _, each in waiting:
                each.cancel()

    async def _in_turn(self, asked: ReceivedRequest[_Request]) -> _Reply | None:
        async with self._places:
            return await self.answer(asked)

    def _readable(self, records: Iterable[ConsumerRecord]) -> list[ReceivedRequest[_Request]]:
        """Decoded requests; unreadable records are logged and skipped, since only folds write to the topic."""
        (source,) = self.sources
        found: list[ReceivedRequest[_Request]] = []
        for record in records:
            try:
                event: Any = decode_output(source, record.value or b"")
            except InvalidRecord as error:
                metrics.counter("records_skipped_total", topic=source.name, reason=error.reason).inc()
                log.warning("request_unreadable", partition=record.partition, offset=record.offset, reason=error.reason)
                continue
            if isinstance(event, self.requests):
                found.append(ReceivedRequest(event, record))
        return found

    async def _send(self, answers: Iterable[Answered[_Request, _Reply]]) -> None:
        by_place: dict[tuple[str, int], list[Record]] = {}
        for (request, record), reply in answers:
            topic, key = TOPIC_OF[type(reply)], entity_key(reply).encode()
            name = topic.full_name(self.settings.topic_prefix)
            # Turns of a session stand where their producer put them, whatever their key says.
            place = await self._producer.partition_of(name, key, request.source.partition if topic is TURNS else None)
            trace = self.traces.get((record.topic, record.partition, record.offset))
            headers = [*headers_for(reply), *carried(trace)]
            by_place.setdefault((name, place), []).append(Record(key, encode(reply), headers))
        with stage("outputs"):
            await self.write(self._producer, by_place)


_Waiting = list[tuple[ReceivedRequest[_Request], "asyncio.Future[_Reply | None]"]]


def _first_answered(
    waiting: _Waiting[_Request, _Reply],
) -> tuple[list[Answered[_Request, _Reply]], _Waiting[_Request, _Reply]]:
    """Answers that can be written, and requests that still wait; answers of one key keep the order of its requests."""
    answered: list[Answered[_Request, _Reply]] = []
    later: _Waiting[_Request, _Reply] = []
    held: set[bytes | None] = set()
    for asked, answering in waiting:
        key = key_of(asked.request)
        if key in held or not answering.done():
            held.add(key)
            later.append((asked, answering))
        elif (reply := answering.result()) is not None:
            answered.append((asked, reply))
    return answered, later
