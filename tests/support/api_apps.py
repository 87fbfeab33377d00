"""Memories of apps in this process, for the routes over them: what is read, and what carries commands out."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from models.entities import owner_of
from models.events.app import (
    AdminCommand,
    AppInjectionSet,
    AppMemoriesChanged,
    AppMemoryChanged,
    AppUninstalled,
    MemoriesPurged,
    MemoriesRead,
    MemoryDeleted,
    MemoryEdited,
    SearchSaved,
)
from models.events.base import CommandResult, Position
from models.events.erase import EraseRequested, ErasureProved
from models.events.project import ProjectCommand
from models.events.topics import COMMANDS
from models.text.words import fold_text, words_of
from streams.erase.record import KafkaEraseRequests
from streams.index.app_memory import AppMemoryIndex, SearchMode
from streams.index.between import ALWAYS, Between
from streams.index.collections import MEMORIES, SPACES

AT = datetime(2025, 10, 10, 14, 30, tzinfo=UTC)


def memory(memory_id: int, content: str, *, app: str = "a", user: str = "", **more: Any) -> AppMemoryChanged:
    """A memory of an app, or of a user in it."""
    given: dict[str, Any] = {
        "slot": memory_id - 1,
        "importance": 0.75,
        "tags": ["time"],
        "session_id": f"s-{memory_id}",
        "user_id": user or "u",
        "created_at": AT,
        "updated_at": AT,
        "made_by": "rules",
    }
    found = MEMORIES.event_of({"space": "user" if user else "app", "content": content, "memory_id": memory_id})
    return replace(found, app_id=app, **{**given, **more})


def space(app: str = "a", user: str = "", **more: Any) -> AppMemoriesChanged:
    """How far a space of memories is."""
    given: dict[str, Any] = {"timestamp": AT, "energy_units": 9_000.0, "energy_capacity_units": 10_000.0}
    given["source"] = Position(COMMANDS.name, more.pop("partition", 0), more.pop("offset", -1))
    found = SPACES.event_of({"space": "user" if user else "app"})
    return replace(found, app_id=app, user_id=user, **{**given, **more})


@dataclass
class Apps(AppMemoryIndex):
    """An `AppMemoryIndex` in this process, and a `CommandSender`.

    It gives whatever was put in of the app that is asked for, whoever asks. A command is carried out when it is sent,
    unless `away`; a result can be set in advance.
    """

    known: list[AppMemoryChanged] = field(default_factory=list)
    all_stats: list[AppMemoriesChanged] = field(default_factory=list)
    sent: list[AdminCommand] = field(default_factory=list)
    reads: list[MemoriesRead] = field(default_factory=list)
    away: bool = False
    told: str | None = None
    """Outcome of the next command, instead of carrying it out."""
    fails: Exception | None = None

    async def memories(self, app_id: str, user_id: str = "", *, shared: bool = False) -> list[AppMemoryChanged]:
        """As the real one."""
        assert not shared
        mine = [each for each in self.known if (each.app_id, owner_of(each)) == (app_id, user_id)]
        return sorted(mine, key=lambda each: each.updated_at, reverse=True)

    async def shared_with(self, app_id: str, user_id: str = "") -> list[AppMemoryChanged]:
        """As the real one."""
        return [each for each in self.known if app_id in each.shared_with and owner_of(each) == user_id]

    async def find(
        self,
        app_id: str,
        user_id: str,
        query: str,
        *,
        mode: SearchMode = "hybrid",
        top_k: int = 5,
        shared: bool = False,
        between: Between = ALWAYS,
    ) -> list[tuple[AppMemoryChanged, float]]:
        """By shared words; the mode is the score's decimals."""
        assert not shared
        wanted = set(words_of(fold_text(query)))
        scored = [
            (each, len(wanted & set(words_of(fold_text(each.content)))) + len(mode) / 100)
            for each in await self.memories(app_id, user_id)
            if between.meets(each.created_at, each.created_at)
        ]
        return sorted((each for each in scored if each[1] >= 1), key=lambda pair: -pair[1])[:top_k]

    async def stats(self, app_id: str, user_id: str = "") -> AppMemoriesChanged | None:
        """As the real one."""
        return next((each for each in self.all_stats if (each.app_id, each.user_id) == (app_id, user_id)), None)

    async def spaces(
        self, limit: int, app_id: str | None = None, user_id: str | None = None
    ) -> list[AppMemoriesChanged]:
        """As the real one."""
        found = [each for each in self.all_stats if app_id in {None, each.app_id}]
        return [each for each in found if user_id in {None, each.user_id}][:limit]

    async def send(self, command: Any) -> Position:
        """As the real one."""
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
        mine = [each for each in self.known if (each.app_id, owner_of(each)) == (command.app_id, command.user_id)]
        wanted = mine if isinstance(command, MemoriesPurged) or getattr(command, "purge_memories", False) else []
        if isinstance(command, MemoryDeleted | MemoryEdited):
            wanted = [each for each in mine if each.memory_id == command.memory_id]
        outcome = self.told or (
            "done" if wanted or isinstance(command, AppUninstalled | AppInjectionSet | SearchSaved) else "not_found"
        )
        if self.told is None:
            names = ("content", "importance", "tags", "pinned", "shared_with")
            new = {name: value for name in names if (value := getattr(command, name, None)) is not None}
            changed = [replace(each, **new) for each in wanted if isinstance(command, MemoryEdited)]
            self.known = [each for each in self.known if each not in wanted] + changed
        result = CommandResult(request_id=command.request_id, outcome=outcome, count=len(wanted))  # type: ignore[arg-type]
        old = [each for each in self.all_stats if (each.app_id, each.user_id) == (command.app_id, command.user_id)]
        stands = old[0] if old else space(command.app_id, command.user_id)
        told = replace(stands, results=[*stands.results, result], source=Position(COMMANDS.name, 0, offset))
        told = replace(told, inject=command.inject) if isinstance(command, AppInjectionSet) else told
        told = replace(told, searches=[command.search]) if isinstance(command, SearchSaved) else told
        self.all_stats = [*(each for each in self.all_stats if each not in old), told]


@dataclass
class Erasures(KafkaEraseRequests):
    """A `KafkaEraseRequests` without Kafka."""

    asked: list[EraseRequested] = field(default_factory=list)
    proofs: dict[str, ErasureProved] = field(default_factory=dict)

    async def request(self, wanted: EraseRequested) -> None:
        """As the real one."""
        self.asked.append(wanted)

    async def proof(self, request_id: str) -> ErasureProved | None:
        """As the real one."""
        return self.proofs.get(request_id)


class Sessions:
    """Knows no session (`streams.api.sessions.turns.KnowsSessions`)."""

    async def app_of(self, _session_id: str) -> str | None:
        """As the port says."""
        return None
