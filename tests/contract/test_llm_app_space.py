"""A space of memories and the language model that it asks: requests answered, answers folded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from models.app.fold import fold
from models.app.state import SpaceState
from models.entities import entity_key
from models.events import (
    AppMemoriesChanged,
    AppMemoriesCompacted,
    CompactionRequested,
    ConversationEnded,
    MemoryRequested,
    Position,
    RequestedTurn,
    Role,
    SpaceEvent,
    SpaceOutput,
)
from models.events.topics import REQUESTS
from models.policy import Policy
from models.wire.codec import decode_command, decode_output, encode
from models.wire.envelope import key_of
from streams.inference.llm_client import OpenAiLlm
from streams.inference.llm_memories import MemoryWriter
from tests.support.blank_events import blank
from tests.support.openai_stand_in import StandIn

START = datetime(2025, 10, 1, 9, tzinfo=UTC)
POLICY = structs.replace(Policy(), apps=structs.replace(Policy().apps, ask=True))


@pytest.fixture
def writer(server: StandIn, llm: OpenAiLlm) -> MemoryWriter:
    """Asks a server whose model remembers and decides as asked."""
    server.say = say
    return MemoryWriter(llm, POLICY.apps, within=timedelta(seconds=30))


def say(system: str, user: str) -> str:
    """The first turn is the memory; the second oldest memory takes up the third."""
    told = json.loads(user)
    if "memory creation" in system:
        return json.dumps({"content": f"User said: {told['turns'][0]['content']}", "importance": 5, "tags": ["boats"]})
    second, third = told["existingMemories"][1:3]
    content = f"{second['content']} {third['content']}"
    return json.dumps({"action": "edit", "targetMemoryId": second["id"], "newContent": content, "reason": "alike"})


def ended(number: int) -> ConversationEnded:
    """A conversation about a boat of its own, an hour after the last."""
    time = START + timedelta(hours=number)
    return blank(
        ConversationEnded,
        session_id=f"s{number}",
        user_id="u",
        app_id="harbour",
        timestamp=time,
        source=Position("turns.v1", 0, number),
        space="app",
        turn_count=1,
        summary=f"User has boat {number}.",
        turns=[RequestedTurn(Role.USER, f"I have boat {number}.")],
        started_at=time,
        ended_at=time,
    )


async def reply(writer: MemoryWriter, request: SpaceOutput) -> SpaceEvent | None:
    """The answer to a request as it comes back over both topics; None: it is no request."""
    asked = decode_output(REQUESTS, encode(request))
    match asked:
        case MemoryRequested():
            said = encode(await writer.propose(asked))
        case CompactionRequested():
            said = encode(await writer.decide(asked))
        case _:
            return None
    answer = decode_command(said, key_of(asked), asked.timestamp, POLICY.intake)
    assert entity_key(answer) == "app:harbour"
    return answer  # type: ignore[return-value]  # of the space's key, so a space's event


async def remembered(writer: MemoryWriter, conversations: int) -> list[SpaceOutput]:
    """Everything that a space tells of so many conversations, each answer folded before the next conversation."""
    state = SpaceState("app:harbour", lambda _: None, POLICY)
    told: list[SpaceOutput] = []
    offset = 0
    for number in range(1, conversations + 1):
        events: list[SpaceEvent] = [ended(number)]
        while events:
            event = events.pop(0)
            outputs = fold(state, event, Position("commands.v1", 0, offset), event.timestamp, POLICY)
            offset += 1
            told += outputs
            requests = [one for one in outputs if isinstance(one, MemoryRequested | CompactionRequested)]
            events += [answer for one in requests if (answer := await reply(writer, one)) is not None]
    return told


async def test_a_model_makes_and_compacts_memories(writer: MemoryWriter) -> None:
    """Twelve conversations, ten memories, and the model's own decision on each too many."""
    told = await remembered(writer, 12)
    compacted = [event for event in told if isinstance(event, AppMemoriesCompacted)]
    stats = [event for event in told if isinstance(event, AppMemoriesChanged)][-1]

    assert (stats.memories, stats.created, stats.compactions) == (10, 12, 2)
    assert [(one.action, one.decided_by, one.fallback, one.reason) for one in compacted] == [
        ("edit", "openai:small", "", "alike")
    ] * 2
    assert "User said: I have boat 2. User said: I have boat 3." in [one.content for one in compacted[0].after]
