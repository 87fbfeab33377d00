"""Messages as the conventions of traced model calls write them, made OpenAI's: parts, indexed attributes, JSON in text.

What cannot be read is passed over: a trace tells what an instrumentation saw, and half of a message is no message.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from models.messages.openai import CalledFunction, ChatMessage, ChatPart, ToolCall
from models.text.tables import read_table
from models.wire.codec import UNDECODABLE

_TABLE = read_table("conventions", "messages")
_ROLES: Mapping[str, Any] = _TABLE["roles"]
_PARTS: Mapping[str, str] = _TABLE["parts"]
_WRAPPERS = ("message", "message_content", "tool_call")
"""OpenInference puts each message, part and call into an object of its own."""
_SAYING = {"role", "content", "parts", "contents", "message", "messages", "tool_calls"}
_PART = {"type", "text", "content", "message_content"}
_LONGEST_INDEX = 6
_DEEPEST = 16


def messages_in(found: Any, role: str) -> Iterator[ChatMessage]:
    """Messages of an attribute or an event, in their order.

    Args:
        found: JSON as text or decoded: a text, a message, or a list of them.
        role: Of what does not say who speaks.

    >>> list(messages_in('[{"role": "human", "parts": [{"type": "text", "content": "Hi"}]}]', "user"))[0].role
    'user'
    """
    told = parsed(found)
    if isinstance(told, list) and all(map(_is_message, told)):
        for each in told:
            yield from messages_in(each, role)
    elif isinstance(told, dict) and isinstance(inner := told.get("messages"), list):
        yield from messages_in(inner, role)
    elif isinstance(told, dict) and _is_message(told):
        yield from _message(_unwrapped(told), role)
    elif isinstance(found, str):
        yield ChatMessage(role=_ROLES[role], content=found)


def numbered(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """What attributes like `prefix.0.content` say, as a list of objects.

    >>> numbered({"p.1.a.b": 2, "p.0.a": 1, "q.0.a": 3}, "p")
    [{'a': 1}, {'a': {'b': 2}}]
    """
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix + "."):
            continue
        *way, last = name[len(prefix) + 1 :].split(".", _DEEPEST)
        branch = tree
        for step in way:
            below = branch.setdefault(step, {})
            if not isinstance(below, dict):
                branch[step] = below = {}
            branch = below
        branch[last] = value
    listed = _listed(tree)
    return listed if isinstance(listed, list) else []


def _is_message(told: Any) -> bool:
    return isinstance(told, dict) and not _SAYING.isdisjoint(told)


def _listed(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    below = {name: _listed(each) for name, each in tree.items()}
    if below and all(name.isdecimal() and len(name) <= _LONGEST_INDEX for name in below):
        return [below[name] for name in sorted(below, key=int)]
    return below


def _message(said: dict[str, Any], role: str) -> Iterator[ChatMessage]:
    speaker = _ROLES.get(_text(said.get("role") or said.get("type") or "").lower(), _ROLES[role])
    parts, calls = list[ChatPart](), [_call(each) for each in _objects(said.get("tool_calls"))]
    for part in _parts_of(said):
        kind = _PARTS.get(_text(part.get("type") or "text"), "other")
        if kind == "call":
            calls.append(_call(part))
        elif kind == "result":
            yield ChatMessage(role="tool", content=_result(part), tool_call_id=_id(part))
        elif kind != "hidden":
            text = part.get("text", part.get("content"))
            named = part.get("modality") or part.get("type") or "text"
            parts.append(ChatPart(text=text) if isinstance(text, str) else ChatPart(type=_text(named)))
    called = _text(said.get("tool_call_id") or (said.get("id") if speaker == "tool" else None) or "") or None
    yield ChatMessage(
        role=speaker, content=parts, tool_calls=calls, tool_call_id=called, name=_text(said.get("name") or "") or None
    )


def _parts_of(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = next((said[name] for name in ("parts", "contents", "content") if said.get(name)), None)
    if isinstance(content, str):
        told = parsed(content) if content.startswith("[{") else ""
        content = told if told and all(isinstance(each, dict) and "type" in each for each in told) else [content]
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield {"type": "text", "text": part}
        elif isinstance(part, dict):
            yield {"text": _text(part)} if _PART.isdisjoint(part) else _unwrapped(part)


def _call(told: dict[str, Any]) -> ToolCall:
    called = _unwrapped(told)
    function = called.get("function")
    named = function if isinstance(function, dict) else called
    given = next((named[name] for name in ("arguments", "input", "args") if name in named), "")
    return ToolCall(_id(called), CalledFunction(_text(named.get("name") or ""), _text(given)))


def _result(part: dict[str, Any]) -> str:
    return _text(next((part[name] for name in ("response", "result", "output", "content") if name in part), ""))


def _id(told: dict[str, Any]) -> str | None:
    return next(
        (_text(told[name]) for name in ("id", "tool_call_id", "call_id", "tool_use_id") if told.get(name)), None
    )


def _unwrapped(told: dict[str, Any]) -> dict[str, Any]:
    return next((inner for name in _WRAPPERS if isinstance(inner := parsed(told.get(name)), dict)), told)


def _objects(found: Any) -> list[dict[str, Any]]:
    found = parsed(found)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def parsed(value: Any) -> Any:
    """JSON in a text, decoded; what is none as it stands."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        try:
            return msgspec.json.decode(value)
        except UNDECODABLE:
            return value
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
