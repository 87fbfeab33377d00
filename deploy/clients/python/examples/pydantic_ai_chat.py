"""Pydantic AI: an agent that knows in a second conversation what was said in the first."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turntide import AsyncMemory
from turntide.pydantic_ai import TurntideMemory


def scripted(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a language model."""
    knows = "location: Oslo" in (info.instructions or "")
    return ModelResponse(parts=[TextPart("You live in Oslo." if knows else "Noted.")])


async def main() -> None:
    """Two conversations of one user, whose name is the run's dependency."""
    async with AsyncMemory(app="pydantic-ai") as memory:
        remembered = TurntideMemory(memory, user_id=lambda ctx: ctx.deps, wait="visible")
        agent = Agent(FunctionModel(scripted), deps_type=str, capabilities=[remembered])
        for said in ["I live in Oslo.", "Where do I live?"]:
            print((await agent.run(said, deps="u-1")).output)


asyncio.run(main())
