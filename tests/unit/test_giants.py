"""One session of very many turns and one user of very many facts beside ordinary ones: bounded, and in nobody's way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle, islice

import numpy as np
import pytest

from models.events import ExtractedFact, FactCategory, FactsExtracted, Output, Position
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable
from tests.support.limits import Partition, written_bytes
from tests.support.session_driver import NOON, said
from tests.support.user_driver import fact

WORDS = ("boat", "train", "bread", "garden", "piano", "river", "market", "winter", "letter", "window", "mirror", "salt")
VECTORS = np.random.default_rng(1).normal(size=(len(WORDS), 64)).astype(np.float32)


def giant(turns: int) -> Iterator[DecodedArrival]:
    """One session that goes on and on, by and by about everything."""
    for n, (kind, vector) in enumerate(islice(cycle(zip(WORDS, VECTORS, strict=True)), turns)):
        content = f"What of the {kind} number {n % 97}? I prefer the {kind} of day {n % 31}."
        event = said(n, content, session_id="giant", timestamp=NOON + timedelta(seconds=n))
        yield DecodedArrival(event, Position("t", 0, n), event.timestamp, 0.1, vector)


def growth(turns: tuple[int, int]) -> tuple[list[int], list[float]]:
    """Bytes of state at these turns, and bytes written per turn over the last tenth up to each."""
    table, sizes, written = MemoryTable(), list[int](), list[float]()
    fold, bytes_written = PartitionFold(table.entities, Policy()), list[int]()
    for n, arrival in enumerate(giant(turns[-1]), start=1):
        for result in fold.fold([arrival]):
            table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
            bytes_written.append(written_bytes(result))
        if n in turns:
            sizes.append(table.size_bytes)
            latest = bytes_written[-n // 10 :]
            written.append(sum(latest) / len(latest))
    return sizes, written


@pytest.mark.parametrize("turns", [(1_000, 3_000), pytest.param((2_000, 20_000), marks=pytest.mark.slow)])
def test_a_turn_of_a_giant_session_costs_no_more_later(turns: tuple[int, int]) -> None:
    """Neither the state nor what a turn writes grows with the number of turns; numbers of turns get longer alone."""
    sizes, written = growth(turns)

    assert sizes[1] <= 1.1 * sizes[0]
    assert written[1] <= 1.1 * written[0]


def test_a_giant_session_is_in_nobodys_way() -> None:
    """A batch with one turn of others among many of a giant: each is folded at its place, none waits for the end."""
    table = MemoryTable()
    fold = PartitionFold(table.entities, Policy())
    batch = []
    for n, arrival in enumerate(giant(3_000)):
        event = (
            arrival.event
            if n % 100
            else said(n // 100, session_id=f"s-{n // 100 % 5}", timestamp=arrival.event.timestamp)
        )
        batch.append(DecodedArrival(event, arrival.position, arrival.appended_at, 0.1, arrival.vector))
    results = []
    for result in fold.fold(batch):
        results.append(result)
        table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
    outputs = [output for result in results for output in result.outputs]
    places = [output.source.offset for output in outputs if isinstance(output, Output)]

    assert len(outputs) == len(places)
    assert places == sorted(places)
    assert sum(result.turns for result in results) == 3_000
    assert {*table.entities} - {""} == {"session:a/giant", *(f"session:a/s-{n}" for n in range(5))}


@pytest.mark.parametrize("facts", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_user_of_very_many_facts_keeps_the_most_important(facts: int) -> None:
    """The state has the policy's number of them, each command writes one and takes one away; others keep theirs."""
    policy = Policy()
    partition = Partition(policy)

    def learnt(user: str, n: int) -> FactsExtracted:
        found: list[ExtractedFact] = [
            fact(f"key {n}", f"value {n}", 0.9, category=FactCategory.PREFERENCE, importance=0.3 + n / facts / 2)
        ]
        return FactsExtracted(
            app_id="a", user_id=user, timestamp=NOON + timedelta(seconds=n), extracted_by="llm", facts=found
        )

    for n in range(5):
        partition.take([learnt("small", n)])
    for n in range(facts):
        partition.take([learnt("giant", n)])
    kept = {
        user: sum(part.startswith("f:") for part in parts)
        for user in ("small", "giant")
        for entity, parts in partition.entities.items()
        if entity.endswith(user)
    }
    state = sum(len(value) for entity, parts in partition.entities.items() if entity for value in parts.values())

    assert kept == {"small": 5, "giant": policy.users.facts.most}
    assert state <= 100 * (policy.users.facts.most + 5)
    assert max(map(written_bytes, partition.results)) <= 500
    assert max(len(result.outputs) for result in partition.results) == 3  # stored, evicted, and how far the user is
