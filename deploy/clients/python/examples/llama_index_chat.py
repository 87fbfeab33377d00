"""LlamaIndex: what leaves the short-term queue is remembered, and comes back when it matters."""

import asyncio
from typing import Any

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.memory import Memory

from turntide import AsyncMemory
from turntide.llama_index import TurntideMemoryBlock


class Scripted(CustomLLM):
    """Stands in for a language model."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, **_more: Any) -> CompletionResponse:  # type: ignore[override]
        return CompletionResponse(text="You live in Oslo." if "location: Oslo" in prompt else "Noted.")

    def stream_complete(self, prompt: str, **_more: Any) -> Any:  # type: ignore[override]
        yield self.complete(prompt)


async def main() -> None:
    """Say something, talk of other things until it has left the queue, and ask."""
    async with AsyncMemory(app="llama-index") as memory:
        block = TurntideMemoryBlock(memory=memory, user_id="u-1", wait="visible")
        kept = Memory.from_defaults(session_id="s-1", memory_blocks=[block], token_limit=60, token_flush_size=10)
        chat = SimpleChatEngine.from_defaults(llm=Scripted(), memory=kept)
        for said in ["I live in Oslo.", "Tea is good. " * 10, "So is coffee. " * 10, "Where do I live?"]:
            print(await chat.achat(said))


asyncio.run(main())
