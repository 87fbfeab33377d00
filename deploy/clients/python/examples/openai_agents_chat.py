"""OpenAI Agents SDK: a session that a second process finds again, and memory in the agent's instructions."""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunContextWrapper, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from turntide import AsyncMemory
from turntide.openai_agents import TurntideSession


class Scripted(Model):
    """Stands in for a language model: answers from its instructions, and tells how much it was given."""

    async def get_response(self, system_instructions: str | None, input: Any, **_more: Any) -> ModelResponse:
        knows = "location: Oslo" in (system_instructions or "") and "?" in input[-1]["content"]
        words = f"{'You live in Oslo' if knows else 'Noted'}, after {len(input)} items."
        text = ResponseOutputText(text=words, type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", role="assistant", type="message", status="completed", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_given: Any, **_more: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    """Two runs of one conversation."""
    async with AsyncMemory(app="openai-agents") as memory:

        async def instructions(_run: RunContextWrapper[Any], _agent: Agent[Any]) -> str:
            return (await memory.context("What matters to the user?", user_id="u-1")).prompt

        agent = Agent(name="helper", instructions=instructions, model=Scripted())
        for said in ["I live in Oslo.", "Where do I live?"]:
            result = await Runner.run(agent, said, session=TurntideSession(memory, "u-1", "s-1"))
            print(result.final_output)


set_tracing_disabled(True)
asyncio.run(main())
