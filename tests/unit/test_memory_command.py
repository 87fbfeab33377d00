"""`turntide memory` over an archive: topics, whole histories, and what is sent to bring a topic back."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import AsyncMock

import msgspec
import pytest

from jobs.memory.topics import MOST_BYTES, MOST_MESSAGES, restored
from models.events import Role, SessionName, TopicRestored
from models.events.topics import CONVERSATION_TOPICS, PROFILES
from models.policy import IntakePolicy
from models.wire.codec import decode_input, encode
from streams.archive.catalog import paths_of
from streams.archive.inputs import ArchivedMessage, ArchivedTopic
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.blank_events import blank
from tests.support.command_line import printed, refused, turntide
from tests.support.lake_records import NOW, PREFIX, buffer_of, lineage, profile, topic, turn

_CHARS = 16_000
_GONE = blank(ArchivedTopic, topic_id="t-1", access_count=4, importance=0.7, tags=["money"], summary="It was paid.")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LakeWriter]:
    """A session with a kept topic, an evicted one, and one that merged into the evicted one."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    writer = LakeWriter(paths_of(load_settings()))
    early = msgspec.structs.replace(turn(5), timestamp=NOW - timedelta(hours=1))
    writer.land(buffer_of([turn(0), turn(1), turn(2), turn(3), turn(4, content="a\x00b"), early]), now=NOW)
    changes = [
        topic("e1", "gone", active_turns=[0, 1]),
        topic("e2", "gone", cause="compacted", active_turns=[1], packed_turns=[0], compaction=lineage(0)),
        topic("e3", "other", active_turns=[5], packed_turns=[]),
        topic("e4", "other", cause="merged", detail="into gone", kept=False, active=False, active_turns=[5]),
        topic("e5", "here", at_offset=2, active_turns=[2]),
        topic("e6", "gone", cause="evicted", kept=False, active=False, active_turns=[1], packed_turns=[0]),
    ]
    writer.land(buffer_of(changes, topic=CONVERSATION_TOPICS), now=NOW)
    yield writer
    writer.close()


@pytest.mark.usefixtures("archive")
def test_topics_say_what_became_of_them() -> None:
    """Counts, the last cause, and whether the topic is still kept; people get no more columns than can be read."""
    found = {row["topic_id"]: row for row in printed("memory", "topics", "s-1")}

    assert {topic_id: (row["standing"], row["cause"]) for topic_id, row in found.items()} == {
        "here": ("active", "started"),
        "gone": ("evicted", "evicted"),
        "other": ("merged", "merged"),
    }
    assert (found["gone"]["at_hand"], found["gone"]["packed"], found["gone"]["compactions"]) == (1, 1, 1)
    result = turntide("memory", "topics", "s-1")
    assert "the refund" in result.stdout
    assert "half_life" not in result.stdout
    assert "1 kept, 2 evicted" in result.stderr


def test_another_app_s_session_of_the_same_id_is_another_one(archive: LakeWriter) -> None:
    """Its topics and messages are its own; without the app nobody can tell which is meant."""
    archive.land(buffer_of([turn(0, app_id="bank", content="theirs")], first=6, expected=6), now=NOW)
    theirs = msgspec.structs.replace(topic("b1", "gone", active_turns=[0]), app_id="bank")
    archive.land(buffer_of([theirs], topic=CONVERSATION_TOPICS, first=6, expected=6), now=NOW)

    unnamed = refused("memory", "topics", "s-1")
    topics = [printed("memory", "topics", "s-1", "--app", app_id) for app_id in ("support", "bank")]
    history = [printed("memory", "history", "s-1", "--topic", "gone", "--app", app) for app in ("support", "bank")]

    assert "apps bank, support each have a session s-1" in unnamed
    assert [["gone", "here", "other"], ["gone"]] == [sorted(row["topic_id"] for row in rows) for rows in topics]
    assert [[5, 0, 1], [0]] == [[row["turn"] for row in rows] for rows in history]
    assert ["theirs"] == [row["content"] for row in history[1]]


@pytest.mark.usefixtures("archive")
def test_history_of_the_active_topic_has_what_no_event_named_and_the_exact_text() -> None:
    """Turns after the topic's last event are its own; U+0000 is as it was said. What merged stands in order of time."""
    found = printed("memory", "history", "s-1", "--topic", "here")

    assert [(row["turn"], row["role"]) for row in found] == [(2, "user"), (3, "user"), (4, "user")]
    assert found[-1]["content"] == "a\x00b"
    assert [row["turn"] for row in printed("memory", "history", "s-1", "--topic", "gone")] == [5, 0, 1]


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "nobody"), "turntide query"),
        (("history", "s-1", "--topic", "nothing"), "turntide memory topics s-1"),
        (("restore", "s-1", "--topic", "nothing"), "turntide memory topics s-1"),
        (("restore", "s-1", "--topic", "here"), "still in session"),
        (("restore", "s-1", "--topic", "other"), "merged into gone"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    """Unknown session, unknown topic, nothing to restore."""
    assert said in refused("memory", *arguments)


def test_a_closed_session_takes_no_topic_back(archive: LakeWriter) -> None:
    """The fold would count the control as late, and nothing would come of it."""
    closed = profile("p1", turns=2)
    archive.land(buffer_of([msgspec.structs.replace(closed, open=False)], topic=PROFILES), now=NOW)

    result = turntide("memory", "restore", "s-1", "--topic", "gone")

    assert "is closed" in str(result.exception)


@pytest.mark.usefixtures("archive")
def test_an_evicted_topic_is_sent_to_where_its_session_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its old id, with what was said in it, by the session's key and on its partition."""
    sent = AsyncMock()
    monkeypatch.setattr("jobs.shared.sending.send_to_turns", sent)
    told = printed("memory", "restore", "s-1", "--topic", "gone")
    ((record,),) = [each.args[1] for each in sent.call_args_list]
    event = decode_input(record.value, record.key, datetime.now(UTC), IntakePolicy())

    assert (told["messages_sent"], told["messages_archived"], told["title"]) == (3, 3, "the refund")
    assert isinstance(event, TopicRestored)
    assert (event.app_id, event.session_id, event.topic_id, record.partition) == ("support", "s-1", "gone", 0)
    assert [message.turn for message in event.messages] == [5, 0, 1]


def said(turn_number: int, content: str) -> ArchivedMessage:
    """A message of the topic."""
    return ArchivedMessage(turn=turn_number, role=Role.USER, content=content, timestamp=NOW)


def test_a_restored_topic_is_as_it_was_with_its_latest_messages() -> None:
    """Importance, accesses, tags and summary come back; the record has to fit on its topic, however long it was."""
    session = SessionName("support", "s-1")
    event = restored(session, _GONE, [said(0, "a"), said(1, "b")], message_chars=_CHARS)
    many = restored(session, _GONE, [said(n, "short") for n in range(500)], message_chars=_CHARS)
    long = restored(session, _GONE, [said(n, "\x01" * 100_000) for n in range(50)], message_chars=_CHARS)
    names = ("app_id", "session_id", "topic_id", "importance", "access_count", "tags", "summary")

    assert {name: getattr(event, name) for name in names} == {
        **session._asdict(), **{name: getattr(_GONE, name) for name in names[2:]},
    }  # fmt: skip
    assert [(message.turn, message.content) for message in event.messages] == [(0, "a"), (1, "b")]
    assert [message.turn for message in many.messages] == list(range(500 - MOST_MESSAGES, 500))
    assert long.messages[-1].turn == 49
    assert MOST_BYTES * 0.8 < len(encode(long)) < MOST_BYTES * 1.01
