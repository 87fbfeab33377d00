"""LangGraph: an agent that knows in a second conversation what was said in the first, and a store of facts."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

from turntide import Memory
from turntide.langgraph import TurntideMiddleware, TurntideStore


class Scripted(SimpleChatModel):
    """Stands in for a language model."""

    _llm_type = "scripted"

    def _call(self, messages: list[BaseMessage], *_given: Any, **_more: Any) -> str:
        return "You live in Oslo." if "location: Oslo" in messages[0].text else "Hello!"


memory = Memory(app="langgraph")
store = TurntideStore(memory)
agent = create_agent(Scripted(), middleware=[TurntideMiddleware(memory, wait="visible")], store=store)
for thread, said in [("t-1", "I live in Oslo."), ("t-2", "Where do I live?")]:
    config = {"configurable": {"user_id": "u-1", "thread_id": thread}}
    answered = agent.invoke({"messages": [{"role": "user", "content": said}]}, config)
    print(answered["messages"][-1].text)
store.put(("u-1", "facts", "preference"), "language", {"value": "Norwegian"})
print([item.value["value"] for item in store.search(("u-1", "facts", "preference"))])
