"""Look-ups of what a project's memory has: memories and their relationships, pending facts, conversations, episodes.

How much that is, and of which projects there is any.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Literal

from msgspec import Meta, structs

from models.events.fields import Identifier, UtcTime
from models.events.project_items import EpisodeKind, MemoryType, PendingFact
from models.project.rendering import chunks_of
from models.project.view import ProjectView
from models.retrieval.relations import Neighbour, dependents, neighbours, path
from streams.api.answers import answered
from streams.api.projects import answers
from streams.api.projects.messages import MAX_DEPTH, PROJECTS, AskedProject, ItemName, OfProject, no_such
from streams.api.projects.reading import ProjectReader, conversation_of
from streams.http.problems import invalid_field
from streams.http.security import caller

_Limit = Annotated[int, Meta(ge=1, le=answers.MAX_PAGE, description="Maximum number of items.")]
_Conversation = Annotated[Identifier, Meta(description="Filter by conversation.")]


_After = Annotated[str, Meta(max_length=100, description="`next` of the previous page.")]
_Direction = Annotated[Literal["out", "in", "both"], Meta(description="Direction of the relationships to follow.")]
MemoryName = Annotated[ItemName, Meta(description="Id of the memory.")]
ConversationName = Annotated[Identifier, Meta(description="Id of the conversation (its session id).")]
_MemoryId = Annotated[ItemName, Meta(description="Id of the memory.")]


_ALL = replace(PROJECTS, prefix="/v1/projects")


@dataclass(frozen=True)
class ProjectItems:
    """Routes that look up items, relationships of memories, and how far projects are; the last ones to be tried.

    A project that nothing is known of has an empty memory; it is no error.

    Args:
        reader: Reads for the caller of a request.
    """

    reader: ProjectReader

    @PROJECTS.get("/memories", "list_project_memories", audits="text_read")
    async def memories(
        self,
        asked: OfProject,
        *,
        memory_type: Annotated[MemoryType, Meta(description="Filter by type.")] | None = None,
        category: Annotated[str, Meta(max_length=64, description="Filter by category.")] | None = None,
        tag: Annotated[str, Meta(max_length=64, description="Filter by tag.")] | None = None,
        include_archived: Annotated[bool, Meta(description="Include archived memories.")] = False,
        before: Annotated[str, Meta(max_length=64, description="`next` of the previous page.")] = "",
        limit: _Limit = 100,
    ) -> answers.MemoryPage:
        """List the memories of a project, newest first, in pages. Does not count as an access."""
        view = await self._view(asked)
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
        return answers.MemoryPage(memories=list(map(self.reader.present, page[:limit])), next=following)

    @PROJECTS.get("/memories/{memory_id}", "get_project_memory", audits="text_read")
    async def memory(self, asked: OfProject, *, memory_id: MemoryName) -> answers.ProjectMemoryAnswer:
        """Return a memory with its history and incoming relationships. Does not count as an access."""
        view = await self._view(asked, memory_id)
        found = view.memories[memory_id]
        incoming = [
            answers.Edge(source_id=other.id, target_id=found.id, type=each.type, strength=each.strength)
            for other in view.memories.values()
            for each in other.relationships
            if each.target_id == found.id
        ]
        return answers.ProjectMemoryAnswer(
            memory=self.reader.present(found), valid=self.reader.holds(found), incoming=incoming
        )

    @PROJECTS.get("/valid_at", "list_valid_memories", audits="text_read")
    async def valid_at(
        self,
        asked: OfProject,
        *,
        at: Annotated[UtcTime, Meta(description="Valid time. Default: now.")] | None = None,
        known_at: Annotated[UtcTime, Meta(description="Transaction time. Default: what is known now.")] | None = None,
    ) -> answers.ValidMemories:
        """List memories that were valid at a time, optionally as known at another time (two time axes).

        Archived memories are omitted only if no time is given. Does not count as an access.
        """
        view = await self._view(asked)
        when, present = at or self.reader.now(), at is None and known_at is None
        found = [each for each in view.valid_at(when, known_at) if not (present and each.archived)]
        return answers.ValidMemories(at=when, known_at=known_at, memories=found)

    @PROJECTS.get("/pending", "list_pending_facts", audits="text_read")
    async def pending(self, asked: OfProject, *, after: _After = "", limit: _Limit = 100) -> answers.PendingFacts:
        """List pending facts, whose confidence is too low for a memory, highest confidence first, in pages."""
        last = _place(after)
        view = await self._view(asked)
        waiting = sorted((fact for fact in view.pending.values() if _surest_first(fact) > last), key=_surest_first)
        page = waiting[:limit]
        following = f"{page[-1].confidence!r}:{page[-1].id}" if len(waiting) > limit else ""
        return answers.PendingFacts(pending=page, next=following)

    @PROJECTS.get("/conversations", "list_conversations", audits="text_read")
    async def conversations(self, asked: OfProject, *, limit: _Limit = 100) -> answers.Conversations:
        """List the conversations of a project, latest first."""
        view = await self._view(asked)
        latest = sorted(view.conversations.values(), key=lambda each: (each.last_at, each.id), reverse=True)
        return answers.Conversations(conversations=latest[:limit])

    @PROJECTS.get("/conversations/{conversation_id:path}", "get_conversation", audits="text_read")
    async def conversation(self, asked: OfProject, *, conversation_id: ConversationName) -> answers.ConversationAnswer:
        """Return a conversation with its chunks and recent messages."""
        named = AskedProject(asked)
        view = await self.reader.view(named)
        found = conversation_of(view, conversation_id)
        said = await self.reader.messages(named, found)
        return answers.ConversationAnswer(conversation=found, chunks=chunks_of(view, found.id), recent_messages=said)

    @PROJECTS.get("/chunks/{chunk_id}", "get_conversation_chunk", audits="text_read")
    async def chunk(
        self, asked: OfProject, *, chunk_id: Annotated[ItemName, Meta(description="Id of the chunk.")]
    ) -> answers.ChunkAnswer:
        """Return a chunk of a conversation with its original messages from the index or the archive."""
        named = AskedProject(asked)
        found = (await self.reader.view(named)).chunks.get(chunk_id)
        if found is None:
            raise no_such("chunk", "conversations/{conversation_id}")
        said = await self.reader.originals(named, found)
        return answers.ChunkAnswer(chunk=found, messages=said, missing=max(0, found.messages - len(said)))

    @PROJECTS.get("/episodes", "list_project_episodes", audits="text_read")
    async def episodes(
        self,
        asked: OfProject,
        *,
        conversation_id: _Conversation | None = None,
        kind: Annotated[EpisodeKind, Meta(description="Filter by kind.")] | None = None,
        min_significance: Annotated[float, Meta(ge=0, le=1, description="Minimum significance, 0-1.")] = 0.0,
    ) -> answers.Episodes:
        """List key moments in chronological order. Does not count as an access."""
        view = await self._view(asked)
        found = [
            each
            for each in view.episodes.values()
            if conversation_id in {None, each.conversation_id}
            and kind in {None, each.kind}
            and each.significance >= min_significance
        ]
        return answers.Episodes(episodes=sorted(found, key=attrgetter("started_at", "id")))

    @PROJECTS.get("/arc", "get_narrative_arc", audits="text_read")
    async def arc(self, asked: OfProject, *, conversation_id: _Conversation | None = None) -> answers.ArcAnswer:
        """Return the narrative arc of a conversation or of the whole project: its thirds and the key moments.

        Does not count as an access.
        """
        view = await self._view(asked)
        if conversation_id is not None:
            conversation_of(view, conversation_id)
        return answered(answers.ArcAnswer, view.arc(conversation_id), conversation_id=conversation_id or "")

    @PROJECTS.get("/graph", "get_graph", audits="text_read")
    async def graph(
        self,
        asked: OfProject,
        *,
        limit: Annotated[
            int, Meta(ge=1, le=10 * answers.MAX_PAGE, description="Maximum number of relationships.")
        ] = answers.MAX_PAGE,
    ) -> answers.GraphAnswer:
        """Return memories and their relationships, newest memories first. Does not count as an access."""
        view = await self._view(asked)
        edges = [edge for edge, _ in zip(_edges(view), range(limit), strict=False)]
        ends = sorted({end for edge in edges for end in (edge.source_id, edge.target_id)})
        return answers.GraphAnswer(nodes=[self._node(view, each) for each in ends], edges=edges)

    @PROJECTS.get("/graph/neighbours", "list_neighbours", audits="text_read")
    async def near(
        self,
        asked: OfProject,
        *,
        memory_id: _MemoryId,
        depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH, description="Maximum distance in relationships.")] = 1,
        relation: Annotated[list[str], Meta(max_length=16, description="Types to follow; repeat for several.")]
        | None = None,
        direction: _Direction = "both",
    ) -> answers.RelatedMemories:
        """List the neighbours of a memory, nearest first. Does not count as an access."""
        view = await self._view(asked, memory_id)
        found = neighbours(view.graph, memory_id, depth, types=relation, direction=direction)
        return self._related(view, memory_id, found)

    @PROJECTS.get("/graph/dependents", "list_dependents", audits="text_read")
    async def depending(self, asked: OfProject, *, memory_id: _MemoryId) -> answers.RelatedMemories:
        """List items that depend on a memory, directly or indirectly. Does not count as an access."""
        view = await self._view(asked, memory_id)
        return self._related(view, memory_id, dependents(view.graph, memory_id))

    @PROJECTS.get("/graph/path", "find_path", audits="text_read")
    async def way(
        self,
        asked: OfProject,
        *,
        source_id: _MemoryId,
        target_id: Annotated[ItemName, Meta(description="Id of the other memory.")],
    ) -> answers.PathAnswer:
        """Return the shortest path between two memories, over relationships in either direction.

        Does not count as an access.
        """
        view = await self._view(asked, source_id, target_id)
        found = path(view.graph, source_id, target_id)
        edges = [
            answers.Edge(source_id=each.source, target_id=each.target, type=each.type, strength=each.strength)
            for each in found or []
        ]
        return answers.PathAnswer(found=found is not None, edges=edges)

    @PROJECTS.get("/standing", "get_project_standing", "")
    async def stats(self, asked: OfProject) -> answers.ProjectStanding:
        """Return counts and limits of a project."""
        rules, view = self.reader.policy, await self.reader.view(AskedProject(asked))
        limits = answers.ProjectLimits(
            memories=rules.long_term.most,
            episodes=rules.narrative.most,
            pending=rules.long_term.pending,
            conversations=rules.short_term.conversations,
        )
        if view.stats is None:
            return answers.ProjectStanding(app_id=view.app_id, project_id=view.project_id, known=False, limits=limits)
        return answered(answers.ProjectStanding, view.stats, known=True, limits=limits, tokens=_tokens(view))

    @_ALL.get("", "list_projects")
    async def listed(
        self,
        *,
        app_id: Annotated[Identifier, Meta(description="Filter by app. Default: the token's apps.")] | None = None,
        limit: Annotated[int, Meta(ge=1, le=answers.MAX_PAGE, description="Maximum number of items.")] = 100,
    ) -> answers.ProjectList:
        """List the projects that the token may read, latest change first."""
        reader = caller()
        found = await self.reader.projects.projects(reader.app_of(app_id), limit)
        mine = [each for each in found if reader.may_read(each.app_id)]
        return answers.ProjectList(
            projects=[answered(answers.ListedProject, each, changed_at=each.timestamp) for each in mine]
        )

    async def _view(self, asked: OfProject, *memory_ids: str) -> ProjectView:
        """The project, once it is known that it has these.

        Raises:
            Problem: 404, it has not.
        """
        view = await self.reader.view(AskedProject(asked))
        if any(each not in view.memories for each in memory_ids):
            raise no_such("memory", "memories")
        return view

    def _node(self, view: ProjectView, item_id: str) -> answers.Node:
        if (episode := view.episodes.get(item_id)) is not None:
            return answers.Node(id=item_id, kind="episode", type=episode.kind.value, content=episode.title, valid=True)
        memory, holds = view.memories[item_id], self.reader.holds(view.memories[item_id])
        return answers.Node(id=item_id, kind="memory", type=memory.type.value, content=memory.content, valid=holds)

    def _related(self, view: ProjectView, memory_id: str, found: Iterable[Neighbour]) -> answers.RelatedMemories:
        related = [
            answers.RelatedNode(
                **structs.asdict(self._node(view, each.id)),
                distance=each.distance,
                strength=each.path_strength,
            )
            for each in found
        ]
        return answers.RelatedMemories(memory_id=memory_id, related=related)


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
        raise invalid_field("after", "must be the `next` of a previous page") from None


def _edges(view: ProjectView) -> Iterator[answers.Edge]:
    for memory_id, memory in sorted(view.memories.items(), reverse=True):
        for each in memory.relationships:
            if each.target_id in view.memories:
                yield answers.Edge(
                    source_id=memory_id, target_id=each.target_id, type=each.type, strength=each.strength
                )


def _tokens(view: ProjectView) -> answers.HeldTokens:
    memories = view.memories.values()
    return answers.HeldTokens(
        memories=sum(each.tokens for each in memories if not each.archived),
        archived=sum(each.tokens for each in memories if each.archived),
        episodes=sum(each.tokens for each in view.episodes.values()),
        chunks=sum(each.summary_tokens for each in view.chunks.values()),
    )
