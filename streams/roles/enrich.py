"""Role enrich: answers what folds ask of slower stages, so that none of them waits for a summary (user memory).

A language model that is slow or away holds up episodes and memories of apps, never a turn. Answers go to `commands.v1`,
those about sessions to `turns.v1`. Who answers what is a table in `streams.inference.summaries`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

import structlog
from msgspec import structs

from models.errors import EmbedderUnavailable
from models.events import EpisodeRequested, EpisodeSummarised
from models.events.topics import REQUESTS
from streams.inference.episode_embeddings import episode_vectors
from streams.inference.summaries import Answerers, Reply, Request
from streams.observe.telemetry import stage
from streams.ports import Embedder
from streams.roles.answering import Answered, AnsweringRole, ReceivedRequest
from streams.settings import Settings

log = structlog.get_logger(__name__)

AT_ONCE = 8
"""Requests to the language model under way."""
_DECIMALS = 5
"""Of an embedding in an event: cosines change by less than 0.0001."""
_Answered = Answered[Request, Reply]


class EnrichRole(AnsweringRole[Request, Reply]):
    """Has requests answered, embeds the episodes among the answers and sends all of them back."""

    name = "enrich"
    sources = (REQUESTS,)
    requests = get_args(Request)
    together = True

    def __init__(self, settings: Settings, embedder: Embedder, answerers: Answerers) -> None:
        super().__init__(settings, http_port=settings.http.enrich_port, at_once=AT_ONCE)
        self._embedder = embedder
        self._answerers = answerers

    async def answer(self, asked: ReceivedRequest[Request]) -> Reply | None:
        """By whoever answers its kind; the answer says which record's fold asked."""
        reply = await self._answerers[type(asked.request)](asked.request)
        return reply and structs.replace(reply, asked_offset=asked.request.source.offset)

    async def completed(self, answers: Sequence[_Answered]) -> Sequence[_Answered]:
        """Episodes with their embeddings."""
        return await asyncio.to_thread(self._with_embeddings, answers)

    def _with_embeddings(self, answers: Sequence[_Answered]) -> Sequence[_Answered]:
        requests = [asked.request for asked, _ in answers if isinstance(asked.request, EpisodeRequested)]
        if not requests:
            return answers
        try:
            with stage("embed"):
                made = episode_vectors(
                    self._embedder, [[turn.content for turn in request.turns] for request in requests]
                )
        except EmbedderUnavailable as error:
            # Whoever indexes the episode embeds it then; it waits for the embedder anyway.
            log.warning("episodes_not_embedded", episodes=len(requests), error=type(error).__name__)
            return answers
        rows, name = iter(made.round(_DECIMALS).tolist()), self._embedder.name
        return [
            (asked, structs.replace(reply, embedding=next(rows), embedded_by=name))
            if isinstance(reply, EpisodeSummarised)
            else (asked, reply)
            for asked, reply in answers
        ]
