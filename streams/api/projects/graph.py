"""Relationships of a project's memories: the graph, what is near, what leads where, what depends on it."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from msgspec import Meta, structs

from models.project.view import ProjectView
from models.retrieval.relations import Neighbour, dependents, neighbours, path
from streams.api.projects.answers import MAX_PAGE, Edge, GraphAnswer, Node, PathAnswer, RelatedMemories, RelatedNode
from streams.api.projects.messages import MAX_DEPTH
from streams.api.projects.reading import OfReader, ProjectReader
from streams.api.projects.space import PROJECTS, AskedProject, ItemName, OfProject, no_such

_MemoryId = Annotated[ItemName, Meta(description="A memory.")]


class WholeGraph(OfProject, frozen=True, kw_only=True):
    """A request for a graph."""

    limit: Annotated[int, Meta(ge=1, le=10 * MAX_PAGE, description="Relationships at most.")] = MAX_PAGE


class OfNode(OfProject, frozen=True, kw_only=True):
    """A request about a memory in the graph."""

    memory_id: _MemoryId


class Neighbours(OfNode, frozen=True, kw_only=True):
    """A request for what is near."""

    depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH, description="Relationships away, at most.")] = 1
    relation: Annotated[list[str], Meta(max_length=16, description="Only over these; once for each.")] | None = None
    direction: Annotated[
        Literal["out", "in", "both"], Meta(description="As relationships lead, against it, or both.")
    ] = "both"


class BetweenNodes(OfProject, frozen=True, kw_only=True):
    """A request for what leads from one memory to another."""

    source_id: _MemoryId
    target_id: Annotated[ItemName, Meta(description="Another.")]


class ProjectGraph(OfReader):
    """Routes over relationships."""

    @PROJECTS.get("/graph", "get_graph", audits="text_read")
    async def graph(self, asked: WholeGraph) -> GraphAnswer:
        """Memories with relationships, and these; those of the newest memories first. Nothing counts as accessed."""
        view = await self._reader.view(AskedProject(asked))
        edges = [edge for edge, _ in zip(_edges(view), range(asked.limit), strict=False)]
        ends = sorted({end for edge in edges for end in (edge.source_id, edge.target_id)})
        return GraphAnswer(nodes=[_node(self._reader, view, each) for each in ends], edges=edges)

    @PROJECTS.get("/graph/neighbours", "list_neighbours", audits="text_read")
    async def near(self, asked: Neighbours) -> RelatedMemories:
        """Memories a few relationships away, the nearest first. Nothing counts as accessed."""
        view = await _view(self._reader, AskedProject(asked), asked.memory_id)
        found = neighbours(view.graph, asked.memory_id, asked.depth, types=asked.relation, direction=asked.direction)
        return self._related(view, asked.memory_id, found)

    @PROJECTS.get("/graph/dependents", "list_dependents", audits="text_read")
    async def depending(self, asked: OfNode) -> RelatedMemories:
        """What depends on a memory, directly or by way of others. Nothing counts as accessed."""
        view = await _view(self._reader, AskedProject(asked), asked.memory_id)
        return self._related(view, asked.memory_id, dependents(view.graph, asked.memory_id))

    @PROJECTS.get("/graph/path", "find_path", audits="text_read")
    async def way(self, asked: BetweenNodes) -> PathAnswer:
        """The shortest way from one memory to another, in whichever direction its relationships lead.

        Nothing counts as accessed.
        """
        view = await _view(self._reader, AskedProject(asked), asked.source_id, asked.target_id)
        found = path(view.graph, asked.source_id, asked.target_id)
        edges = [
            Edge(source_id=each.source, target_id=each.target, type=each.type, strength=each.strength)
            for each in found or []
        ]
        return PathAnswer(found=found is not None, edges=edges)

    def _related(self, view: ProjectView, memory_id: str, found: Iterable[Neighbour]) -> RelatedMemories:
        related = [
            RelatedNode(
                **structs.asdict(_node(self._reader, view, each.id)),
                distance=each.distance,
                strength=each.path_strength,
            )
            for each in found
        ]
        return RelatedMemories(memory_id=memory_id, related=related)


async def _view(reader: ProjectReader, asked: AskedProject, *memory_ids: str) -> ProjectView:
    """The project, once it is known that it has these.

    Raises:
        Problem: 404, it has not.
    """
    view = await reader.view(asked)
    if any(each not in view.memories for each in memory_ids):
        raise no_such("memory", "memories")
    return view


def _edges(view: ProjectView) -> Iterator[Edge]:
    for memory_id, memory in sorted(view.memories.items(), reverse=True):
        for each in memory.relationships:
            if each.target_id in view.memories:
                yield Edge(source_id=memory_id, target_id=each.target_id, type=each.type, strength=each.strength)


def _node(reader: ProjectReader, view: ProjectView, item_id: str) -> Node:
    if (episode := view.episodes.get(item_id)) is not None:
        return Node(id=item_id, kind="episode", type=episode.kind.value, content=episode.title, valid=True)
    memory = view.memories[item_id]
    return Node(id=item_id, kind="memory", type=memory.type.value, content=memory.content, valid=reader.holds(memory))
