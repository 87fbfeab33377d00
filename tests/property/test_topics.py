"""What holds for the topics of every session, whatever is said, in whatever order, and wherever it is cut."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events import FeedbackGiven, OutputEvent, RestoredMessage, Role, SessionEnded, TopicAdjusted, TopicRestored
from models.state.buffer import BufferedTurn
from models.wire.arrival import SessionTimedOut
from tests.support.data_files import data_file
from tests.support.topic_driver import Talk, between, matter, recalled
from tests.support.topic_ledger import Ledger

SMALL: dict[str, object] = data_file("topics")["policy"]
"""Small numbers, so that everything happens often."""
DIRECTIONS = [*(matter(n) for n in range(6)), between(0, 1, 0.6), between(0, 1, 0.45), between(2, 3, 0.6), None]
TEXTS = ["What sails does it need?", "", "Thanks!", "Ünïcödé \U0001f984 " * 9] + [
    "".join(chr(97 + (n * n * k + 7 * n) % 26) for n in range(900)) for k in (3, 5)
]
GAPS = [timedelta(seconds=1), timedelta(minutes=5), timedelta(hours=9), timedelta(days=3), timedelta(days=-365)]

Step = tuple[str, int, int, int, int]
TURN = st.tuples(
    st.sampled_from(["user", "user", "user", "assistant"]),
    st.integers(0, len(DIRECTIONS) - 1),
    st.integers(0, len(TEXTS) - 1),
    st.sampled_from([0, 0, 0, 0, 1, 2, 3, -1, -2, -5]),
    st.integers(0, len(GAPS) - 1),
)
OTHER = st.tuples(
    st.sampled_from(["adjust", "feedback", "restore", "restore", "recall", "end", "time out"]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.just(0),
    st.integers(0, len(GAPS) - 1),
)
ANY = st.one_of(TURN, TURN, TURN, TURN, TURN, TURN, OTHER)
STEPS = st.one_of(st.lists(ANY, max_size=20), st.lists(ANY, min_size=40, max_size=90))


class World(Talk):
    """A session with an account of where each of its turns is."""

    def __init__(self, **topics: object) -> None:
        super().__init__(**(SMALL | topics))
        self.ledger = Ledger()
        self.said: dict[int, BufferedTurn] = {}
        self.happened = Counter[str]()

    def step(self, step: Step) -> None:
        """One input, and the account of what it does."""
        kind, pick, other, jump, gap = step
        already = len(self.changes)
        time = self.watermark + GAPS[gap]
        match kind:
            case "user" | "assistant":
                self._say(Role(kind), pick, f"{TEXTS[other]} {len(self.outputs)}", max(self.turn + jump, 0), gap)
            case "adjust":
                event = TopicAdjusted(session_id="s", timestamp=time, importance=pick / 9, tags=[f"tag {other}"])
                self.put(msgspec.structs.replace(event, topic_id=self._any_topic(other)))
            case "feedback":
                self.put(
                    FeedbackGiven(session_id="s", timestamp=time, value=(pick - 4.5) / 4.5, turn=other * self.turn // 9)
                )
            case "restore" if self.ledger.evicted:
                self._restore(pick)
            case "recall":
                self._recall(pick, other)
            case "end":
                self.put(SessionEnded(session_id="s", timestamp=time))
            case "time out" if self.state is not None and self.state.deadline is not None:
                self.put(SessionTimedOut("s", self.state.deadline))
        for change in self.changes[already:]:
            self.happened[change.cause] += 1
            self.ledger.take(change)
        if self.state is None or self.state.deadline is None:
            self.ledger, self.said = Ledger(), {}

    def _say(self, role: Role, pick: int, content: str, number: int, gap: int) -> None:
        time = self.watermark + GAPS[gap]
        vector = DIRECTIONS[pick] if role is Role.USER else None
        metadata = {"importance": pick / 9} if gap == 0 else {}
        fields: dict[str, object] = {"turn": number, "timestamp": time, "metadata": metadata}
        if role is Role.USER:
            self.ask(vector, content, **fields)
        else:
            self.answer(content, role, **fields)
        assert self.state is not None
        if self.state.last_point is not None:
            self.said[number] = BufferedTurn(number, role, content, time, None)
            self.ledger.unnamed.add(number)

    def _any_topic(self, pick: int) -> str | None:
        ids = [*self.ledger.held, None, "unknown"]
        return ids[pick % len(ids)]

    def _restore(self, pick: int) -> None:
        gone = list(self.ledger.evicted.values())[pick % len(self.ledger.evicted)]
        messages = [self.said[turn] for turn in [*gone.packed_turns, *gone.active_turns]]
        self.put(
            TopicRestored(
                session_id="s",
                timestamp=self.watermark,
                topic_id=gone.topic_id,
                title=gone.title,
                created_at=gone.created_at,
                importance=gone.importance,
                access_count=gone.access_count,
                summary=gone.summary or "",
                messages=[
                    RestoredMessage(turn=m.turn, role=m.role, content=m.content, timestamp=m.timestamp)
                    for m in messages
                ],
            ),
            vector=DIRECTIONS[pick % len(DIRECTIONS)],
        )

    def _recall(self, pick: int, messages: int) -> None:
        """A topic of another session comes, which takes in what was begun here of its matter."""
        direction = DIRECTIONS[pick % len(DIRECTIONS)]
        self.put(recalled(f"of another session {len(self.outputs)}", direction, messages, self.watermark))

    def store(self) -> None:
        """Store and load, if there is anything."""
        if self.state is not None:
            super().store()

    def check(self) -> None:
        """Hold the state against the account, and its entries against the topics."""
        if self.state is not None and self.state.deadline is not None:
            self.ledger.compare(self.topics, self.said)


def parts_of(world: World) -> set[str]:
    """Entries that the topics of a session must have, no more and no fewer."""
    names = set[str]()
    if world.state is None:
        return names
    store = world.topics.store
    for slot, topic in store.topics():
        names |= {f"t{slot}", "ti", *(f"tm{slot}.{number}" for number in topic.slots.values())}
        names |= {f"{'tp' if block.packed_bytes else 'th'}{slot}.{block.number}" for block in topic.blocks}
        names |= {f"ty{slot}"} if store.summary(slot) else set()
        names |= {f"te{slot}"} if store.embedding(slot) else set()
        names |= {f"tr{slot}"} if store.runs(slot) else set()
    return names


@pytest.mark.behaviour("topic-24")
@given(STEPS, st.data())
def test_no_message_is_lost_or_doubled(steps: list[Step], data: st.DataObject) -> None:
    """Each counted turn is in one topic, or was named when it left; what is told is enough to know where."""
    world = World()
    for step in steps:
        world.step(step)
        world.check()
        if data.draw(st.booleans()):
            world.store()
            world.check()
            assert parts_of(world) == {part for part in world.stored if part.startswith("t")}


def driven(steps: Sequence[Step], cuts: set[int]) -> tuple[dict[str, bytes], list[OutputEvent]]:
    """What is stored and what came out, with the state stored and loaded after some steps."""
    world = World()
    for number, step in enumerate(steps):
        world.step(step)
        if number in cuts:
            world.store()
    world.store()
    return world.stored, world.outputs


@pytest.mark.behaviour("topic-21")
@given(STEPS, st.sets(st.integers(0, 90)))
def test_cuts_do_not_show(steps: list[Step], cuts: set[int]) -> None:
    """In one batch, in some, or stored after every input: the same bytes in the state and the same events."""
    whole = driven(steps, set())

    assert whole == driven(steps, cuts)
    assert whole == driven(steps, set(range(90)))


@pytest.mark.behaviour("topic-22")
@given(STEPS)
def test_state_stays_within_its_bounds(steps: list[Step]) -> None:
    """Topics, messages at hand, blocks and bytes, by the policy."""
    world = World()
    policy = world.policy.topics
    at_hand = policy.blocks * policy.block_messages + 2 * policy.max_messages + 1
    for step in steps:
        world.step(step)
        if world.state is None or world.state.deadline is None:
            continue
        topics = dict(world.topics.store.topics())
        assert len(topics) <= policy.most_topics
        for topic in topics.values():
            assert 0 <= topic.importance <= 1
            assert len(topic.packed) <= policy.blocks
            assert topic.active_messages <= at_hand
    world.store()
    for part, value in world.stored.items():
        assert part == "head" or len(value) <= 2 * (policy.block_bytes + policy.message_chars * 6)


def test_the_steps_reach_everything() -> None:
    """These properties would hold of an empty session too: a fixed run shows that each kind of change happens."""
    world = World()
    for n in range(600):
        kind = ("user", "user", "assistant", "user", "adjust", "recall", "feedback", "user", "user", "restore")[n % 10]
        world.step((kind, (n * n // 7 + n // 60) % 10, n % 6, 0, (0, 1, 1, 1, 2, 1, 0)[n % 7]))
        world.check()
    world.step(("end", 0, 0, 0, 0))
    told = set(world.happened)

    assert {"started", "left", "returned", "compacted", "unpacked", "merged", "evicted"} <= told
    assert {"adjusted", "learnt", "restored", "closed"} <= told
    assert world.ledger.released
