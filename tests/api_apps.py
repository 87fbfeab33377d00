"""Memories of apps in this process, for the routes over them: what is read, and what carries commands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from models.events.app import (
    AdminCommand,
    AppUninstalled,
    CommandResult,
    MemoriesPurged,
    MemoriesRead,
    MemoryDeleted,
    MemoryEdited,
)
from models.events.base import Position
from models.events.erase import EraseRequested, ErasureProved
from models.events.project import ProjectCommand
from models.events.topics import COMMANDS
from models.text.words import fold_text, words_of
from streams.index.app_memory import RememberedMemory, RememberedSpace

AT = datetime(2025, 10, 10, 14, 30, tzinfo=UTC)


def memory(memory_id: int, content: str, *, app: str = "a", user: str = "", **more: Any) -> RememberedMemory:
    """A memory of an app, or of a user in it."""
    given: dict[str, Any] = {
        "space": "user" if user else "app",
        "slot": memory_id - 1,
        "importance": 0.75,
        "tags": ["time"],
        "session_id": f"s-{memory_id}",
        "said_by": "u",
        "related_conversations": [],
        "created_at": AT,
        "updated_at": AT,
        "pinned": False,
        "shared_with": [],
        "conflicts_with": [],
        "made_by": "rules",
    }
    return RememberedMemory(app_id=app, space_user_id=user, memory_id=memory_id, content=content, **{**given, **more})


def space(app: str = "a", user: str = "", **more: Any) -> RememberedSpace:
    """How far a space of memories is."""
    given: dict[str, Any] = {
        "space": "user" if user else "app",
        "timestamp": AT,
        "memories": 0,
        "created": 0,
        "compactions": 0,
        "skipped": 0,
        "edited": 0,
        "waiting": 0,
        "energy_units": 9_000.0,
        "energy_capacity_units": 10_000.0,
        "spent_units": 0.0,
        "uninstalled": False,
        "results": [],
        "partition": 0,
        "offset": -1,
    }
    return RememberedSpace(app_id=app, user_id=user, **{**given, **more})


@dataclass
class Apps:
    """Doubles `streams.api.apps.ports.AppMemories` and `streams.api.users.ports.CommandSender`.

    It gives whatever was put in of the app that is asked for, whoever asks. A command is carried out when it is sent,
    unless `away`; a result can be set in advance.
    """

    known: list[RememberedMemory] = field(default_factory=list)
    standings: list[RememberedSpace] = field(default_factory=list)
    sent: list[AdminCommand] = field(default_factory=list)
    reads: list[MemoriesRead] = field(default_factory=list)
    away: bool = False
    told: str | None = None
    """Outcome of the next command, instead of carrying it out."""
    fails: Exception | None = None

    async def memories(self, app_id: str, user_id: str = "") -> list[RememberedMemory]:
        """As the port says."""
        mine = [each for each in self.known if (each.app_id, each.space_user_id) == (app_id, user_id)]
        return sorted(mine, key=lambda each: each.updated_at, reverse=True)

    async def shared_with(self, app_id: str, user_id: str = "") -> list[RememberedMemory]:
        """As the port says."""
        return [each for each in self.known if app_id in each.shared_with and each.space_user_id == user_id]

    async def find(
        self, app_id: str, user_id: str, query: str, *, mode: str, top_k: int
    ) -> list[tuple[RememberedMemory, float]]:
        """By shared words; the mode is the score's decimals."""
        wanted = set(words_of(fold_text(query)))
        scored = [
            (each, len(wanted & set(words_of(fold_text(each.content)))) + len(mode) / 100)
            for each in await self.memories(app_id, user_id)
        ]
        return sorted((each for each in scored if each[1] >= 1), key=lambda pair: -pair[1])[:top_k]

    async def standing(self, app_id: str, user_id: str = "") -> RememberedSpace | None:
        """As the port says."""
        return next((each for each in self.standings if (each.app_id, each.user_id) == (app_id, user_id)), None)

    async def spaces(self, limit: int) -> Sequence[RememberedSpace]:
        """As the port says."""
        return self.standings[:limit]

    async def send(self, command: AdminCommand | ProjectCommand) -> Position:
        """As the port says."""
        if self.fails is not None:
            raise self.fails
        assert not isinstance(command, ProjectCommand)
        if isinstance(command, MemoriesRead):
            self.reads.append(command)
            return Position(COMMANDS.name, 0, len(self.reads))
        self.sent.append(command)
        offset = len(self.sent)
        if not self.away:
            self._carry_out(command, offset)
        return Position(COMMANDS.name, 0, offset)

    def _carry_out(self, command: AdminCommand, offset: int) -> None:
        mine = [each for each in self.known if (each.app_id, each.space_user_id) == (command.app_id, command.user_id)]
        wanted: list[RememberedMemory] = []
        changed: list[RememberedMemory] = []
        match command:
            case MemoryDeleted() | MemoryEdited():
                wanted = [each for each in mine if each.memory_id == command.memory_id]
            case MemoriesPurged():
                wanted = mine
            case AppUninstalled():
                wanted = mine if command.purge_memories else []
        outcome = self.told or ("done" if wanted or isinstance(command, AppUninstalled) else "not_found")
        if self.told is None:
            if isinstance(command, MemoryEdited):
                names = ("content", "importance", "tags", "pinned", "shared_with")
                new = {name: value for name in names if (value := getattr(command, name)) is not None}
                changed = [replace(each, **new) for each in wanted]
            self.known = [each for each in self.known if each not in wanted] + changed
        old = next(
            (each for each in self.standings if (each.app_id, each.user_id) == (command.app_id, command.user_id)),
            space(command.app_id, command.user_id),
        )
        result = CommandResult(request_id=command.request_id, outcome=outcome, count=len(wanted))  # type: ignore[arg-type]
        kept = [each for each in self.standings if each is not old]
        self.standings = [*kept, replace(old, results=[*old.results, result], offset=offset)]


@dataclass
class Erasures:
    """Doubles `streams.api.users.ports.EraseRequests`."""

    asked: list[EraseRequested] = field(default_factory=list)
    proofs: dict[str, ErasureProved] = field(default_factory=dict)

    async def request(self, wanted: EraseRequested) -> None:
        """As the port says."""
        self.asked.append(wanted)

    async def proof(self, request_id: str) -> ErasureProved | None:
        """As the port says."""
        return self.proofs.get(request_id)
