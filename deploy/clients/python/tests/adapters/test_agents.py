"""OpenAI Agents SDK, Pydantic AI, LlamaIndex and LiteLLM: what becomes of their messages."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import litellm
import pytest
from agents import Session
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turntide import AsyncMemory, Memory
from turntide.litellm import TurntideLogger
from turntide.llama_index import TurntideMemoryBlock
from turntide.openai_agents import TurntideSession
from turntide.pydantic_ai import TurntideMemory

_CALLED = ("tool", '{"name":"weather","arguments":{"city":"Oslo"}}')
_WITH_A_CALL = [("user", "Weather?"), _CALLED, ("tool", "rain"), ("assistant", "It rains.")]


@pytest.fixture
async def other(app: str) -> AsyncIterator[AsyncMemory]:
    """The app's memory, awaited."""
    async with AsyncMemory(app=app) as made:
        yield made


def _said(memory: Memory, session_id: str) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in memory.turns(session_id)]


async def test_a_session_keeps_what_the_protocol_asks(memory: Memory, other: AsyncMemory) -> None:
    """Items of all kinds come in; what was said comes out, less what was popped; clearing erases."""
    session = TurntideSession(other, "u-1", "s-1")
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "c", "output": "rain"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
    ]

    await session.add_items(items)

    assert isinstance(session, Session)
    assert _said(memory, "s-1") == _WITH_A_CALL
    assert await session.get_items() == [{"role": role, "content": text} for role, text in _WITH_A_CALL[::3]]
    assert await session.get_items(1) == [{"role": "assistant", "content": "It rains."}]
    assert await session.pop_item() == {"role": "assistant", "content": "It rains."}
    assert await session.get_items() == [{"role": "user", "content": "Weather?"}]
    await session.clear_session()
    assert (await session.get_items(), await session.pop_item()) == ([], None)


async def test_a_run_with_tools_is_remembered(memory: Memory, other: AsyncMemory) -> None:
    """Pydantic AI: prompt, call, result and answer, in the run's conversation."""

    def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        asked = len(messages) == 1
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"}) if asked else TextPart("It rains.")])

    agent = Agent(FunctionModel(scripted), capabilities=[TurntideMemory(other, "u-1", wait="visible")])
    agent.tool_plain(name="weather")(lambda city: "rain" if city == "Oslo" else "sun")

    await agent.run("Weather?", conversation_id="s-1")

    assert _said(memory, "s-1") == _WITH_A_CALL


async def test_a_block_is_given_what_leaves_the_queue(memory: Memory, other: AsyncMemory) -> None:
    """LlamaIndex: in the session that the framework names."""
    block = TurntideMemoryBlock(memory=other, user_id="u-1", wait="visible")
    call = ToolCallBlock(tool_call_id="c", tool_name="weather", tool_kwargs={"city": "Oslo"})
    said = [
        ChatMessage("Weather?"),
        ChatMessage(role=MessageRole.ASSISTANT, content=[call]),
        ChatMessage("rain", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "c"}),
        ChatMessage("It rains.", role=MessageRole.ASSISTANT),
    ]

    await block.aput(said, from_short_term_memory=True, session_id="s-1")

    assert _said(memory, "s-1") == _WITH_A_CALL
    assert await block.aget([]) == ""
    assert "It rains." in await block.aget([ChatMessage("Did it rain?")])


async def test_calls_of_models_are_remembered_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM: also streamed, though each repeats the history; those of nobody are not."""
    monkeypatch.setattr(litellm, "callbacks", [TurntideLogger(memory)])
    history: list[Any] = [{"role": "system", "content": "Be brief."}]
    whose = {"user_id": "u-1", "session_id": "s-1"}
    await litellm.acompletion("openai/any", history, mock_response="Nobody asked.")

    for said, answer, stream in [("I live in Oslo.", "Noted.", False), ("Where?", "In Oslo.", True)]:
        history.append({"role": "user", "content": said})
        answered = await litellm.acompletion("openai/any", history, mock_response=answer, stream=stream, metadata=whose)
        if stream:
            assert [piece async for piece in answered]
        history.append({"role": "assistant", "content": answer})
        async with asyncio.timeout(30):  # callbacks run beside the calls
            while len(_said(memory, "s-1")) < len(history) - 1:
                await asyncio.sleep(0.05)

    assert _said(memory, "s-1") == [(each["role"], each["content"]) for each in history[1:]]
