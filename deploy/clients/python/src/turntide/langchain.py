"""LangChain: a conversation's history in Turntide (extra `langchain`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, convert_to_openai_messages

from turntide.answers import Turn
from turntide.memory import Memory

_KINDS: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}


class TurntideChatMessageHistory(BaseChatMessageHistory):
    """History of one conversation; what is added is in it at once, and in all memory that Turntide makes of it.

    Tool calls and their results are remembered as turns, but are not among `messages`: a model is given what was said.

    Args:
        memory: Where it is kept.
        session_id: Id of the session.
        user_id: Id of the user.
        last: Maximum number of turns in `messages`.
    """

    def __init__(self, memory: Memory, session_id: str, user_id: str, *, last: int = 100) -> None:
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id
        self._last = last

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # a property, as the base class allows in words
        """Turns of the session, oldest first."""
        turns = self._memory.turns(self._session_id, last=self._last)
        return [message_of(turn) for turn in turns if turn.role in _KINDS]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Remember these; those that are in it already, by their ids, change nothing."""
        said = openai_messages(messages)
        self._memory.add(said, user_id=self._user_id, session_id=self._session_id, wait="visible")

    def clear(self) -> None:
        """Erase the conversation everywhere, for good."""
        self._memory.forget(session_id=self._session_id, wait=True)


def message_of(turn: Turn) -> BaseMessage:
    """A turn as LangChain's message, under its own id."""
    return _KINDS[turn.role](content=turn.content, id=turn.message_id)


def openai_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """LangChain's messages as OpenAI's, each under LangChain's id where it has one."""
    said = convert_to_openai_messages(list(messages))
    for message, made in zip(messages, said, strict=True):
        if message.id:
            made["message_id"] = message.id
    return said
