"""Each input format gives the turns that its rule states, and one bad document does not harm the others."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.produce.formats import FORMATS, Filling, InputConversation, Malformed, conversations, detect
from jobs.produce.formats.source import InputReading, InputSource
from models.errors import ConfigurationError
from models.events import MAX_CONTENT_BYTES, AlertAcknowledged, Turn
from tests.support.golden_text import assert_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILLING = Filling(source="chats", now=NOW)
EXAMPLES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "conversation_formats.json").read_text()
)
TURN, LOCOMO, DIALOGUE = (EXAMPLES[name] for name in ("turntide", "locomo", "dialogues"))


def read(name: str, *documents: dict[str, Any], filling: Filling = FILLING, by_time: bool = False) -> list[Any]:
    """What the format makes of the documents."""
    lines = [(number, json.dumps(document).encode()) for number, document in enumerate(documents, start=1)]
    return list(conversations(FORMATS[name], lines, filling, by_time=by_time))


def turns(items: Sequence[Any]) -> list[Turn]:
    """All turns of the items; anything malformed fails the test."""
    return [event for item in items for event in item.events]


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_gives_the_turns_that_its_rule_states(name: str) -> None:
    """Paths of a tree, dated sessions in their order, roles, gaps filled; own numbers, risks and times are kept."""
    said = [msgspec.json.encode(turn).decode() for turn in turns(read(name, EXAMPLES[name]))]

    assert name == detect(json.dumps(EXAMPLES[name]).encode())
    assert_text(f"format-{name}", "\n".join(said))


@pytest.mark.parametrize("start", [None, datetime(2025, 1, 1, tzinfo=UTC)])
def test_sessions_without_times_begin_at_start_or_end_now(start: datetime | None) -> None:
    """Five seconds apart; without `--start` the last one now: a turn in the future would be refused."""
    read_turns = turns(read("openai", EXAMPLES["openai"], filling=Filling(source="chats", now=NOW, start=start)))
    begin = start or NOW - timedelta(seconds=10)

    assert [turn.timestamp for turn in read_turns] == [begin + timedelta(seconds=5 * n) for n in range(3)]


def test_oasst_deep_tree() -> None:
    """A chain of replies deeper than Python's recursion limit is reported, not a crash."""
    chain = b'{"message_id":"m","text":"x","role":"prompter","replies":['
    document = b'{"message_tree_id":"t","prompt":' + chain * 3000 + b"]}" * 3000 + b"}"
    items = list(conversations(FORMATS["oasst"], [(1, document)], FILLING))

    assert [Malformed] == [type(item) for item in items]


def test_locomo_unreadable_date() -> None:
    """A session without a date cannot be placed in time: the sample is reported."""
    sample = json.loads(json.dumps(LOCOMO))
    sample["conversation"]["session_2_date_time"] = "yesterday"
    (malformed,) = read("locomo", sample)

    assert Malformed(1, "session_2_date_time is missing or not as in `1:56 pm on 8 May, 2023`") == malformed


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
