"""What chaos does and sends is a function of its seed, and holds what it is for."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from jobs.lab.chaos.actions import JOINER, MEMORY, PLACES, REJECTING, REJECTING_USERS, SESSIONS, Act, Outage, plan
from jobs.lab.chaos.traffic import CONCURRENT_SESSIONS, Sent, traffic
from models.errors import InvalidRecord
from models.events import FactChanged, SessionEnded, Turn
from models.events.topics import COMMANDS, MEMORY_STATE, SESSION_STATE
from models.policy import Policy
from models.wire.codec import decode_input
from streams.wiring import ROLES
from tests.user_driver import User

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
TURNS = 6_000


def sent(seed: int) -> list[Sent]:
    """An hour of conversations."""
    return list(traffic(seed, turns=TURNS, ends_at=NOW, span=timedelta(hours=1)))


def test_plan_and_traffic_are_repeatable() -> None:
    """The same seed gives the same acts and bytes, another one others."""
    first, again, other = (plan(seed, seconds=60, session_timeout_s=6) for seed in (7, 7, 8))

    assert (True, False) == (first == again, first == other)

    assert (True, False) == (sent(3) == sent(3), sent(3) == sent(4))


@pytest.mark.parametrize("seed", range(20))
def test_plan_keeps_its_bounds(seed: int) -> None:
    """In order, within the run, a kill first; freezes outlast the session time-out; only the third worker joins."""
    acts = plan(seed, seconds=60, session_timeout_s=6)

    assert Act.KILL == acts[0].act
    assert sorted(act.at_s for act in acts) == [act.at_s for act in acts]
    assert all(0 < act.at_s < 60 for act in acts)
    assert all(act.lasts_s > 6 for act in acts if act.act is Act.FREEZE)
    assert {act.place for act in acts} <= {*PLACES, *Outage, *REJECTING, ""}
    assert {act.act for act in acts if act.place == JOINER} <= {Act.JOIN_OR_LEAVE}
    assert {act.act for act in acts if act.place in REJECTING} <= {Act.REJECT}
    assert all(act.lasts_s > 0 for act in acts if act.act in {Act.BROKER, Act.VECTORS, Act.REJECT})


def test_every_act_comes_in_a_long_run_and_a_kill_in_the_shortest() -> None:
    """No kind of harm is out of reach; twenty runs of half a minute kill two hundred times."""
    assert set(Act) == {act.act for act in plan(1, seconds=1_200, session_timeout_s=6)}

    assert [Act.KILL] == [act.act for act in plan(1, seconds=0.1, session_timeout_s=6)]

    plans = [plan(seed, seconds=30, session_timeout_s=6) for seed in range(1, 21)]

    assert sum(act.act is Act.KILL for acts in plans for act in acts) >= 200


def test_every_role_is_killed() -> None:
    """Sessions and memory, which keep state, more often than the others; each place is a role that can be started."""
    kills = Counter(act.place for act in plan(1, seconds=1_200, session_timeout_s=6) if act.act is Act.KILL)

    assert {*PLACES} - {JOINER} == {*kills}
    assert min(kills[place] for place in (*SESSIONS, MEMORY)) > max(kills[name] for name in ("enrich", "index"))
    assert {place.partition("-")[0] for place in PLACES} <= {*ROLES}


def test_every_topic_of_a_folding_role_may_refuse() -> None:
    """Both states and what one role writes for the other to fold."""
    assert {SESSION_STATE.name, MEMORY_STATE.name, COMMANDS.name} <= {*REJECTING}
    memories = {"memories.v1", "projects.v1", "memory-events.v1"}
    assert {MEMORY_STATE.name, "facts.v1", "user-episodes.v1", "requests.v1", *memories} == REJECTING_USERS


@pytest.mark.parametrize("acts", [{Act.KILL}, {Act.STOP, Act.REJECT}])
def test_only_allowed_acts_come(acts: set[Act]) -> None:
    """What is not named is not done, not even the first kill."""
    assert acts == {act.act for act in plan(1, seconds=120, session_timeout_s=6, acts=acts)}


def test_traffic_has_every_turn_and_every_disorder() -> None:
    """All turns are good ones and there; some come twice, out of order or after the end; the rest is poison."""
    log = sent(5)
    good, reasons, order, ended, late = Counter[tuple[str, int]](), Counter[str](), 0, set(), 0
    highest: dict[str, int] = {}
    for record, turn in log:
        try:
            event = decode_input(record.value, record.key, NOW, Policy().intake)
        except InvalidRecord as refused:
            assert turn is None
            reasons[refused.reason] += 1
            continue
        if isinstance(event, SessionEnded):
            ended.add(event.session_id)
        if isinstance(event, Turn):
            assert (event.session_id, event.turn) == turn
            good[event.session_id, event.turn] += 1
            order += event.turn < highest.get(event.session_id, 0)
            late += event.session_id in ended
            highest[event.session_id] = max(event.turn, highest.get(event.session_id, 0))

    assert TURNS == len(good)
    assert len(highest) > CONCURRENT_SESSIONS
    assert min(good.total() - TURNS, order, late, len(ended)) > 5
    assert {"not_json", "null_value", "key_mismatch", "invalid_field"} <= set(reasons)
    assert reasons.total() < 0.02 * len(log)


def test_users_talk_in_several_sessions_at_once() -> None:
    """Two apps have users of one name, and each user's turns come from many sessions, one among the others."""
    turns = [decode_input(record.value, record.key, NOW, Policy().intake) for record, turn in sent(5) if turn]
    of_users: dict[tuple[str, str], list[str]] = {}
    for turn in turns:
        assert isinstance(turn, Turn)
        of_users.setdefault((turn.app_id, turn.user_id), []).append(turn.session_id)
    changes = [sum(a != b for a, b in pairwise(sessions)) for sessions in of_users.values()]

    assert (15, 5) == (len(of_users), len({user for _, user in of_users}))
    assert min(len({*sessions}) for sessions in of_users.values()) > 4
    assert min(changes) > 100


def test_what_users_tell_changes_facts_in_every_way() -> None:
    """Stored, updated and taken back, many times: else a comparison of facts would compare little."""
    user = User()
    for record, turn in sent(5):
        event = decode_input(record.value, record.key, NOW, Policy().intake) if turn else None
        if isinstance(event, Turn) and (event.app_id, event.user_id) == ("app-1", "u-1"):
            user.say(event.content, role=event.role)
    causes = Counter(change.cause for change in user.outputs if isinstance(change, FactChanged))

    assert {"stored", "updated", "retracted"} <= {*causes}
    assert causes.total() > 10
