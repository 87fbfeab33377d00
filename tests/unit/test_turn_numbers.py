"""A turn number that is used twice: which turn stands, what is told, and on how many partitions a session lives."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations

import pytest
from structlog.testing import capture_logs

from models.events import AlertAcknowledged, DeadLetter, InputEvent, Position, SessionErased, SessionName, Turn
from models.partition.sessions import DecodedArrival
from models.session.turn_numbers import PlacedTurn, StandingTurn, first_turns
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory
from streams.index.turn_numbers import TurnNumbers
from streams.observe.telemetry import metrics
from tests.support.session_driver import said
from tests.support.users_indexed import MatterEmbedder

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
TOPIC = "turntide.turns.v1"
KEPT = 1_000


def placed(turn: Turn, offset: int, partition: int = 0) -> PlacedTurn:
    """A turn at a place."""
    return PlacedTurn(turn, Position(TOPIC, partition, offset), NOW)


def arrived(event: InputEvent, offset: int, partition: int = 0) -> DecodedArrival:
    """Likewise, as it is decoded."""
    return DecodedArrival(event, Position(TOPIC, partition, offset), NOW)


class Indexed:
    """Takes arrivals as the index role does, over a store without network."""

    def __init__(self, store: ServerStore, keep_turns: int = KEPT) -> None:
        self._embedder = MatterEmbedder()
        self._store = store
        self._memory = SessionVectorMemory(store, self._embedder, keep_turns=keep_turns)
        self._keep_turns = keep_turns
        self.erased: dict[tuple[SessionName, int], int] = {}
        self.start()

    def start(self) -> None:
        """As a process that knows nothing yet."""
        self._numbers = TurnNumbers(self._store, keep_turns=self._keep_turns)

    async def take(self, *arrivals: DecodedArrival) -> Sequence[DeadLetter]:
        """Write what stands; gives the letters."""
        first = await self._numbers.first(arrivals, self.erased)
        turns, places = [each.turn for each in first.kept], [each.place for each in first.kept]
        vectors = self._embedder.embed([turn.content for turn in turns])
        await self._memory.add_turns(turns, vectors, None, places)
        return first.conflicts

    async def texts(self, app: str = "a") -> list[str]:
        """What the session's turns say, in order of number."""
        return [turn.content for turn in await self._memory.last_turns(SessionName(app, "s"), KEPT)]


@pytest.fixture
def index(store: ServerStore) -> Indexed:
    """Over an empty store."""
    return Indexed(store)


def told() -> float:
    """Sessions that were told of so far."""
    return metrics.registry.get_sample_value("turntide_sessions_on_two_partitions_total") or 0.0


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_the_first_in_the_log_stands_in_whatever_order_it_is_read(order: tuple[int, ...]) -> None:
    """The lowest partition, then the lowest offset: as the archive's view has it; one that is read late replaces."""
    log = [placed(said(0, "first"), 4), placed(said(0, "second"), 9), placed(said(0, "third"), 2, partition=1)]
    kept, _ = first_turns([log[n] for n in order], {})

    assert kept == [log[0]]


def test_the_same_text_is_a_repeat_and_other_text_a_conflict_with_both_places() -> None:
    """The letter has neither text nor bytes, and names the session with its app: an erasure finds it."""
    one, again, other = said(3, "secret words"), said(3, "secret words"), said(3, "other secret words")
    kept, (letter,) = first_turns([placed(one, 4), placed(again, 5), placed(other, 6)], {})
    _, repeated = first_turns([placed(other, 6)], {placed(one, 4).name: StandingTurn("secret words", 0, 4)})

    assert kept == [placed(one, 4)]
    assert (letter.reason, letter.stage, letter.offset, letter.value) == ("turn_conflict", "index", 6, None)
    assert letter.detail == "turn 3 stands at turntide.turns.v1-0-4 with other text than at turntide.turns.v1-0-6"
    assert letter.key == b"session:a/s"
    assert repeated == [letter]


