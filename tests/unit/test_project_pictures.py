"""Pictures of a project's memory: what is in them is named, and the same project gives the same bytes."""

from collections.abc import Callable
from functools import partial
from xml.etree import ElementTree as ET

import pytest

from jobs.memory.project_pictures import memory_graph, narrative_arc
from jobs.shared.pictures import Drawn
from models.events.project_items import MemoryType, ProjectMemory, Relationship
from tests.support.narrative_episodes import episode
from tests.support.session_driver import NOON


def memory(number: int, kind: str = "decision", edges: dict[int, str] | None = None) -> ProjectMemory:
    """A memory with relationships to others, by number."""
    return ProjectMemory(
        id=f"m-{number}",
        type=MemoryType(kind),
        content=f"Memory {number}",
        importance=0.6,
        valid_from=NOON,
        recorded_at=NOON,
        created_at=NOON,
        updated_at=NOON,
        last_accessed_at=NOON,
        relationships=[
            Relationship(target_id=f"m-{target}", type=relation, created_at=NOON)
            for target, relation in (edges or {}).items()
        ],
    )


ARC = partial(
    narrative_arc,
    [episode(3, significance=0.9, title="We decided A & B"), episode(8, 12, "problem_solved", title="It works")],
    (0, 20),
    title="Arc",
)
GRAPH = partial(
    memory_graph,
    [
        memory(1),
        memory(2, edges={1: "supersedes"}),
        memory(3, "goal", {2: "depends_on", 99: "related_to"}),
        memory(4, "fact"),
        memory(5, "entity", {5: "related_to"}),
    ],
    title="Graph",
)
PICTURES: list[tuple[Callable[[], Drawn], set[str], set[str]]] = [
    (ARC, {"We decided A & B", "beginning", "middle", "end", "pivot"}, {"It works"}),
    (
        GRAPH,
        {"Memory 1", "Memory 2", "Memory 3", "goal", "supersedes", "depends on"},
        {"Memory 4", "Memory 5", "fact"},
    ),
]


def texts(picture: Drawn) -> set[str]:
    """All texts of a picture."""
    return {"".join(each.itertext()).strip() for each in ET.fromstring(picture.inline(900)).iter("text")}  # noqa: S314


@pytest.mark.parametrize(("draw", "there", "not_there"), PICTURES)
def test_what_is_in_a_picture_is_named(draw: Callable[[], Drawn], there: set[str], not_there: set[str]) -> None:
    """Key moments by title, memories by content, not what stands alone; byte by byte the same, an element of a page."""
    found, picture = texts(draw()), draw().inline(900)

    assert there <= found
    assert not not_there & found
    assert picture.startswith("<svg ")
    assert picture == draw().inline(900)


def test_pictures_of_nothing_can_be_drawn() -> None:
    """A project without episodes, without memories, with one turn."""
    assert "pivot" in texts(narrative_arc([], (0, 0), title="Arc"))
    assert memory_graph([], title="Graph").inline(900)


def test_of_many_memories_the_most_important_are_drawn() -> None:
    """A star of 60 would be a blot; the caption says how many are left out."""
    star = [memory(0), *(memory(number, edges={0: "related_to"}) for number in range(1, 60))]
    found = memory_graph(star, title="Graph", most=10)

    assert len([each for each in texts(found) if each.startswith("Memory ")]) == 10
    assert "50 more are not drawn" in found.caption
