"""Compaction by a language model (app memory): what is asked, what is handed on, and why there is no decision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.events.app import MOST_MEMORY_CHARS, CompactionDecided
from models.text.words import estimate_tokens
from streams.inference.llm_memories import MemoryWriter
from tests.support.app_memory_requests import (
    NOW,
    asked,
    eleven,
    says,
    stands_in,
)
from tests.support.openai_stand_in import StandIn

COMPACTION = """You are a memory management assistant. You have 11 memories but can only keep 10.

Analyze these memories and decide which ONE to either:
1. DELETE (remove entirely)
2. EDIT (merge with another or update content)

Existing memories:
[…]

New memory:
[…]

Decision format:
{
  "action": "delete" | "edit",
  "targetMemoryId": <id>,
  "newContent": "<merged content if editing>",
  "reason": "<explanation>"
}
"""
MERGE = {"action": "edit", "targetMemoryId": 3, "newContent": "User works on Phoenix.", "reason": "3 and 4 overlap"}


async def test_a_compaction_is_asked_for_in_the_seeds_words(server: StandIn, writer: MemoryWriter) -> None:
    """Every memory with its ID, importance from 0 to 10, and whether it is pinned; the new one apart."""
    says(server, MERGE)
    await writer.decide(eleven())
    system, user = asked(server)
    told = json.loads(user)

    assert stands_in(COMPACTION, system)
    assert [one["id"] for one in told["existingMemories"]] == list(range(1, 11))
    assert [one["id"] for one in told["existingMemories"] if one["pinned"]] == [1]
    assert told["newMemory"] == {
        "id": 11,
        "content": "User sold boat 3.",
        "importance": 5.5,
        "pinned": False,
        "createdAt": "2025-10-02T09:00:00Z",
        "updatedAt": "2025-10-11T09:00:00Z",
    }


async def test_the_models_decision_is_taken(server: StandIn, writer: MemoryWriter) -> None:
    """For the space of the user who is asked about; tokens are estimated where the server counts none."""
    says(server, MERGE)
    decided = await writer.decide(eleven())
    system, user = asked(server)

    assert decided == CompactionDecided(
        app_id="calendar",
        user_id="u",
        timestamp=NOW,
        request=9,
        action="edit",
        target_memory_id=3,
        new_content="User works on Phoenix.",
        reason="3 and 4 overlap",
        decided_by="openai:small",
        tokens=estimate_tokens(system + user) + estimate_tokens(json.dumps(MERGE)),
        elapsed_ms=1_500,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"targetMemoryId": "abc"},
        {"targetMemoryId": "3"},
        {"targetMemoryId": None},
        {"targetMemoryId": 3.5},
        {"targetMemoryId": 0},
        {"targetMemoryId": 10**30},
        {"newContent": 5},
        {"newContent": ["x"]},
        {"action": None},
        {"action": 1},
        {"reason": {}},
    ],
    ids=str,
)
async def test_a_decision_of_wrong_types_is_rubbish(
    server: StandIn, writer: MemoryWriter, wrong: dict[str, Any]
) -> None:
    """Nothing of it is taken, so that the oldest memory goes."""
    says(server, MERGE | wrong)
    decided = await writer.decide(eleven())

    assert (decided.action, decided.target_memory_id, decided.new_content) == ("", 0, None)
    assert (decided.failure, decided.decided_by) == ("rubbish", "openai:small")
    assert decided.tokens > 0


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"action": "merge", "targetMemoryId": 777}, ("merge", 777, None)),
        ({"action": "DELETE", "targetMemoryId": 2, "newContent": None, "reason": None}, ("delete", 2, None)),
        (MERGE | {"newContent": " "}, ("edit", 3, "")),
        (MERGE | {"newContent": "x" * 50_000}, ("edit", 3, "x" * (MOST_MEMORY_CHARS + 1))),
    ],
    ids=["unknown", "delete", "empty", "long"],
)
async def test_what_a_decision_means_is_the_folds_to_say(
    server: StandIn, writer: MemoryWriter, said: object, expected: tuple[str, int, str | None]
) -> None:
    """Unknown ids and actions, empty and far too long texts are handed on; DELETE stands in the source's own prompt."""
    says(server, said)
    decided = await writer.decide(eleven())

    assert (decided.action, decided.target_memory_id, decided.new_content) == expected
    assert decided.failure == ""
