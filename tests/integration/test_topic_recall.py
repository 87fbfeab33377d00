"""A topic of weeks ago through the real topics: back with its user, whole, and with nobody else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from models.events import SessionEnded, TopicChanged
from models.events.topics import CONVERSATION_TOPICS
from models.policy import Policy
from streams.api.sessions.topics import TopicReader
from streams.api.sessions.turns import Waiting
from streams.archive.history import ArchivedTurns
from streams.http.answering import served_routes
from streams.index.collections import TURNS
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, running, said, send, until
from tests.support.http_api import api_of, client_of

BOAT = "Which sails does a small boat need for the harbour?"
SAID = f"{BOAT} {'It lies at the pier, and the wind is strong. ' * 9}"
PATH = "/v1/sessions"
THEN = datetime.now(UTC) - timedelta(days=100)
MESSAGES = 61


async def at_once(*_: object) -> bool:
    """Every turn is visible."""
    return True


@pytest.mark.behaviour("topic-13", "topic-15", "topic-26")
async def test_a_topic_of_sixty_accesses_is_back_after_a_hundred_days(settings: Settings) -> None:
    """In another session of the user and in the same one, with all that was said; not in another app."""
    settings = settings.model_copy(update={"archive": ArchiveSettings(flush_age=timedelta(seconds=1))})
    before = [said(n, content=f"{SAID} ({n})", at=THEN + timedelta(minutes=n)) for n in range(MESSAGES)]
    ended = SessionEnded(session_id="s", app_id="a", timestamp=THEN + timedelta(minutes=MESSAGES))
    now = datetime.now(UTC) - timedelta(minutes=1)

    async def told(cause: str, *sessions: tuple[str, str]) -> list[TopicChanged]:
        found = [each for each in await events(settings, CONVERSATION_TOPICS) if each.cause == cause]
        wanted = [each for each in found if (each.app_id, each.session_id) in sessions]
        return wanted if {(each.app_id, each.session_id) for each in wanted} == {*sessions} else []

    async with running(settings, "sessions", "memory", "index", "archive"):
        await send(settings, [*map(recorded, before), recorded(ended)])
        await until(lambda: told("closed", ("a", "s")), "the end of the session")
        for app, session, number in (("a", "t", 0), ("a", "s", MESSAGES), ("b", "t", 0)):
            await send(settings, [recorded(said(number, session_id=session, app_id=app, content=BOAT, at=now))])
        (first, *_) = await told("started", ("a", "s"))
        merged = await until(lambda: told("merged", ("a", "t"), ("a", "s")), "the topic in both sessions")
        await assert_equal_to_replay(settings)

    back = [each for each in merged if each.kept]
    assert {(first.topic_id, MESSAGES + 1, MESSAGES, "long-term")} == {
        (each.topic_id, each.message_count, each.access_count, each.memory_type) for each in back
    }
    assert not await told("restored", ("b", "t"))
    store, embedder = EdgeStore(settings.data_dir / "vectors", embedder="wordllama"), WordLlamaEmbedder()
    topics = TopicMemory(store, embedder, SessionVectorMemory(store, embedder))
    readers = [
        client_of(api_of(served_routes(TopicReader(topics, Policy().topics, Waiting(at_once), archive))), below=PATH)
        for archive in (ArchivedTurns(settings), None)
    ]
    await store.delete(TURNS.name, where={"session_id": "s"}, below=("turn", 40))  # as beyond `stored_vectors`
    for session, said_here in (("s", [BOAT]), ("t", [BOAT, BOAT])):
        (whole, listed, context), (left, *_) = [
            [(await each.get(f"/{session}/{end}?app_id=a")).json() for end in ("messages", "topics", "context")]
            for each in readers
        ]
        assert [f"{SAID} ({n})" for n in range(MESSAGES)] + said_here == [each["content"] for each in whole]
        assert MESSAGES - 40 + len(said_here) == len(left)
        assert (SAID[:80].strip(), MESSAGES + 1) == (listed[0]["title"], listed[0]["total_messages"])
        assert context[0]["content"].startswith("Topic summary: ")
        assert context[-1]["content"] == BOAT
    await store.close()
