"""LangGraph's store and middleware, and LangChain's history."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from turntide import Memory
from turntide.langchain import TurntideChatMessageHistory
from turntide.langgraph import TurntideMiddleware, TurntideStore


class _Calling(GenericFakeChatModel):
    def bind_tools(self, *_tools: Any, **_more: Any) -> "_Calling":  # type: ignore[override]
        return self


@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agent_remembers_each_message_once(memory: Memory, is_async: bool) -> None:
    """Though a checkpointer hands it the whole thread again: questions, calls of tools, their results, answers."""
    called = AIMessage("", tool_calls=[ToolCall(name="weather", args={"city": "Oslo"}, id="c-1")])
    model = _Calling(messages=iter([called, AIMessage("It rains."), AIMessage("You are welcome.")]))
    middleware = [TurntideMiddleware(memory, wait="visible")]
    agent = create_agent(model, [weather], middleware=middleware, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"user_id": "u-1", "thread_id": "t-1"}}

    for said in ("Weather in Oslo?", "Thanks."):
        given: Any = {"messages": [HumanMessage(said)]}
        await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)

    assert [(turn.role, turn.content) for turn in memory.turns("t-1")] == [
        ("user", "Weather in Oslo?"),
        ("tool", '{"name":"weather","arguments":{"city":"Oslo"}}'),
        ("tool", "rain in Oslo"),
        ("assistant", "It rains."),
        ("user", "Thanks."),
        ("assistant", "You are welcome."),
    ]


def test_a_run_says_whose_it_is(memory: Memory) -> None:
    """Without a user in the config nothing is asked."""
    agent = create_agent(_Calling(messages=iter(())), middleware=[TurntideMiddleware(memory)])

    with pytest.raises(ValueError, match="user_id"):
        agent.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"thread_id": "t-1"}})


async def test_a_store_has_facts_turns_and_episodes(memory: Memory) -> None:
    """Facts are read and written; what was said is searched; the rest is refused with what there is."""
    store = TurntideStore(memory)
    memory.add("I live in Oslo.", user_id="u-1", session_id="s-1", wait="visible")
    facts = ("u-1", "facts", "preference")

    store.put(facts, "language", {"value": "Norwegian"})
    await store.aput(facts, "drink", {"value": "tea"})
    store.delete(facts, "drink")

    assert store.get(facts, "drink") is None
    assert (item := await store.aget(facts, "language")) is not None
    assert (item.namespace, item.value["value"]) == (facts, "Norwegian")
    assert [each.value["value"] for each in store.search(("u-1", "facts"), filter={"value": "Oslo"})] == ["Oslo"]
    assert [each.key for each in store.search(("u-1", "turns"), query="Oslo")] == ["s-1/0"]
    assert {each.namespace[1] for each in store.search(("u-1",), query="Oslo")} == {"facts", "turns"}
    assert facts in store.list_namespaces(prefix=("u-1",))
    for namespace, value in [(("docs",), {"value": "x"}), (facts, {"text": "x"})]:
        with pytest.raises(ValueError, match="this store has"):
            store.put(namespace, "k", value)


def test_a_history_is_cleared(memory: Memory) -> None:
    """Everywhere; and what is added again under its id is in it once."""
    history = TurntideChatMessageHistory(memory, "s-1", "u-1")
    for _ in range(2):
        history.add_messages([HumanMessage("I live in Oslo.", id="m-1"), AIMessage("Noted.", id="m-2")])

    assert [(message.type, message.id) for message in history.messages] == [("human", "m-1"), ("ai", "m-2")]
    history.clear()
    assert history.messages == []
