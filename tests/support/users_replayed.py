"""Records of both logs for one or two users, and what the oracles make of them."""

from datetime import UTC, datetime, timedelta

from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.events import OutputEvent, Position, UserTurnAdded, user_key
from models.policy import Policy
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.oracle.replay import Replayed, UsersReplay
from tests.support.user_driver import added, summarised

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = Policy()


class Commands:
    """The log of one partition of `commands.v1`.

    Attributes:
        records: What was written.
        forwarded: The turns among it, as the oracle of sessions has them.
    """

    def __init__(self) -> None:
        self.records: list[ConsumerRecord] = []
        self.forwarded: dict[str, UserTurnAdded] = {}

    def turns(self, first: int, last: int, *, session: str = "s", user: str = "u", content: str = "Good day.") -> None:
        """Turns of a session with these numbers, which are their offsets in `turns.v1` too."""
        for number in range(first, last + 1):
            source = Position("turns", 0, number)
            turn = added(content, session, number, source, AT + timedelta(seconds=number), user_id=user)
            self.forwarded[turn.id] = turn
            self.write(encode(turn), key_of(turn))

    def answer(self, first: int, last: int, *, user: str = "u") -> None:
        """A summary of the user's turns."""
        self.write(encode(summarised(first, last, user_id=user)), user_key("a", user).encode())

    def write(self, value: bytes, key: bytes | None) -> None:
        """Any record."""
        at_ms = int((AT + timedelta(hours=1)).timestamp() * 1000)
        self.records.append(
            ConsumerRecord("c", 0, len(self.records), at_ms, 1, key, value, None, len(key or b""), len(value), ())
        )

    def sessions(self) -> Replayed:
        """The oracle of sessions that forwards just these turns."""
        outputs: dict[str, OutputEvent] = {**self.forwarded}
        return Replayed({}, outputs, len(outputs), set())

    def users(self, *batches: slice) -> Replayed:
        """The oracle of users, given the log in these batches."""
        replay = UsersReplay(POLICY)
        for batch in batches or (slice(None),):
            replay.fold(0, self.records[batch])
        return replay.result()


class Conversation(Struct):
    """A log with its oracles."""

    log: Commands
    sessions: Replayed
    users: Replayed


def conversation() -> Conversation:
    """Two users: one with an episode and 25 turns, one with three; both told a name."""
    log = Commands()
    log.turns(0, 0, content="My name is Alex.")
    log.turns(1, 24)
    log.answer(1, 20)
    log.turns(25, 27, session="s-2", user="v", content="My name is Alexander.")
    return Conversation(log, log.sessions(), log.users())
