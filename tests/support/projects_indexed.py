"""Events of projects as the memory role writes them, for stores and readers."""

from datetime import timedelta
from typing import Any

from models.events import (
    ConversationChunk,
    DeedResult,
    EpisodeKind,
    MemorySource,
    MemoryType,
    PendingFact,
    Position,
    ProjectChanged,
    ProjectConversation,
    ProjectEpisode,
    ProjectItem,
    ProjectItemChanged,
    ProjectMemory,
)
from models.events.project_items import ItemKind
from models.project.view import ProjectView
from streams.index.project_memory import ProjectMemories
from tests.support.blank_events import BLANK_AT, blank

NOW = BLANK_AT
PARTITION = 3
"""Of `commands.v1`, for every project."""


def source(session: str = "s1", turn: int = 1, *, user: str = "u") -> MemorySource:
    """Where something was said."""
    return MemorySource(conversation_id=session, turn=turn, role="user", user_id=user, said_at=NOW)


def remembered(number: int, content: str = "We use boats.", **more: Any) -> ProjectMemory:
    """A decision, valid since that many minutes after nine thirty."""
    since = NOW + timedelta(minutes=number)
    times = ("valid_from", "recorded_at", "created_at", "updated_at", "last_accessed_at")
    given: dict[str, Any] = {
        "id": f"m{number:07}-{number:08}",
        "type": MemoryType.DECISION,
        "category": "technical",
        "tags": ["sea"],
        "importance": 0.7,
        "sources": [source(turn=number)],
        **dict.fromkeys(times, since),
    }
    return blank(ProjectMemory, content=content, **given | more)


def episode(number: int, summary: str = "Bread was chosen.", *, session: str = "s1", **more: Any) -> ProjectEpisode:
    """A decision was made in two turns of a session."""
    given: dict[str, Any] = {
        "id": f"e{number:07}-{number:08}",
        "kind": EpisodeKind.DECISION_MADE,
        "title": "A choice",
        "significance": 0.8,
        "first_turn": number,
        "last_turn": number + 1,
    }
    return blank(ProjectEpisode, summary=summary, conversation_id=session, **given | more)


def chunk(number: int, summary: str = "Talk of music.", *, session: str = "s1") -> ConversationChunk:
    """Ten messages of a session."""
    return blank(
        ConversationChunk,
        id=f"k{number:07}-{number:08}",
        conversation_id=session,
        first_number=number,
        last_number=number,
        first_turn=1,
        last_turn=10,
        messages=10,
        summary=summary,
        key_topics=["violin"],
    )


def conversation(session: str = "s1", turns: int = 2) -> ProjectConversation:
    """An active conversation."""
    return blank(ProjectConversation, id=session, status="active", total_turns=turns, recent=[1, 2])


def pending(number: int, *, session: str = "s1", confidence: float = 0.5) -> PendingFact:
    """A fact that is not sure."""
    return blank(
        PendingFact,
        id=f"p{number:07}-{number:08}",
        content="Maybe taxes.",
        type=MemoryType.FACT,
        confidence=confidence,
        source=source(session),
    )


_KINDS: dict[type[ProjectItem], ItemKind] = {
    ProjectMemory: "memory",
    ProjectEpisode: "episode",
    ConversationChunk: "chunk",
    ProjectConversation: "conversation",
    PendingFact: "pending",
}


def changed(
    item: ProjectItem, slot: int = 0, revision: int = 1, *, app: str = "a", project: str = "web", **more: Any
) -> ProjectItemChanged:
    """An item that came or changed."""
    kind = _KINDS[type(item)]
    given: dict[str, Any] = {"session_id": "s1", "user_id": "u", "item_id": item.id, "active": True, kind: item}
    given |= {"app_id": app, "project_id": project, "revision": revision, "kind": kind, "slot": slot, **more}
    name = f"{app}-{project}-{kind}-{slot}-{revision}"
    return blank(ProjectItemChanged, id=name, source=Position("commands.v1", PARTITION, revision), **given)


def went(item: ProjectItem, slot: int = 0, revision: int = 1, **more: Any) -> ProjectItemChanged:
    """An item that went, and its text with it."""
    return changed(item, slot, revision, **{"active": False, _KINDS[type(item)]: None, **more})


def stands(revision: int = 1, *, app: str = "a", project: str = "web", **more: Any) -> ProjectChanged:
    """How far a project is, after a command by hand."""
    given: dict[str, Any] = {
        "session_id": "s1",
        "user_id": "u",
        "source": Position("commands.v1", PARTITION, revision),
        "born": "first",
        "turn_count": 12,
        "memories": 2,
        "seen": {"0": 7},
        "results": [DeedResult(request_id="r", outcome="done", count=1)],
    }
    return blank(ProjectChanged, app_id=app, project_id=project, revision=revision, **given | more)


async def index(projects: ProjectMemories, *events: ProjectItemChanged | ProjectChanged) -> None:
    """Index events as one batch of the log, at offsets by their revisions."""
    await projects.add_items([(each, 10 * each.revision) for each in events if isinstance(each, ProjectItemChanged)])
    await projects.add_stats([(each, 10 * each.revision) for each in events if isinstance(each, ProjectChanged)])


async def view_of(projects: ProjectMemories, app: str = "a", project: str = "web") -> ProjectView:
    """The view of a project that is there."""
    view = await projects.view(app, project)
    assert view is not None
    return view


EVERYTHING = [
    changed(remembered(1, "We use boats."), 0, 1),
    changed(remembered(2, "Bread it is.", archived=True), 1, 2),
    changed(episode(1), 0, 2),
    changed(chunk(1), 0, 3),
    changed(conversation(), 0, 3),
    changed(pending(1), 0, 3),
]
