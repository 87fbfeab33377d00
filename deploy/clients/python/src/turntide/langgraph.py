"""LangGraph: a store of what is known of users, and a middleware for agents (extra `langgraph`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from turntide.answers import Fact, Turn
from turntide.calls import Category, Wait
from turntide.langchain import openai_messages
from turntide.memory import Memory

FACTS, TURNS, EPISODES = "facts", "turns", "episodes"
_CATEGORIES = ("identity", "preference", "constraint", "instruction")


class TurntideMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Puts what matters to the question before the model, and remembers what was said when the agent is done.

    Whose conversation it is stands in the run's config: `{"configurable": {"user_id": …, "thread_id": …}}`; no
    checkpointer is needed.

    Args:
        memory: Where it is kept; it is asked in a thread where the agent runs asynchronously.
        token_budget: Maximum length of the context in tokens.
        wait: `visible` ends a run only when its turns are found.
    """

    def __init__(self, memory: Memory, *, token_budget: int = 1_500, wait: Wait = "accepted") -> None:
        super().__init__()
        self._memory = memory
        self._token_budget = token_budget
        self._wait: Wait = wait

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Ask the model with the memory in its system message."""
        return handler(self._reminded(request, *_whose()))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """As `wrap_model_call`."""
        return await handler(await asyncio.to_thread(self._reminded, request, *_whose()))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002 - as it is called
        """Remember the turn of the user and all that followed it."""
        self._remember(state["messages"], *_whose())

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002 - likewise
        """As `after_agent`."""
        await asyncio.to_thread(self._remember, state["messages"], *_whose())

    def _reminded(self, request: ModelRequest[Any], user_id: str, _thread_id: str) -> ModelRequest[Any]:
        said = [message for message in request.messages if isinstance(message, HumanMessage)]
        if not said or not said[-1].text.strip():
            return request
        known = self._memory.context(said[-1].text, user_id=user_id, token_budget=self._token_budget, recent_turns=0)
        parts = [request.system_message.text] if request.system_message else []
        return request.override(system_message=SystemMessage("\n\n".join([*parts, known.prompt])))

    def _remember(self, messages: list[AnyMessage], user_id: str, thread_id: str) -> None:
        asked = max((place for place, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
        self._memory.add(openai_messages(messages[asked:]), user_id=user_id, session_id=thread_id, wait=self._wait)


def _whose() -> tuple[str, str]:
    given = get_config().get("configurable", {})
    try:
        return str(given["user_id"]), str(given["thread_id"])
    except KeyError as missing:
        raise ValueError(
            f'the run\'s config lacks {missing}: invoke with {{"configurable": {{"user_id": "…", "thread_id": "…"}}}}'
        ) from None


class TurntideStore(BaseStore):
    """Long-term memory of users as a store, beside any checkpointer.

    | namespace | key | value |
    |---|---|---|
    | `(user_id, "facts", category)` | as the fact is named | `{"value": …}`; also what is known of it, when read |
    | `(user_id, "turns")`, `(user_id, "episodes")` | session and number | read and searched, never written |

    Categories are identity, preference, constraint and instruction; keys of facts have `a-z`, `0-9` and `_`. What users
    say becomes facts by itself: `put` is for what the application knows of them.

    Args:
        memory: Where it is kept; it is asked in a thread where the graph runs asynchronously.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry these out, one after the other."""
        return [self._done(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _done(self, op: Op) -> Result:
        match op:
            case GetOp(namespace=(user_id, "facts", category), key=key):
                facts = self._memory.facts(user_id, category=cast("Category", category))
                return next((_item(fact) for fact in facts if fact.key == key), None)
            case PutOp(namespace=(user_id, "facts", category), key=key, value=None):
                self._memory.delete_fact(user_id, cast("Category", category), key)
                return None
            case PutOp(namespace=(user_id, "facts", category), key=key, value={"value": str(value)}):
                self._memory.set_fact(user_id, cast("Category", category), key, value)
                return None
            case SearchOp(namespace_prefix=(user_id, *rest)):
                found = [each for each in self._found(user_id, rest, op) if _fits(each.value, op.filter)]
                return found[op.offset : op.offset + op.limit]
            case ListNamespacesOp():
                return _namespaces(op)
            case _:
                raise ValueError(
                    'this store has (user_id, "facts", category) to read and write, with values {"value": "…"}, and '
                    '(user_id, "turns") and (user_id, "episodes") to search'
                )

    def _found(self, user_id: str, rest: list[str], op: SearchOp) -> Iterable[SearchItem]:
        kind, wanted = (rest[0] if rest else ""), op.limit + op.offset
        if kind in {"", FACTS}:
            category = rest[1] if len(rest) > 1 else None
            if op.query:  # those that share words with it first
                facts = self._memory.context(op.query, user_id=user_id, recent_turns=0).facts
            else:
                facts = self._memory.facts(user_id)
            yield from (_item(fact) for fact in facts if category in {None, fact.category})
        if kind in {"", TURNS}:
            if op.query:
                hits = self._memory.search(op.query, user_id=user_id, limit=wanted).turns
                yield from (_said(hit.turn, hit.score) for hit in hits)
            else:
                yield from (_said(turn, None) for turn in self._memory.recent(user_id, last=wanted))
        if kind in {"", EPISODES}:
            for each in self._memory.episodes(user_id, limit=wanted):
                value = {"summary": each.summary, "key_topics": each.key_topics, "turn_range": each.turn_range}
                yield _search_item((user_id, EPISODES), str(each.episode), value, each.ended_at)


def _item(fact: Fact) -> SearchItem:
    value = {name: getattr(fact, name) for name in ("value", "confidence", "importance", "session_id", "extracted_by")}
    return _search_item((fact.user_id, FACTS, fact.category), fact.key, value, fact.valid_from)


def _said(turn: Turn, score: float | None) -> SearchItem:
    value = {"role": turn.role, "content": turn.content, "session_id": turn.session_id}
    return _search_item((turn.user_id, TURNS), f"{turn.session_id}/{turn.turn}", value, turn.timestamp, score)


def _search_item(
    namespace: tuple[str, ...], key: str, value: dict[str, Any], at: datetime, score: float | None = None
) -> SearchItem:
    return SearchItem(namespace=namespace, key=key, value=value, created_at=at, updated_at=at, score=score)


def _fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    for name, equal in (wanted or {}).items():
        if isinstance(equal, dict):
            raise ValueError(f"{name}: this store compares for equality only")  # noqa: TRY004 - its operator is refused
        if value.get(name) != equal:
            return False
    return True


def _namespaces(op: ListNamespacesOp) -> list[tuple[str, ...]]:
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix" and condition.path and condition.path[0] != "*":
            user_id, *rest = condition.path
            listed = [*((user_id, FACTS, each) for each in _CATEGORIES), (user_id, TURNS), (user_id, EPISODES)]
            chosen = [each for each in listed if each[1 : len(rest) + 1] == tuple(rest)]
            cut = list(dict.fromkeys(each[: op.max_depth] for each in chosen))
            return cut[op.offset : op.offset + op.limit]
    raise ValueError("name a user: list_namespaces(prefix=(user_id,))")
