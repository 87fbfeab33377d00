"""LiteLLM: a callback that remembers what was asked and answered, of any model (extra `litellm`)."""

from __future__ import annotations

import asyncio
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from turntide.calls import Wait, derived_id
from turntide.memory import Memory


class TurntideLogger(CustomLogger):  # type: ignore[misc,unused-ignore]
    """`litellm.callbacks = [TurntideLogger(memory)]`: each call's new messages and its answer become turns.

    Whose they are stands in the call: `user=…`, or `user_id` in its `metadata`; which conversation: `session_id` there,
    else the one that the memory has with the user. A call that names nobody is not remembered. Histories that calls
    repeat are not remembered again: new is what follows the last message of the assistant.

    Args:
        memory: Where it is kept; it is asked in a thread.
        wait: `visible` is done with a call only when its turns are found.
    """

    def __init__(self, memory: Memory, *, wait: Wait = "accepted") -> None:
        super().__init__()
        self._memory = memory
        self._wait: Wait = wait

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:  # noqa: ARG002
        """Of a call that was answered."""
        given = (kwargs.get("litellm_params") or {}).get("metadata") or {}
        user_id = given.get("user_id") or kwargs.get("user")
        choices = getattr(response_obj, "choices", None)
        if not user_id or not choices or not hasattr(choices[0], "message"):
            return
        said = [*_new(kwargs.get("messages") or []), choices[0].message.model_dump(include=_PARTS, exclude_none=True)]
        call = kwargs["litellm_call_id"]
        turns = [{**each, "message_id": derived_id(call, place)} for place, each in enumerate(said)]
        self._memory.add(turns, user_id=str(user_id), session_id=given.get("session_id"), wait=self._wait)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Likewise."""
        given = (kwargs, response_obj, start_time, end_time)
        try:
            await asyncio.to_thread(self.log_success_event, *given)
        except RuntimeError:  # at its end the interpreter has no threads any more; LiteLLM empties its queue then
            self.log_success_event(*given)


_PARTS = {"role", "content", "tool_calls"}


def _new(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    roles = [each["role"] for each in messages]
    start = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else 0
    return [each for each in messages[start:] if each["role"] not in {"system", "developer"}]
