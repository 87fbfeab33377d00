"""Meaning of an empty response: the user is unknown, data is still being processed, or nothing is stored.

| case | flags |
|---|---|
| the user is unknown | known: false |
| a turn is not indexed yet, or is indexed but not yet in the user's memory | caught up: false |
| the user is known and the memory is current: nothing is stored | both true |

The flags are read before the response, from what the process knows of the logs: a turn sent some milliseconds ago may
be missing. To wait for a certain turn, use `after`. A process that does not read the logs (role `api`) does not know
their ends: then `caught_up` is unknown, unless a turn is visibly missing in its user's memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from models.events import UserMemoryChanged
from models.events.user import MemoryMode
from models.text.language import ENGLISH, UNSUPPORTED
from streams.api.sessions.turns import is_remembered
from streams.http.security import caller
from streams.index.collections import RememberedTurn
from streams.index.hybrid_search import Scope
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory, of_user

_KNOWN, _CAUGHT_UP, _LANGUAGE = "Turntide-Known", "Turntide-Caught-Up", "Turntide-Language"
HEADERS = {
    _KNOWN: "Whether the user is known.",
    _CAUGHT_UP: "Whether the response includes all turns that the role received; absent if unknown (role `api`).",
    _LANGUAGE: "Language of the user, ISO 639-1; `unsupported`: no facts are extracted.",
}
"""Headers of responses that are lists; others have fields with the same meaning."""
_NEWEST = 8
"""Turns with the highest offsets that are checked: a user's sessions may be in several partitions."""


class OfAnApp(Protocol):
    """A record of an app."""

    @property
    def app_id(self) -> str:
        """Its app."""
        ...


_Record = TypeVar("_Record", bound=OfAnApp)


class Freshness(NamedTuple):
    """Completeness of a response.

    Attributes:
        known: Whether the user, session or app is known.
        caught_up: Whether the response includes all turns that the process received; None: unknown.
        language: Language of the user, ISO 639-1; `unsupported`: no facts are extracted. Empty: unknown.
    """

    known: bool
    caught_up: bool | None
    language: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """As response headers."""
        told = {_KNOWN: self.known, _CAUGHT_UP: self.caught_up, _LANGUAGE: self.language or None}
        return {name: str(value).lower() for name, value in told.items() if value is not None}

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Freshness:
        """Read response headers; a role of an earlier release has none, which counts as known.

        >>> Freshness.of(Freshness(known=False, caught_up=None).headers)
        Freshness(known=False, caught_up=None, language='')
        """
        caught_up, language = headers.get(_CAUGHT_UP), headers.get(_LANGUAGE, "")
        return cls(headers.get(_KNOWN) != "false", None if caught_up is None else caught_up == "true", language)


class Standing(NamedTuple):
    """Progress of a user's memory, in one app or in several.

    Attributes:
        fresh: Completeness of the response.
        user: Stats of the app with the last turn, preferring apps whose memory is not off; None if unknown.
        off: Apps in which the user's memory is off: nothing of them is returned.
    """

    fresh: Freshness
    user: UserMemoryChanged | None = None
    off: frozenset[str] = frozenset()
    apps: tuple[str, ...] = ()
    """Other apps that know the user."""

    def told(self, records: Iterable[_Record]) -> list[_Record]:
        """Records of apps in which the user's memory is not off."""
        return [record for record in records if record.app_id not in self.off]

    def searched(self, apps: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Apps to search, out of the readable ones (None for all): those that are not off, if there are others."""
        if not (self.off and self.apps):
            return apps
        return tuple(app for app in (self.apps if apps is None else apps) if app not in self.off)


class MemoryProgress:
    """Compares indexed turns with users' memory.

    Args:
        turns: Turns by session and number.
        users: Stats of users' memories.
        at_end: Whether the logs are read to their end; None: unknown in this process.
    """

    def __init__(self, turns: SessionVectorMemory, users: UserMemory, at_end: Callable[[], bool | None]) -> None:
        self._turns = turns
        self._users = users
        self._at_end = at_end

    async def with_stats(self, app_id: str | None, user_id: str) -> Standing:
        """Of a user's memory, and how far that is by the same reading, of the apps that the caller may read.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        at_end, reads = self._at_end(), caller().may_read
        newest_turns = self._turns.newest(of_user(app_id, user_id), _NEWEST)
        found, users = await asyncio.gather(newest_turns, self._users.standings(app_id, user_id))
        newest = [turn for turn in found if reads(turn.app_id)]
        mine = [each for each in users if reads(each.app_id)]
        off = frozenset(each.app_id for each in mine if each.memory_mode is MemoryMode.OFF)
        stands = max(mine, key=lambda user: (user.app_id not in off, user.timestamp), default=None)
        is_behind = not all(is_remembered(turn, stands) for turn in _last_of_each(newest, stands))
        language = "" if stands is None else _understood(stands)
        fresh = Freshness(bool(newest) or stands is not None, False if is_behind else at_end, language)
        return Standing(fresh, stands, off, tuple(sorted({each.app_id for each in mine} - off)))

    async def of_scope(self, scope: Scope, app_id: str | None) -> Standing:
        """Of what a search looks through; how far a user's memory is where it is that, across sessions.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        if scope.user_id is not None and scope.session_id is None:
            return await self.with_stats(app_id, scope.user_id)
        at_end = self._at_end()
        return Standing(Freshness(bool(await self._turns.newest(scope.where(), 1, by="turn")), at_end))


def _understood(user: UserMemoryChanged) -> str:
    return UNSUPPORTED if user.language != ENGLISH and user.unsupported_turns else user.language


def _last_of_each(newest: Iterable[RememberedTurn], stands: UserMemoryChanged | None) -> list[RememberedTurn]:
    """The last turn of each session, since late turns never enter a user's memory; only of the app of `stands`."""
    mine = [turn for turn in newest if stands is None or turn.app_id == stands.app_id]
    last = {(turn.app_id, turn.session_id): turn for turn in sorted(mine, key=lambda turn: turn.turn)}
    return list(last.values())
