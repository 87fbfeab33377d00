"""Ports of the API: the memories as it needs them, so that each can be doubled in a test.

`streams.index.user_memory`, `session_memory` and `streams.index.hybrid_search` fit these; memories of apps have their
ports in `apps_ports`, and what writes has them at the end. Times are aware UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from models.events.app import AdminCommand
from models.events.base import Position
from models.events.erase import EraseRequested, ErasureProved
from models.events.project import ProjectCommand
from models.events.user import EpisodeCompressed, FactCategory, FactChanged, UserMemoryChanged
from streams.index.collections import RememberedTurn
from streams.index.hybrid_search import FoundTurn
from streams.index.scope import Scope


class Users(Protocol):
    """Facts, episodes and standing of users; an app of None means every app that may be read."""

    async def facts(
        self,
        app_id: str | None,
        user_id: str,
        *,
        min_importance: float = 0.0,
        category: FactCategory | None = None,
        include_past: bool = False,
    ) -> Sequence[FactChanged]:
        """By exact filter: active ones first, by importance, the highest first."""
        ...

    async def episodes(self, app_id: str | None, user_id: str, *, limit: int) -> Sequence[EpisodeCompressed]:
        """The latest first."""
        ...

    async def find_episodes(
        self, app_id: str | None, user_id: str, query: str, *, max_distance: float, top_k: int
    ) -> Sequence[tuple[EpisodeCompressed, float]]:
        """Nearest first, each with its distance, none beyond that."""
        ...

    async def standing(self, app_id: str | None, user_id: str) -> UserMemoryChanged | None:
        """As last indexed; None for a user that nothing is known of."""
        ...


class Turns(Protocol):
    """Turns of sessions, as indexed."""

    async def last_turns(self, session_id: str, last: int = 10) -> list[RememberedTurn]:
        """The newest, oldest first."""
        ...

    async def turns_numbered(self, session_id: str, numbers: Iterable[int]) -> list[RememberedTurn]:
        """Those that are here, in order of number."""
        ...


class Search(Protocol):
    """Hybrid search, dense and lexical (`streams.index.hybrid_search`)."""

    async def turns(self, query: str, scope: Scope, top_k: int) -> Sequence[FoundTurn]:
        """Best first."""
        ...

    async def episodes(self, query: str, scope: Scope, top_k: int) -> Sequence[tuple[EpisodeCompressed, float]]:
        """Best first, each with its fused score."""
        ...


class Visibility(Protocol):
    """Whether what was said is in memory already."""

    async def visible(self, session_id: str, turn: int) -> bool:
        """Whether readers find the turn and all that follows from it."""
        ...


# --- what writes


class CommandSender(Protocol):
    """Writes to `commands.v1` (`streams.api.commands`)."""

    async def send(self, command: AdminCommand | ProjectCommand) -> Position:
        """Write a command under the key of whose memory it is; on return the log has it, and where.

        Raises:
            DeliveryFailed: The log did not confirm it. It may still be there: ask again.
        """
        ...


class EraseRequests(Protocol):
    """Erasures, asked for and proved (`erasures.v1`)."""

    async def request(self, wanted: EraseRequested) -> None:
        """Ask for one; on return the log has it.

        Raises:
            DeliveryFailed: The log did not confirm it.
        """
        ...

    async def proof(self, request_id: str) -> ErasureProved | None:
        """What came of it; None while it is under way, and for one that nobody asked for."""
        ...
