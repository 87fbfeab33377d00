"""Ports of the routes over app memory; `streams.index.app_memory` fits. Times are aware UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from models.events.app import AppMemoriesChanged, AppMemoryChanged

SearchMode = Literal["keyword", "semantic", "hybrid"]


class AppMemories(Protocol):
    """Memories of apps, as indexed. A `user_id` picks the user's space in the app, else the app's own is meant."""

    async def memories(self, app_id: str, user_id: str = "") -> Sequence[AppMemoryChanged]:
        """The space's own, the latest updated first."""
        ...

    async def shared_with(self, app_id: str, user_id: str = "") -> Sequence[AppMemoryChanged]:
        """Those of other apps that this one may read, the latest updated first; each names it in `shared_with`."""
        ...

    async def find(
        self, app_id: str, user_id: str, query: str, *, mode: SearchMode, top_k: int
    ) -> Sequence[tuple[AppMemoryChanged, float]]:
        """The space's own that speak of the query, best first, each with its score."""
        ...

    async def standing(self, app_id: str, user_id: str = "") -> AppMemoriesChanged | None:
        """As last indexed; None for a space that nothing was ever remembered in."""
        ...

    async def spaces(self, limit: int) -> Sequence[AppMemoriesChanged]:
        """Spaces that the caller may read."""
        ...
