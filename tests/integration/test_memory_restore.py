"""An evicted topic comes back: through the roles, the archive and `turntide memory`, on the real broker."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from jobs.replay.comparison import settle
from jobs.shared.role_process import environment_of
from jobs.shared.sending import send_to_turns
from models.events import TopicChanged
from models.events.topics import CONVERSATION_TOPICS
from streams.kafka.producer import Record
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings
from tests.support.command_line import printed
from tests.support.fault_driver import events, recorded, running, said, until

_POLICY = """\
version = "test"

[topics]
max_topics = 1
base_half_life = "PT1M"
max_half_life = "PT1M"
"""
_SAID = ("The parcel with the lamps is late.", "How do I bake bread?", "Which train goes to Vienna?")
_WITHIN_S = 60
PARTITIONS = 1


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Rules under which topics are soon evicted; the same settings for commands in this process."""
    policy_file = tmp_path / "policy.toml"
    policy_file.write_text(_POLICY)
    eager = ArchiveSettings(flush_age=timedelta(milliseconds=100))
    found = settings.model_copy(update={"policy_file": policy_file, "archive": eager})
    for name, value in {**environment_of(found), "TURNTIDE_HTTP__INDEX_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    return found


async def topic_changes(settings: Settings, cause: str) -> list[TopicChanged]:
    """Wait for changes of a cause."""

    async def of_cause() -> list[TopicChanged]:
        return [event for event in await events(settings, CONVERSATION_TOPICS) if event.cause == cause]

    found: list[TopicChanged] = await until(of_cause, f"a topic that is {cause}")
    return found


async def turntide(*arguments: str) -> Any:
    """What a command prints as JSON; it has a loop of its own, and roles of this process log elsewhere meanwhile."""
    with capture_logs():
        return await asyncio.to_thread(printed, *arguments)


def records(started: datetime) -> list[Record]:
    """A user who changes the matter every ten minutes."""
    return [
        recorded(said(number, content=content, at=started + timedelta(minutes=10 * number)))
        for number, content in enumerate(_SAID)
    ]


@pytest.mark.behaviour("topic-25")
async def test_an_evicted_topic_comes_back_and_a_replay_agrees(settings: Settings) -> None:
    """It is listed as evicted, restored with its message, and kept again; state, topics and archive as the oracle's."""
    await send_to_turns(settings, records(datetime.now(UTC) - timedelta(minutes=21)))
    async with running(settings, "sessions", "archive"):
        evicted = (await topic_changes(settings, "evicted"))[0]
        await settle(settings, within_s=_WITHIN_S)  # the archive has it
        listed = await turntide("memory", "topics", "s")
        sent = await turntide("memory", "restore", "s", "--topic", evicted.topic_id)
        (restored,) = await topic_changes(settings, "restored")
        compared = (await settle(settings, within_s=_WITHIN_S)).comparison
        history = await turntide("memory", "history", "s", "--topic", evicted.topic_id)

    assert {row["topic_id"]: row["standing"] for row in listed}[evicted.topic_id] == "evicted"
    assert (sent["messages_sent"], sent["messages_archived"]) == (1, 1)
    assert (restored.topic_id, restored.title, restored.active_turns) == (evicted.topic_id, _SAID[0], [0])
    assert [message["content"] for message in history] == [_SAID[0]]
    assert compared.counts == {}
    assert compared.checked["archive conversation-topics.v1"] == compared.checked["conversation-topics.v1"] > 4
