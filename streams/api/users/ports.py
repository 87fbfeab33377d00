"""Ports of the API: the memories as it needs them, so that each can be doubled in a test.

`streams.index.user_memory`, `session_memory` and `streams.index.hybrid_search` fit these; memories of apps have their
ports in `apps_ports`, and what writes has them at the end. Times are aware UTC.
"""

# ruff: noqa: D102 - most properties are fields of events and described there (models/events/user.py)
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from models.events.app import AdminCommand
from models.events.base import Position
from models.events.erase import EraseRequested, ErasureProved
from models.events.project import ProjectCommand
from models.events.user import FactCategory, TurnRef
from streams.index.scope import Scope
from streams.index.session_memory import RememberedTurn


class Fact(Protocol):
    """A fact of a user, active or past: fields of `FactChanged`."""

    @property
    def app_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def importance(self) -> float: ...
    @property
    def active(self) -> bool: ...
    @property
    def valid_from(self) -> datetime: ...
    @property
    def valid_until(self) -> datetime | None: ...
    @property
    def session_id(self) -> str: ...
    @property
    def turn(self) -> int: ...
    @property
    def extracted_by(self) -> str: ...


class Episode(Protocol):
    """Turns of a user that became one summary: fields of `EpisodeCompressed`."""

    @property
    def app_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def episode(self) -> int: ...
    @property
    def first_turn(self) -> int: ...
    @property
    def last_turn(self) -> int: ...
    @property
    def turn_range(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def summarised_by(self) -> str: ...
    @property
    def key_topics(self) -> Sequence[str]: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def ended_at(self) -> datetime: ...
    @property
    def distance(self) -> float | None:
        """Cosine distance to the query, 0-2; None where there was no query."""
        ...


class UserStanding(Protocol):
    """How far a user's memory is: fields of `UserMemoryChanged`."""

    @property
    def app_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def turn_count(self) -> int: ...
    @property
    def compressed_turns(self) -> int: ...
    @property
    def short_term(self) -> Sequence[TurnRef]: ...
    @property
    def facts(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def seen(self) -> Mapping[str, int]: ...


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
    ) -> Sequence[Fact]:
        """By exact filter: active ones first, by importance, the highest first."""
        ...

    async def episodes(self, app_id: str | None, user_id: str, *, limit: int) -> Sequence[Episode]:
        """The latest first."""
        ...

    async def find_episodes(
        self, app_id: str | None, user_id: str, query: str, *, max_distance: float, top_k: int
    ) -> Sequence[Episode]:
        """Nearest first, none beyond the distance."""
        ...

    async def standing(self, app_id: str | None, user_id: str) -> UserStanding | None:
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


class PlacedTurn(Protocol):
    """A turn with its place in `turns.v1`."""

    @property
    def app_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def partition(self) -> int | None:
        """None where the point does not say, like `event_offset`."""
        ...

    @property
    def event_offset(self) -> int | None: ...


class PlacedTurns(Protocol):
    """Turns of sessions with their places."""

    async def turns_numbered(self, session_id: str, numbers: Iterable[int]) -> Sequence[PlacedTurn]:
        """Those that are here, in order of number."""
        ...


class FoundTurn(Protocol):
    """A turn that a search found."""

    @property
    def turn(self) -> RememberedTurn:
        """What was found."""
        ...

    @property
    def score(self) -> float:
        """Fused score; the higher the better, comparable within one answer only."""
        ...


class Search(Protocol):
    """Hybrid search, dense and lexical (`streams.index.hybrid_search`)."""

    async def turns(self, query: str, scope: Scope, top_k: int) -> Sequence[FoundTurn]:
        """Best first."""
        ...

    async def episodes(self, query: str, scope: Scope, top_k: int) -> Sequence[tuple[Episode, float]]:
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
