"""Look-ups of what a project's memory has: memories, pending facts, conversations, episodes."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import AwareDatetime

from models.events.project_items import EpisodeKind, MemoryType, PendingFact, ProjectEpisode
from models.project.rendering import chunks_of
from streams.api import openapi
from streams.api.projects import examples
from streams.api.projects.answers import (
    MAX_PAGE,
    ArcAnswer,
    ConversationAnswer,
    Conversations,
    Edge,
    Episodes,
    MemoryPage,
    PendingFacts,
    ProjectMemoryAnswer,
    ValidMemories,
)
from streams.api.projects.reading import ProjectReader, conversation_of
from streams.api.projects.space import AppIdInQuery, AskedProject, ProjectIdInPath, no_such
from streams.http.audit import READS_TEXT
from streams.http.bodies import json_answer
from streams.http.problems import invalid_field

ItemIdInPath = Annotated[
    str, Path(min_length=1, max_length=64, description="As lists have it.", examples=[examples.MEMORY_ID])
]
ConversationInPath = Annotated[
    str, Path(min_length=1, max_length=256, description="Id of its session.", examples=[examples.CONVERSATION_ID])
]
_OfType = Annotated[MemoryType | None, Query(description="Only of this type.", examples=["decision"])]
_OfCategory = Annotated[str | None, Query(max_length=64, description="Only of this one.", examples=["architecture"])]
_WithTag = Annotated[str | None, Query(max_length=64, description="Only with this one.", examples=["postgresql"])]
_WithArchived = Annotated[bool, Query(description="Also what a consolidation put away.", examples=[False])]
_Before = Annotated[str, Query(max_length=64, description="`next` of the page before.", examples=[examples.MEMORY_ID])]
_After = Annotated[
    str, Query(max_length=100, description="`next` of the page before.", examples=[f"0.5:{examples.PENDING_ID}"])
]
_Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many at most.", examples=[100])]
_At = Annotated[AwareDatetime | None, Query(description="When it held; none: now.", examples=[examples.AT])]
_KnownAt = Annotated[
    AwareDatetime | None,
    Query(description="By what was known then; none: by what is known now.", examples=[examples.AT]),
]
_OfConversation = Annotated[
    str | None, Query(max_length=256, description="Only of this one.", examples=[examples.CONVERSATION_ID])
]
_OfKind = Annotated[EpisodeKind | None, Query(description="Only of this kind.", examples=["decision_made"])]
_Significance = Annotated[float, Query(ge=0, le=1, description="At least.", examples=[0.7])]


def add_items(router: APIRouter, reader: ProjectReader) -> None:
    """Routes that look up."""
    _add_memories(router, reader)
    _add_conversations(router, reader)
    _add_episodes(router, reader)


def _add_memories(router: APIRouter, reader: ProjectReader) -> None:
    @router.get(
        "/{project_id:path}/memories", dependencies=READS_TEXT, responses=openapi.answer(MemoryPage, examples.MEMORIES)
    )
    async def memories(  # noqa: PLR0917 - what a list can be narrowed by
        project_id: ProjectIdInPath,
        app_id: AppIdInQuery = None,
        memory_type: _OfType = None,
        category: _OfCategory = None,
        tag: _WithTag = None,
        include_archived: _WithArchived = False,
        before: _Before = "",
        limit: _Limit = 100,
    ) -> Response:
        """Memories of a project, the newest first, page by page."""
        view = await reader.view(AskedProject(app_id, project_id))
        wanted = (
            each
            for memory_id, each in sorted(view.memories.items(), reverse=True)
            if (not before or memory_id < before)
            and memory_type in {None, each.type}
            and category in {None, each.category}
            and (tag is None or tag in each.tags)
            and (include_archived or not each.archived)
        )
        page = [each for each, _ in zip(wanted, range(limit + 1), strict=False)]
        following = page[limit - 1].id if len(page) > limit else ""
        return json_answer(MemoryPage(memories=list(map(reader.present, page[:limit])), next=following))

    @router.get(
        "/{project_id:path}/memories/{memory_id}",
        dependencies=READS_TEXT,
        responses=openapi.answer(ProjectMemoryAnswer, examples.MEMORY),
    )
    async def memory(project_id: ProjectIdInPath, memory_id: ItemIdInPath, app_id: AppIdInQuery = None) -> Response:
        """One memory, with its history and what leads to it."""
        view = await reader.view(AskedProject(app_id, project_id))
        found = view.memories.get(memory_id)
        if found is None:
            raise no_such("memory", "memories")
        incoming = [
            Edge(source_id=other.id, target_id=memory_id, type=each.type, strength=each.strength)
            for other in view.memories.values()
            for each in other.relationships
            if each.target_id == memory_id
        ]
        return json_answer(
            ProjectMemoryAnswer(memory=reader.present(found), valid=reader.holds(found), incoming=incoming)
        )

    @router.get(
        "/{project_id:path}/valid_at", dependencies=READS_TEXT, responses=openapi.answer(ValidMemories, examples.VALID)
    )
    async def valid_at(
        project_id: ProjectIdInPath, app_id: AppIdInQuery = None, at: _At = None, known_at: _KnownAt = None
    ) -> Response:
        """What held at a time, and if asked by what was known at another: two time axes.

        What a consolidation put away is left out of the present only.
        """
        view = await reader.view(AskedProject(app_id, project_id))
        when: datetime = at or reader.now()
        present = at is None and known_at is None
        found = [each for each in view.valid_at(when, known_at) if not (present and each.archived)]
        return json_answer(ValidMemories(at=when, known_at=known_at, memories=found))

    @router.get(
        "/{project_id:path}/pending", dependencies=READS_TEXT, responses=openapi.answer(PendingFacts, examples.PENDING)
    )
    async def pending(
        project_id: ProjectIdInPath, app_id: AppIdInQuery = None, after: _After = "", limit: _Limit = 100
    ) -> Response:
        """Facts that are not sure enough to be memories, the surest first, page by page."""
        last = _place(after)
        view = await reader.view(AskedProject(app_id, project_id))
        waiting = sorted((fact for fact in view.pending.values() if _surest_first(fact) > last), key=_surest_first)
        page = waiting[:limit]
        following = f"{page[-1].confidence!r}:{page[-1].id}" if len(waiting) > limit else ""
        return json_answer(PendingFacts(pending=page, next=following))


def _add_conversations(router: APIRouter, reader: ProjectReader) -> None:
    @router.get(
        "/{project_id:path}/conversations",
        dependencies=READS_TEXT,
        responses=openapi.answer(Conversations, examples.CONVERSATIONS),
    )
    async def conversations(project_id: ProjectIdInPath, app_id: AppIdInQuery = None, limit: _Limit = 100) -> Response:
        """Conversations of a project, the latest first."""
        view = await reader.view(AskedProject(app_id, project_id))
        latest = sorted(view.conversations.values(), key=lambda each: (each.last_at, each.id), reverse=True)
        return json_answer(Conversations(conversations=latest[:limit]))

    @router.get(
        "/{project_id:path}/conversations/{conversation_id:path}",
        dependencies=READS_TEXT,
        responses=openapi.answer(ConversationAnswer, examples.CONVERSATION),
    )
    async def conversation(
        project_id: ProjectIdInPath, conversation_id: ConversationInPath, app_id: AppIdInQuery = None
    ) -> Response:
        """A conversation with its chunks and its messages at hand."""
        asked = AskedProject(app_id, project_id)
        view = await reader.view(asked)
        found = conversation_of(view, conversation_id)
        chunks, said = chunks_of(view, found.id), await reader.messages(asked, found)
        return json_answer(ConversationAnswer(conversation=found, chunks=chunks, recent_messages=said))


def _add_episodes(router: APIRouter, reader: ProjectReader) -> None:
    @router.get(
        "/{project_id:path}/episodes", dependencies=READS_TEXT, responses=openapi.answer(Episodes, examples.EPISODES)
    )
    async def episodes(
        project_id: ProjectIdInPath,
        app_id: AppIdInQuery = None,
        conversation_id: _OfConversation = None,
        kind: _OfKind = None,
        min_significance: _Significance = 0.0,
    ) -> Response:
        """Key moments, in order of time."""
        view = await reader.view(AskedProject(app_id, project_id))
        found = [
            each
            for each in view.episodes.values()
            if conversation_id in {None, each.conversation_id}
            and kind in {None, each.kind}
            and each.significance >= min_significance
        ]
        return json_answer(Episodes(episodes=sorted(found, key=_by_time)))

    @router.get("/{project_id:path}/arc", dependencies=READS_TEXT, responses=openapi.answer(ArcAnswer, examples.ARC))
    async def arc(
        project_id: ProjectIdInPath, app_id: AppIdInQuery = None, conversation_id: _OfConversation = None
    ) -> Response:
        """The narrative arc of a conversation or of the whole project: by thirds, and the key moments."""
        view = await reader.view(AskedProject(app_id, project_id))
        if conversation_id is not None:
            conversation_of(view, conversation_id)
        told = view.arc(conversation_id)
        return json_answer(
            ArcAnswer(
                conversation_id=conversation_id or "",
                beginning=told.beginning,
                middle=told.middle,
                end=told.end,
                key_moments=told.key_moments,
            )
        )


def _surest_first(fact: PendingFact) -> tuple[float, str]:
    return -fact.confidence, fact.id


def _place(after: str) -> tuple[float, str]:
    """Of the last fact of a page, which may be gone by now, among those that are there."""
    if not after:
        return -math.inf, ""
    confidence, _, item_id = after.partition(":")
    try:
        return -float(confidence), item_id
    except ValueError:
        raise invalid_field("after", "is not the `next` of a page") from None


def _by_time(episode: ProjectEpisode) -> tuple[datetime, str]:
    return episode.started_at, episode.id
