"""Each input format gives the turns that its rule states, and one bad document does not harm the others."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from jobs.produce.formats import FORMATS, Filling, InputConversation, Malformed, conversations, detect
from jobs.produce.formats.source import InputReading, InputSource
from models.errors import ConfigurationError
from models.events import MAX_CONTENT_BYTES, AlertAcknowledged, Role, Turn

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILLING = Filling(source="chats", now=NOW)

OPENAI = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
}
SHAREGPT = {"id": "c1", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
OASST = {
    "message_tree_id": "t",
    "tree_state": "ready_for_export",
    "prompt": {
        "message_id": "p",
        "text": "Question",
        "role": "prompter",
        "user_id": "author",
        "created_date": "2023-02-06T14:00:00+00:00",
        "replies": [
            {"message_id": "a", "text": "One answer", "role": "assistant", "replies": []},
            {
                "message_id": "b",
                "text": "Another",
                "role": "assistant",
                "replies": [{"message_id": "c", "text": "Thanks", "role": "prompter", "replies": []}],
            },
        ],
    },
}
LOCOMO = {
    "sample_id": "conv-1",
    "qa": [],
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_10_date_time": "9:05 am on 2 June, 2023",
        "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "Back again"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ada", "dia_id": "D2:1", "text": "Look", "blip_caption": "a boat", "img_url": ["x"]},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice"},
        ],
    },
}
DIALOGUE = {
    "session_id": "d1",
    "label": "benign",
    "year": 2020,
    "tags": ["x"],
    "turns": [
        {"turn": 1, "role": "user", "content": "One", "risk": 0.25, "timestamp": "2026-02-01T10:00:00+01:00"},
        {"turn": 2, "role": "assistant", "content": "Two"},
    ],
}
TURN = {
    "session_id": "s",
    "user_id": "u",
    "app_id": "a",
    "turn": 0,
    "role": "user",
    "content": "Hi",
    "timestamp": "2026-01-01T00:00:00Z",
}


EXAMPLES: dict[str, dict[str, Any]] = {
    "turntide": TURN,
    "openai": OPENAI,
    "sharegpt": SHAREGPT,
    "oasst": OASST,
    "locomo": LOCOMO,
    "dialogues": DIALOGUE,
}


def read(name: str, *documents: dict[str, Any], filling: Filling = FILLING, by_time: bool = False) -> list[Any]:
    """What the format makes of the documents."""
    lines = [(number, json.dumps(document).encode()) for number, document in enumerate(documents, start=1)]
    return list(conversations(FORMATS[name], lines, filling, by_time=by_time))


def turns(items: Sequence[Any]) -> list[Turn]:
    """All turns of the items; anything malformed fails the test."""
    return [event for item in items for event in item.events]


def test_openai_parts_and_gaps() -> None:
    """Text parts are joined, a call without text is an empty turn, ids come from file name and line."""
    read_turns = turns(read("openai", OPENAI))

    assert [(turn.role, turn.content) for turn in read_turns] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Hello"),
        (Role.ASSISTANT, ""),
    ]
    assert {("chats-1", "user-chats-1", "default")} == {(t.session_id, t.user_id, t.app_id) for t in read_turns}
    assert [turn.turn for turn in read_turns] == [0, 1, 2]


@pytest.mark.parametrize("start", [None, datetime(2025, 1, 1, tzinfo=UTC)])
def test_sessions_without_times_begin_at_start_or_end_now(start: datetime | None) -> None:
    """Five seconds apart; without `--start` the last one now: a turn in the future would be refused."""
    read_turns = turns(read("openai", OPENAI, filling=Filling(source="chats", now=NOW, start=start)))
    begin = start or NOW - timedelta(seconds=10)

    assert [turn.timestamp for turn in read_turns] == [begin + timedelta(seconds=5 * n) for n in range(3)]


def test_sharegpt_roles() -> None:
    """`human` speaks as user, `gpt` as assistant, and a system text beside them comes first."""
    read_turns = turns(read("sharegpt", {**SHAREGPT, "system": "Be kind."}))

    assert [(turn.session_id, turn.role) for turn in read_turns] == [
        ("c1", Role.SYSTEM),
        ("c1", Role.USER),
        ("c1", Role.ASSISTANT),
    ]


def test_oasst_paths() -> None:
    """Every path from root to leaf is a session, with the prompt's user and time."""
    items = read("oasst", OASST)

    assert [(item.events[0].session_id, [event.content for event in item.events]) for item in items] == [
        ("t/a", ["Question", "One answer"]),
        ("t/c", ["Question", "Another", "Thanks"]),
    ]
    assert {"author"} == {turn.user_id for turn in turns(items)}
    assert datetime(2023, 2, 6, 14, 0, 10, tzinfo=UTC) == items[1].events[2].timestamp


