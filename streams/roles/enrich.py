"""Role enrich: answers what the memory role asks of slower stages, so that no fold waits for a summary (seed 002).

Its own consumer group: a language model that is slow or away holds up episodes and memories of apps, never a turn. An
answer goes back on `commands.v1` under the key of who asked; one that comes again, because this role died before its
offset was committed, changes nothing there. Who answers what is a table in `streams.inference.memory_requests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec import structs

from models.errors import EmbedderUnavailable, InvalidRecord
from models.events import EpisodeRequested, EpisodeSummarised
from models.events.topics import COMMANDS, REQUESTS
from models.wire.codec import decode_output, encode
from models.wire.envelope import Headers, headers_for, key_of
from models.wire.trace_context import carried
from streams.inference.episode_embeddings import episode_vectors
from streams.inference.memory_requests import Answerers, Reply, Request
from streams.kafka.producer import Producer, Record, acknowledged
from streams.observe.telemetry import stage
from streams.ports import Embedder
from streams.roles.batch_role import BatchRole
from streams.settings import Settings

log = structlog.get_logger(__name__)

AT_ONCE = 8
"""Requests to the language model under way; it serves others too."""
WRITE_EVERY_S = 5.0
"""What is answered by then is written: one slow answer does not hold up the rest of its poll."""
_Answered = tuple[Request, Reply]


class _Asked(NamedTuple):
    """A request of the poll that is being answered."""

    request: Request
    answering: asyncio.Future[Reply | None]


class EnrichRole(BatchRole):
    """Has requests answered, embeds the episodes among the answers and sends all of them back.

    Args:
        settings: Which cluster and prefix.
        embedder: Embeds summaries.
        answerers: Who answers which kind of request.
    """

    name = "enrich"
    sources = (REQUESTS,)

    def __init__(self, settings: Settings, embedder: Embedder, answerers: Answerers) -> None:
        super().__init__(settings, http_port=settings.http.enrich_port)
        self._embedder = embedder
        self._answerers = answerers
        self._producer = Producer(settings)
        self._commands = COMMANDS.full_name(settings.topic_prefix)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._carried: dict[str, Sequence[tuple[str, bytes]]] = {}

    async def open(self) -> None:
        """Connect the producer."""
        await self._producer.start()

    async def close(self) -> None:
        """Disconnect it."""
        await self._producer.stop()

    async def on_assigned(self, partitions: list[int]) -> None:
        """Nothing is kept."""

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Answer every request; on return the answers are acknowledged."""
        found = _requests(chain.from_iterable(batches.values()))
        self._carried = {
            request.id: carried(self.traces.get((record.topic, record.partition, record.offset)))
            for request, record in (found if self.traces else ())
        }
        waiting = [_Asked(request, asyncio.ensure_future(self._answer(request))) for request, _ in found]
        try:
            while waiting:
                with stage("answer"):
                    await asyncio.wait([asked.answering for asked in waiting], timeout=WRITE_EVERY_S)
                self.watchdog.stir()  # a model that takes its time is waited for, not a stall
                answered, waiting = _first_answered(waiting)
                if answered:
                    await self._write(await asyncio.to_thread(self._with_embeddings, answered))
        finally:
            for asked in waiting:
                asked.answering.cancel()

    async def _answer(self, request: Request) -> Reply | None:
        async with self._places:
            return await self._answerers[type(request)](request)

    def _with_embeddings(self, answers: Sequence[_Answered]) -> list[_Answered]:
        """Episodes with their embeddings, all of a batch at once."""
        requests = [request for request, _ in answers if isinstance(request, EpisodeRequested)]
        if not requests:
            return list(answers)
        try:
            with stage("embed"):
                made = episode_vectors(
                    self._embedder, [[turn.content for turn in request.turns] for request in requests]
                )
        except EmbedderUnavailable as error:
            # Whoever indexes the episode embeds it then; it waits for the embedder anyway.
            log.warning("episodes_not_embedded", episodes=len(requests), error=type(error).__name__)
            return list(answers)
        rows = iter(made.round(_DECIMALS).tolist())
        return [
            (request, structs.replace(reply, embedding=next(rows), embedded_by=self._embedder.name))
            if isinstance(reply, EpisodeSummarised)
            else (request, reply)
            for request, reply in answers
        ]

    def _headers(self, request: Request, reply: Reply) -> Headers:
        """The reply's own, and the trace of the request."""
        return [*headers_for(reply), *self._carried.get(request.id, ())]

    async def _write(self, answers: Sequence[_Answered]) -> None:
        by_partition: dict[int, list[Record]] = {}
        for request, reply in answers:
            key = key_of(request) or b""
            place = await self._producer.partition_of(self._commands, key)
            by_partition.setdefault(place, []).append(Record(key, encode(reply), self._headers(request, reply)))
        await self.fence()
        with stage("outputs"):
            pending = []
            for partition, records in by_partition.items():
                pending += await self._producer.write(self._commands, partition, records)
            await acknowledged(pending)


_DECIMALS = 5
"""Of an embedding in an event: cosines change by less than 0.0001."""


def _first_answered(waiting: Sequence[_Asked]) -> tuple[list[_Answered], list[_Asked]]:
    """What can be written, and what still waits: of a user or a space answers go out in the order of the requests."""
    answered: list[_Answered] = []
    later: list[_Asked] = []
    held: set[bytes | None] = set()
    for asked in waiting:
        key = key_of(asked.request)
        if key in held or not asked.answering.done():
            held.add(key)
            later.append(asked)
        elif (reply := asked.answering.result()) is not None:
            answered.append((asked.request, reply))
    return answered, later


def _requests(records: Iterable[ConsumerRecord]) -> list[tuple[Request, ConsumerRecord]]:
    """What can be read, with its record; the topic is the memory role's own, so anything else is only logged."""
    found: list[tuple[Request, ConsumerRecord]] = []
    for record in records:
        try:
            event = decode_output(REQUESTS, record.value or b"")
        except InvalidRecord as error:
            log.warning("request_unreadable", partition=record.partition, offset=record.offset, reason=error.reason)
            continue
        if isinstance(event, Request):
            found.append((event, record))
    return found
