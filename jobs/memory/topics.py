"""`turntide memory`: what a session's topics became, their whole history, and bringing an evicted one back."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import duckdb
import msgspec
import typer

from jobs.cli import examples, group
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.session_app import SessionAppOption, session_meant
from models.errors import ConfigurationError
from models.events import RestoredMessage, SessionName, TopicRestored
from models.state.entity import same_fields
from models.wire.codec import encode
from streams.archive.catalog import paths_of, reading
from streams.archive.inputs import ArchivedMessage, ArchivedTopic, apps_of, is_open, messages_of, stands_on, topics_of
from streams.settings import load_settings

MOST_MESSAGES = 200
"""Messages that a topic brings back …"""
MOST_BYTES = 500_000
"""… and the size of their JSON: the record has to fit on `turns.v1`."""
_SHOWN = ("topic_id", "standing", "cause", "messages", "at_hand", "packed", "released", "access_count", "title")

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.")]
TopicOption = Annotated[str, typer.Option("--topic", help="Id of the topic, as `topics` shows it.")]

app = group("Topics of a session out of the archive: list them, read all that was said in one, restore an evicted one.")


@app.command(epilog=examples("turntide memory topics order-4711", "turntide memory topics order-4711 --output json"))
def topics(
    session_id: SessionArgument, *, app_id: SessionAppOption = "", output: OutputOption = OutputFormat.TABLE
) -> None:
    """List all topics of a session, the latest active first: kept, evicted, and merged into another."""
    with reading(paths_of(load_settings())) as lake:
        found = _topics(lake, session_meant(session_id, app_id, apps_of(lake, session_id)))
    rows = [{"standing": topic.state, **msgspec.structs.asdict(topic)} for topic in found]
    printed = Printer(output)
    if output is OutputFormat.TABLE:
        rows = [{name: row[name] for name in _SHOWN} for row in rows]
    printed.rows(f"topics of {session_id}", rows)
    kept = sum(topic.kept for topic in found)
    printed.message(f"{kept} kept, {len(found) - kept} evicted or merged; `turntide memory history` prints any of them")


@app.command(
    epilog=examples(
        "turntide memory history order-4711 --topic 6f1a3c50-…",
        "turntide memory history order-4711 --topic 6f1a3c50-… --output json | jq -r .[].content",
    )
)
def history(
    session_id: SessionArgument,
    *,
    topic_id: TopicOption,
    app_id: SessionAppOption = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print every message of a topic in order of time: loaded, packed and released, also of an evicted topic.

    Topics that merged into it are part of it.
    """
    with reading(paths_of(load_settings())) as lake:
        session = session_meant(session_id, app_id, apps_of(lake, session_id))
        _chosen(_topics(lake, session), session_id, topic_id)
        found = messages_of(lake, session, topic_id)
    Printer(output).rows(f"topic {topic_id} of {session_id}", [msgspec.structs.asdict(message) for message in found])


@app.command(epilog=examples("turntide memory restore order-4711 --topic 6f1a3c50-…"))
def restore(
    session_id: SessionArgument,
    *,
    topic_id: TopicOption,
    app_id: SessionAppOption = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Bring an evicted topic back into its open session, under its old id, with its latest messages.

    Sends `topic_restored` to turns.v1: at most 200 messages and 500 kB of JSON. The archive keeps all of them.
    """
    from jobs.shared.sending import send_to_turns
    from streams.kafka.records import input_record
    from streams.wiring import policy_of

    settings = load_settings()
    with reading(paths_of(settings)) as lake:
        session = session_meant(session_id, app_id, apps_of(lake, session_id))
        topic = _chosen(_topics(lake, session), session_id, topic_id)
        _require_restorable(topic, session_id, session_open=is_open(lake, session))
        found, partition = messages_of(lake, session, topic_id), stands_on(lake, session)
    event = restored(session, topic, found, message_chars=policy_of(settings).topics.message_chars)
    record = input_record(event, partition)
    asyncio.run(send_to_turns(settings, [record]))
    Printer(output).record(
        {
            "session_id": session_id,
            "topic_id": topic_id,
            "title": topic.title,
            "messages_sent": len(event.messages),
            "messages_archived": len(found),
            "bytes": record.size_bytes,
            "sent": True,
        }
    )


def restored(
    session: SessionName, topic: ArchivedTopic, messages: Sequence[ArchivedMessage], *, message_chars: int
) -> TopicRestored:
    """The control event that brings a topic back.

    Args:
        session: Whose topic.
        topic: As its last event left it.
        messages: All of it, in order of time; the latest that fit are taken.
        message_chars: The fold keeps no more of a message (`topics.message_chars`).

    Raises:
        ConfigurationError: The archive has no message of it.
    """
    if not messages:
        raise ConfigurationError(
            f"the archive has no message of topic {topic.topic_id} of session {session.session_id}: "
            "its turns may be erased; `turntide archive verify` reports missing ones"
        )
    return TopicRestored(
        **session._asdict(),
        timestamp=datetime.now(UTC),
        **same_fields(topic, TopicRestored, "summary", "messages"),
        summary=topic.summary or "",
        messages=_latest(messages, message_chars),
    )


def _latest(messages: Sequence[ArchivedMessage], message_chars: int) -> list[RestoredMessage]:
    taken: list[RestoredMessage] = []
    size = 0
    for message in reversed(messages[-MOST_MESSAGES:]):
        cut = RestoredMessage(
            turn=message.turn,
            role=message.role,
            content=message.content[:message_chars],
            timestamp=message.timestamp.astimezone(UTC),
        )
        size += len(encode(cut)) + 1
        if size > MOST_BYTES:
            break
        taken.append(cut)
    return taken[::-1]


def _topics(lake: duckdb.DuckDBPyConnection, session: SessionName) -> list[ArchivedTopic]:
    found = topics_of(lake, session)
    if not found:
        raise ConfigurationError(
            f"the archive has no topic of session {session.session_id} of app {session.app_id}: "
            "`turntide query 'FROM topics'` lists its topics. New ones need the archive role, and topics.enabled in "
            "the policy"
        )
    return found


def _chosen(found: Sequence[ArchivedTopic], session_id: str, topic_id: str) -> ArchivedTopic:
    for topic in found:
        if topic.topic_id == topic_id:
            return topic
    raise ConfigurationError(
        f"session {session_id} never had a topic {topic_id}: `turntide memory topics {session_id}` lists its topics"
    )


def _require_restorable(topic: ArchivedTopic, session_id: str, *, session_open: bool | None) -> None:
    if topic.kept:
        raise ConfigurationError(
            f"topic {topic.topic_id} is still in session {session_id}: nothing to restore. "
            f"`turntide memory history {session_id} --topic {topic.topic_id}` prints all of it"
        )
    if topic.cause == "merged":
        raise ConfigurationError(
            f"topic {topic.topic_id} merged {topic.detail}: restore that topic if it was evicted; its history has both"
        )
    if session_open is False:
        raise ConfigurationError(
            f"session {session_id} is closed, and only an open session can restore a topic: its next turn opens it. "
            f"`turntide memory history {session_id} --topic {topic.topic_id}` prints the topic without that"
        )