def test_oasst_deep_tree() -> None:
    """A chain of replies deeper than Python's recursion limit is reported, not a crash."""
    chain = b'{"message_id":"m","text":"x","role":"prompter","replies":['
    document = b'{"message_tree_id":"t","prompt":' + chain * 3000 + b"]}" * 3000 + b"}"
    items = list(conversations(FORMATS["oasst"], [(1, document)], FILLING))

    assert [Malformed] == [type(item) for item in items]


def test_locomo_sessions() -> None:
    """Dated sessions in the order of their numbers, a minute per turn; speakers and pictures are named in the text."""
    first, second = read("locomo", LOCOMO)
    assert [turn.content for turn in turns([first])] == ["Ada: Look [a boat]", "Bo: Nice"]

    assert [first.events[0].session_id, second.events[0].session_id] == ["conv-1/session_2", "conv-1/session_10"]
    assert [
        (
            "user-conv-1",
            Role.USER,
            datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
            {"dia_id": "D2:1", "blip_caption": "a boat"},
        ),
        ("user-conv-1", Role.ASSISTANT, datetime(2023, 5, 8, 13, 57, tzinfo=UTC), {"dia_id": "D2:2"}),
    ] == [(turn.user_id, turn.role, turn.timestamp, turn.metadata) for turn in first.events]


def test_locomo_unreadable_date() -> None:
    """A session without a date cannot be placed in time: the sample is reported."""
    sample = json.loads(json.dumps(LOCOMO))
    sample["conversation"]["session_2_date_time"] = "yesterday"
    (malformed,) = read("locomo", sample)

    assert Malformed(1, "session_2_date_time is missing or not as in `1:56 pm on 8 May, 2023`") == malformed


def test_dialogue_own_values_win() -> None:
    """Turn numbers, risk and times of the file are kept; what has no time follows five seconds later."""
    expected = [(1, 0.25, datetime(2026, 2, 1, 9, tzinfo=UTC)), (2, None, datetime(2026, 2, 1, 9, 0, 5, tzinfo=UTC))]

    assert expected == [(turn.turn, turn.risk, turn.timestamp) for turn in turns(read("dialogues", DIALOGUE))]


@pytest.mark.parametrize(("keep", "expected"), [(False, None), (True, {"label": "benign", "year": 2020})])
def test_dialogue_labels_stay_out(keep: bool, expected: dict[str, object] | None) -> None:
    """A label beside a dialogue must not reach the detector that it judges, unless asked for."""
    filling = Filling(source="chats", now=NOW, keep_metadata=keep)

    assert expected == turns(read("dialogues", DIALOGUE, filling=filling))[0].metadata


