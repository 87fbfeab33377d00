"""The partition fold: its clock, time-outs, apps' windows and bounded results."""

from datetime import UTC, datetime, timedelta

from models import events
from models.partition.log_fold import PARTITION_ENTITY
from models.partition.sessions import MAX_TIMEOUTS_PER_RECORD, DecodedArrival, PartitionFold
from models.policy import PartitionPolicy, Policy
from models.wire.codec import encode
from tests.support.entity_driver import Entities
from tests.support.user_partition import keep

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def turn(session: str, number: int, at: datetime, content: str = "Hello?", app: str = "a") -> events.Turn:
    """A user's turn."""
    return events.Turn(
        session_id=session, user_id="u", app_id=app, turn=number, role=events.Role.USER, content=content, timestamp=at
    )


def log(*inputs: events.InputEvent, first: int = 0) -> list[DecodedArrival]:
    """Arrivals at successive offsets, appended at their event time."""
    return [DecodedArrival(e, events.Position("t", 0, first + n), e.timestamp, 0.1) for n, e in enumerate(inputs)]


class Kept:
    """A partition's state and everything it put out."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.entities: Entities = {}
        self.fold = PartitionFold(self.entities, policy or Policy())
        self.outputs: list[object] = []

    def take(self, arrivals: list[DecodedArrival]) -> None:
        """Fold and keep."""
        self.outputs += keep(self.entities, self.fold, arrivals)

    def known(self) -> set[str]:
        """Sessions whose state is kept, by app and id."""
        return {"/".join(events.SessionName.of_key(key)) for key in self.entities if key != PARTITION_ENTITY}

    def closed(self) -> list[str]:
        """Sessions that an episode was written of, in order."""
        return [o.session_id for o in self.outputs if isinstance(o, events.EpisodeClosed)]


def test_a_session_times_out_when_another_ones_turn_passes_its_deadline() -> None:
    """Exactly the time-out is early enough to go on, one record at the deadline closes it."""
    kept = Kept()
    timeout = Policy().session.timeout
    kept.take(log(turn("a", 0, START), turn("b", 0, START + timeout - timedelta(seconds=1))))

    assert kept.closed() == []

    kept.take(log(turn("b", 1, START + timeout), first=2))

    assert kept.closed() == ["a"]


def test_a_tick_moves_the_clock_of_an_idle_partition() -> None:
    """The broker's time of the tick counts; the tick itself is no session."""
    kept = Kept()
    kept.take(log(turn("a", 0, START)))
    tick = events.ClockTicked(session_id="clock-0", timestamp=START)
    kept.take([DecodedArrival(tick, events.Position("t", 0, 1), START + timedelta(hours=1))])

    assert kept.closed() == ["a"]
    assert kept.known() == {"a/a"}


def test_a_closed_session_is_forgotten_after_its_retention() -> None:
    """Nothing of it stays in the state, not even its marker."""
    kept = Kept()
    kept.take(
        log(turn("a", 0, START), turn("b", 0, START + timedelta(hours=1)), turn("c", 0, START + timedelta(days=2)))
    )
    kept.take(log(turn("c", 1, START + timedelta(days=2)), first=3))

    assert kept.known() == {"a/b", "a/c"}
    assert kept.closed() == ["a", "b"]


def test_a_jump_of_the_clock_closes_a_bounded_number_per_record() -> None:
    """The rest follow at the next records; none is forgotten."""
    kept = Kept()
    sessions = MAX_TIMEOUTS_PER_RECORD * 2 + 10
    kept.take(log(*(turn(f"s{n}", 0, START) for n in range(sessions))))
    later = START + timedelta(hours=2)
    counts = []
    for n in range(4):
        kept.take(log(turn("x", n, later), first=sessions + n))
        counts.append(len(kept.closed()))

    assert counts == [MAX_TIMEOUTS_PER_RECORD, 2 * MAX_TIMEOUTS_PER_RECORD, sessions, sessions]


def test_windows_of_apps_close_by_the_watermark() -> None:
    """Each app's minute is counted once, with its own turns."""
    kept = Kept()
    kept.take(log(turn("a", 0, START, app="x"), turn("b", 0, START, app="y"), turn("a", 1, START, app="x")))
    kept.take(log(turn("a", 2, START + timedelta(minutes=3), app="x"), first=3))
    windows = [o for o in kept.outputs if isinstance(o, events.WindowClosed) and o.scope == "app"]

    assert [(w.app_id, w.window_start, w.turns) for w in windows] == [("x", START, 2), ("y", START, 1)]
    assert "app:y" not in kept.entities[PARTITION_ENTITY]


