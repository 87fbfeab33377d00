"""What roles show of their state: kept from write to write, and the same when it is read from the state anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from models.events import (
    InputEvent,
    Mode,
    Position,
    SessionEnded,
    SessionErased,
)
from models.partition.log_fold import PARTITION_ENTITY
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.session.fold import SessionState
from models.session.state import Open
from tests.support.entity_driver import Entities
from tests.support.session_driver import NOON, said
from tests.support.user_partition import keep_result

SESSIONS = 12


def shuffled_talk(seed: int) -> list[DecodedArrival]:
    """Sessions of which some get risky; some end, go on, are erased or time out."""
    chance, numbers = random.Random(seed), Counter[str]()
    log: list[DecodedArrival] = []
    for offset in range(400):
        session = f"s{chance.randrange(SESSIONS)}"
        at = NOON + timedelta(minutes=offset)
        event: InputEvent
        match chance.random():
            case lucky if lucky < 0.04:
                event = SessionEnded(session_id=session, timestamp=at, reason="bye")
            case lucky if lucky < 0.06:
                event = SessionErased(session_id=session, timestamp=at, request_id="r")
            case _:
                event = said(numbers[session], session_id=session, timestamp=at)
                numbers[session] += 1
        risk = 0.95 if int(session[1:]) % 2 else 0.05
        log.append(DecodedArrival(event, Position("t", 0, offset), at, risk))
    return log


def modes_in(entities: Mapping[str, Mapping[str, bytes]]) -> dict[Mode, int]:
    """By decoding every session."""
    heads = [SessionState.load(parts).head for key, parts in entities.items() if key != PARTITION_ENTITY]
    return dict.fromkeys(Mode, 0) | Counter(head.mode for head in heads if isinstance(head, Open))


def test_open_sessions_are_counted_by_mode() -> None:
    """After every step what is shown is what the state holds, and a worker that takes over shows the same."""
    entities: Entities = {}
    fold, policy, seen = PartitionFold(entities, Policy()), Policy(), set[Mode]()
    log = shuffled_talk(5)
    for first in range(0, len(log), 20):
        for folded in fold.fold(log[first : first + 20]):
            keep_result(entities, folded)
        assert modes_in(entities) == fold.open_by_mode == PartitionFold(entities, policy).open_by_mode
        seen |= {mode for mode, sessions in fold.open_by_mode.items() if sessions}

    assert {Mode.CALM, Mode.CRITICAL} <= seen
    assert sum(fold.open_by_mode.values()) == fold.open_sessions