def test_turntide_lines_pass() -> None:
    """Turns and control events pass as they are; only app and user may be missing."""
    control = {"type": "alert_acknowledged", "session_id": "s", "timestamp": "2026-01-01T00:00:00Z", "alert_id": "x"}
    without_user = {key: value for key, value in TURN.items() if key not in {"user_id", "app_id"}}
    whole, acknowledged, filled = turns(read("turntide", TURN, control, without_user))

    assert msgspec.convert(TURN, Turn) == whole
    assert isinstance(acknowledged, AlertAcknowledged)
    assert (filled.user_id, filled.app_id) == ("user-s", "default")


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("turntide", {**TURN, "session_id": ""}),
        ("turntide", {**TURN, "role": "SECRET"}),
        ("turntide", {**TURN, "type": "SECRET"}),
        ("turntide", {**TURN, "content": "x" * (MAX_CONTENT_BYTES + 1)}),
        ("openai", {"messages": [{"role": "SECRET", "content": "SECRET"}]}),
        ("openai", {"messages": "SECRET"}),
        ("sharegpt", {"conversations": [{"from": "human", "value": 7}]}),
        ("oasst", {"message_tree_id": "t", "prompt": {"role": "prompter", "text": "SECRET"}}),
        ("locomo", {"sample_id": "x", "conversation": {"session_1": []}}),
        ("dialogues", {"turns": [{"role": "user", "content": "SECRET", "risk": 2}]}),
    ],
)
def test_malformed_is_reported_without_text(name: str, document: dict[str, Any]) -> None:
    """A bad document is one report with its line, and the next one is read; no text of it is told."""
    bad, *rest = read(name, document, EXAMPLES[name])

    assert isinstance(bad, Malformed)
    assert bad.line == 1
    assert "SECRET" not in bad.reason
    assert all(isinstance(item, InputConversation) for item in rest)
    assert rest


def test_by_time_sorts_whole_conversations() -> None:
    """Conversations years apart must not reach a partition backwards in time."""
    later = {**DIALOGUE, "session_id": "later"}
    earlier = {
        "session_id": "earlier",
        "turns": [{"role": "user", "content": "x", "timestamp": "2020-01-01T00:00:00Z"}],
    }
    items = read("dialogues", later, earlier, by_time=True)

    assert [item.events[0].session_id for item in items] == ["earlier", "later"]


@pytest.mark.parametrize("name", FORMATS)
def test_detection(name: str) -> None:
    """The first document shows its format."""
    assert name == detect(json.dumps(EXAMPLES[name]).encode())


@pytest.mark.parametrize("document", ['{{"messages": {deep}}}', "[{deep}]", "{deep}"])
@pytest.mark.parametrize("form", [None, "raw", *FORMATS])
def test_deeply_nested_input_is_told(document: str, form: str | None) -> None:
    """As a line that cannot be read, or as an input of no known form; never as an error of the decoder."""
    stream = io.BytesIO(document.format(deep="[" * 100_000 + "]" * 100_000).encode())
    reading = InputReading(filling=FILLING, format_name=None if form == "raw" else form, raw=form == "raw")
    if form == "raw" or (form is not None and document.startswith("{{")):
        (found,) = InputSource(stream, reading).items

        assert found.line == 1
    else:
        with pytest.raises(ConfigurationError, match=r"nested too deeply|none of the formats"):
            list(InputSource(stream, reading).items)


@pytest.mark.parametrize(
    ("named", "app_id"), [({}, "shop"), ({"app_id": "bank"}, "bank"), ({"app_id": "default"}, "default")]
)
def test_turns_that_name_no_app_get_the_filling_ones(named: dict[str, str], app_id: str) -> None:
    """A turn on the topic belongs to the default app then; of a file it is said on the command line."""
    filling = Filling(source="chats", now=NOW, app_id="shop")
    line = {"session_id": "s", "user_id": "u", "turn": 0, "role": "user", "content": "Hi", "timestamp": NOW, **named}
    ((turn,),) = FORMATS["turntide"].read(msgspec.json.encode(line), 1, filling)

    assert isinstance(turn, Turn)
    assert (turn.app_id, turn.user_id) == (app_id, "u")
