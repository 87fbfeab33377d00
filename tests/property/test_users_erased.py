"""What is erased from a user's memory does not come back."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.partition.commands import MemoryPartitionFold
from models.policy import FactPolicy, Policy, UserPolicy
from tests.support.data_files import data_file
from tests.support.entity_driver import Entities
from tests.support.user_driver import NOON, added, fact, session_erased, summarised
from tests.support.user_partition import commands, gather, keep

CANARY = "Zanzibarcanary"
_TRACE = CANARY.lower().encode()
GONE = "s1"
"""The session that is erased."""
TALK = tuple(data_file("users_erased")["said"])
Said = tuple[str, int, int, int]
SAID = st.tuples(
    st.sampled_from(["say", "say", "say", "answer", "learn", "forget", "repeat"]),
    st.integers(0, 4),
    st.integers(0, 2),
    st.integers(-3, 5),
)


class Log:
    """Commands of one user, of whom session `GONE` says the canary in everything, and no other session."""

    def __init__(self) -> None:
        self.events: list[events.CommandEvent] = []
        self.turns: list[events.UserTurnAdded] = []
        self.now = NOON
        self.counted_before: int | None = None
        """Turns when the session was erased; None until it is."""

    def put(self, step: Said) -> None:
        """Let something happen; after the erasure its session is silent, but for what comes again or late."""
        kind, pick, where, minutes = step
        self.now += timedelta(minutes=minutes)
        late = self.counted_before is not None and kind in {"learn", "forget"}
        session = f"s{where}" if self.counted_before is None or where != 1 or late else "s2"
        word = CANARY if session == GONE else f"Boat{pick}"
        match kind:
            case "say":
                place = events.Position("turns", 0, len(self.turns))
                role = events.Role.ASSISTANT if pick == 4 else events.Role.USER
                self.turns.append(added(TALK[pick].format(word), session, pick, place, self.now, role=role))
                self.events.append(self.turns[-1])
            case "answer":
                first = max(len(self.turns) // 4 - pick, 0) * 4 + 1
                self.events.append(summarised(first, first + 3, self._summary(first, first + 3)))
            case "learn":
                self._found(session, facts=[fact(f"k{pick}", word)])
            case "forget":
                self._found(session, retractions=[events.Retraction(value=word)])
            case "repeat":
                self.events += self.turns[-pick - 1 :]

    def _found(
        self, session: str, facts: Sequence[events.ExtractedFact] = (), retractions: Sequence[events.Retraction] = ()
    ) -> None:
        """What a slower extractor finds in the session's last turn, if it spoke."""
        of_it = [turn for turn in self.turns if turn.session_id == session]
        if of_it:
            at = of_it[-1].timestamp
            said = {"app_id": "a", "user_id": "u", "timestamp": at, "session_id": session}
            said["asked_offset"] = self.events.index(of_it[-1])
            self.events.append(events.FactsExtracted(facts=list(facts), retractions=list(retractions), **said))  # type: ignore[arg-type]

    def erase(self) -> int:
        """Erase the session; gives the offset."""
        self.counted_before = len(self.turns)
        times = [turn.timestamp for turn in self.turns if turn.session_id == GONE] or [NOON]
        self.events.append(session_erased(GONE, started_at=min(times), ended_at=max(times)))
        return len(self.events) - 1

    def _summary(self, first: int, last: int) -> str:
        """Of turns that were asked for before the erasure the canary is told, if the session is among them."""
        asked = self.turns[first - 1 : last]
        told_before = self.counted_before is None or last <= self.counted_before
        return CANARY if told_before and any(turn.session_id == GONE for turn in asked) else "They spoke of boats."


def batches(log: Sequence[object], cuts: Sequence[int]) -> Iterator[slice]:
    """Where a log is cut."""
    position, step = 0, 0
    while position < len(log):
        size = cuts[step % len(cuts)]
        yield slice(position, position + size)
        position, step = position + size, step + 1


@given(
    st.lists(SAID, min_size=4, max_size=40),
    st.lists(SAID, max_size=20),
    st.lists(st.integers(1, 9), min_size=1),
    st.booleans(),
)
def test_what_an_erased_session_said_never_comes_back(
    before: list[Said], after: list[Said], cuts: list[int], ask: bool
) -> None:
    """Not in the state after the erasure, nor in anything told from then on, wherever the log is cut."""
    users = UserPolicy(high_turns=4, keep_turns=3, waiting_episodes=3, facts=FactPolicy(most=4, history=3, ask=ask))
    told = Log()
    for step in before:
        told.put(step)
    erased_at = told.erase()
    for step in after:
        told.put(step)
    log, entities = commands(*told.events), Entities()
    for cut in batches(log, cuts):
        outputs: dict[str, bytes] = {}
        gather(outputs, keep(entities, MemoryPartitionFold(entities, Policy(users=users)), log[cut]))
        if cut.stop <= erased_at:
            continue
        later = [] if cut.start <= erased_at else [*outputs.values()]
        values = [value for parts in entities.values() for value in parts.values()]
        assert [data for data in [*values, *later] if _TRACE in data.lower()] == []


def test_the_erasure_s_own_outputs_are_without_it() -> None:
    """Those of its very record, but for keys of facts; before it the canary is in every tier."""
    told = Log()
    for n in range(30):
        told.put(("say", n % 5, n % 3, 1))
    erased_at = told.erase()
    users = UserPolicy(high_turns=4, keep_turns=3, waiting_episodes=3, facts=FactPolicy(history=3))
    log, entities = commands(*told.events), Entities()
    fold = MemoryPartitionFold(entities, Policy(users=users))
    keep(entities, fold, log[:erased_at])
    held = {part[0] for part, value in entities["user:a/u"].items() if _TRACE in value.lower()}
    outputs: dict[str, bytes] = {}
    gather(outputs, keep(entities, fold, log[erased_at:]))

    told_of = [data for data in outputs.values() if _TRACE in data.lower()]

    assert held == {"t", "f", "r"}
    # A topic forgets a fact by its key, and a key may be made of what was said: it stands under the session's name.
    changes = [msgspec.json.decode(data, type=events.FactChanged) for data in told_of]
    assert {(c.session_id, c.value, c.active, len(c.history)) for c in changes} == {(GONE, "", False, 0)}
    assert len(outputs) > len(told_of) > 0
