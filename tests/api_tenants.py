"""Two tenants with a canary in everything that is remembered: turns, topics, facts, episodes, memories of apps."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from models.events import (
    AppMemoriesChanged,
    AppMemoryChanged,
    CommandResult,
    EpisodeCompressed,
    FactChanged,
    Position,
    TopicChanged,
    Turn,
    UserMemoryChanged,
)
from models.events.app import AdminCommand
from models.events.project import DeedResult, ProjectCommand, ProjectDeed
from models.events.project_items import ProjectItem, Relationship
from models.events.topics import COMMANDS, TURNS
from models.events.user import FactCategory, SessionTurns
from streams.index.app_memory import AppMemories
from streams.index.project_memory import ProjectMemories
from tests.api_doubles import AT, said
from tests.projects_indexed import changed, chunk, conversation, episode, index, pending, remembered, stands

TENANTS = ("a", "b")
QUERY = "canary about pelicans"
SHARED = "shared"
"""A user id, a session id and a project id that both tenants use."""
MEMORY_ID, OTHER_MEMORY_ID = "m0000000-00000001", "m0000000-00000002"
"""Of memories in each project; the first is a pending fact's id too."""


def canary(app: str) -> str:
    """What nobody but the app's own callers may ever see."""
    return f"canary-of-{app}"


def turns_of(app: str) -> list[Turn]:
    """A turn in the shared session and one in the tenant's own."""
    number = TENANTS.index(app)
    return [
        said(number, f"{canary(app)}: {QUERY}", app=app, user=SHARED, session=SHARED),
        said(0, f"{canary(app)}: {QUERY}", app=app, user=f"user-{app}", session=f"session-{app}"),
    ]


def _common(app: str, user: str, session: str) -> dict[str, Any]:
    return {
        "id": f"{app}-{user}",
        "session_id": session,
        "user_id": user,
        "app_id": app,
        "timestamp": AT,
        "source": Position(TURNS.name, 0, 0),
    }


def topic_of(app: str, session: str) -> TopicChanged:
    """A topic of a session."""
    return TopicChanged(
        **_common(app, f"user-{app}", session),
        topic_id=f"topic-{app}",
        title=f"{canary(app)} {QUERY}",
        cause="started",
        detail=canary(app),
        active=True,
        kept=True,
        turn=TENANTS.index(app),
        message_count=1,
        access_count=1,
        importance=0.5,
        priority=0.5,
        half_life_days=1.0,
        memory_type="working",
        tags=[canary(app)],
        created_at=AT,
        last_active_at=AT,
        active_turns=[0, 1],
        packed_turns=[],
        released_messages=0,
        packed_bytes=0,
        summary=canary(app),
        summarised_by=None,
        session_topics=1,
        compaction=None,
    )


def user_events_of(app: str, user: str, session: str) -> tuple[FactChanged, EpisodeCompressed, UserMemoryChanged]:
    """A fact, an episode and the standing of a user."""
    common, number = _common(app, user, session), TENANTS.index(app)
    changed = FactChanged(
        **common,
        category=FactCategory.IDENTITY,
        key="name",
        value=canary(app),
        confidence=1.0,
        importance=0.9,
        active=True,
        cause="stored",
        valid_from=AT,
        valid_until=None,
        turn=0,
        extracted_by="rules",
        history=[],
    )
    compressed = EpisodeCompressed(
        **common,
        episode=1,
        first_turn=1,
        last_turn=20,
        turn_range="turns 1-20",
        turns=[SessionTurns(session, [0])],
        summary=f"{canary(app)}: {QUERY}",
        summarised_by="extractive",
        key_topics=[canary(app)],
        embedding=[],
        embedded_by="",
        started_at=AT,
        ended_at=AT,
        tokens_before=2,
        tokens_after=1,
    )
    stands = UserMemoryChanged(
        **common,
        turn_count=21,
        compressed_turns=20,
        requested_turns=20,
        # A reference to the other tenant's turn in a shared session must lead nowhere.
        short_term=[SessionTurns(session, [number, 1 - number])],
        facts=1,
        episodes=1,
        seen={"0": 10},
    )
    return changed, compressed, stands


def app_memory_of(app: str) -> AppMemoryChanged:
    """A memory of an app."""
    return AppMemoryChanged(
        **_common(app, f"user-{app}", f"session-{app}"),
        space="app",
        slot=0,
        memory_id=1,
        active=True,
        cause="created",
        content=f"{canary(app)}: {QUERY}",
        importance=0.5,
        tags=[canary(app)],
        related_conversations=[],
        created_at=AT,
        updated_at=AT,
        pinned=False,
        shared_with=[],
        conflicts_with=[],
        made_by="rules",
    )


def app_space_of(app: str, *results: CommandResult) -> AppMemoriesChanged:
    """How far an app's memories are."""
    return AppMemoriesChanged(
        **_common(app, "", ""),
        space="app",
        memories=1,
        created=1,
        compactions=0,
        skipped=0,
        edited=0,
        waiting=0,
        energy_units=1.0,
        energy_capacity_units=1.0,
        spent_units=0.0,
        uninstalled=False,
        results=list(results),
    )


def project_items_of(app: str, session: str) -> list[ProjectItem]:
    """A memory with a relationship to another, an episode, a chunk, a conversation and a pending fact."""
    text = f"{canary(app)}: {QUERY}"
    edge = Relationship(target_id=OTHER_MEMORY_ID, type="depends_on", created_at=AT)
    return [
        remembered(1, text, id=MEMORY_ID, relationships=[edge]),
        remembered(2, f"{text} too", id=OTHER_MEMORY_ID),
        structs.replace(conversation(session), summary=canary(app)),
        episode(1, text, session=session),
        chunk(1, text, session=session),
        structs.replace(pending(1, session=session), id=MEMORY_ID, content=text),
    ]


async def index_projects(projects: ProjectMemories, app: str) -> None:
    """The tenant's own project, and one whose id both use."""
    for project, session in ((f"project-{app}", f"session-{app}"), (SHARED, SHARED)):
        slots: dict[type, int] = {}
        events = []
        for item in project_items_of(app, session):
            slots[type(item)] = slot = slots.get(type(item), -1) + 1
            events.append(changed(item, slot, app=app, project=project, session_id=session))
        await index(projects, *events, stands(app=app, project=project))


class Carrying:
    """A `CommandSender` that says of each command that it was carried out."""

    def __init__(self, memories: AppMemories, projects: ProjectMemories) -> None:
        self._memories = memories
        self._projects = projects
        self._revision = 1

    async def send(self, command: AdminCommand | ProjectCommand) -> Position:
        """As the port says."""
        if isinstance(command, ProjectCommand):
            request_id = command.request_id if isinstance(command, ProjectDeed) else ""
            done = DeedResult(request_id=request_id, outcome="done", item_id=MEMORY_ID)
            self._revision += 1
            told = stands(self._revision, app=command.app_id, project=command.project_id, results=[done])
            await self._projects.add_standings([(told, 9)])
            return Position(COMMANDS.name, 0, 9)
        result = CommandResult(request_id=command.request_id, outcome="done", count=1)
        await self._memories.add_standings([(app_space_of(command.app_id, result), 9)])
        return Position(COMMANDS.name, 0, 9)
