"""What the end of a conversation does to a space, scenarios of app memory, and the energy budget of the work."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from models import events
from models.app.energy import Energy, Work, begins_at, cost_units, level_units, may_begin
from models.errors import RecoveryFailed
from models.events.saved_search import SavedSearch
from models.events.user import MemoryMode
from models.policy import Policy
from models.policy.app import EnergyPolicy
from streams.roles.memory import log_app_memory
from tests.support.app_driver import Space, causes
from tests.support.entity_driver import NOON


@pytest.mark.parametrize(
    ("ask", "end"),
    [
        (False, {"turn_count": 0, "summary": ""}),
        (True, {"turn_count": 0, "summary": ""}),
        (False, {"summary": " \n "}),
    ],
    ids=["no turns", "no turns to ask about", "blank ones"],
)
def test_a_conversation_that_leaves_nothing_is_skipped(ask: bool, end: dict[str, Any]) -> None:
    """At once, and it costs nothing."""
    space = Space(ask=ask)
    outputs = space.end(session="s9", notables=[], **end)

    assert [type(output) for output in outputs] == [events.AppMemorySkipped, events.AppMemoriesChanged]
    assert (space.skipped, space.active) == ([("s9", "nothing_said")], {})
    assert (space.stats.skipped, space.stats.spent_units) == (1, 0.0)


def test_a_memory_that_is_not_active_makes_none() -> None:
    """Of what ends then; it is told why, and what was there stays."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s1")
    space.put(events.SpaceModeSet(app_id="a", user_id="u", timestamp=NOON, mode=MemoryMode.READ_ONLY))
    space.end(said="I decided to visit Oslo.", session="s2")

    assert space.skipped == [("s2", "not_active")]
    assert list(space.active) == [1]


@pytest.mark.behaviour("app-14")
def test_an_apps_injection_is_switched() -> None:
    """It is told, stays over what comes next and a restart, and goes back to the policy; a repeat changes nothing."""
    space = Space()
    for inject, outcome in ((True, "done"), (True, "unchanged"), (None, "done"), (False, "done")):
        assert space.command(events.AppInjectionSet, inject=inject).outcome == outcome
        assert space.stats.inject is inject
    space.end()
    space.store()
    space.end()

    assert space.stats.inject is False


def test_searches_of_alerts_are_saved() -> None:
    """By title, in place of one of its title, until let go, over a restart; at most fifty."""
    space, saved = Space(), SavedSearch(title="fraud", category=events.Harm.FRAUD)
    critical = replace(saved, severity=events.Severity.CRITICAL)
    for search, kept, outcome, stands in (
        (saved, True, "done", [saved]),
        (saved, True, "unchanged", [saved]),
        (critical, True, "done", [critical]),
        (SavedSearch(title="all"), False, "not_found", [critical]),
        (SavedSearch(title="all", show="all"), True, "done", [SavedSearch(title="all", show="all"), critical]),
        (critical, False, "done", [SavedSearch(title="all", show="all")]),
    ):
        assert space.command(events.SearchSaved, search=search, kept=kept).outcome == outcome
        assert space.stats.searches == stands
        space.store()
    for number in range(49):
        space.command(events.SearchSaved, search=SavedSearch(title=f"n{number}"))
    assert space.command(events.SearchSaved, search=SavedSearch(title="one more")).outcome == "too_many"
    assert len(space.stats.searches) == 50


def test_a_conversation_that_went_on_has_its_memory_remade() -> None:
    """In place, with the same number: what was said since is added, since the end tells of that alone."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s")
    space.end(said="I decided to visit Oslo.")
    space.end(said="I prefer to ride in the morning.", session="s", first_turn=6, last_turn=9, turn_count=4)
    remade = space.active[1]

    assert causes(space.outputs) == [(1, "created"), (2, "created"), (1, "remade")]
    assert "red bicycle" in remade.content
    assert "morning" in remade.content
    assert (remade.created_at, remade.updated_at) == (NOON, NOON + timedelta(seconds=2))
    assert space.stats.created == 2


def test_a_remade_memory_is_no_less_important_and_knows_its_last_turn() -> None:
    """A word of thanks at the end does not make it less; turns told before are not told again as new."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s", last_turn=9)
    before = space.active[1].importance
    space.end(
        session="s",
        notables=[],
        summary="The parcel with the bicycle comes on Monday morning.",
        first_turn=10,
        last_turn=30,
        turn_count=1,
    )
    assert (space.active[1].cause, space.active[1].importance) == ("remade", before)
    space.end(said="I decided to visit Oslo.", session="s", first_turn=12, last_turn=30)

    assert "bicycle" not in space.active[1].content


