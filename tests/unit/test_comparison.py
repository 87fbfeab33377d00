"""Each kind of difference from the oracle is found, counted and named; what is allowed is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from models.codec import encode
from models.events import DeadLetter, EpisodeClosed, Mode, OutputEvent, Position, ProfileUpdated, Role, Slope, Turn
from models.partition import Arrival, PartitionFold
from models.policy import Policy
from streams.comparison import (
    MAX_EXAMPLES,
    Archived,
    Comparison,
    Indexed,
    TopicOutputs,
    compare_archive,
    compare_index,
    compare_outputs,
    compare_state,
    turn_counts,
)
from streams.replay import Replayed

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
STATE = {0: {"": {"clock": b"c"}, "s-1": {"head": b"h", "b0": b"x"}}}


def episode(event_id: str) -> EpisodeClosed:
    """An output of an ordinary topic."""
    return EpisodeClosed(
        id=event_id, session_id="s-1", user_id="u", app_id="a", timestamp=AT, source=Position("t", 0, 1),
        reason="ended", first_turn=0, last_turn=1, turn_count=2, summary="", key_topics=[], started_at=AT,
        ended_at=AT, peak_risk=0.0, mean_risk=0.0, mode=Mode.CALM, alerts=0,
    )  # fmt: skip


def profile(event_id: str, session_id: str) -> ProfileUpdated:
    """An output of a compacted topic."""
    return ProfileUpdated(
        id=event_id, session_id=session_id, user_id="u", app_id="a", timestamp=AT, source=Position("t", 0, 1),
        open=True, turn_count=1, last_turn=0, duplicate_turns=0, late_turns=0, started_at=AT, peak_risk=0.0,
        mean_risk=0.0, slope=Slope(0.0, 0.0, 1), mode=Mode.CALM, mode_transitions=[], question_count=0,
        imperative_count=0, topic_changes=0, repeated_topics={}, probing_attempts=0, hypothetical_count=0,
        meta_instruction_count=0, suspicion=0.0, score=0.0, signals=[], risk_points=[],
    )  # fmt: skip


LETTER = DeadLetter(
    id="d-1", topic="t", partition=0, offset=3, stage="decode", reason="not_json", detail="", key=None, value=None,
    headers=[], appended_at=AT,
)  # fmt: skip
PROFILES = (profile("p-1", "s-1"), profile("p-2", "s-2"), profile("p-3", "s-1"))
OUTPUTS: dict[str, OutputEvent] = {event.id: event for event in (episode("e-1"), LETTER, *PROFILES)}
ORACLE = Replayed(STATE, OUTPUTS, 3, {("s-1", 0), ("s-1", 1), ("s-2", 0)})
ARCHIVED = Archived(
    turns=[("s-1", 0), ("s-1", 1), ("s-2", 0)],
    doubled_rows=0,
    ids={"episodes.v1": {"e-1"}, "dead-letters.v1": {"d-1"}, "profiles.v1": {"p-1", "p-2", "p-3"}},
    refused=1,
    compacted=set(),
)


INDEXED = Indexed(turns=[("s-1", 0), ("s-1", 1), ("s-2", 0)], at_most=1_000, points=3)


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
    """State, outputs, archive and index as the oracle's: nothing is found, and all of it was looked at."""
    found = Comparison()
    found.include(compare_state({0: dict(STATE[0]), 1: {}}, ORACLE))
    found.include(compare_outputs(topics(), ORACLE))
    found.include(compare_archive(ARCHIVED, ORACLE))
    found.include(compare_index(INDEXED, ORACLE, keep_turns=1_000))

    assert (found.counts, found.examples, found.repeats) == ({}, [], 0)
    assert (found.checked["state"], found.checked["profiles.v1"], found.checked["archive turns"]) == (3, 3, 3)
    assert (found.checked["archive refused"], found.checked["index"]) == (1, 3)


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


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"turns": ARCHIVED.turns[1:]}, {"archive turns missing": 1}),
        ({"turns": [*ARCHIVED.turns, ("s-3", 0)]}, {"archive turns false": 1}),
        ({"turns": [*ARCHIVED.turns, ("s-1", 0)]}, {"archive turns doubled": 1}),
        ({"doubled_rows": 2}, {"archive turns doubled": 2}),
        ({"refused": 0}, {"archive refused missing": 1}),
        ({"refused": 3}, {"archive refused false": 2}),
        (
            {"ids": {**ARCHIVED.ids, "episodes.v1": {"e-2"}}},
            {"archive episodes.v1 missing": 1, "archive episodes.v1 false": 1},
        ),
        ({"ids": {**ARCHIVED.ids, "profiles.v1": {"p-2", "p-3"}}}, {"archive profiles.v1 missing": 1}),
        ({"ids": {**ARCHIVED.ids, "profiles.v1": {"p-2", "p-3"}}, "compacted": {"profiles.v1"}}, {}),
    ],
)
def test_archive(change: dict[str, object], counts: dict[str, int]) -> None:
    """Turns and ids missing, false and doubled, and another number of refused records."""
    assert counts == compare_archive(msgspec.structs.replace(ARCHIVED, **change), ORACLE).counts


@pytest.mark.parametrize(
    ("change", "keep_turns", "counts"),
    [
        ({"turns": INDEXED.turns[1:], "points": 2}, 1, {}),
        ({"turns": INDEXED.turns[1:], "points": 2}, 2, {"index missing": 1}),
        ({"turns": [("s-1", 1), ("s-2", 0)], "at_most": 1}, 2, {}),
        ({"turns": [("s-1", 0), ("s-2", 0)], "at_most": 1}, 2, {"index missing": 1}),
        ({"turns": [*INDEXED.turns, ("s-2", 7)], "points": 4}, 2, {"index false": 1}),
        ({"turns": [("s-1", 0), ("s-1", 1), ("s-2", 7)]}, 2, {"index missing": 1, "index false": 1}),
        ({"points": 5}, 2, {"index false": 2}),
    ],
)
def test_index(change: dict[str, object], keep_turns: int, counts: dict[str, int]) -> None:
    """A turn by its key: missing, false or of no known session; what the policy forgets may be gone or still stand."""
    found = msgspec.structs.replace(INDEXED, **change)

    assert counts == compare_index(found, ORACLE, keep_turns=keep_turns).counts


def test_counts_are_exact_and_examples_bounded() -> None:
    """A thousand differences are counted, and the first few listed in order."""
    found = Comparison()
    found.ids("state", {f"{n:04}" for n in range(1_000)}, set())

    assert (1_000, MAX_EXAMPLES, "0000") == (found.differences, len(found.examples), found.examples[0].what)


def test_turn_counts_come_from_the_state() -> None:
    """Turns counted by open sessions, for what was lost or doubled in the fold."""
    entities: dict[str, dict[str, bytes]] = {}
    turns = [
        Turn(session_id="s-1", user_id="u", app_id="a", turn=n, role=Role.USER, content="Good day.",
             timestamp=AT + timedelta(seconds=n))
        for n in (0, 1, 1, 2)
    ]  # fmt: skip
    log = [Arrival(turn, Position("t", 0, n), AT, 0.1) for n, turn in enumerate(turns)]
    for folded in PartitionFold(entities, Policy()).fold(log):
        for entity, parts in folded.changed.items():
            entities[entity] = {part: value for part, value in parts.items() if value is not None}

    assert {"s-1": 3} == turn_counts({0: entities})
