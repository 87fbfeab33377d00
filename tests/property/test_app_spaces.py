"""What holds for every space of memories, whatever ends, is answered, commanded and repeated, wherever it is cut."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.app.state import facts_to_keep
from models.events.app import AppUninstalled, MemoriesPurged, MemoryDeleted, MemoryEdited
from models.events.erase import SpaceErased, SpaceSessionErased
from models.policy import Policy
from models.policy.app import AppPolicy, EnergyPolicy
from models.wire.arrival import Command
from models.wire.codec import encode
from models.wire.envelope import tag_of
from tests.support.app_driver import Space, ended
from tests.support.cut_log import assert_cuts_change_nothing, come_of
from tests.support.entity_driver import NOON
from tests.support.limits import too_large

ENERGY = EnergyPolicy(capacity_units=60.0, refill_units_per_hour=120.0)
SMALL = AppPolicy(most=3, most_pinned=1, waiting=3, results=2, related=2, most_content_chars=200, energy=ENERGY)
"""Small numbers, so that everything happens often."""
RULES = Policy(apps=SMALL)
ASKING = Policy(apps=msgspec.structs.replace(SMALL, ask=True))
EXPIRING = Policy(apps=msgspec.structs.replace(SMALL, expire_after=timedelta(hours=2)))
SHARED = {"shared_capacity_units": 90.0, "shared_refill_units_per_hour": 60.0}
SHARING = Policy(apps=msgspec.structs.replace(SMALL, energy=msgspec.structs.replace(ENERGY, **SHARED)))
"""All spaces together have less than each alone."""
POLICIES = st.sampled_from([RULES, ASKING, EXPIRING, SHARING])
TEXTS = (
    *("I live in Oslo.", "I live in Lima.", "I prefer tea.", "I decided to buy a red bicycle."),
    *("We chose the night train.", "I decided to buy a red bicycle for Anna.", ""),
    "Ünïcödé \U0001f984 is my favourite thing.",
)
SPACES = (("a", ""), ("b", ""), ("a", "u/1"))
ACTIONS = ("delete", "edit", "edit", "keep")
KINDS = [*["end"] * 4, *["propose"] * 2, "decide", "wait", "again", "edit", "delete", "purge", "erase"]

STEP = st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 9), st.integers(0, 20))
Step = tuple[str, int, int, int]
STEPS = st.one_of(st.lists(STEP, max_size=12), st.lists(STEP, min_size=25, max_size=60))


class Talker:
    """Makes the commands of one space from steps, with the times of their records; its clock only goes on."""

    def __init__(self, app: str = "a", user: str = "") -> None:
        self.ids = {"app_id": app, "user_id": user}
        self.now = NOON
        self.ends: list[events.ConversationEnded] = []

    def makes(self, step: Step) -> list[tuple[events.CommandEvent, datetime]]:
        """What one step puts on the log."""
        kind, pick, other, minutes = step
        self.now += timedelta(minutes=minutes)
        return [(event, self.now) for event in self._events(kind, pick, other)]

    def _events(self, kind: str, pick: int, other: int) -> Sequence[events.CommandEvent]:  # noqa: PLR0911 - one for each kind
        common: dict[str, Any] = {"timestamp": self.now} | self.ids
        admin = common | {"request_id": f"r{pick}", "by": "root"}
        match kind:
            case "end":
                return [self._end(pick, other)]
            case "propose":
                answer: dict[str, Any] = {
                    "content": TEXTS[pick % len(TEXTS)],
                    "tokens": 100 * other,
                    "elapsed_ms": 900 * pick,
                }
                failure = "timeout" if other == 9 else ""
                return [
                    events.MemoryProposed(
                        request=1 + pick % 4 + 2 * other, failure=failure, made_by="llm", **answer, **common
                    )
                ]
            case "decide":
                action: dict[str, Any] = {
                    "action": ACTIONS[other % 4],
                    "new_content": TEXTS[other % len(TEXTS)] or None,
                    "reason": "so",
                }
                return [
                    events.CompactionDecided(
                        request=1 + n, target_memory_id=1 + pick, decided_by="llm", **action, **common
                    )
                    for n in range(2 * other, 2 * other + 4)
                ]
            case "wait":
                return [events.WorkDue(**common)]
            case "again":
                return self.ends[-other - 1 :]
            case "edit":
                pinned = (None, True, False)[pick % 3]
                content = TEXTS[pick % len(TEXTS)] or None
                return [MemoryEdited(memory_id=1 + other, pinned=pinned, content=content, **admin)]
            case "delete":
                return [MemoryDeleted(memory_id=1 + other, **admin)]
            case "purge":
                purges = pick > 4
                return [MemoriesPurged(**admin) if other < 2 else AppUninstalled(purge_memories=purges, **admin)]
        if other == 0:
            return [SpaceErased(request_id="e", **common)]
        return [SpaceSessionErased(session_ids=[f"s{pick}", f"s{other}"], request_id="e", **common)]

    def _end(self, pick: int, other: int) -> events.ConversationEnded:
        number = len(self.ends)
        # Two ends at one record of the log now and then, as time-outs do.
        source = events.Position("turns", 0, number - number % 2)
        space = {"space": "user" if self.ids["user_id"] else "app", "user_id": self.ids["user_id"] or f"u{pick % 2}"}
        turns = {"first_turn": number * 4, "last_turn": number * 4 + 3, "turn_count": 0 if pick == other == 9 else 4}
        event = ended(
            TEXTS[other % len(TEXTS)], f"s{pick}", source, self.now, **self.ids | space | turns, id=f"end {number}"
        )
        self.ends.append(event)
        return event


def log_of(steps: Sequence[Step]) -> list[Command]:
    """A partition's log of three spaces, taking turns."""
    talkers = [Talker(*owner) for owner in SPACES]
    said = [event for number, step in enumerate(steps) for event in talkers[number % 3].makes(step)]
    return [Command(event, events.Position("commands", 5, n), at) for n, (event, at) in enumerate(said)]


