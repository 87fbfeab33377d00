"""Each difference from the oracle is found and named; invariants of users' memories, and how they may not hold."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from models.events import (
    DeadLetter,
    EpisodeClosed,
    EpisodeRequested,
    FactChanged,
    OutputEvent,
    Position,
    ProfileUpdated,
    TopicChanged,
    UserMemoryChanged,
    UserTurnAdded,
)
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.session.topics import packing
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.oracle.comparison import (
    MAX_EXAMPLES,
    Comparison,
    TopicOutputs,
    compare_outputs,
    compare_state,
    turn_counts,
)
from streams.oracle.followers import compare_answers, compare_tiers
from streams.oracle.replay import Replayed, TurnKey
from tests.support.blank_events import blank
from tests.support.session_driver import NOON, said
from tests.support.topic_driver import Talk
from tests.support.user_partition import keep
from tests.support.users_replayed import POLICY, Commands, conversation

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
STATE = {0: {"": {"clock": b"c"}, "s-1": {"head": b"h", "b0": b"x"}}}


_SAID: dict[str, Any] = {"user_id": "u", "app_id": "a", "timestamp": AT}


def profile(event_id: str, session_id: str) -> ProfileUpdated:
    """An output of a compacted topic."""
    return blank(ProfileUpdated, id=event_id, session_id=session_id, source=Position("t", 0, 1), **_SAID)


EPISODE = blank(EpisodeClosed, id="e-1", session_id="s-1", source=Position("t", 0, 1), **_SAID)
LETTER = blank(DeadLetter, id="d-1", topic="t", offset=3, stage="decode")
PROFILES = (profile("p-1", "s-1"), profile("p-2", "s-2"), profile("p-3", "s-1"))
OUTPUTS: dict[str, OutputEvent] = {event.id: event for event in (EPISODE, LETTER, *PROFILES)}
ORACLE = Replayed(STATE, OUTPUTS, 3, {TurnKey("a", "s-1", 0), TurnKey("a", "s-1", 1), TurnKey("a", "s-2", 0)})


def topics(*without: str, has_holes: bool = False) -> dict[str, TopicOutputs]:
    """The oracle's outputs on their topics, less some ids."""
    names = {"e-1": "episodes.v1", "d-1": "dead-letters.v1"}
    found: dict[str, TopicOutputs] = {}
    for event_id, event in OUTPUTS.items():
        topic = found.setdefault(names.get(event_id, "profiles.v1"), TopicOutputs(has_holes=has_holes))
        if event_id not in without:
            topic.values[event_id] = [encode(event)]
    return found


def test_what_equals_has_no_differences() -> None:
    """State and outputs as the oracle's: nothing is found, and all of it was looked at."""
    found = Comparison()
    found.include(compare_state({0: dict(STATE[0]), 1: {}}, ORACLE))
    found.include(compare_outputs(topics(), ORACLE))

    assert (found.counts, found.examples, found.repeats) == ({}, [], 0)
    assert (found.checked["state"], found.checked["profiles.v1"], found.checked["dead-letters.v1"]) == (3, 3, 1)


@pytest.mark.parametrize(
    ("partition", "counts"),
    [
        ({"": {"clock": b"c"}, "s-1": {"head": b"h"}}, {"state missing": 1}),
        ({**STATE[0], "s-2": {"head": b"h"}}, {"state false": 1}),
        ({**STATE[0], "s-1": {"head": b"H", "b0": b"x"}}, {"state changed": 1}),
        ({}, {"state missing": 3}),
    ],
)
def test_state(partition: dict[str, dict[str, bytes]], counts: dict[str, int]) -> None:
    """A part that is missing, too many, or has other bytes."""
    assert counts == compare_state({0: partition}, ORACLE).counts


def _packed_at(level: int, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], dict[str, OutputEvent]]:
    """State and topics of a session with a compaction, as a libzstd that packs at this level leaves them."""
    monkeypatch.setattr(packing, "ZSTD_LEVEL", level)
    packing._zstd_compressor.cache_clear()
    talk = Talk()
    for number in range(13):
        talk.ask(0, f"Where do we put lamp {number}, and who brings the ladder to house {7 * number}?")
    talk.store()
    return talk.stored, {event.id: event for event in talk.outputs if isinstance(event, TopicChanged)}


