"""Loss and duplication after kills, counted against the oracle: turns by session, alerts by what they say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from models.events import AlertChanged, OutputEvent, ProfileUpdated


class Row(Struct, frozen=True, kw_only=True):
    """One contender after its kills.

    Attributes:
        contender: Its name; `sessions_role` is Turntide's.
        kills: How often it was killed −9; fewer than asked for if it stopped working after one.
        turns: Distinct turns in the log, each sent once.
        lost: Turns missing from the sessions' last profiles; all turns of a session that never got one.
        doubled: Turns folded once too often, by the same profiles. The fold recognises most of them by their number:
            they stand in `duplicate_turns` though none was sent twice.
        alerts: Alerts that the oracle has.
        alerts_missing: Of these, never seen on the topic.
        alerts_false: Seen, but not the oracle's.
        repeats_same_id: Records that repeat an alert under the same id: a reader can drop them.
        repeats_other_id: Records that repeat one under another id: a reader cannot.
        crashes: How often it ended by itself and was started again.
        settled: Whether the last turn's profile came before the deadline.
        seconds: From its first start to the end.
    """

    contender: str
    kills: int
    turns: int
    lost: int
    doubled: int
    alerts: int
    alerts_missing: int
    alerts_false: int
    repeats_same_id: int
    repeats_other_id: int
    crashes: int
    settled: bool
    seconds: float


class Turns(NamedTuple):
    """Turns that are not as they should be."""

    lost: int
    doubled: int


class Alerts(NamedTuple):
    """Alerts that are not as they should be, and repeats."""

    missing: int
    false: int
    repeats_same_id: int
    repeats_other_id: int


def folded_turns(events: Iterable[OutputEvent]) -> dict[str, int]:
    """Session → turns that went into it, by its last closing profile: counted, recognised as duplicate, or late."""
    return {
        event.session_id: event.turn_count + event.duplicate_turns + event.late_turns
        for event in events
        if isinstance(event, ProfileUpdated) and not event.open
    }


def count_turns(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> Turns:
    """Turns lost and doubled, session by session, so that one does not hide the other."""
    oracle, seen = folded_turns(expected), folded_turns(found)
    off = [seen.get(session_id, 0) - turns for session_id, turns in oracle.items()]
    return Turns(lost=-sum(n for n in off if n < 0), doubled=sum(n for n in off if n > 0))


def count_alerts(expected: Iterable[OutputEvent], found: Iterable[OutputEvent]) -> Alerts:
    """Alerts by session, turn and cause, which a session has once; repeats by whether the id is the same."""
    oracle = {_said(event) for event in expected if isinstance(event, AlertChanged)}
    seen: dict[tuple[str, int, str], list[str]] = {}
    for event in found:
        if isinstance(event, AlertChanged):
            seen.setdefault(_said(event), []).append(event.id)
    return Alerts(
        missing=len(oracle - seen.keys()),
        false=sum(len(ids) for said, ids in seen.items() if said not in oracle),
        repeats_same_id=sum(_repeats(ids).total() for ids in seen.values()),
        repeats_other_id=sum(len(set(ids)) - 1 for said, ids in seen.items() if said in oracle),
    )


def _said(event: AlertChanged) -> tuple[str, int, str]:
    return event.session_id, event.turn, event.cause


def _repeats(ids: Sequence[str]) -> Counter[str]:
    counted = Counter(ids)
    return counted - Counter(counted.keys())
