"""Role enrich: answers what the memory role asks of slower stages, so that no fold waits for a summary (seed 002).

Its own consumer group: a language model that is slow or away holds up episodes, never a turn. An answer goes back on
`commands.v1` under the user's key; one that comes again, because this role died before its offset was committed,
changes nothing there. Summariser and extractor fall back by themselves: every request for an episode gets an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec import structs

from models.codec import decode_output, encode
from models.envelope import headers_for, key_of
from models.errors import EmbedderUnavailable, InvalidRecord
from models.events import EpisodeRequested, EpisodeSummarised, FactsExtracted, FactsRequested
from models.topics import COMMANDS, REQUESTS
from models.user_events import MOST_SUMMARY_CHARS
from streams.embed.episodes import episode_vectors
from streams.kafka.producer import Producer, Record, acknowledged
from streams.llm.extraction import FactExtractor
from streams.llm.summaries import Summarised, Summariser
from streams.ports import Embedder
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.telemetry import metrics, stage

log = structlog.get_logger(__name__)

Request = EpisodeRequested | FactsRequested
_Answer = tuple[bytes, EpisodeSummarised | FactsExtracted, Request]
"""Key of the record, the answer, and what it answers."""
AT_ONCE = 8
"""Requests to the language model under way; it serves others too."""
STIR_EVERY_S = 5.0


class EnrichRole(BatchRole):
    """Summarises and embeds episodes, and extracts facts with a language model where one is configured.

    Args:
        settings: Which cluster and prefix.
        embedder: Embeds summaries.
        summariser: Summarises the turns of an episode.
        extractor: Finds facts in messages; None where nothing slower than the rules is configured.
    """

    name = "enrich"
    sources = (REQUESTS,)

    def __init__(
        self, settings: Settings, embedder: Embedder, summariser: Summariser, extractor: FactExtractor | None
    ) -> None:
        super().__init__(settings, http_port=settings.http.enrich_port)
        self._embedder = embedder
        self._summariser = summariser
        self._extractor = extractor
        self._producer = Producer(settings)
        self._commands = COMMANDS.full_name(settings.topic_prefix)
        self._places = asyncio.Semaphore(AT_ONCE)

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
        requests = _requests(chain.from_iterable(batches.values()))
        waiting = asyncio.gather(*[self._answer(request) for request in requests])
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=STIR_EVERY_S)
            self.watchdog.stir()  # a model that takes its time is waited for, not a stall
        answers = [answer for answer in waiting.result() if answer is not None]
        if answers:
            await self._write(await asyncio.to_thread(self._with_embeddings, answers))

    async def _answer(self, request: Request) -> _Answer | None:
        key = key_of(request) or b""
        async with self._places:
            if isinstance(request, EpisodeRequested):
                return key, _episode(request, await self._summariser.summarise(request.turns)), request
            if self._extractor is None:
                return None
            found = await self._extractor.extract(request.content)
        metrics.counter("requests_answered_total", result="answered" if found else "empty").inc()
        if found is None:
            return None
        answer = FactsExtracted(
            app_id=request.app_id,
            user_id=request.user_id,
            timestamp=request.timestamp,
            facts=found.facts,
            retractions=found.retractions,
            session_id=request.session_id,
            turn=request.turn,
            extracted_by=self._extractor.name,
        )
        return key, answer, request

    def _with_embeddings(self, answers: Sequence[_Answer]) -> list[tuple[bytes, EpisodeSummarised | FactsExtracted]]:
        """Episodes with their embeddings, all of a batch at once."""
        requests = [request for _, _, request in answers if isinstance(request, EpisodeRequested)]
        try:
            with stage("embed"):
                made = episode_vectors(
                    self._embedder, [[turn.content for turn in request.turns] for request in requests]
                )
        except EmbedderUnavailable as error:
            # Whoever indexes the episode embeds it then; it waits for the embedder anyway.
            log.warning("episodes_not_embedded", episodes=len(requests), error=type(error).__name__)
            return [(key, answer) for key, answer, _ in answers]
        rows = iter(made.round(_DECIMALS).tolist())
        return [
            (key, structs.replace(answer, embedding=next(rows), embedded_by=self._embedder.name))
            if isinstance(answer, EpisodeSummarised)
            else (key, answer)
            for key, answer, _ in answers
        ]

    async def _write(self, answers: Sequence[tuple[bytes, EpisodeSummarised | FactsExtracted]]) -> None:
        by_partition: dict[int, list[Record]] = {}
        for key, answer in answers:
            place = await self._producer.partition_of(self._commands, key)
            by_partition.setdefault(place, []).append(Record(key, encode(answer), headers_for(answer)))
        await self.fence()
        with stage("outputs"):
            pending = []
            for partition, records in by_partition.items():
                pending += await self._producer.write(self._commands, partition, records)
            await acknowledged(pending)


_DECIMALS = 5
"""Of an embedding in an event: cosines change by less than 0.0001."""


def _requests(records: Iterable[ConsumerRecord]) -> list[Request]:
    """What can be read; the topic is the memory role's own, so anything else is named in the log and left."""
    found: list[Request] = []
    for record in records:
        try:
            event = decode_output(REQUESTS, record.value or b"")
        except InvalidRecord as error:
            log.warning("request_unreadable", partition=record.partition, offset=record.offset, reason=error.reason)
            continue
        if isinstance(event, Request):
            found.append(event)
    return found


def _episode(request: EpisodeRequested, made: Summarised) -> EpisodeSummarised:
    result = "extractive" if made.fell_back else "answered"
    metrics.counter("requests_answered_total", result=result).inc()
    return EpisodeSummarised(
        app_id=request.app_id,
        user_id=request.user_id,
        timestamp=request.timestamp,
        first_turn=request.first_turn,
        last_turn=request.last_turn,
        summary=made.text[:MOST_SUMMARY_CHARS] or "(no text)",
        summarised_by=made.summarised_by,
        key_topics=made.key_topics,
    )
