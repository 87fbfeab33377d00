"""Each input format gives the turns that its rule states; an input is cut, told apart, and its gaps are filled."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.produce.command import FormatName
from jobs.produce.formats import FORMATS, Documents, Filling, InputConversation, Malformed, conversations, detect
from jobs.produce.formats.filling import FileMessage
from jobs.produce.formats.source import InputSource, RawLine
from jobs.shared.sending import Pace
from models.errors import ConfigurationError
from models.events import AlertAcknowledged, SessionEnded, Turn
from tests.support.golden_text import assert_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILLING = Filling(source="chats", now=NOW)
EXAMPLES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "conversation_formats.json").read_text()
)
TURN, DIALOGUE = EXAMPLES["turntide"], EXAMPLES["dialogues"]


def read(name: str, *documents: dict[str, Any], filling: Filling = FILLING, by_time: bool = False) -> list[Any]:
    """What the format makes of the documents."""
    lines = [(number, json.dumps(document).encode()) for number, document in enumerate(documents, start=1)]
    return list(conversations(FORMATS[name], lines, filling, by_time=by_time))


def turns(items: Sequence[Any]) -> list[Turn]:
    """All turns of the items; anything malformed fails the test."""
    return [event for item in items for event in item.events]


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_format_gives_the_turns_that_its_rule_states(name: str) -> None:
    """Paths of a tree, dated sessions in their order, roles, gaps filled; own numbers, risks and times are kept."""
    said = [msgspec.json.encode(turn).decode() for turn in turns(read(name, EXAMPLES[name]))]

    assert name == detect(json.dumps(EXAMPLES[name]).encode())
    assert_text(f"format-{name}", "\n".join(said))


@pytest.mark.parametrize("start", [None, datetime(2025, 1, 1, tzinfo=UTC)])
def test_sessions_without_times_begin_at_start_or_end_now(start: datetime | None) -> None:
    """Five seconds apart; without `--start` the last one now: a turn in the future would be refused."""
    read_turns = turns(read("openai", EXAMPLES["openai"], filling=Filling(source="chats", now=NOW, start=start)))
    begin = start or NOW - timedelta(seconds=5)

    assert [turn.timestamp for turn in read_turns] == [begin + timedelta(seconds=5 * n) for n in range(2)]


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
        ("openai", {"messages": "SECRET"}),
        ("sharegpt", {"conversations": [{"from": "human", "value": 7}]}),
        ("oasst", {"message_tree_id": "t", "prompt": {"role": "prompter", "text": "SECRET"}}),
        ("locomo", {"sample_id": "x", "conversation": {"session_1": []}}),
        ("dialogues", {"turns": [{"role": "user", "content": "SECRET", "risk": 2}]}),
    ],
)
def test_malformed_is_reported_without_text(name: str, document: dict[str, Any]) -> None:
    """A bad document is one report with its line, and the next one is read; no text of it is told."""
    bad, good, *_ = read(name, document, EXAMPLES[name])

    assert isinstance(bad, Malformed)
    assert (bad.line, "SECRET" in bad.reason, type(good)) == (1, False, InputConversation)


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
    options: Any = {"raw": True} if form == "raw" else {"format_name": form}
    if form == "raw" or (form is not None and document.startswith("{{")):
        (found,) = InputSource(stream, FILLING, **options).items

        assert found.line == 1
    else:
        with pytest.raises(ConfigurationError, match=r"nested too deeply|none of the formats"):
            list(InputSource(stream, FILLING, **options).items)


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


_PAST = st.integers(0, 5 * 365 * 86_400).map(lambda seconds: NOW - timedelta(days=1, seconds=seconds))


def test_format_option_names_every_format() -> None:
    """A new format must also be offered on the command line."""
    assert ("auto", *FORMATS) == get_args(FormatName)


def test_documents_of_lines_and_of_an_array() -> None:
    """Blank lines, a byte order mark and Windows line ends do not matter; an array is cut into its elements."""
    lines = Documents(io.BytesIO(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": 2}'))
    array = b' [{"a": 1},\n {"b": [2]}]'
    elements = Documents(io.BytesIO(array))

    assert lines.first() == b'{"a": 1}'
    assert list(lines) == [(1, b'{"a": 1}'), (3, b'{"b": 2}')]
    assert list(elements) == [(1, b'{"a": 1}'), (2, b'{"b": [2]}')]
    assert elements.bytes_read <= len(array)


def test_broken_array() -> None:
    """A cut-off array is an error of the whole input: none of its elements can be trusted to be whole."""
    with pytest.raises(ConfigurationError, match="not a JSON array"):
        list(Documents(io.BytesIO(b'[{"a": 1}, {"b"')))


@given(st.lists(st.none() | _PAST, max_size=20))
def test_given_times_stay_and_missing_ones_follow(times: list[datetime | None]) -> None:
    """Given times are kept, a missing one is five seconds after the turn before, and none lies in the future."""
    made = [
        turn.timestamp
        for turn in FILLING.turns("s", [FileMessage(role="user", content="", timestamp=t) for t in times])
    ]

    assert len(times) == len(made)
    assert all(given is None or given == time for given, time in zip(times, made, strict=True))
    assert all(made[n] == made[n - 1] + timedelta(seconds=5) for n in range(1, len(made)) if times[n] is None)
    assert all(time <= NOW for time in made)


@given(st.text(max_size=400))
def test_derived_ids_fit(name: str) -> None:
    """Ids derived from any file name have 1-256 characters and are the same each time."""
    filling = Filling(source=name, now=NOW)
    session_id = filling.session_id(7)

    assert session_id == filling.session_id(7)
    assert 1 <= len(session_id) <= 256
    assert 1 <= len(filling.user_of(session_id)) <= 256


CHAT = b'{"messages": [{"role": "user", "content": "Hi"}], "session_id": "s"}\n'
TURN_LINE = (
    b'{"session_id":"s","user_id":"u","app_id":"a","turn":0,"role":"user","content":"Hi",'
    b'"timestamp":"2026-01-01T00:00:00Z"}\n'
)


@pytest.mark.parametrize(
    ("line", "end_sessions", "ends"), [(CHAT, None, True), (CHAT, False, False), (TURN_LINE, None, False)]
)
def test_transcripts_are_followed_by_their_end(line: bytes, end_sessions: bool | None, ends: bool) -> None:
    """Their sessions need not wait for a time-out; but not where it is switched off, nor events that bring theirs."""
    (item,) = InputSource(io.BytesIO(line), FILLING, end_sessions=end_sessions).items
    assert isinstance(item, InputConversation)

    ended = SessionEnded(session_id="s", app_id=FILLING.app_id, timestamp=FILLING.now, reason="end of transcript")
    assert item.events[1:] == [ended] * ends


def test_end_sessions_does_not_go_with_turntide() -> None:
    """Lines of several sessions alternate there: which one is the last cannot be known."""
    with pytest.raises(ConfigurationError, match="session_ended"):
        InputSource(io.BytesIO(TURN_LINE), FILLING, end_sessions=True)


def test_raw_lines_keep_every_byte() -> None:
    """Bad input is sent byte for byte, keyed where the session id can be read."""
    lines = b'{"session_id": "s", "x": 1}\r\n\xff\xfe\n\n{"session_id": 5}\n[1]'
    source = InputSource(io.BytesIO(lines), FILLING, raw=True)

    assert [
        RawLine(1, b"s", b'{"session_id": "s", "x": 1}'),
        RawLine(2, None, b"\xff\xfe"),
        RawLine(3, None, b""),
        RawLine(4, None, b'{"session_id": 5}'),
        RawLine(5, None, b"[1]"),
    ] == list(source.items)


@pytest.mark.parametrize(
    ("pace", "due_s"), [(Pace(rate_per_s=10), [0.0, 0.1, 0.2]), (Pace(speedup=3600), [0.0, 1.0, -1.0])]
)
def test_the_pace_is_a_rate_or_the_events_own(pace: Pace, due_s: list[float]) -> None:
    """Ten a second, whatever the times; or an hour's gap in a second, and an event out of order at once."""
    assert [pace.due(datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in (5, 6, 4)] == due_s
