"""Two tenants with a canary in everything that is remembered: turns, topics, facts, episodes, memories of apps."""

from typing import NamedTuple

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
from models.events.project import DeedResult, ManualProjectCommand, ProjectCommand
from models.events.project_items import ProjectItem, Relationship
from models.events.saved_search import SavedSearch
from models.events.topics import COMMANDS
from models.events.user import FactCategory, SessionTurns, UserDeed
from streams.index.app_memory import AppMemoryIndex
from streams.index.project_memory import ProjectMemories
from streams.index.user_memory import UserMemory
from tests.support.api_doubles import AT, said
from tests.support.blank_events import blank
from tests.support.projects_indexed import chunk, conversation, episode, pending, remembered, stands

TENANTS = ("a", "b")
QUERY = "canary about pelicans"
SHARED = "shared"
"""A user id, a session id and a project id that both tenants use."""
MEMORY_ID, OTHER_MEMORY_ID = "m0000000-00000001", "m0000000-00000002"
CHUNK_ID = "k0000001-00000001"
"""Of memories in each project; the first is a pending fact's id too."""


class Names(NamedTuple):
    """What a tenant calls what it has."""

    users: tuple[str, ...]
    sessions: tuple[str, ...]
    projects: tuple[str, ...]
    topic: str


def names_of(app: str) -> Names:
    """Ids that both tenants use, and ids of the tenant's own."""
    users, sessions, projects = ((SHARED, f"{kind}-{app}") for kind in ("user", "session", "project"))
    return Names(users, sessions, projects, f"topic-{app}")


SAME_NAMES = Names((SHARED,), (SHARED,), (SHARED,), "topic")
"""Of two tenants that call everything alike."""


def canary(app: str) -> str:
    """What nobody but the app's own callers may ever see."""
    return f"canary-of-{app}"


def turns_of(app: str) -> list[Turn]:
    """A turn in the shared session and one in the tenant's own."""
    number, text = TENANTS.index(app), f"{canary(app)}: {QUERY}"
    turns = [
        said(number, text, app=app, user=SHARED, session=SHARED),
        said(0, text, app=app, user=f"user-{app}", session=f"session-{app}"),
    ]
    return [structs.replace(turn, message_id=canary(app)) for turn in turns]


def _named(app: str, user: str, session: str) -> dict[str, str]:
    return {"session_id": session, "user_id": user, "app_id": app}


def topic_of(app: str, session: str) -> TopicChanged:
    """A topic of a session."""
    return blank(
        TopicChanged,
        **_named(app, f"user-{app}", session),
        topic_id=f"topic-{app}",
        title=f"{canary(app)} {QUERY}",
        detail=canary(app),
        active=True,
        kept=True,
        turn=int(app == TENANTS[1]),
        message_count=1,
        half_life_days=1.0,
        tags=[canary(app)],
        created_at=AT,
        last_active_at=AT,
        active_turns=[0, 1],
        summary=canary(app),
    )


def user_events_of(app: str, user: str, session: str) -> tuple[FactChanged, EpisodeCompressed, UserMemoryChanged]:
    """A fact, an episode and the standing of a user."""
    named, number = _named(app, user, session), int(app == TENANTS[1])
    changed = blank(
        FactChanged, **named, category=FactCategory.IDENTITY, key="name", value=canary(app), importance=0.9, active=True
    )
    compressed = blank(
        EpisodeCompressed,
        **named,
        episode=1,
        first_turn=1,
        last_turn=20,
        turn_range="turns 1-20",
        turns=[SessionTurns(session, [0])],
        summary=f"{canary(app)}: {QUERY}",
        key_topics=[canary(app)],
    )
    # A reference to the other tenant's turn in a shared session must lead nowhere.
    stands = blank(
        UserMemoryChanged, **named, turn_count=21, short_term=[SessionTurns(session, [number, 1 - number])], facts=1
    )
    return changed, compressed, stands


def app_memory_of(app: str) -> AppMemoryChanged:
    """A memory of an app."""
    named = _named(app, f"user-{app}", f"session-{app}")
    content, tags = f"{canary(app)}: {QUERY}", [canary(app)]
    return blank(AppMemoryChanged, **named, space="app", memory_id=1, active=True, content=content, tags=tags)


def app_space_of(app: str, *results: CommandResult) -> AppMemoriesChanged:
    """How far an app's memories are, and what is saved for those who look at its alerts."""
    searches = [SavedSearch(title=canary(app))]
    return blank(AppMemoriesChanged, app_id=app, space="app", memories=1, results=list(results), searches=searches)


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


class Carrying:
    """A `CommandSender` that keeps each command, and says of it that it was carried out."""

    def __init__(self, memories: AppMemoryIndex, projects: ProjectMemories, users: UserMemory) -> None:
        self._memories = memories
        self._users = users
        self._projects = projects
        self.sent: list[AdminCommand | ProjectCommand | UserDeed] = []

    async def send(self, command: AdminCommand | ProjectCommand | UserDeed) -> Position:
        """As the port says."""
        self.sent.append(command)
        if isinstance(command, ProjectCommand):
            request_id = command.request_id if isinstance(command, ManualProjectCommand) else ""
            done = DeedResult(request_id=request_id, outcome="done", item_id=MEMORY_ID)
            revision = 1 + sum(isinstance(each, ProjectCommand) and each.app_id == command.app_id for each in self.sent)
            told = stands(revision, app=command.app_id, project=command.project_id, results=[done])
            await self._projects.add_stats([(told, 9)])
            return Position(COMMANDS.name, 0, 9)
        result = CommandResult(request_id=command.request_id, outcome="done", count=1)
        if isinstance(command, UserDeed):
            known = await self._users.stats(command.app_id, command.user_id)
            assert known is not None
            await self._users.add_stats([(structs.replace(known, results=[result]), 9)])
            return Position(COMMANDS.name, 0, 9)
        await self._memories.add_stats([(app_space_of(command.app_id, result), 9)])
        return Position(COMMANDS.name, 0, 9)
