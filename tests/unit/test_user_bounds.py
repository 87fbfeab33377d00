"""A user whose everything is as large as it can be stays within `models.user.bounds`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from models.events import ExtractedFact, FactCategory, FactsExtracted, Position, Retraction, Role
from models.partition.commands import MemoryPartitionFold
from models.policy import FactPolicy, MemoryPolicy, Policy, UserPolicy
from models.session.bounds import CHUNK_STATE_BYTES, STATE_WRITE_BYTES
from models.user.bounds import largest_user_output_bytes, largest_user_part_bytes
from models.wire.codec import encode
from models.wire.envelope import tag_of
from streams.state.changelog import keyed, records_of
from streams.state.memory import MemoryTable
from tests.user_driver import NOON, User, added, session_erased, summarised, user_erased
from tests.user_partition import commands

WIDE = "\N{GRINNING FACE}"
ESCAPED = "\x01"
"""Six bytes in JSON."""
IDS = {"app_id": "%" * 256, "user_id": WIDE * 256}
"""Ids of a thousand bytes, or three times as long in a key."""
SOURCE = Position("t" * 249, 999, 2**53)


def largest(kind: type[Any], **given: Any) -> Any:
    """A section of the policy with every whole number at its maximum."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    numbers = {f.name: f.type.le for f in info.fields if isinstance(f.type, msgspec.inspect.IntType) and f.type.le}
    return kind(**numbers | given)


POLICIES = {
    "default": Policy(users=UserPolicy(facts=FactPolicy(ask=True))),
    "largest": Policy(
        memory=largest(MemoryPolicy, segment_turns=1), users=largest(UserPolicy, facts=largest(FactPolicy, ask=True))
    ),
    "smallest": Policy(
        memory=MemoryPolicy(key_topics=1, sentence_chars=40),
        users=UserPolicy(
            high_turns=2,
            keep_turns=0,
            summary_sentences=1,
            summary_chars=40,
            turn_chars=100,
            asked_chars=100,
            facts=FactPolicy(history=0, most=1, ask=True, asked_chars=100),
        ),
    ),
}


def facts(number: int) -> list[ExtractedFact]:
    """As many as an answer may have, of the longest keys and values, each another value every time."""
    return [
        ExtractedFact(
            category=FactCategory.INSTRUCTION,
            key=f"{'k' * 62}{n:02d}",
            value=(f"{number:03d}" + (WIDE if number % 2 else ESCAPED) * 400)[:400],
            confidence=0.9123456789012345,
            importance=0.9123456789012345,
        )
        for n in range(64)
    ]


def large_answers(user: User, number: int) -> None:
    """What slower stages can say at the most."""
    more: dict[str, Any] = IDS | {"timestamp": NOON + timedelta(microseconds=number + 1)}
    taken_back = [Retraction(category=FactCategory.CONSTRAINT, key="k" * 64, value=f"{number:03d}{WIDE * 397}")]
    more_names = more | {"session_id": ESCAPED * 999, "extracted_by": ESCAPED * 999}
    user.put(FactsExtracted(**more_names, facts=facts(number), retractions=taken_back))
    for place in user.state.head.waiting[:1] if number % 3 == 0 else []:
        user.put(
            summarised(
                *place, ESCAPED * 8_000, **more, summarised_by=ESCAPED * 999, key_topics=[ESCAPED * 999] * 99,
                embedding=[-2.2250738585072014e-308] * 4_096, embedded_by=ESCAPED * 999,
            )
        )  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_parts_and_outputs_stay_below_the_bounds(name: str) -> None:
    """Ids, texts, summaries, topics, facts and their history at their longest, turns of ever other sessions."""
    policy = POLICIES[name]
    user = User(policy)
    parts, outputs = largest_user_part_bytes(policy), largest_user_output_bytes(policy)
    largest_part, largest_output = dict.fromkeys(parts, 0), dict.fromkeys(outputs, 0)
    for n in range(150):
        session = f"{WIDE * 250}{n:06d}"
        content = (ESCAPED if n % 4 else WIDE) * (64 * 1024)
        turn = added(content, session, 2**53, msgspec.structs.replace(SOURCE, partition=n, offset=2**53), NOON, **IDS)
        user.put(msgspec.structs.replace(turn, role=Role.ASSISTANT if n % 2 else Role.USER))
        large_answers(user, n)
        for output in [turn, *user.outputs]:
            kind = tag_of(type(output))
            largest_output[kind] = max(largest_output[kind], len(encode(output)))
        user.outputs = []
        if n % 30 == 29:
            user.store()
            for part, value in user.stored.items():
                kind = {"h": "head", "t": "turn", "f": "fact", "r": "retractions"}[part[0]]
                largest_part[kind] = max(largest_part[kind], len(value))

    assert {kind: size for kind, size in largest_part.items() if not 0 < size <= parts[kind]} == {}
    assert {kind: size for kind, size in largest_output.items() if not 0 < size <= outputs[kind]} == {}


