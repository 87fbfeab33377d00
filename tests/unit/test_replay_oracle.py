"""The oracles set aside what breaks the fold, as the roles do, and go on; equal digests mean equal bytes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord

from jobs.replay.command import digests
from models.events import DeadLetter, Role, Turn
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.session.fold import fold
from models.user.fold import fold as fold_user
from models.wire.codec import encode
from streams.oracle.replay import Replayed, SessionReplay
from tests.support.users_replayed import Commands, conversation
from tests.support.zero_embedder import NoEmbedder

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
BREAKS = "This one breaks the fold."


def record(offset: int, session_id: str, content: str = "Good day.") -> ConsumerRecord:
    """A turn whose number is its offset."""
    turn = Turn(session_id=session_id, user_id="u", app_id="a", turn=offset, role=Role.USER, content=content,
                timestamp=AT + timedelta(seconds=offset))  # fmt: skip
    value = encode(turn)
    appended_ms = int(turn.timestamp.timestamp() * 1000)
    return ConsumerRecord("t", 0, offset, appended_ms, 1, session_id.encode(), value, None, 3, len(value), ())


def replayed(*batches: list[ConsumerRecord]) -> Replayed:
    """What these batches of partition 0 amount to."""
    replay = SessionReplay(Policy(), NoEmbedder(), RuleScorer())
    for batch in batches:
        replay.fold(0, batch)
    return replay.result()


@pytest.fixture(autouse=True)
def _breaking(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(fold: Callable[..., Any]) -> Callable[..., Any]:
        def folding(state: Any, item: Any, *rest: Any) -> Any:
            if getattr(getattr(item, "event", item), "content", "") == BREAKS:
                raise ZeroDivisionError
            return fold(state, item, *rest)

        return folding

    monkeypatch.setattr("models.partition.sessions.fold", breaking(fold))
    monkeypatch.setattr("models.user.fold.fold", breaking(fold_user))


def test_a_record_that_breaks_the_fold_becomes_a_dead_letter() -> None:
    """It alone: what stands before and after it in the batch is folded as if it were not there."""
    log = [record(0, "s-1"), record(1, "s-1"), record(2, "s-2", BREAKS), record(3, "s-1"), record(4, "s-2")]
    found, without = replayed(log), replayed([*log[:2], *log[3:]])
    letters = [event for event in found.outputs.values() if isinstance(event, DeadLetter)]

    assert [(2, "fold", "fold_failed")] == [(letter.offset, letter.stage, letter.reason) for letter in letters]
    assert found.entities == without.entities
    assert found.outputs.keys() - without.outputs.keys() == {letters[0].id}
    assert (4, 5) == (found.turns, len(found.turn_keys))


def test_how_the_log_is_cut_changes_nothing() -> None:
    """Also where the record that breaks is the last of a batch, or comes again."""
    log = [record(0, "s-1"), record(1, "s-2", BREAKS), record(2, "s-2"), record(3, "s-1", BREAKS)]

    assert replayed(log) == replayed(log[:2], log[2:]) == replayed(log[:2], log[1:], log[3:])


def test_a_command_that_breaks_the_fold_becomes_a_dead_letter() -> None:
    """So does one that cannot be decoded; a user's other turns are folded as if they were not there."""
    log = Commands()
    log.turns(0, 1)
    log.turns(2, 2, content=BREAKS)
    log.write(b"{broken", b"user:a/u")
    log.turns(3, 4)
    found = log.users()
    letters = [event for event in found.outputs.values() if isinstance(event, DeadLetter)]

    assert {("c", 2, "fold_failed"), ("c", 3, "not_json")} == {(x.topic, x.offset, x.reason) for x in letters}
    assert (4, 5) == (found.turns, len(found.turn_keys))


def test_how_the_commands_are_cut_changes_nothing() -> None:
    """Also where they are read from the start again, as a comparison does while answers arrive."""
    log = conversation().log
    whole = log.users()

    assert whole == log.users(slice(0, 9), slice(9, 22), slice(22, None))
    assert whole == log.users(slice(0, 9), slice(0, 22), slice(None))


STATE = {1: {"s-1": {"head": b"h", "b0": b"x"}, "": {"clock": b"c"}}, 0: {"s-2": {"head": b"h"}}}


def test_digests_come_in_order() -> None:
    """One for each partition, with its sizes, whose own parts are no session; or one for each session or user."""
    shown = [(d.partition, d.entities, d.parts, d.bytes) for d in digests("sessions", STATE, single=False)]
    single = [(d.role, d.partition, d.entity) for d in digests("memory", STATE, single=True)]

    assert [(0, 1, 1, 1), (1, 1, 3, 3)] == shown
    assert [("memory", 0, "s-2"), ("memory", 1, "s-1")] == single


@pytest.mark.parametrize(
    "entities",
    [
        {"s-1": {"head": b"h", "b0": b"y"}},
        {"s-1": {"head": b"h", "b1": b"x"}},
        {"s-2": {"head": b"h", "b0": b"x"}},
        {"s-1": {"head": b"h", "b": b"0x"}},
    ],
)
def test_every_byte_and_name_counts(entities: dict[str, dict[str, bytes]]) -> None:
    """Another value, part or session, also where the joined text is the same."""
    base = digests("sessions", {0: {"s-1": {"head": b"h", "b0": b"x"}}}, single=False)[0]

    assert base.sha256 != digests("sessions", {0: entities}, single=False)[0].sha256
