"""LlamaIndex: a block of its `Memory` (extra `llama-index`)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.memory import BaseMemoryBlock

from turntide.calls import Wait, tool_call
from turntide.memory import AsyncMemory


class TurntideMemoryBlock(BaseMemoryBlock[str]):
    """Remembers what leaves the short-term queue, and gives the model what matters to the last question.

    The framework hands a block its messages when they leave the queue: a low `token_flush_size` and
    `chat_history_token_ratio` do so early.
    """

    name: str = "turntide"
    memory: AsyncMemory
    user_id: str
    token_budget: int = 1_500
    wait: Wait = "accepted"

    async def _aget(self, messages: list[ChatMessage] | None = None, **_block: Any) -> str:
        asked = [each.content for each in messages or () if each.role == MessageRole.USER and each.content]
        if not asked:
            return ""
        known = await self.memory.context(
            asked[-1], user_id=self.user_id, token_budget=self.token_budget, recent_turns=0
        )
        return known.prompt

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        for message in messages:
            sessions[message.additional_kwargs.get("session_id")].append(openai_message(message))
        for session_id, said in sessions.items():
            await self.memory.add(said, user_id=self.user_id, session_id=session_id, wait=self.wait)


def openai_message(message: ChatMessage) -> dict[str, Any]:
    """LlamaIndex's message as OpenAI's."""
    made: dict[str, Any] = {"role": message.role.value, "content": message.content or ""}
    calls = [
        tool_call(each.tool_call_id, each.tool_name, each.tool_kwargs)
        for each in message.blocks
        if isinstance(each, ToolCallBlock)
    ]
    if calls:
        made["tool_calls"] = calls
    if "tool_call_id" in message.additional_kwargs:
        made["tool_call_id"] = message.additional_kwargs["tool_call_id"]
    return made