def test_another_release_of_libzstd_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed otherwise, the same messages: neither state nor topics differ; with another message both do."""
    state, told = _packed_at(12, monkeypatch)
    others, other_told = _packed_at(1, monkeypatch)
    packing._zstd_compressor.cache_clear()
    oracle = Replayed({0: {"s": state}}, told, 13, set())
    found = TopicOutputs({event_id: [encode(event)] for event_id, event in other_told.items()})

    assert (state["tp0.0"] != others["tp0.0"], state["t0"] != others["t0"]) == (True, True)
    assert {} == compare_state({0: {"s": others}}, oracle).counts
    assert {} == compare_outputs({"conversation-topics.v1": found}, oracle).counts

    block = msgspec.msgpack.decode(others["tp0.0"])
    others["tp0.0"] = msgspec.msgpack.encode([[*block[0][:-1], 99], *block[1:]])
    compacted = next(event for event in other_told.values() if isinstance(event, TopicChanged) and event.compaction)
    found.values[compacted.id] = [encode(msgspec.structs.replace(compacted, active_turns=[1]))]

    assert {"state changed": 1} == compare_state({0: {"s": others}}, oracle).counts
    assert {"conversation-topics.v1 changed": 1} == compare_outputs({"conversation-topics.v1": found}, oracle).counts


def test_missing_false_and_changed_outputs() -> None:
    """Each by topic; a repeat with another payload is a change, one with the same payload is only counted."""
    found = topics("e-1")
    found["episodes.v1"].values["e-9"] = [b"{}"]
    found["dead-letters.v1"].values["d-1"] *= 3
    found["profiles.v1"].values["p-2"].append(encode(msgspec.structs.replace(PROFILES[1], score=0.5)))
    compared = compare_outputs(found, ORACLE)

    assert {"episodes.v1 missing": 1, "episodes.v1 false": 1, "profiles.v1 changed": 1} == compared.counts
    assert ["e-1", "e-9", "p-2"] == sorted(example.what for example in compared.examples)
    assert 3 == compared.repeats


def test_compacted_topic_needs_the_last_of_each_key_only() -> None:
    """A superseded profile may be gone once the broker has compacted; a session's last one may not."""
    assert {"profiles.v1 missing": 1} == compare_outputs(topics("p-1"), ORACLE).counts
    assert {} == compare_outputs(topics("p-1", has_holes=True), ORACLE).counts
    assert {"profiles.v1 missing": 1} == compare_outputs(topics("p-3", has_holes=True), ORACLE).counts


def test_of_standings_only_the_last_of_a_user_must_be_there() -> None:
    """A role writes a user's standing once a batch, however that is cut; of facts, which have a history, every one."""
    fact = blank(FactChanged, id="f-1", key="name", source=Position("t", 0, 1), **_SAID)
    standings = [blank(UserMemoryChanged, id=f"m-{n}", source=Position("t", 0, n), **_SAID) for n in range(3)]
    told: list[OutputEvent] = [*standings, fact]
    oracle = Replayed({}, {event.id: event for event in told}, 3, set())

    def compared(*written: str, later: bytes | None = None) -> dict[str, int]:
        found = TopicOutputs({event.id: [encode(event)] for event in told if event.id in written})
        found.later_keys |= {later}
        return compare_outputs({"facts.v1": found}, oracle).counts

    assert {} == compared("m-0", "m-2", "f-1")
    assert {} == compared("m-0", "f-1", later=key_of(standings[2]))
    assert {"facts.v1 missing": 1} == compared("m-0", "m-1", "f-1") == compared("m-2")


def fact(event_id: str, key: str, user_id: str = "u") -> FactChanged:
    """An output of a topic that is compacted by another key than the session."""
    said = _SAID | {"user_id": user_id}
    return blank(FactChanged, id=event_id, session_id="s-1", key=key, value="v", active=True, **said)


@pytest.mark.parametrize(("gone", "missing"), [("f-1", 0), ("f-2", 1), ("f-3", 1), ("f-4", 1)])
def test_the_key_of_the_record_says_what_superseded_it(gone: str, missing: int) -> None:
    """Facts of one session: only the one that a later one of the same user and key has replaced may be gone."""
    events = (fact("f-1", "name"), fact("f-2", "city"), fact("f-3", "name"), fact("f-4", "name", user_id="other"))
    users = Replayed({}, {event.id: event for event in events}, 0, set())
    left = {event.id: [encode(event)] for event in events if event.id != gone}
    found = compare_outputs({"facts.v1": TopicOutputs(left, has_holes=True)}, users)

    assert missing == found.counts.get("facts.v1 missing", 0)


def test_what_retention_removed_is_said_and_not_missed() -> None:
    """Requests are kept for a week only: what is left of them is compared, and that it is not all is said."""
    asked = {f"r-{n}": blank(EpisodeRequested, id=f"r-{n}", source=Position("c", 0, n), **_SAID) for n in range(2)}
    users = Replayed({}, {**asked}, 0, set())
    whole, cut = (
        compare_outputs({"requests.v1": TopicOutputs({"r-1": [b"other"], "r-9": [b"x"]}, has_holes=holes)}, users)
        for holes in (False, True)
    )

    assert {"requests.v1 missing": 1, "requests.v1 false": 1, "requests.v1 changed": 1} == whole.counts
    assert {"requests.v1 false": 1, "requests.v1 changed": 1} == cut.counts
    assert ([], ["requests.v1"]) == ([*whole.not_checked], [*cut.not_checked])


