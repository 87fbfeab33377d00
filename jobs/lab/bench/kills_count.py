"""Loss and duplication after kills, counted against the oracle: turns by session, alerts by what they say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from models.events import AlertChanged, OutputEvent, ProfileUpdated


class WrongTurns(NamedTuple):
    """Turns that are not as they should be."""

    lost: int
    doubled: int


class Alerts(NamedTuple):
    """Alerts that are not as they should be, and repeats."""

    alerts_missing: int
    alerts_false: int
    repeats_same_id: int
    repeats_other_id: int


def folded_turns(events: Iterable[OutputEvent]) -> dict[str, int]:
    """Session → turns that went into it, by its last closing profile: counted, recognised as duplicate, or late."""
    return {
        event.session_id: event.turn_count + event.duplicate_turns + event.late_turns
        for event in events
        if isinstance(event, ProfileUpdated) and not event.open
    }


def count_turns(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> WrongTurns:
    """Turns lost and doubled, session by session, so that one does not hide the other."""
    oracle, seen = folded_turns(expected), folded_turns(found)
    off = [seen.get(session_id, 0) - turns for session_id, turns in oracle.items()]
    return WrongTurns(lost=-sum(n for n in off if n < 0), doubled=sum(n for n in off if n > 0))


def count_alerts(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> Alerts:
    """Alerts by session, turn and cause, which a session has once; repeats by whether the id is the same."""
    oracle = {_said(event) for event in expected if isinstance(event, AlertChanged)}
    seen: dict[tuple[str, int, str], list[str]] = {}
    for event in found:
        if isinstance(event, AlertChanged):
            seen.setdefault(_said(event), []).append(event.id)
    return Alerts(
        alerts_missing=len(oracle - seen.keys()),
        alerts_false=sum(len(ids) for said, ids in seen.items() if said not in oracle),
        repeats_same_id=sum(_repeats(ids).total() for ids in seen.values()),
        repeats_other_id=sum(len(set(ids)) - 1 for said, ids in seen.items() if said in oracle),
    )


def _said(event: AlertChanged) -> tuple[str, int, str]:
    return event.session_id, event.turn, event.cause


def _repeats(ids: Sequence[str]) -> Counter[str]:
    counted = Counter(ids)
    return counted - Counter(counted.keys())
