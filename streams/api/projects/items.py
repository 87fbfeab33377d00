"""Look-ups of what a project's memory has: memories, pending facts, conversations, episodes."""

import math
from operator import attrgetter
from typing import Annotated

from msgspec import Meta

from models.events.fields import Identifier, UtcTime
from models.events.project_items import EpisodeKind, MemoryType, PendingFact
from models.project.rendering import chunks_of
from streams.api.answers import answered
from streams.api.projects.answers import (
    MAX_PAGE,
    ArcAnswer,
    ChunkAnswer,
    ConversationAnswer,
    Conversations,
    Edge,
    Episodes,
    MemoryPage,
    PendingFacts,
    ProjectMemoryAnswer,
    ValidMemories,
)
from streams.api.projects.reading import OfReader, conversation_of
from streams.api.projects.space import PROJECTS, AskedProject, ItemName, OfProject, no_such
from streams.http.problems import invalid_field

_Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most.")]
_Conversation = Annotated[Identifier, Meta(description="Only of this one.")]


class OfProjectMemory(OfProject, frozen=True, kw_only=True):
    """A request about one memory."""

    memory_id: Annotated[ItemName, Meta(description="As lists have it.")]


class OfConversation(OfProject, frozen=True, kw_only=True):
    """A request about one conversation."""

    conversation_id: Annotated[Identifier, Meta(description="Id of its session.")]


class ListMemories(OfProject, frozen=True, kw_only=True):
    """A request for memories."""

    memory_type: Annotated[MemoryType, Meta(description="Only of this type.")] | None = None
    category: Annotated[str, Meta(max_length=64, description="Only of this one.")] | None = None
    tag: Annotated[str, Meta(max_length=64, description="Only with this one.")] | None = None
    include_archived: Annotated[bool, Meta(description="Also what a consolidation put away.")] = False
    before: Annotated[str, Meta(max_length=64, description="`next` of the page before.")] = ""
    limit: _Limit = 100


class ValidAt(OfProject, frozen=True, kw_only=True):
    """A request for what held."""

    at: Annotated[UtcTime, Meta(description="When it held; none: now.")] | None = None
    known_at: Annotated[UtcTime, Meta(description="By what was known then; none: by what is known now.")] | None = None


class ListPending(OfProject, frozen=True, kw_only=True):
    """A request for pending facts."""

    after: Annotated[str, Meta(max_length=100, description="`next` of the page before.")] = ""
    limit: _Limit = 100


class ListConversations(OfProject, frozen=True, kw_only=True):
    """A request for conversations."""

    limit: _Limit = 100


class OfChunk(OfProject, frozen=True, kw_only=True):
    """A request about one chunk."""

    chunk_id: Annotated[ItemName, Meta(description="As its conversation has it.")]


class ListEpisodes(OfProject, frozen=True, kw_only=True):
    """A request for key moments."""

    conversation_id: _Conversation | None = None
    kind: Annotated[EpisodeKind, Meta(description="Only of this kind.")] | None = None
    min_significance: Annotated[float, Meta(ge=0, le=1, description="At least.")] = 0.0


class OfArc(OfProject, frozen=True, kw_only=True):
    """A request for a narrative arc."""

    conversation_id: _Conversation | None = None