def test_a_partition_s_results_are_bounded() -> None:
    """Many users with long turns and facts in one batch make several writes, each below what the changelog takes."""
    policy, table = POLICIES["largest"], MemoryTable()
    events: list[Any] = []
    for n in range(600):
        ids = {"app_id": "%" * 256, "user_id": f"{WIDE * 250}{n % 40:06d}"}
        events.append(added(WIDE * 16_000, "s", n, Position("turns", 0, n), NOON, **ids))
        if n % 10 == 0:
            events.append(FactsExtracted(**ids, timestamp=NOON, facts=facts(n)))  # type: ignore[arg-type]
    written = []
    for result in MemoryPartitionFold(table.entities, policy).fold(commands(*events)):
        written.append(sum(record.size_bytes for record in records_of(keyed(result.changed), result.offset)))
        table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)

    assert len(written) > 5
    assert max(written) <= 2 * CHUNK_STATE_BYTES < STATE_WRITE_BYTES


@pytest.mark.parametrize("of_user", [False, True])
def test_an_erasure_is_one_write(of_user: bool) -> None:
    """It stands alone in its result: as many turns and facts as there can be, with pasts that all go, fit."""
    policy, table = POLICIES["largest"], MemoryTable()
    said = f"{WIDE * 397}001"
    events: list[Any] = []
    for n in range(policy.users.most_turns):
        session = WIDE * 256 if n % 2 else "t"
        events.append(added("A boat.", session, n, Position("turns", 0, n), NOON, **IDS, role=Role.ASSISTANT))
    for change in range(3):
        at = NOON + timedelta(minutes=change)
        for first in range(0, policy.users.facts.most, 64):
            keys = [f"{'k' * 60}{n:04d}" for n in range(first, min(first + 64, policy.users.facts.most))]
            found = [
                ExtractedFact(
                    category=FactCategory.INSTRUCTION, key=key, value=f"{said}{change}"[-400:], confidence=0.9
                )
                for key in keys
            ]
            events.append(
                FactsExtracted(**IDS, timestamp=at, facts=found, session_id="t", extracted_by=WIDE * 256)  # type: ignore[arg-type]
            )
    erased = user_erased(**IDS) if of_user else session_erased(WIDE * 256, 0, 1, **IDS)
    results = []
    for result in MemoryPartitionFold(table.entities, policy).fold(commands(*events, erased)):
        results.append(result)
        table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
    (user,) = (parts for entity, parts in results[-1].changed.items() if entity)
    size = sum(record.size_bytes for record in records_of(keyed(results[-1].changed), results[-1].offset))

    assert (results[-1].erased, len(user) > policy.users.facts.most) == (1, True)
    assert ({*user.values()} == {None}) is of_user
    assert CHUNK_STATE_BYTES < size <= STATE_WRITE_BYTES
