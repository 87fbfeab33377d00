"""OpenAI Agents SDK: a session whose history is in Turntide (extra `openai-agents`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from agents import SessionSettings, TResponseInputItem
from agents.memory import SessionABC

from turntide.calls import new_session, tool_call
from turntide.memory import AsyncMemory

_SPOKEN = {"user", "assistant", "system"}
_MOST = 1_000


class TurntideSession(SessionABC):
    """One conversation of a user.

    Calls of tools and their results are remembered as turns, but are not among its items: a model is given what was
    said. The log keeps what it has: `pop_item` leaves an item out of this object's items alone, `clear_session` erases
    the conversation everywhere.

    Args:
        memory: Where it is kept.
        user_id: Id of the user.
        session_id: Id of the session. Default: a new session.
    """

    def __init__(self, memory: AsyncMemory, user_id: str, session_id: str | None = None) -> None:
        self.session_id = session_id or new_session()
        self.session_settings: SessionSettings | None = None
        self._memory = memory
        self._user_id = user_id
        self._popped: set[int] = set()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Turns of the session, oldest first: the last `limit`, at most a thousand."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        said = await self._said()
        return [_item(role, content) for _, role, content in said[len(said) - limit if limit is not None else 0 :]]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Remember these; they are visible on return."""
        said = list(openai_messages(cast("list[dict[str, Any]]", items)))
        if said:
            await self._memory.add(said, user_id=self._user_id, session_id=self.session_id, wait="visible")

    async def pop_item(self) -> TResponseInputItem | None:
        """Leave out the last item from now on; see the class."""
        said = await self._said()
        if not said:
            return None
        turn, role, content = said[-1]
        self._popped.add(turn)
        return _item(role, content)

    async def clear_session(self) -> None:
        """Erase the conversation everywhere, for good."""
        await self._memory.forget(session_id=self.session_id, wait=True)
        self._popped.clear()

    async def _said(self) -> list[tuple[int, str, str]]:
        turns = await self._memory.turns(self.session_id, last=_MOST)
        return [
            (each.turn, each.role, each.content)
            for each in turns
            if each.role in _SPOKEN and each.turn not in self._popped
        ]


def openai_messages(items: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Items of the Responses API as chat messages; those that hold no words (reasoning) are left out."""
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            yield {"role": item["role"], "content": _text(item["content"])}
        elif kind == "function_call":
            calls = [tool_call(item["call_id"], item["name"], item["arguments"])]
            yield {"role": "assistant", "content": None, "tool_calls": calls}
        elif kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(part.get("text") or part.get("refusal") or f"[{part['type']}]" for part in content)


def _item(role: str, content: str) -> TResponseInputItem:
    return cast("TResponseInputItem", {"role": role, "content": content})
