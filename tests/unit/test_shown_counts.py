"""What roles show of their state: kept from write to write, and the same when it is read from the state anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from models.events import (
    CommandEvent,
    EpisodeRequested,
    InputEvent,
    Mode,
    Position,
    Role,
    SessionEnded,
    SessionErased,
    Turn,
    UserErased,
)
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import PARTITION_ENTITY, Arrival, PartitionFold
from models.policy import Policy
from models.session.fold import SessionState
from models.session.state import Open
from tests.entity_driver import Entities
from tests.user_driver import NOON, added, session_erased, summarised
from tests.user_partition import commands, keep, keep_result

SESSIONS = 12


def shuffled_talk(seed: int) -> list[Arrival]:
    """Sessions of which some get risky; some end, go on, are erased or time out."""
    chance, numbers = random.Random(seed), Counter[str]()
    log: list[Arrival] = []
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
                event = Turn(
                    session_id=session,
                    user_id="u",
                    app_id="a",
                    turn=numbers[session],
                    role=Role.USER,
                    content="Where is it?",
                    timestamp=at,
                )
                numbers[session] += 1
        risk = 0.95 if int(session[1:]) % 2 else 0.05
        log.append(Arrival(event, Position("t", 0, offset), at, risk))
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


def test_turns_that_wait_for_an_episode_are_counted() -> None:
    """Asked for and not answered; an answer, or an erasure, takes them away."""
    entities: Entities = {}
    policy = Policy()
    fold = MemoryPartitionFold(entities, policy)
    shown: list[int] = []
    asked: list[EpisodeRequested] = []
    offset = 0

    def take(*events: CommandEvent) -> None:
        nonlocal offset
        outputs = keep(entities, fold, commands(*events, first=offset))
        asked.extend(event for event in outputs if isinstance(event, EpisodeRequested))
        offset += len(events)
        assert MemoryPartitionFold(entities, policy).progress["user"].totals == fold.progress["user"].totals
        shown.append(fold.progress["user"].totals["compaction_backlog_turns"])

    def said(user: str) -> list[CommandEvent]:
        places = [Position("t", int(user), n) for n in range(60)]
        return [added("Hello there.", user, p.offset, p, NOON, user_id=user) for p in places]

    take(*said("1"))
    take(*said("2"))
    waiting, first = shown[0], asked[0]
    take(summarised(first.first_turn, first.last_turn, user_id="1"))
    take(*(summarised(each.first_turn, each.last_turn, user_id="1") for each in asked[1:] if each.user_id == "1"))
    take(session_erased("nobody", user_id="2"))
    take(UserErased(app_id="a", user_id="2", timestamp=NOON, request_id="r"))

    assert waiting > first.last_turn > 0
    assert shown == [waiting, 2 * waiting, 2 * waiting - first.last_turn, waiting, waiting, 0]
