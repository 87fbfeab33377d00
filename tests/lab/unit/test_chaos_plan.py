"""What chaos does and sends is a function of its seed; which alerts count as late because of a kill, and how late."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from jobs.lab.chaos.result import (
    JOINER,
    MEMORY,
    PLACES,
    REJECTING,
    REJECTING_USERS,
    SESSIONS,
    AlertTimes,
    Delays,
    Fault,
    FaultKind,
    Outage,
    delays,
    plan,
)
from jobs.lab.chaos.traffic import CONCURRENT_SESSIONS, Sent, traffic
from models.errors import InvalidRecord
from models.events import FactChanged, SessionEnded, Turn
from models.events.topics import COMMANDS, MEMORY_STATE, SESSION_STATE
from models.policy import Policy
from models.wire.codec import decode_input
from streams.wiring import ROLES
from tests.support.user_driver import User

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

    assert FaultKind.KILL == acts[0].act
    assert sorted(act.at_s for act in acts) == [act.at_s for act in acts]
    assert all(0 < act.at_s < 60 for act in acts)
    assert all(act.lasts_s > 6 for act in acts if act.act is FaultKind.FREEZE)
    assert {act.place for act in acts} <= {*PLACES, *Outage, *REJECTING, ""}
    assert {act.act for act in acts if act.place == JOINER} <= {FaultKind.JOIN_OR_LEAVE}
    assert {act.act for act in acts if act.place in REJECTING} <= {FaultKind.REJECT}
    assert all(act.lasts_s > 0 for act in acts if act.act in {FaultKind.BROKER, FaultKind.VECTORS, FaultKind.REJECT})


def test_every_act_comes_in_a_long_run_and_a_kill_in_the_shortest() -> None:
    """No harm is out of reach, none but the named is done; twenty runs of half a minute kill two hundred times."""
    assert set(FaultKind) == {act.act for act in plan(1, seconds=1_200, session_timeout_s=6)}
    for only in ({FaultKind.KILL}, {FaultKind.STOP, FaultKind.REJECT}):
        assert only == {act.act for act in plan(1, seconds=120, session_timeout_s=6, acts=only)}

    assert [FaultKind.KILL] == [act.act for act in plan(1, seconds=0.1, session_timeout_s=6)]

    plans = [plan(seed, seconds=30, session_timeout_s=6) for seed in range(1, 21)]

    assert sum(act.act is FaultKind.KILL for acts in plans for act in acts) >= 200


def test_every_role_is_killed() -> None:
    """Sessions and memory, which keep state, more often than the others; each place is a role that can be started."""
    kills = Counter(act.place for act in plan(1, seconds=1_200, session_timeout_s=6) if act.act is FaultKind.KILL)

    assert {*PLACES} - {JOINER} == {*kills}
    assert min(kills[place] for place in (*SESSIONS, MEMORY)) > max(kills[name] for name in ("enrich", "index"))
    assert {place.partition("-")[0] for place in PLACES} <= {*ROLES}


def test_every_topic_of_a_folding_role_may_refuse() -> None:
    """Both states and what one role writes for the other to fold."""
    assert {SESSION_STATE.name, MEMORY_STATE.name, COMMANDS.name} <= {*REJECTING}
    memories = {"memories.v1", "projects.v1", "memory-events.v1"}
    assert {MEMORY_STATE.name, "facts.v1", "user-episodes.v1", "requests.v1", *memories} == REJECTING_USERS


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


KILL = Fault(FaultKind.KILL, "sessions-0", 10_000, 10_000)


def late(alerts: list[AlertTimes], *faults: Fault) -> Delays:
    """The delays with a session time-out of six seconds."""
    return delays(alerts, faults, session_timeout_s=6)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (AlertTimes(9_000, 12_500), (3.5, 2.5, 1)),
        (AlertTimes(11_000, 12_500), (1.5, 1.5, 1)),
        (AlertTimes(16_999, 17_010), (0.011, 0.011, 1)),
        (AlertTimes(17_001, 17_010), (0.009, 0.0, 0)),
        (AlertTimes(8_000, 9_999), (1.999, 0.0, 0)),
    ],
)
def test_from_the_later_of_turn_and_kill(raised: AlertTimes, expected: tuple[float, float, int]) -> None:
    """A turn before the kill waits since the kill; one that comes later, since itself; others have nothing to do."""
    found = late([raised], KILL)

    assert expected == (found.worst_s, found.worst_after_kill_s, found.after_kill)


def test_the_last_of_several_kills_counts() -> None:
    """Killed again while it starts, alerts come after the second one; no alert is no delay."""
    again = Fault(FaultKind.KILL, "sessions-1", 13_000, 13_000)

    assert 4.0 == late([AlertTimes(9_000, 17_000)], KILL, again).worst_after_kill_s

    assert Delays(worst_s=0.0, worst_after_kill_s=0.0, after_kill=0) == late([], KILL)


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (Fault(FaultKind.BROKER, "", 11_000, 11_500), 0),
        (Fault(FaultKind.FREEZE, "sessions-1", 0, 8_000), 0),
        (Fault(FaultKind.REJECT, "alerts.v1", 2_000, 4_000), 0),
        (Fault(FaultKind.REJECT, "commands.v1", 2_000, 4_000), 0),
        (Fault(FaultKind.REJECT, "facts.v1", 9_000, 14_000), 1),
        (Fault(FaultKind.FREEZE, "memory-0", 9_000, 17_000), 1),
        (Fault(FaultKind.STOP, "sessions-1", 12_500, 12_600), 1),
        (Fault(FaultKind.FREEZE, "archive", 9_000, 17_000), 1),
        (Fault(FaultKind.KILL, "index", 9_500, 9_500), 1),
        (Fault(FaultKind.VECTORS, "hangs", 9_500, 19_500), 1),
    ],
)
def test_other_harms_exclude_an_alert(other: Fault, counts: int) -> None:
    """Only such that can delay an alert, in progress or not long over."""
    assert counts == late([AlertTimes(9_000, 12_000)], KILL, other).after_kill
