"""The second reader through the real topics: role enrich answers with e5, the project learns, a replay agrees."""

import importlib.util
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.shared.sending import send_to_turns
from models.events import ProjectItemChanged, StatementsRead, StatementsRequested
from models.events.topics import COMMANDS, PROJECTS, REQUESTS
from streams.settings import Settings, StatementSettings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, running, said, until

pytestmark = pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="extra `e5` is not installed")

PARTITIONS = 1
START = datetime.now(UTC) - timedelta(minutes=5)
TEXTS = ("We decided to use PostgreSQL.", "Auth is Wei's baby.", "lol the printer ate my flyer")


async def memories(settings: Settings) -> dict[str, tuple[str, int]]:
    """Type and place of what the project remembers, by its text."""
    changed: list[Any] = [each for each in await events(settings, PROJECTS) if isinstance(each, ProjectItemChanged)]
    found = [each.memory for each in changed if each.memory is not None]
    return {each.content: (each.type.value, each.sources[0].turn) for each in found}


async def test_what_rules_leave_is_read_by_the_reader_and_replayed_from_the_log(settings: Settings) -> None:
    """A memory by the rules, one by the reader from the same user's next turn, and nothing of small talk."""
    settings = settings.model_copy(update={"statements": StatementSettings(second_reader=True)})
    turns = [
        said(number, content=text, at=START + timedelta(seconds=number), project_id="web")
        for number, text in enumerate(TEXTS)
    ]
    await send_to_turns(settings, map(recorded, turns))
    async with running(settings, "sessions", "memory", "enrich"):

        async def learnt() -> dict[str, tuple[str, int]] | None:
            found = await memories(settings)
            return found if len(found) > 1 else None

        found = await until(learnt, "a memory by the second reader")
    asked = [each for each in await events(settings, REQUESTS) if isinstance(each, StatementsRequested)]
    answers = [each for each in await events(settings, COMMANDS) if isinstance(each, StatementsRead)]

    assert {"We decided to use PostgreSQL": ("decision", 0), "Auth is Wei's baby": ("entity", 1)} == found
    assert [[TEXTS[1]], [TEXTS[2]]] == [each.sentences for each in asked]
    assert {("statements-1", 1)} == {(each.read_by, each.turn) for each in answers}
    await assert_equal_to_replay(settings)
