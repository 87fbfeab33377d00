"""A space whose everything is as large as it can be stays within `models.app.bounds`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from models.app.bounds import largest_space_output_bytes, largest_space_part_bytes
from models.events import CommandEvent, NotableKind, NotableSentence, Position, RequestedTurn, Role
from models.events.app import AppUninstalled, MemoryDeleted, MemoryEdited
from models.events.topics import MEMORIES, MEMORY_EVENTS, REQUESTS
from models.partition.commands import MemoryPartitionFold
from models.policy import MemoryPolicy, Policy
from models.policy.app import MOST_SPACE_CHARS, AppPolicy
from models.session.bounds import CHUNK_STATE_BYTES, OUTPUT_RECORD_BYTES, STATE_WRITE_BYTES
from models.user.bounds import COMMAND_RECORD_BYTES
from models.wire.codec import encode
from models.wire.envelope import tag_of
from streams.state.changelog import keyed, records_of
from streams.state.memory import MemoryTable
from tests.app_driver import NOON, Space, ended
from tests.user_partition import commands

WIDE = "\N{GRINNING FACE}"
ESCAPED = "\x01"
"""Six bytes in JSON."""
ROLES = (Role.USER, Role.ASSISTANT)


def largest(kind: type[Any], **given: Any) -> Any:
    """A section of the policy with every whole number at its maximum."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    numbers = {f.name: f.type.le for f in info.fields if isinstance(f.type, msgspec.inspect.IntType) and f.type.le}
    return kind(**numbers | given)


def policies() -> dict[str, Policy]:
    """Many memories or long ones: not both, as what happened to them must fit in one record."""
    many = largest(AppPolicy, ask=True, most_content_chars=MOST_SPACE_CHARS // 50, content_chars=800, waiting=4)
    long = largest(AppPolicy, ask=True, most=10, most_pinned=8, waiting=4)
    return {
        "default": Policy(apps=AppPolicy(ask=True)),
        "many": Policy(memory=largest(MemoryPolicy, segment_turns=1), apps=many),
        "long": Policy(memory=largest(MemoryPolicy, segment_turns=1), apps=long),
    }


def large_end(space: Space, number: int) -> Any:
    """A conversation with everything at its longest; the user's names differ in their last characters."""
    text = (ESCAPED if number % 2 else WIDE) * 3_000
    return ended(
        "",
        f"{WIDE * 250}{number:06d}",
        Position("t" * 249, number % 7, 2**40 + number),
        space.now,
        **space.ids | {"user_id": f"{ESCAPED * 250}{number:06d}"},
        reason=ESCAPED * 999,
        summary=ESCAPED * 500_000,
        key_topics=[ESCAPED * 999] * 99,
        notables=[NotableSentence(NotableKind.PREFERENCE, ROLES[n % 2], 2**53, text, 1 / 3) for n in range(99)],
        turns=[RequestedTurn(ROLES[n % 2], text) for n in range(99)],
        last_turn=2**53,
    )


def large_life(space: Space, ends: int) -> None:
    """Ends, answers, merges and commands, of everything the most."""
    apps = space.policy.apps
    for n in range(ends):
        space.put(large_end(space, n))
        tags = [f"{n:03d}{t:03d}" + WIDE * 999 for t in range(64)]
        content = (f"{n:05d}" + (ESCAPED if n % 2 else WIDE) * apps.most_content_chars)[: apps.most_content_chars]
        space.propose(content, tags=tags, made_by=ESCAPED * 999, importance=1 / 3)
        number = space.state.head.created
        shared = [f"{WIDE * 250}{a:06d}" for a in range(64)]
        names = {"by": ESCAPED * 256, "request_id": ESCAPED * 64}
        space.command(MemoryEdited, memory_id=number, shared_with=shared, **names)
        if space.state.candidate is not None:
            space.decide(
                "edit", space.told[0].memory_id, new_content=content, reason=ESCAPED * 9_999, decided_by=WIDE * 999
            )
    space.command(MemoryDeleted, memory_id=2**53, by=ESCAPED * 256, request_id=ESCAPED * 64)
    space.command(AppUninstalled, by=ESCAPED * 256, request_id=ESCAPED * 64)


@pytest.mark.parametrize("name", ["default", "many", "long"])
def test_parts_and_outputs_stay_below_the_bounds(name: str) -> None:
    """Ids, texts, tags, names, shared apps, outcomes and what waits at their longest."""
    policy = policies()[name]
    if name == "many":
        # As many as show it: comparing all with all takes its time.
        policy = msgspec.structs.replace(policy, apps=msgspec.structs.replace(policy.apps, most=16, most_pinned=14))
    space = Space(policy, app="%" * 256)
    parts, outputs = largest_space_part_bytes(policy), largest_space_output_bytes(policy)
    large_life(space, policy.apps.most + 6)
    for n in range(4):
        space.put(large_end(space, 900 + n))
    space.propose("x")
    space.store()
    kinds = {"h": "head", "m": "memory", "c": "candidate", "w": "waiting"}
    largest_part = {kinds[part[0]]: len(value) for part, value in sorted(space.stored.items(), key=lambda e: len(e[1]))}
    largest_output: dict[str, int] = {}
    for output in space.outputs:
        kind = tag_of(type(output))
        largest_output[kind] = max(largest_output.get(kind, 0), len(encode(output)))

    assert {kind: size for kind, size in largest_part.items() if size > parts[kind]} == {}
    assert {kind: size for kind, size in largest_output.items() if size > outputs[kind]} == {}
    assert set(parts) - set(largest_part) <= {"candidate"}
    assert set(outputs) - set(largest_output) <= {"app_memory_skipped"}


@pytest.mark.parametrize("name", ["many", "long"])
def test_the_largest_policies_fit(name: str) -> None:
    """No policy file can ask for a state or an output that the topics refuse."""
    policy = policies()[name]
    parts, outputs = largest_space_part_bytes(policy), largest_space_output_bytes(policy)
    asked = {kind: outputs.pop(kind) for kind in ("memory_requested", "compaction_requested")}

    assert max(asked.values()) <= COMMAND_RECORD_BYTES < REQUESTS.max_message_bytes
    assert (
        max(outputs.values()) <= OUTPUT_RECORD_BYTES < min(MEMORIES.max_message_bytes, MEMORY_EVENTS.max_message_bytes)
    )
    all_at_once = parts["memory"] * policy.apps.most + parts["head"] + parts["waiting"] + parts["candidate"]
    assert CHUNK_STATE_BYTES + all_at_once <= STATE_WRITE_BYTES


def test_a_policy_of_many_long_memories_is_refused() -> None:
    """One compaction tells of all of them."""
    with pytest.raises(ValueError, match="most times most_content_chars exceeds 40000"):
        AppPolicy(most=50, most_content_chars=4_000)


def test_a_partition_s_results_are_bounded() -> None:
    """Many spaces in one batch make several writes, each below what the changelog takes."""
    policy, table = policies()["long"], MemoryTable()
    events: list[CommandEvent] = []
    for n in range(40):
        space = Space(policy, app=f"{WIDE * 250}{n % 4:06d}")
        space.now = NOON + timedelta(seconds=n)
        events.append(large_end(space, n))
    written = []
    for result in MemoryPartitionFold(table.entities, policy).fold(commands(*events)):
        written.append(sum(record.size_bytes for record in records_of(keyed(result.changed), result.offset)))
        table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)

    assert len(written) > 2
    assert max(written) <= STATE_WRITE_BYTES
