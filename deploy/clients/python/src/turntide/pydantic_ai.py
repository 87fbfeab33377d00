"""Pydantic AI: memory as a capability of an agent (extra `pydantic-ai`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import AgentRunResult, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from turntide.calls import Wait, tool_call
from turntide.memory import AsyncMemory


@dataclass
class TurntideMemory(AbstractCapability[Any]):
    """Gives the model what matters to the prompt, and remembers what a run added to the conversation.

    Args:
        memory: Where it is kept.
        user_id: Whose conversations; or what tells it of a run, as by its dependencies.
        token_budget: Maximum length of the context in tokens.
        wait: `visible` ends a run only when its turns are found.
    """

    memory: AsyncMemory
    user_id: str | Callable[[RunContext[Any]], str]
    token_budget: int = 1_500
    wait: Wait = "accepted"

    def get_instructions(self) -> Callable[[RunContext[Any]], Awaitable[str]]:
        """Return the memory context for the run's prompt."""
        return self._known

    async def _known(self, ctx: RunContext[Any]) -> str:
        asked = _text(ctx.prompt)
        if not asked.strip():
            return ""
        whose = self._whose(ctx)
        known = await self.memory.context(asked, user_id=whose, token_budget=self.token_budget, recent_turns=0)
        return known.prompt

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Remember what was said, in the run's conversation."""
        said = list(openai_messages(result.new_messages()))
        if said:
            await self.memory.add(said, user_id=self._whose(ctx), session_id=ctx.conversation_id, wait=self.wait)
        return result

    def _whose(self, ctx: RunContext[Any]) -> str:
        return self.user_id if isinstance(self.user_id, str) else self.user_id(ctx)


def openai_messages(messages: Iterable[ModelMessage]) -> Iterable[dict[str, Any]]:
    """Pydantic AI's messages as OpenAI's: prompts, answers, calls of tools and their results."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    yield {"role": "user", "content": _text(part.content), "timestamp": part.timestamp}
                elif isinstance(part, ToolReturnPart):
                    content = part.model_response_str()
                    yield {
                        "role": "tool",
                        "tool_call_id": part.tool_call_id,
                        "name": part.tool_name,
                        "content": content,
                    }
                elif isinstance(part, RetryPromptPart) and part.tool_name is None:
                    yield {"role": "user", "content": part.model_response()}
            continue
        calls = [
            tool_call(each.tool_call_id, each.tool_name, each.args_as_json_str())
            for each in message.parts
            if isinstance(each, ToolCallPart)
        ]
        text = "".join(each.content for each in message.parts if isinstance(each, TextPart))
        if text or calls:
            yield {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}


def _text(content: str | Iterable[UserContent] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n\n".join(
        each if isinstance(each, str) else getattr(each, "content", f"[{getattr(each, 'kind', 'file')}]")
        for each in content
    )