def test_outputs_of_both_oracles_are_wanted() -> None:
    """Turns that sessions forward, and dead letters of both logs on one topic."""
    added = blank(UserTurnAdded, id="t-1", session_id="s-1", content="Good day.", **_SAID)
    other = msgspec.structs.replace(LETTER, id="d-2", topic="commands")
    sessions, users = Replayed({}, {"t-1": added, "d-1": LETTER}, 1, set()), Replayed({}, {"d-2": other}, 0, set())
    found = compare_outputs({}, sessions, users)

    assert {"commands.v1 missing": 1, "dead-letters.v1 missing": 2} == found.counts


def test_counts_are_exact_and_examples_bounded() -> None:
    """A thousand differences are counted, and the first few listed in order."""
    found = Comparison()
    found.ids("state", {f"{n:04}" for n in range(1_000)}, set())

    assert (1_000, MAX_EXAMPLES, "0000") == (found.differences, len(found.examples), found.examples[0].what)


def test_turn_counts_come_from_the_state() -> None:
    """Turns counted by open sessions, for what was lost or doubled in the fold."""
    entities: dict[str, dict[str, bytes]] = {}
    turns = [said(n, session_id="s-1") for n in (0, 1, 1, 2)]
    log = [DecodedArrival(turn, Position("t", 0, n), NOON, 0.1) for n, turn in enumerate(turns)]
    keep(entities, PartitionFold(entities, Policy()), log)

    assert {"session:a/s-1": 3} == turn_counts({0: entities})


def test_what_was_erased_may_be_gone_once_the_broker_compacts() -> None:
    """The last record of an erased key was deleted; of a topic without holes nothing may be missing."""
    found = {"facts.v1": TopicOutputs({}, has_holes=True)}
    users = Replayed({}, {"f-1": fact("f-1", "name")}, 0, set())

    assert {"facts.v1 missing": 1} == compare_outputs(found, users).counts
    assert {} == compare_outputs(found, users._replace(forgotten=frozenset({"f-1"}))).counts
    whole = {"facts.v1": TopicOutputs({})}
    assert {"facts.v1 missing": 1} == compare_outputs(whole, users._replace(forgotten=frozenset({"f-1"}))).counts


def compared(log: Commands) -> Comparison:
    """Tiers and answers of a log."""
    users = log.users()
    found = compare_tiers(log.sessions(), users, POLICY)
    found.include(compare_answers(users, POLICY))
    return found


def log_of(*turns: tuple[int, int], answers: Sequence[tuple[int, int]] = ()) -> Commands:
    """A log with these turns, then these answers."""
    log = Commands()
    for each in turns:
        log.turns(*each)
    for each in answers:
        log.answer(*each)
    return log


def test_every_turn_is_counted() -> None:
    """Of two users, one with an episode; also where the sessions role forwards the same turns again after a crash."""
    log = conversation().log
    found = compared(log)
    log.turns(10, 24)
    log.answer(1, 20)

    assert ({}, {"users' turns": 28, "answers": 1}) == (found.counts, found.checked)
    assert {} == compared(log).counts


@pytest.mark.parametrize(
    ("log", "lost", "counts", "example"),
    [
        (log_of((0, 44), answers=[(1, 20)]), "", {"answers missing": 1}, "user:a/u, turns 21-40"),
        (log_of((0, 44), answers=[(21, 40)]), "", {"answers missing": 1}, "user:a/u, turns 1-20"),
        (log_of((0, 2)), "record", {"users' turns missing": 1}, "user:a/u"),
        (log_of((0, 0), (2, 2), (1, 1)), "", {"users' turns missing": 1}, "user:a/u"),
        (log_of((0, 2)), "forwarded", {"users' turns doubled": 1}, "user:a/u"),
    ],
    ids=["unanswered", "out of order", "never came", "came behind a later one", "of nobody"],
)
def test_what_is_wrong_is_counted_and_named(log: Commands, lost: str, counts: dict[str, int], example: str) -> None:
    """A request without its answer, a turn that is missing from the log or was passed over there, and one of nobody."""
    if lost == "record":
        del log.records[1]
    if lost == "forwarded":
        del log.forwarded["s-1"]
    found = compared(log)

    assert (counts, [example]) == (found.counts, [each.what for each in found.examples])