def test_the_session_silent_longest_is_evicted_beyond_the_bound() -> None:
    """It closes early, at the clock of that moment, with its episode; its next turn opens it anew."""
    kept = Kept(Policy(partition=PartitionPolicy(open_sessions=2)))
    minutes = [START + timedelta(minutes=n) for n in range(6)]
    kept.take(log(turn("a", 0, minutes[0]), turn("b", 0, minutes[1]), turn("a", 1, minutes[2])))
    kept.take(log(turn("c", 0, minutes[3]), turn("c", 1, minutes[4]), turn("b", 1, minutes[5]), first=3))
    episodes = [o for o in kept.outputs if isinstance(o, events.EpisodeClosed)]

    assert [(e.session_id, e.reason, e.timestamp) for e in episodes] == [("b", "evicted", minutes[4])]
    assert kept.fold.open_sessions == 3


def test_closed_sessions_beyond_the_bound_are_forgotten_oldest_first() -> None:
    """A late turn of a forgotten session opens it anew; of a remembered one it is late."""
    kept = Kept(Policy(partition=PartitionPolicy(closed_sessions=2)))
    for n, session in enumerate("abcd"):
        ended = events.SessionEnded(session_id=session, timestamp=START + timedelta(seconds=n))
        kept.take(log(turn(session, 5, START), ended, first=2 * n))
    kept.take(log(turn("a", 3, START), turn("d", 3, START), first=8))

    assert kept.known() == {"a/a", "a/c", "a/d"}
    assert (kept.fold.open_sessions, kept.fold.closed_sessions) == (1, 2)


def erased(session: str, at: datetime) -> events.SessionErased:
    """Somebody is forgotten."""
    return events.SessionErased(session_id=session, timestamp=at, request_id="r")


def test_an_erased_session_is_counted_no_longer() -> None:
    """Neither as open nor as closed, and no deadline is left that would look for its state."""
    kept = Kept()
    end = events.SessionEnded(session_id="b", timestamp=START)
    kept.take(log(turn("a", 0, START), turn("b", 0, START), end, turn("c", 0, START)))

    assert (kept.fold.open_sessions, kept.fold.closed_sessions) == (2, 1)

    kept.take(log(erased("a", START), erased("b", START), erased("unknown", START), first=4))

    assert (kept.fold.open_sessions, kept.fold.closed_sessions, kept.closed()) == (1, 0, ["b"])
    assert kept.known() == {"a/c"}

    kept.take(log(turn("c", 1, START + timedelta(days=2)), first=7))

    assert kept.closed() == ["b", "c"]
    assert PartitionFold(kept.entities, Policy()).offset == 7


def test_an_erasure_moves_no_clock_and_closes_nothing() -> None:
    """It is of today, where the turns may be of last year; what is to be forgotten is not closed first."""
    kept = Kept()
    kept.take(log(*(turn(f"{n}", 0, START) for n in range(2 * MAX_TIMEOUTS_PER_RECORD))))
    before = kept.fold.watermark
    kept.take(log(erased("0", START + timedelta(days=400)), first=2 * MAX_TIMEOUTS_PER_RECORD))

    assert (before, []) == (kept.fold.watermark, kept.closed())

    late = turn("later", 0, START + timedelta(days=1))
    kept.take(log(late, erased("199", START), turn("0", 0, START), first=2 * MAX_TIMEOUTS_PER_RECORD + 1))

    assert "199" not in kept.closed()
    assert len(kept.closed()) == len(set(kept.closed()))


def test_an_erasure_takes_the_session_of_its_app_alone() -> None:
    """One that names no app was written by an earlier release, whose sessions had no app: it takes all of the id."""
    kept = Kept()
    turns = [turn("chat-1", 0, START, app=app) for app in "ab"]
    erased = events.SessionErased(session_id="chat-1", app_id="a", timestamp=START, request_id="r")
    kept.take(log(*turns, erased))

    assert kept.known() == {"b/chat-1"}

    kept.take(log(events.SessionErased(session_id="chat-1", timestamp=START, request_id="r"), first=3))

    assert kept.known() == set()


def test_what_names_no_app_is_the_default_ones_or_the_only_ones() -> None:
    """An event that may mean several apps' sessions is set aside with its bytes, and changes none of them."""
    kept, ended = Kept(), events.SessionEnded(session_id="chat-1", timestamp=START)
    kept.take(log(turn("chat-1", 0, START, app="a"), ended))

    assert kept.closed() == ["chat-1"]

    again = [turn("chat-1", 1, START, app=app) for app in "ab"]
    kept.take(log(*again, ended, first=2))
    letter = kept.outputs[-1]

    assert isinstance(letter, events.DeadLetter)
    assert (letter.reason, letter.offset, letter.value) == ("ambiguous_app", 4, encode(ended))
    assert kept.closed() == ["chat-1"]

    kept.take(log(turn("chat-1", 0, START, app=events.DEFAULT_APP), ended, first=5))
    closed = [event.app_id for event in kept.outputs if isinstance(event, events.EpisodeClosed)]

    assert closed == ["a", events.DEFAULT_APP]