@given(STEPS, POLICIES, st.lists(st.integers(1, 9), min_size=1), st.lists(st.integers(0, 9), min_size=1), st.booleans())
def test_batches_and_crashes_change_nothing(
    steps: list[Step], policy: Policy, cuts: list[int], rewinds: list[int], small_chunks: bool
) -> None:
    """One call over the whole log equals many, each by a fresh fold, some done again as their state was lost."""
    assert_cuts_change_nothing(log_of(steps), policy, cuts, rewinds, small_chunks=small_chunks)


class Watched(Space):
    """A space whose memories are held against what was told of them."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, app="a")
        self.forget()

    def forget(self) -> None:
        """Nothing was told yet."""
        self.told, self.outputs = {}, []
        self.gone = self.dropped = self.compacted = self.passed = 0
        self.last: events.AppMemoriesChanged | None = None

    def take(self, event: events.CommandEvent, at: datetime) -> None:
        """Fold an event, and look at everything."""
        self.now = max(self.now, at)
        before = self.state.head.spent_units
        level = self.last.energy_units if self.last else ENERGY.capacity_units
        outputs = self.put(event)  # type: ignore[arg-type]
        if isinstance(event, SpaceErased):
            # The executor of the erasure removes what was told; the counts begin anew.
            self.forget()
            return
        for output in outputs:
            self.count(output)
        self.check()
        self.check_energy(before, level)
        assert [output for output in outputs if too_large(output)] == []

    def count(self, output: events.SpaceOutput) -> None:
        """Note what was told."""
        match output:
            case events.AppMemoryChanged():
                self.gone += not output.active
            case events.AppMemoriesCompacted():
                most = self.policy.apps.most
                assert (len(output.before), len(output.after)) == (most + 1, most)
                self.compacted += 1
                self.dropped += output.before[-1].memory_id not in {memory.memory_id for memory in output.after}
            case events.AppMemorySkipped():
                self.passed += 1
            case events.AppMemoriesChanged():
                self.last = output

    def check(self) -> None:
        """What a reader of the compacted topic has is what is kept; none is lost, never too many."""
        head, apps = self.state.head, self.policy.apps
        assert {m.memory_id: m.content for m in self.active.values()} == {
            n: m.content for n, m in self.memories.items()
        }
        assert {n: tuple(m.conflicts_with) for n, m in self.active.items()} == {
            n: m.conflicts_with for n, m in self.memories.items()
        }
        assert len(self.memories) <= apps.most
        assert set(self.told) <= set(range(apps.most))
        assert sum(m.pinned for m in self.memories.values()) <= apps.most_pinned
        for number, memory in self.memories.items():
            assert 0 < len(memory.content) <= apps.most_content_chars
            assert memory.facts == facts_to_keep(memory.content, {})
            assert all(number in self.memories[other].conflicts_with for other in memory.conflicts_with)
        assert self.state.queued <= apps.waiting
        if self.state.candidate is not None:
            assert len(self.memories) == apps.most
        assert (head.compactions, head.skipped) == (self.compacted, self.passed)
        assert head.created >= len(self.memories) + self.gone + self.dropped
        if self.last:
            told = (self.last.memories, self.last.waiting, self.last.created)
            assert told == (len(self.memories), self.state.waiting, head.created)

    def check_energy(self, spent_before: float, level_before: float) -> None:
        """It lies between nothing and the capacity; below the floor only what was begun above it, or could not wait."""
        if self.last is None:
            return
        level, spent = self.last.energy_units, self.state.head.spent_units - spent_before
        assert 0 <= level <= ENERGY.capacity_units
        assert spent >= 0
        # What is asked for is paid when it is answered: one answer, and what began above the floor.
        most = ENERGY.creation_most_units + ENERGY.compaction_most_units
        if level < ENERGY.floor_ratio * ENERGY.capacity_units - most - 1e-6:
            assert level_before < ENERGY.floor_ratio * ENERGY.capacity_units or self.state.queued == SMALL.waiting


@given(STEPS, POLICIES, st.data())
def test_what_is_told_is_what_is_kept(steps: list[Step], policy: Policy, data: st.DataObject) -> None:
    """After every event, whether or not the state was stored in between."""
    talker, space = Talker(), Watched(policy)
    for step in steps:
        for event, at in talker.makes(step):
            space.take(event, at)
        if data.draw(st.booleans()):
            space.store()
            space.check()
            assert len(space.stored) <= 2 + SMALL.most + SMALL.waiting


@given(STEPS, POLICIES)
def test_ends_that_come_again_change_no_memory(steps: list[Step], policy: Policy) -> None:
    """After a crash of the sessions role: right behind each end all before it again, and nothing else comes of it."""
    found = []
    for repeats in (False, True):
        talker = Talker()
        log: list[tuple[events.CommandEvent, datetime]] = []
        for step in (step for step in steps if step[0] not in {"again", "erase"}):
            log += talker.makes(step)
            if repeats and step[0] == "end":
                log += [(event, talker.now) for event in talker.ends[-4:]]
        commands = [Command(event, events.Position("commands", 5, n), at) for n, (event, at) in enumerate(log)]
        found.append(come_of(commands, policy))

    assert found[0] == found[1]


@given(STEPS, POLICIES)
def test_nothing_of_an_erased_session_is_left(steps: list[Step], policy: Policy) -> None:
    """Its canary is in no part, and in nothing that is told afterwards, but for answers of those who still have it."""
    talker, space = Talker(), Space(policy, app="a")
    canary = "zebrafinch"
    for number, step in enumerate(steps):
        for event, at in talker.makes(step):
            if isinstance(event, events.MemoryProposed | events.CompactionDecided | MemoryEdited):
                continue
            if isinstance(event, events.ConversationEnded) and event.session_id == "s1":
                notables = [
                    msgspec.structs.replace(each, text=f"I decided on {canary} {number}.") for each in event.notables
                ]
                event = msgspec.structs.replace(event, notables=notables, summary=canary)  # noqa: PLW2901
            space.now = max(space.now, at)
            space.put(event)  # type: ignore[arg-type]
    space.erase("s1")
    after = len(space.outputs)
    for _ in range(5):
        space.wait(hours=1)
        space.end(session="s2", said="I prefer tea.")
        space.store()

    assert canary not in str(space.stored)
    assert canary not in b"".join(map(encode, space.outputs[after:])).decode()


def _aimed(event: events.CommandEvent, space: Space, random: Random) -> events.CommandEvent:
    """Mostly at what is there, which the steps do not know."""
    number = random.choice([*space.memories, 1])
    match event:
        case _ if random.random() < 0.3:
            return event
        case events.CompactionDecided():
            return msgspec.structs.replace(event, request=space.state.head.requests, target_memory_id=number)
        case events.MemoryProposed():
            return msgspec.structs.replace(event, request=space.state.head.requests)
        case MemoryEdited() | MemoryDeleted():
            return msgspec.structs.replace(event, memory_id=number)
    return event


def test_the_steps_reach_everything() -> None:
    """These properties would hold of a silent space too: a fixed run shows that each kind of thing happens."""
    kinds, causes, fallbacks, skips, outcomes = (Counter[str]() for _ in range(5))
    weights = [3, 3, 3, 3, 4, 4, 3, 3, 1, 1, 0.5, 0.5, 0.3]
    for policy in (RULES, ASKING, EXPIRING):
        talker, space, random = Talker(), Watched(policy), Random(12)
        for n in range(700):
            (kind,) = random.choices(KINDS, weights)
            minutes = random.randint(0, 20) if n % 100 > 30 else 0
            for event, at in talker.makes((kind, random.randrange(10), random.randrange(10), minutes)):
                before = len(space.outputs)
                space.take(_aimed(event, space, random), at)
                for output in space.outputs[before:]:
                    kinds[tag_of(type(output))] += 1
                    causes[getattr(output, "cause", "")] += 1
                    fallbacks[getattr(output, "fallback", "")] += 1
                    skips[output.reason if isinstance(output, events.AppMemorySkipped) else ""] += 1
                    outcomes[getattr(output, "outcome", "")] += 1

    assert len(kinds) == 7
    assert set(causes) - {""} == set(get_args(events.MemoryCause))
    assert {"unknown_action", "unknown_memory", "empty_content", "no_answer"} <= set(fallbacks)
    assert {"nothing_said", "timeout", "no_answer"} <= set(skips)
    assert {"done", "unchanged", "not_found", "too_many_pinned"} <= set(outcomes)
