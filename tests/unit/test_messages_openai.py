"""Chat messages as turns: each way in makes the same of them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from models.events import DEFAULT_APP, Turn, UnnumberedTurn
from models.messages.openai import ChatMessage, turns_of
from models.messages.turns import IncomingTurn

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
CALL = {"id": "c-1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CALLED = '{"name":"weather","arguments":{"city":"Oslo"}}'


def turns(*messages: dict[str, Any]) -> list[tuple[str, str, str | None, dict[str, Any] | None]]:
    """Role, content, message id and metadata of the turns that messages become."""
    read = msgspec.convert(list(messages), list[ChatMessage])
    made = turns_of(read, session_id="s", user_id="u")
    return [(turn.role.value, turn.content, turn.message_id, turn.metadata) for turn in made]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": "Hi", "message_id": "m"}, [("user", "Hi", "m", None)]),
        ({"role": "developer", "content": "Be brief."}, [("system", "Be brief.", None, None)]),
        (
            {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "this?"}]},
            [("user", "What is\n\nthis?", None, None)],
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "file", "file": {}}],
            },
            [("user", "[image]\n\n[file]", None, None)],
        ),
        (
            {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL, CALL], "message_id": "m"},
            [
                ("assistant", "Let me look.", "m", None),
                ("tool", CALLED, "m#1", {"tool_call_id": "c-1"}),
                ("tool", CALLED, "m#2", {"tool_call_id": "c-1"}),
            ],
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL], "message_id": "m"},
            [("tool", CALLED, "m", {"tool_call_id": "c-1"})],
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "custom": {"name": "sh", "input": "ls -l"}}]},
            [("tool", '{"name":"sh","arguments":"ls -l"}', None, {"tool_call_id": "c"})],
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": '{"broken": '}},
            [("tool", '{"name":"f","arguments":"{\\"broken\\": "}', None, None)],
        ),
        ({"role": "tool", "tool_call_id": "c-1", "content": "Rain"}, [("tool", "Rain", None, {"tool_call_id": "c-1"})]),
        ({"role": "function", "name": "f", "content": "Rain"}, [("tool", "Rain", None, {"name": "f"})]),
        ({"role": "assistant", "content": None, "refusal": "I cannot."}, [("assistant", "I cannot.", None, None)]),
        ({"role": "user", "content": ""}, []),
        ({"role": "assistant", "content": [], "audio": {"id": "a"}}, []),
    ],
)
def test_each_form_of_a_message(message: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    """What is said, shown, called, answered and refused; never an empty turn."""
    assert turns(message) == expected


def test_ids_of_further_turns_stay_ids() -> None:
    """An id has 256 characters at most, and each turn its own."""
    made = turns({"role": "assistant", "content": "Both.", "tool_calls": [CALL, CALL], "message_id": "m" * 256})
    ids = [message_id or "" for _, _, message_id, _ in made]

    assert len(set(ids)) == 3
    assert max(map(len, ids)) == 256


def test_what_is_left_out_is_filled_in() -> None:
    """Now, in the default app; with a number it is a turn that is counted already."""
    said = msgspec.convert({"session_id": "s", "user_id": "u", "role": "user", "content": "Hi"}, IncomingTurn)
    counted = msgspec.structs.replace(said, turn=7, app_id="shop", timestamp=NOW)

    assert said.event(NOW) == UnnumberedTurn(
        session_id="s", user_id="u", app_id=DEFAULT_APP, role=said.role, content="Hi", timestamp=NOW
    )
    assert counted.event(NOW) == Turn(
        session_id="s", user_id="u", app_id="shop", turn=7, role=said.role, content="Hi", timestamp=NOW
    )
