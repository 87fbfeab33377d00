"""A chatbot of two exchanges too many, as its users would write it; traced from outside, by `opentelemetry-instrument`.

Runs in an environment of its own, see `tests.support.traced_apps`.
"""

import os
from contextlib import AbstractContextManager
from typing import Any

from openai import OpenAI
from opentelemetry import trace

TRACK = {"name": "track", "description": "Where a parcel is", "parameters": {"type": "object", "properties": {}}}
TOOLS: Any = [{"type": "function", "function": TRACK}]
client = OpenAI()
history: list[Any] = [{"role": "system", "content": "You help customers of a shop."}]


def say(content: Any, *, stream: bool = False) -> None:
    """Say something, carry out what tools the model calls, and note its answer."""
    history.append({"role": "user", "content": content})
    if stream:
        chunks: Any = client.chat.completions.create(model="scripted", messages=history, stream=True)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        history.append({"role": "assistant", "content": said})
        return
    while True:
        message = client.chat.completions.create(model="scripted", messages=history, tools=TOOLS).choices[0].message
        history.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not message.tool_calls:
            return
        called = message.tool_calls[0].id
        history.append({"role": "tool", "tool_call_id": called, "content": '{"where": "Lyon"}'})


def within() -> AbstractContextManager[Any]:
    """One trace, or one session by OpenInference, for the whole conversation."""
    if os.environ.get("SESSION") == "openinference":
        from openinference.instrumentation import using_attributes  # noqa: PLC0415

        session: AbstractContextManager[Any] = using_attributes(session_id="chat-1", user_id="ana")
        return session
    return trace.get_tracer("shop").start_as_current_span("POST /chat")


with within():
    say("Good morning.")
    say("Where is my parcel?")
    say("yes")
    say("yes", stream=True)