def test_of_an_early_release_s_point_the_text_stands_and_gets_its_place() -> None:
    """Releases that kept no place of a turn: other text is a conflict, at an unknown first place."""
    stands = {placed(said(0), 1).name: StandingTurn("hello", None, -1)}
    kept, (letter,) = first_turns([placed(said(0, "hello"), 5), placed(said(0, "other"), 6)], stands)

    assert [each.place.offset for each in kept] == [5]
    assert letter.offset == 6


async def test_a_bot_that_counts_from_zero_again_overwrites_nothing(index: Indexed) -> None:
    """After 200 turns, in a process that knows nothing of them; its record that is read again is no conflict."""
    first = [arrived(said(n, f"first {n}"), n) for n in range(200)]
    second = [arrived(said(n, f"second {n}" if n % 2 else f"first {n}"), 200 + n) for n in range(4)]
    letters = [*await index.take(*first), *await index.take(*first[190:])]
    index.start()
    letters += await index.take(*second, arrived(said(200, "goes on"), 204))
    again = await index.take(*first[:3], *second)
    texts = await index.texts()

    assert [letter.offset for letter in letters] == [201, 203]
    assert [letter.id for letter in again] == [letter.id for letter in letters]
    assert texts == [*(f"first {n}" for n in range(200)), "goes on"]


async def test_a_log_that_is_read_anew_puts_right_what_an_earlier_release_overwrote(index: Indexed) -> None:
    """It kept the last turn of a number: the first one is read before, and stands from then on."""
    await index.take(arrived(said(0, "second"), 9))
    replayed = [*await index.take(arrived(said(0, "first"), 4)), *await index.take(arrived(said(0, "second"), 9))]

    assert await index.texts() == ["first"]
    assert [letter.offset for letter in replayed] == [9]


async def test_a_number_that_the_store_gave_up_is_not_filled_again(store: ServerStore) -> None:
    """A bot restarts after more turns than are kept: what stood there is gone, and what it says is no turn 0."""
    index = Indexed(store, keep_turns=10)
    await index.take(*(arrived(said(n, f"first {n}"), n) for n in range(35)))
    index.start()
    letters = await index.take(*(arrived(said(n, f"second {n}"), 40 + n) for n in range(27)))

    assert await index.texts() == [f"first {n}" for n in range(25, 35)]
    assert [letter.offset for letter in letters] == [65, 66]


async def test_what_was_erased_stands_in_nobody_s_way(index: Indexed) -> None:
    """Its points may still be there when the session begins anew."""
    await index.take(*(arrived(said(n, "before"), n) for n in range(3)))
    index.erased[SessionName("a", "s"), 0] = 3
    erased = SessionErased(session_id="s", app_id="a", timestamp=NOW, request_id="r")
    letters = await index.take(arrived(erased, 3), arrived(said(0, "after"), 4))

    assert letters == []
    assert (await index.texts())[0] == "after"


async def test_a_session_on_two_partitions_is_told_once(index: Indexed) -> None:
    """By a turn or by what is said of it, also in a process that has not seen it; the same id of another app is not.

    Its erasure may come on any partition: it is written wherever the session may stand. Of unknown ones no word.
    """
    before, ack = told(), AlertAcknowledged(session_id="s", app_id="a", timestamp=NOW, alert_id="x")
    await index.take(arrived(said(0, "one"), 0, 5), arrived(said(0, "other", app_id="b"), 0, 2), arrived(ack, 1, 5))
    unknown = AlertAcknowledged(session_id="no", timestamp=NOW, alert_id="x")
    await index.take(arrived(SessionErased(session_id="s", app_id="b", timestamp=NOW, request_id="r"), 3, 1))
    await index.take(arrived(unknown, 4))
    fine = told() - before
    index.start()
    with capture_logs() as logs:
        await index.take(arrived(ack, 7, 3), arrived(said(1, "two"), 8, 3))
    (line,) = [each for each in logs if each["event"] == "session_on_two_partitions"]

    assert (fine, told() - before) == (0, 1)
    assert (line["app_id"], line["session_id"], line["partitions"]) == ("a", "s", [5, 3])
