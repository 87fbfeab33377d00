"""A space of memories and the language model that it asks: requests answered, answers folded."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec import structs

from models.entities import entity_key
from models.events import CompactionRequested, MemoryRequested, RequestedTurn, Role, SpaceEvent, SpaceOutput
from models.events.topics import REQUESTS
from models.policy import Policy
from models.wire.codec import decode_command, decode_output, encode
from models.wire.envelope import key_of
from streams.inference.llm_client import OpenAiLlm
from streams.inference.llm_memories import MemoryWriter
from tests.support.app_driver import Space
from tests.support.openai_stand_in import StandIn

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


async def reply(writer: MemoryWriter, request: SpaceOutput) -> SpaceEvent | None:
    """The answer to a request as it comes back over both topics; None: it is no request."""
    if not isinstance(request, MemoryRequested | CompactionRequested):
        return None
    asked = decode_output(REQUESTS, encode(request))
    assert isinstance(asked, MemoryRequested | CompactionRequested)
    made = writer.propose(asked) if isinstance(asked, MemoryRequested) else writer.decide(asked)
    said = encode(await made)
    answer = decode_command(said, key_of(asked), asked.timestamp, POLICY.intake)
    assert entity_key(answer) == "app:harbour"
    return answer  # type: ignore[return-value]  # of the space's key, so a space's event


async def test_a_model_makes_and_compacts_memories(writer: MemoryWriter) -> None:
    """Twelve conversations, ten memories, and the model's own decision on each too many."""
    space = Space(POLICY, app="harbour")
    for number in range(1, 13):
        turns = [RequestedTurn(Role.USER, f"I have boat {number}.")]
        outputs = space.end(said=f"User has boat {number}.", notables=[], turns=turns)
        while outputs:
            answers = [answer for each in outputs if (answer := await reply(writer, each)) is not None]
            outputs = [output for answer in answers for output in space.put(answer)]

    assert (space.stats.memories, space.stats.created, space.stats.compactions) == (10, 12, 2)
    assert [(one.action, one.decided_by, one.fallback, one.reason) for one in space.compactions] == [
        ("edit", "openai:small", "", "alike")
    ] * 2
    assert "User said: I have boat 2. User said: I have boat 3." in [one.content for one in space.compactions[0].after]