class ProjectItems(OfReader):
    """Routes that look up."""

    @PROJECTS.get("/memories", "list_project_memories", audits="text_read")
    async def memories(self, asked: ListMemories) -> MemoryPage:
        """Memories of a project, the newest first, page by page. Nothing counts as accessed."""
        view = await self._reader.view(AskedProject(asked))
        wanted = (
            each
            for memory_id, each in sorted(view.memories.items(), reverse=True)
            if (not asked.before or memory_id < asked.before)
            and asked.memory_type in {None, each.type}
            and asked.category in {None, each.category}
            and (asked.tag is None or asked.tag in each.tags)
            and (asked.include_archived or not each.archived)
        )
        limit = asked.limit
        page = [each for each, _ in zip(wanted, range(limit + 1), strict=False)]
        following = page[limit - 1].id if len(page) > limit else ""
        return MemoryPage(memories=list(map(self._reader.present, page[:limit])), next=following)

    @PROJECTS.get("/memories/{memory_id}", "get_project_memory", audits="text_read")
    async def memory(self, asked: OfProjectMemory) -> ProjectMemoryAnswer:
        """One memory, with its history and what leads to it. Nothing counts as accessed."""
        view = await self._reader.view(AskedProject(asked))
        found = view.memories.get(asked.memory_id)
        if found is None:
            raise no_such("memory", "memories")
        incoming = [
            Edge(source_id=other.id, target_id=found.id, type=each.type, strength=each.strength)
            for other in view.memories.values()
            for each in other.relationships
            if each.target_id == found.id
        ]
        return ProjectMemoryAnswer(
            memory=self._reader.present(found), valid=self._reader.holds(found), incoming=incoming
        )

    @PROJECTS.get("/valid_at", "list_valid_memories", audits="text_read")
    async def valid_at(self, asked: ValidAt) -> ValidMemories:
        """What held at a time, and if asked by what was known at another: two time axes.

        What a consolidation put away is left out of the present only. Nothing counts as accessed.
        """
        view = await self._reader.view(AskedProject(asked))
        when = asked.at or self._reader.now()
        present = asked.at is None and asked.known_at is None
        found = [each for each in view.valid_at(when, asked.known_at) if not (present and each.archived)]
        return ValidMemories(at=when, known_at=asked.known_at, memories=found)

    @PROJECTS.get("/pending", "list_pending_facts", audits="text_read")
    async def pending(self, asked: ListPending) -> PendingFacts:
        """Facts that are not sure enough to be memories, the surest first, page by page."""
        last = _place(asked.after)
        view = await self._reader.view(AskedProject(asked))
        waiting = sorted((fact for fact in view.pending.values() if _surest_first(fact) > last), key=_surest_first)
        page = waiting[: asked.limit]
        following = f"{page[-1].confidence!r}:{page[-1].id}" if len(waiting) > asked.limit else ""
        return PendingFacts(pending=page, next=following)

    @PROJECTS.get("/conversations", "list_conversations", audits="text_read")
    async def conversations(self, asked: ListConversations) -> Conversations:
        """Conversations of a project, the latest first."""
        view = await self._reader.view(AskedProject(asked))
        latest = sorted(view.conversations.values(), key=lambda each: (each.last_at, each.id), reverse=True)
        return Conversations(conversations=latest[: asked.limit])

    @PROJECTS.get("/conversations/{conversation_id:path}", "get_conversation", audits="text_read")
    async def conversation(self, asked: OfConversation) -> ConversationAnswer:
        """A conversation with its chunks and its messages at hand."""
        named = AskedProject(asked)
        view = await self._reader.view(named)
        found = conversation_of(view, asked.conversation_id)
        said = await self._reader.messages(named, found)
        return ConversationAnswer(conversation=found, chunks=chunks_of(view, found.id), recent_messages=said)

    @PROJECTS.get("/chunks/{chunk_id}", "get_conversation_chunk", audits="text_read")
    async def chunk(self, asked: OfChunk) -> ChunkAnswer:
        """A chunk of a conversation, with the messages it was made of, from the index or the archive."""
        named = AskedProject(asked)
        found = (await self._reader.view(named)).chunks.get(asked.chunk_id)
        if found is None:
            raise no_such("chunk", "conversations/{conversation_id}")
        said = await self._reader.originals(named, found)
        return ChunkAnswer(chunk=found, messages=said, missing=max(0, found.messages - len(said)))

    @PROJECTS.get("/episodes", "list_project_episodes", audits="text_read")
    async def episodes(self, asked: ListEpisodes) -> Episodes:
        """Key moments, in order of time. Nothing counts as accessed."""
        view = await self._reader.view(AskedProject(asked))
        found = [
            each
            for each in view.episodes.values()
            if asked.conversation_id in {None, each.conversation_id}
            and asked.kind in {None, each.kind}
            and each.significance >= asked.min_significance
        ]
        return Episodes(episodes=sorted(found, key=attrgetter("started_at", "id")))

    @PROJECTS.get("/arc", "get_narrative_arc", audits="text_read")
    async def arc(self, asked: OfArc) -> ArcAnswer:
        """The narrative arc of a conversation or of the whole project: by thirds, and the key moments.

        Nothing counts as accessed.
        """
        view = await self._reader.view(AskedProject(asked))
        if asked.conversation_id is not None:
            conversation_of(view, asked.conversation_id)
        return answered(ArcAnswer, view.arc(asked.conversation_id), conversation_id=asked.conversation_id or "")


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
