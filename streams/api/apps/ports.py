"""Ports of the routes over app memory; `streams.index.app_memory` fits. Times are aware UTC."""

# ruff: noqa: D102 - most properties are fields of events and described there (models/events/app.py)
from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from models.events.app import CommandResult

SearchMode = Literal["keyword", "semantic", "hybrid"]


class AppMemory(Protocol):
    """A memory of an app: fields of `AppMemoryChanged`."""

    @property
    def app_id(self) -> str:
        """Whose it is, also where another app reads it."""
        ...

    @property
    def session_id(self) -> str: ...
    @property
    def memory_id(self) -> int: ...
    @property
    def content(self) -> str: ...
    @property
    def importance(self) -> float: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def related_conversations(self) -> Sequence[str]: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def updated_at(self) -> datetime: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def shared_with(self) -> Sequence[str]: ...
    @property
    def conflicts_with(self) -> Sequence[int]: ...
    @property
    def made_by(self) -> str: ...


class AppSpace(Protocol):
    """How far a space of memories is: fields of `AppMemoriesChanged`."""

    @property
    def app_id(self) -> str: ...
    @property
    def user_id(self) -> str:
        """Empty for the app's own space."""
        ...

    @property
    def partition(self) -> int:
        """Of the last command that it knows, like `offset`."""
        ...

    @property
    def offset(self) -> int: ...
    @property
    def memories(self) -> int: ...
    @property
    def created(self) -> int: ...
    @property
    def compactions(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def edited(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def energy_units(self) -> float: ...
    @property
    def energy_capacity_units(self) -> float: ...
    @property
    def spent_units(self) -> float: ...
    @property
    def uninstalled(self) -> bool: ...
    @property
    def results(self) -> Sequence[CommandResult]: ...


class AppMemories(Protocol):
    """Memories of apps, as indexed. A `user_id` picks the user's space in the app, else the app's own is meant."""

    async def memories(self, app_id: str, user_id: str = "") -> Sequence[AppMemory]:
        """The space's own, the latest updated first."""
        ...

    async def shared_with(self, app_id: str, user_id: str = "") -> Sequence[AppMemory]:
        """Those of other apps that this one may read, the latest updated first; each names it in `shared_with`."""
        ...

    async def find(
        self, app_id: str, user_id: str, query: str, *, mode: SearchMode, top_k: int
    ) -> Sequence[tuple[AppMemory, float]]:
        """The space's own that speak of the query, best first, each with its score."""
        ...

    async def standing(self, app_id: str, user_id: str = "") -> AppSpace | None:
        """As last indexed; None for a space that nothing was ever remembered in."""
        ...

    async def spaces(self, limit: int) -> Sequence[AppSpace]:
        """Spaces that the caller may read."""
        ...