@pytest.mark.parametrize("command", [(events.MemoryDeleted, {}), (events.MemoryEdited, {"pinned": True})])
def test_a_memory_that_is_gone_or_pinned_is_not_remade(command: tuple[type, dict[str, bool]]) -> None:
    """Then there is a new one: what an admin pinned stays as it is."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s")
    space.command(command[0], memory_id=1, **command[1])
    before = space.active.get(1)
    space.end(said="I decided to visit Oslo.", session="s", first_turn=6, last_turn=9)

    assert space.active.get(1) == before
    assert "bicycle" not in space.active[2].content


def test_nothing_is_made_where_it_is_switched_off() -> None:
    """Memories that are there stay, and admins can still remove them."""
    space = Space()
    space.fill(2)
    space.policy = Policy(apps=msgspec.structs.replace(space.policy.apps, enabled=False))
    assert space.end() == []
    assert space.command(events.MemoryDeleted, memory_id=1).outcome == "done"


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        ("head", None, "part head is missing"),
        ("head", b"\xc1", "part head is unreadable"),
        ("head", msgspec.msgpack.encode([2]), "has version 2, this release reads 1"),
        ("m0", b"\x90", "part m0 is unreadable"),
    ],
)
def test_a_damaged_state_is_refused(part: str, data: bytes | None, message: str) -> None:
    """Rather than misread; the role sets the record aside."""
    space = Space()
    space.end()
    space.store()
    damaged = {name: value for name, value in (space.stored | {part: data}).items() if value is not None}

    with pytest.raises(RecoveryFailed, match=message):
        space.read(damaged)


@pytest.mark.behaviour("app-07")
def test_compacts_memories_when_limit_reached() -> None:
    """App memory: the eleventh leaves ten; one event says what was before and after, who decided what and why."""
    space = Space()
    space.fill()
    assert (len(space.active), space.compactions) == (10, [])
    space.end()
    (compaction,) = space.compactions

    assert len(space.active) == len(space.memories) == space.stats.memories == 10
    assert ([m.memory_id for m in compaction.before], len(compaction.after)) == ([*range(1, 12)], 10)
    assert {m.memory_id: m.content for m in compaction.after} == {n: m.content for n, m in space.active.items()}
    assert (compaction.decided_by, compaction.fallback) == ("rules", "")
    assert compaction.reason
    assert (space.stats.created, space.stats.compactions) == (11, 1)


@pytest.mark.parametrize("uninstalls", [False, True])
def test_purges_memories_on_admin_request_or_uninstall(uninstalls: bool) -> None:
    """App memory: each is told gone without its text; again it finds nothing, which is no error; numbers go on."""
    space = Space()
    space.fill(8)
    audited = (
        space.command(events.AppUninstalled, purge_memories=True)
        if uninstalls
        else space.command(events.MemoriesPurged)
    )
    gone = space.outputs[-10:-2]

    assert (audited.outcome, audited.count, audited.by) == ("done", 8, "root")
    assert causes(gone) == [(number, "purged") for number in range(1, 9)]
    assert {(o.active, o.content, tuple(o.tags)) for o in gone if isinstance(o, events.AppMemoryChanged)} == {
        (False, "", ())
    }
    assert (space.active, space.memories, space.stats.uninstalled) == ({}, {}, uninstalls)
    again = space.command(events.MemoriesPurged)
    assert (again.outcome, again.count) == ("unchanged", 0)
    space.end()
    assert list(space.active) == [9]


def test_a_policy_that_allows_fewer_lets_the_oldest_go() -> None:
    """With the next event, each with its own compaction; one that allows more leaves them."""
    space = Space()
    space.fill()
    space.store()
    space.policy = Policy(apps=Space(most=7, most_pinned=5).policy.apps)
    space.state = space.load()
    space.wait(seconds=1)

    assert list(space.active) == [4, 5, 6, 7, 8, 9, 10]
    assert [(c.decided_by, c.fallback, c.target_memory_id) for c in space.compactions] == [
        ("fifo", "too_many", number) for number in (1, 2, 3)
    ]


POLICY = EnergyPolicy(capacity_units=100, refill_units_per_hour=60)


@pytest.mark.behaviour("app-11")
@pytest.mark.parametrize(
    ("work", "tokens", "seconds", "units"),
    [
        ("creation", 0, 0, 10),
        ("creation", 1_000, 0, 12),
        ("creation", 1_000, 2, 14),
        ("creation", 0, 30, 15),
        ("creation", 2**31, 2**31 / 1_000, 15),
        ("compaction", 0, 0, 20),
        ("compaction", 500, 1.5, 22.5),
        ("compaction", 0, 30, 30),
    ],
)
def test_work_costs_what_it_took_within_its_limits(work: Work, tokens: int, seconds: float, units: float) -> None:
    """App memory: 10-15 and 20-30 units; by tokens and time."""
    assert cost_units(work, tokens, timedelta(seconds=seconds), POLICY) == pytest.approx(units)


@pytest.mark.behaviour("app-12")
def test_the_budget_refills_up_to_its_capacity() -> None:
    """With time, not with events; a clock that goes back takes nothing away."""
    energy = Energy(20.0, NOON)
    minutes = (-60, 0, 30, 79, 80, 100_000)

    assert [level_units(energy, NOON + timedelta(minutes=n), POLICY) for n in minutes] == [20, 20, 50, 99, 100, 100]
    assert level_units(None, NOON, POLICY) == 100


@pytest.mark.behaviour("app-11")
@pytest.mark.parametrize(("level", "begins"), [(19.9, False), (20.0, False), (20.1, True), (100.0, True)])
def test_work_begins_above_the_floor_only(level: float, begins: bool) -> None:
    """App memory: only when energy > 20 %."""
    assert may_begin(Energy(level, NOON), NOON, POLICY) is begins


@pytest.mark.parametrize("level", [0.0, 7.77, 19.999, 20.0])
def test_when_work_begins_again_is_known(level: float) -> None:
    """At that time it may, and hardly before."""
    energy = Energy(level, NOON)
    at = begins_at(energy, POLICY)

    assert at is not None
    assert may_begin(energy, at, POLICY)
    assert not may_begin(energy, at - timedelta(milliseconds=2), POLICY)


def poor(capacity: float = 50.0, **apps: Any) -> Space:
    """A space whose energy is for few memories: above 10 of 50 units one may begin, 60 come back in an hour."""
    return Space(energy={"capacity_units": capacity, "refill_units_per_hour": 60.0}, **apps)


def test_without_energy_conversations_wait_and_none_is_lost() -> None:
    """Deferred, not dropped: they become memories in their order when energy is back."""
    space = poor()
    for _ in range(7):
        space.end()
        space.store()
    assert (len(space.active), space.stats.waiting) == (4, 3)
    assert space.stats.energy_units <= 10
    for left in (2, 1, 0):
        due = space.due
        assert due is not None
        space.now = due - timedelta(seconds=1)
        space.wait()
        space.store()
        assert space.stats.waiting == left

    assert [m.session_id for m in space.active.values()] == [f"s{n}" for n in range(7)]
    assert space.due is None


@pytest.mark.behaviour("app-23")
def test_spending_is_told_by_kind() -> None:
    """For the metric, beside the sum of all time that readers see."""
    space = Space(most=2, most_pinned=0)
    space.fill(3)
    spent = dict(space.state.spent)

    assert set(spent) == {"creation", "compaction"}
    assert 30 <= spent["creation"] <= 45
    assert 20 <= spent["compaction"] <= 30
    assert space.stats.spent_units == pytest.approx(sum(spent.values()))
    assert [s.spent_units for s in space.of(events.AppMemoriesChanged)] == sorted(
        s.spent_units for s in space.of(events.AppMemoriesChanged)
    )


@pytest.mark.behaviour("app-24")
def test_what_becomes_of_memories_is_logged_without_a_word() -> None:
    """Created, compacted, and, as a warning, what a language model failed to make; whatever else is told is not."""
    space, asked = Space(most=2, most_pinned=0), Space(ask=True)
    outputs = [*space.end(said="I decided to buy a red bicycle."), *space.end(), *space.end()]
    asked.end()
    outputs += asked.propose(content="", failure="timeout")
    with capture_logs() as lines:
        for output in outputs:
            log_app_memory(output)

    assert [(line["event"], line["log_level"]) for line in lines] == [
        *[("app_memory_created", "debug")] * 2,
        ("app_memories_compacted", "debug"),
        ("app_memory_created", "debug"),
        ("app_memory_skipped", "warning"),
    ]
    assert {"shop"} == {line["app_id"] for line in lines}
    assert "timeout" == lines[-1]["reason"]
    assert not any(word in str(lines) for word in ("bicycle", "piano", "curtains", "anna"))
