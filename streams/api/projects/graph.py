"""Relationships of a project's memories: the graph, what is near, what leads where, what depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from msgspec import structs

from models.project.view import ProjectView
from models.retrieval.relations import dependents, neighbours, path
from streams.api import openapi
from streams.api.projects import examples
from streams.api.projects.answers import MAX_PAGE, Edge, GraphAnswer, Node, PathAnswer, RelatedMemories, RelatedNode
from streams.api.projects.messages import MAX_DEPTH
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import AppIdInQuery, AskedProject, ProjectIdInPath, no_such
from streams.http.audit import READS_TEXT
from streams.http.bodies import json_answer

_MemoryId = Annotated[str, Query(min_length=1, max_length=64, description="A memory.", examples=[examples.MEMORY_ID])]
_OtherId = Annotated[str, Query(min_length=1, max_length=64, description="Another.", examples=[examples.OTHER_ID])]
_Depth = Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Relationships away, at most.", examples=[2])]
_Relation = Annotated[
    list[str] | None, Query(max_length=16, description="Only over these; once for each.", examples=[["depends_on"]])
]
_Direction = Annotated[
    Literal["out", "in", "both"], Query(description="As relationships lead, against it, or both.", examples=["both"])
]
_Limit = Annotated[int, Query(ge=1, le=10 * MAX_PAGE, description="Relationships at most.", examples=[1_000])]


def add_graph(router: APIRouter, reader: ProjectReader) -> None:
    """Routes over relationships."""

    @router.get(
        "/{project_id:path}/graph", dependencies=READS_TEXT, responses=openapi.answer(GraphAnswer, examples.GRAPH)
    )
    async def graph(project_id: ProjectIdInPath, app_id: AppIdInQuery = None, limit: _Limit = MAX_PAGE) -> Response:
        """Memories with relationships, and these; those of the newest memories first."""
        view = await reader.view(AskedProject(app_id, project_id))
        edges = [edge for edge, _ in zip(_edges(view), range(limit), strict=False)]
        ends = sorted({end for edge in edges for end in (edge.source_id, edge.target_id)})
        return json_answer(GraphAnswer(nodes=[_node(reader, view, each) for each in ends], edges=edges))

    @router.get(
        "/{project_id:path}/graph/neighbours",
        dependencies=READS_TEXT,
        responses=openapi.answer(RelatedMemories, examples.RELATED),
    )
    async def near(  # noqa: PLR0917 - what a question can be narrowed by
        project_id: ProjectIdInPath,
        memory_id: _MemoryId,
        app_id: AppIdInQuery = None,
        depth: _Depth = 1,
        relation: _Relation = None,
        direction: _Direction = "both",
    ) -> Response:
        """Memories a few relationships away, the nearest first."""
        view = await _view(reader, AskedProject(app_id, project_id), memory_id)
        found = neighbours(view.graph, memory_id, depth, types=relation, direction=direction)
        related = [_related(reader, view, each.id, each.distance, each.path_strength) for each in found]
        return json_answer(RelatedMemories(memory_id=memory_id, related=related))

    @router.get(
        "/{project_id:path}/graph/dependents",
        dependencies=READS_TEXT,
        responses=openapi.answer(RelatedMemories, examples.RELATED),
    )
    async def depending(project_id: ProjectIdInPath, memory_id: _MemoryId, app_id: AppIdInQuery = None) -> Response:
        """What depends on a memory, directly or by way of others."""
        view = await _view(reader, AskedProject(app_id, project_id), memory_id)
        found = dependents(view.graph, memory_id)
        related = [_related(reader, view, each.id, each.distance, each.path_strength) for each in found]
        return json_answer(RelatedMemories(memory_id=memory_id, related=related))

    @router.get(
        "/{project_id:path}/graph/path", dependencies=READS_TEXT, responses=openapi.answer(PathAnswer, examples.PATH)
    )
    async def way(
        project_id: ProjectIdInPath, source_id: _MemoryId, target_id: _OtherId, app_id: AppIdInQuery = None
    ) -> Response:
        """The shortest way from one memory to another, in whichever direction its relationships lead."""
        view = await _view(reader, AskedProject(app_id, project_id), source_id, target_id)
        found = path(view.graph, source_id, target_id)
        return json_answer(
            PathAnswer(
                found=found is not None,
                edges=[
                    Edge(source_id=each.source, target_id=each.target, type=each.type, strength=each.strength)
                    for each in found or []
                ],
            )
        )


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


def _related(reader: ProjectReader, view: ProjectView, item_id: str, distance: int, strength: float) -> RelatedNode:
    node = _node(reader, view, item_id)
    return RelatedNode(**structs.asdict(node), distance=distance, strength=strength)
