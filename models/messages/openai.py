"""OpenAI's chat messages, as turns.

| of a message | becomes |
|---|---|
| text, or parts of it | the turn's content, parts joined by blank lines |
| a part that is no text | its name in brackets: `[image]` |
| `developer` | a turn of `system`; `function` one of `tool` |
| a tool call of an assistant | a turn of `tool` behind the message: `{"name": …, "arguments": …}` |
| `name`, `tool_call_id`, a call's `id` | `metadata` |
| no text and no calls | nothing: no turn is made empty |

A message's id is that of its first turn; further ones have it with `#1`, `#2` … behind it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from models.events.base import Role, Scalar
from models.events.fields import MessageId, UtcTime, about
from models.events.ids import named_id
from models.messages.turns import IncomingTurn

ChatRole = Literal["system", "developer", "user", "assistant", "tool", "function"]
_ROLES = {"developer": Role.SYSTEM, "function": Role.TOOL}
_LONGEST_ID = 256
_NAMES = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}


class ChatPart(Struct, frozen=True):
    """A part of a message's content. Parts that are no text have only a type."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class CalledFunction(Struct, frozen=True):
    """The called function. `arguments` is JSON as text; `input` of a custom tool is any text."""

    name: str = ""
    arguments: str | None = None
    input: str | None = None


class ToolCall(Struct, frozen=True):
    """A call of a tool by an assistant."""

    id: str | None = None
    function: CalledFunction | None = None
    custom: CalledFunction | None = None


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A message as in OpenAI's chat completions. Other fields are ignored."""

    role: Annotated[ChatRole, about("Role of the speaker.")]
    content: str | list[ChatPart] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    function_call: CalledFunction | None = None
    message_id: Annotated[MessageId, about("Your id, unique in the session; a repeat is ignored.")] | None = None
    timestamp: Annotated[UtcTime, about("Event time. Optional; default: now.")] | None = None


def turns_of(
    messages: Iterable[ChatMessage],
    *,
    session_id: str,
    user_id: str,
    app_id: str | None = None,
    project_id: str | None = None,
) -> list[IncomingTurn]:
    """Turns of a conversation's messages, in their order.

    >>> said = [ChatMessage(role="user", content="Weather?", message_id="m")]
    >>> called = CalledFunction("weather", '{"city": "Oslo"}')
    >>> said += [ChatMessage(role="assistant", tool_calls=[ToolCall("c-1", called)], message_id="n")]
    >>> [(turn.role.value, turn.content, turn.message_id) for turn in turns_of(said, session_id="s", user_id="u")]
    [('user', 'Weather?', 'm'), ('tool', '{"name":"weather","arguments":{"city":"Oslo"}}', 'n')]
    """
    return [
        IncomingTurn(
            session_id=session_id,
            user_id=user_id,
            app_id=app_id,
            project_id=project_id,
            role=role,
            content=content,
            message_id=_id_of(message.message_id, place),
            timestamp=message.timestamp,
            metadata=noted or None,
        )
        for message in messages
        for place, (role, content, noted) in enumerate(parts_of(message))
    ]


def parts_of(message: ChatMessage) -> Iterator[tuple[Role, str, dict[str, Scalar]]]:
    """Role, content and what is noted of each turn that a message becomes; none of one that says and calls nothing."""
    if content := _text(message):
        noted = {"name": message.name, "tool_call_id": message.tool_call_id}
        role = _ROLES.get(message.role) or Role(message.role)
        yield role, content, {name: value for name, value in noted.items() if value is not None}
    for call_id, called in _calls(message):
        yield Role.TOOL, _called(called), {} if call_id is None else {"tool_call_id": call_id}


def _text(message: ChatMessage) -> str:
    said = message.content
    parts: Sequence[str | None] = [said] if not isinstance(said, list) else [_part(each) for each in said]
    return "\n\n".join(each for each in (*parts, message.refusal) if each)


def _part(part: ChatPart) -> str:
    if (text := part.text if part.text is not None else part.refusal) is not None:
        return text
    return f"[{_NAMES.get(part.type, part.type)}]"


def _calls(message: ChatMessage) -> Iterator[tuple[str | None, CalledFunction]]:
    for call in message.tool_calls or ():
        yield call.id, call.function or call.custom or CalledFunction()
    if message.function_call is not None:
        yield None, message.function_call


def _called(called: CalledFunction) -> str:
    given = called.arguments if called.arguments is not None else called.input or ""
    try:
        arguments: Any = msgspec.Raw(msgspec.json.encode(msgspec.json.decode(given)))
    except (msgspec.DecodeError, RecursionError):
        arguments = given  # models write broken JSON at times
    return msgspec.json.encode({"name": called.name, "arguments": arguments}).decode()


def _id_of(message_id: str | None, place: int) -> str | None:
    if message_id is None or place == 0:
        return message_id
    longer = f"{message_id}#{place}"
    return longer if len(longer) <= _LONGEST_ID else named_id(longer)
