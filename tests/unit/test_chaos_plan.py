"""What chaos does and sends is a function of its seed, and holds what it is for."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from jobs.chaos.actions import JOINER, PLACES, REJECTING, Act, Outage, plan
from jobs.chaos.traffic import CONCURRENT_SESSIONS, Sent, traffic
from models.codec import decode_input
from models.errors import InvalidRecord
from models.events import SessionEnded, Turn
from models.policy import Policy

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
TURNS = 6_000


def sent(seed: int) -> list[Sent]:
    """An hour of conversations."""
    return list(traffic(seed, turns=TURNS, ends_at=NOW, span=timedelta(hours=1)))


def test_plan_is_repeatable() -> None:
    """The same seed gives the same acts, another one others."""
    first, again, other = (plan(seed, seconds=60, session_timeout_s=6) for seed in (7, 7, 8))

    assert (True, False) == (first == again, first == other)


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


def test_every_act_comes_in_a_long_run() -> None:
    """No kind of harm is out of reach."""
    assert set(Act) == {act.act for act in plan(1, seconds=1_200, session_timeout_s=6)}


@pytest.mark.parametrize("acts", [{Act.KILL}, {Act.STOP, Act.REJECT}])
def test_only_allowed_acts_come(acts: set[Act]) -> None:
    """What is not named is not done, not even the first kill."""
    assert acts == {act.act for act in plan(1, seconds=120, session_timeout_s=6, acts=acts)}


def test_twenty_short_runs_kill_two_hundred_times() -> None:
    """What a sweep of half a minute a seed promises, the broker's and the vector store's kills not counted."""
    plans = [plan(seed, seconds=30, session_timeout_s=6) for seed in range(1, 21)]

    assert sum(act.act is Act.KILL for acts in plans for act in acts) >= 200


def test_shortest_plan_has_a_kill() -> None:
    """A run that is over before the first gap still kills once."""
    assert [Act.KILL] == [act.act for act in plan(1, seconds=0.1, session_timeout_s=6)]


def test_traffic_is_repeatable() -> None:
    """The same seed sends the same bytes in the same order."""
    assert (True, False) == (sent(3) == sent(3), sent(3) == sent(4))


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
