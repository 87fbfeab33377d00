"""Turns as the index takes them: a number that is taken stays as it is, and a session lives on one partition.

Conflicts are found here because here the text of every number is at hand: a fold knows the last 64 numbers of an open
session, and the archive compares nothing while it lands. One read of a batch's keys finds what stands under them; of
sessions that this process does not know one more query asks for their newest turns, which mostly finds none.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct

from models.events import DEFAULT_APP, SessionControl, SessionErased, SessionName, Turn
from models.partition.sessions import DecodedArrival
from models.session.turn_numbers import FirstTurns, PlacedTurn, SessionTurn, StandingTurn, first_turns
from streams.index.collections import TURNS, turn_key, turn_of_key
from streams.observe.telemetry import metrics
from streams.ports import VectorStore

log = structlog.get_logger(__name__)

Erased = Mapping[tuple[SessionName, int], int]
"""Session and partition → offset of its erasure."""
MOST_SESSIONS = 65_536
"""Remembered at once; one that is forgotten is asked for again."""


class _KnownSession(Struct):
    partition: int | None
    newest: int
    is_told: bool = False


class TurnNumbers:
    """What stands under the numbers of turns, and on which partition each session lives.

    Args:
        store: Where the turns are.
        keep_turns: The store keeps the newest so many numbers of a session.
        shown: How a text is kept.
    """

    def __init__(self, store: VectorStore, *, keep_turns: int, shown: Callable[[str], str] = str) -> None:
        self._store = store
        self._keep_turns = keep_turns
        self._shown = shown
        self._sessions: dict[SessionName, _KnownSession] = {}

    async def first(self, arrivals: Sequence[DecodedArrival], erased: Erased) -> FirstTurns:
        """The turns among arrivals that stand, and letters of those that say something else than what does.

        A number that is lower than the session's newest by `keep_turns`, and that the store has given up, is passed.
        A session that stands on two partitions is told once: neither fold knows what the other one folds.

        Args:
            arrivals: But turns of before their session's erasure.
            erased: Session and partition → offset of its erasure: what stood before it counts no more.
        """
        said = [
            PlacedTurn(each.event, each.position, each.appended_at) for each in arrivals if isinstance(each.event, Turn)
        ]
        standing = await self._standing(each.name for each in said)
        stands = {name: each for name, each in standing.items() if not _is_erased(name[0], each, erased)}
        await self._ask_for({_session_of(each.event) for each in arrivals if _tells(each)}, erased)
        fresh = set[SessionTurn]()
        for each in arrivals:
            if isinstance(each.event, SessionErased):
                self._sessions.pop(_session_of(each.event), None)
            elif _tells(each):
                known = self._seen(_session_of(each.event), each)
                if known is not None and isinstance(each.event, Turn):
                    name = (_session_of(each.event), each.event.turn)
                    if name in stands or each.event.turn > known.newest - self._keep_turns:
                        fresh.add(name)
                    known.newest = max(known.newest, each.event.turn)
        for session in list(self._sessions)[:-MOST_SESSIONS]:
            del self._sessions[session]
        return first_turns((each for each in said if each.name in fresh), stands, self._shown)

    def _seen(self, session: SessionName, arrival: DecodedArrival) -> _KnownSession | None:
        """What is known of a session; of one that nothing is known of, a turn tells where it lives."""
        partition, known = arrival.position.partition, self._sessions.pop(session, None)
        if known is None:
            if not isinstance(arrival.event, Turn):
                return None
            known = _KnownSession(partition, -1)
        self._sessions[session] = known
        if known.partition not in (None, partition) and not known.is_told:
            known.is_told = True
            metrics.counter("sessions_on_two_partitions_total").inc()
            log.warning("session_on_two_partitions", **session._asdict(), partitions=[known.partition, partition])
        return known

    async def _standing(self, names: Iterable[SessionTurn]) -> dict[SessionTurn, StandingTurn]:
        keys = [turn_key(*name) for name in dict.fromkeys(names)]
        found = await self._store.read(TURNS.name, keys, where={})
        return {turn_of_key(key): _standing_turn(payload) for key, payload in found.items()}

    async def _ask_for(self, sessions: set[SessionName], erased: Erased) -> None:
        """Get to know what the store has of sessions that are not known."""
        asked = sorted(sessions - self._sessions.keys())
        ids = tuple({session.session_id for session in asked})
        if not ids or not await self._store.latest(TURNS.name, where={"session_id": ids}, by="turn", limit=1):
            return
        newest = [self._store.latest(TURNS.name, where=each._asdict(), by="turn", limit=1) for each in asked]
        for session, found in zip(asked, await asyncio.gather(*newest), strict=True):
            for payload in found:
                if not _is_erased(session, stands := _standing_turn(payload), erased):
                    self._sessions[session] = _KnownSession(stands.partition, int(payload["turn"] or 0))


def _tells(arrival: DecodedArrival) -> bool:
    """Whether it is of a session that lives on."""
    return isinstance(arrival.event, Turn | SessionControl)


def _session_of(event: Any) -> SessionName:
    return SessionName(event.app_id or DEFAULT_APP, event.session_id)


def _standing_turn(payload: Mapping[str, Any]) -> StandingTurn:
    turn = TURNS.event_of(payload)
    text = None if turn.corrected_at else turn.content
    return StandingTurn(text, turn.partition, -1 if turn.event_offset is None else turn.event_offset)


def _is_erased(session: SessionName, turn: StandingTurn, erased: Erased) -> bool:
    return turn.partition is not None and turn.offset < erased_up_to(erased, session, turn.partition)


def erased_up_to(erased: Erased, session: SessionName, partition: int) -> int:
    """Offset of a session's erasure on a partition, -1 without one.

    An erasure that names no app is of an earlier release, and means the sessions of all.
    """
    return max(erased.get((name, partition), -1) for name in (session, session._replace(app_id="")))
