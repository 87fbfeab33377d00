"""Items of a project's memory as tests write them, and the events that tell of them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from models import events
from models.events import Position, ProjectChanged, ProjectItemChanged
from models.project.outputs import KIND_OF
from models.retrieval.candidates import found_of
from models.retrieval.relevance import Findable, RetrievedItem, Scores, rendered
from tests.support.blank_events import blank

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def memory(
    number: int, content: str, *, kind: events.MemoryType = events.MemoryType.FACT, at: datetime = BEGIN, **more: Any
) -> events.ProjectMemory:
    """A memory that was said, recorded and last touched at one time."""
    times = dict.fromkeys(("valid_from", "recorded_at", "created_at", "updated_at", "last_accessed_at"), at)
    fields: dict[str, Any] = {"id": f"m-{number:03}", "importance": 0.5} | times | more
    return events.ProjectMemory(type=kind, content=content, **fields)


def vertex(name: str, edges: Iterable[tuple[str, str, float]] = ()) -> events.ProjectMemory:
    """A memory of this id, with relationships to others: whose, of which kind, how strong."""
    made = memory(0, name, id=name)
    for edge in edges:
        made = related(made, *edge)
    return made


def related(
    source: events.ProjectMemory, target: str, kind: str = "related_to", strength: float = 1.0
) -> events.ProjectMemory:
    """The memory with one relationship more."""
    edge = events.Relationship(target_id=target, type=kind, strength=strength, created_at=BEGIN)
    return replace(source, relationships=[*source.relationships, edge])


def episode(number: int, title: str, *, linked: tuple[str, ...] = (), at: datetime = BEGIN) -> events.ProjectEpisode:
    """A decision of turns 0 and 1."""
    return events.ProjectEpisode(
        id=f"e-{number}",
        kind=events.EpisodeKind.DECISION_MADE,
        title=title,
        summary=title,
        significance=0.8,
        linked_memories=list(linked),
        conversation_id="s1",
        first_turn=0,
        last_turn=1,
        started_at=at,
        ended_at=at,
        last_accessed_at=at,
    )


def chunk(number: int, summary: str, *, at: datetime = BEGIN) -> events.ConversationChunk:
    """The ten turns of a conversation from ten times the number on."""
    return events.ConversationChunk(
        id=f"k-{number}",
        conversation_id="s1",
        first_number=number,
        last_number=number,
        first_turn=10 * number,
        last_turn=10 * number + 9,
        messages=10,
        summary=summary,
        token_count=500,
        summary_tokens=20,
        started_at=at,
        ended_at=at,
        created_at=at,
    )


def found(item: Findable, score: float = 0.5) -> RetrievedItem:
    """As retrieval gives it."""
    kind, item_id = found_of(item)
    return RetrievedItem(kind=kind, id=item_id, text=rendered(item), score=score, scores=Scores(), item=item)


def told(item: events.ProjectItem, slot: int, revision: int) -> ProjectItemChanged:
    """The event that an item came or changed."""
    kind = KIND_OF[type(item)]
    told_of: dict[str, Any] = {kind: item}
    return ProjectItemChanged(**_item_event(kind, item.id, slot, revision), active=True, cause="created", **told_of)


def gone(kind: events.ItemKind, item_id: str, slot: int, revision: int) -> ProjectItemChanged:
    """The event that an item went."""
    return ProjectItemChanged(**_item_event(kind, item_id, slot, revision), active=False, cause="deleted")


def stats(revision: int, born: str = "first") -> ProjectChanged:
    """How far the project is."""
    return blank(ProjectChanged, **_event("standing", revision), born=born)


def _item_event(kind: events.ItemKind, item_id: str, slot: int, revision: int) -> dict[str, Any]:
    return {**_event(f"{kind}/{slot}", revision), "kind": kind, "item_id": item_id, "slot": slot}


def _event(name: str, revision: int) -> dict[str, Any]:
    return {
        "id": f"{name}/{revision}",
        "session_id": "",
        "user_id": "",
        "app_id": "shop",
        "timestamp": BEGIN,
        "source": Position("commands", 0, revision),
        "project_id": "web",
        "revision": revision,
    }
