"""The 250 turns of a project through the real topics, over four weeks of event time: chunks, memories, time travel.

The memory role is killed in the middle; what it made is what an undisturbed run over the same log would have made.
"""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from jobs.demo.conversations import CueAct, load_project_conversation, schedule
from models.events import InputEvent, Turn
from tests.support.fault_driver import assert_equal_to_replay, until
from tests.support.stack import Stack

pytestmark = pytest.mark.timeout(240)

_KILLED_AT = 150
_PIVOTS = {
    100: ("Which frontend did we choose?", "React for the frontend", "from React to HTMX"),
    148: ("Where do we deploy?", "Kubernetes in Frankfurt", "a single server with Docker Compose"),
}
"""Turn → what it changed: a question, the answer before it, and after it."""


class Project:
    """The conversation as it was said, and its memory over HTTP."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        cues = schedule([load_project_conversation()])
        began = datetime.now(UTC) - cues[-1].at
        self.events: list[InputEvent] = [cue.event(began) for cue in cues]
        self.said_at = {cue.turn: began + cue.at for cue in cues if cue.act is CueAct.TURN}
        self._http = http

    async def get(self, end: str, **params: Any) -> Any:
        """An answer about the project."""
        return await self._asked("GET", end, params=params)

    async def ask(self, end: str, **body: Any) -> Any:
        """An answer to a question."""
        return await self._asked("POST", end, json=body)

    async def _asked(self, method: str, end: str, *, params: dict[str, Any] | None = None, json: Any = None) -> Any:
        named = {"app_id": "workshop", **(params or {})}
        answer = await self._http.request(method, f"/v1/projects/tool-library/{end}", params=named, json=json)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def known(self) -> bool:
        """Whether a turn is in."""
        return bool((await self.get("standing"))["turn_count"])

    async def ended(self) -> bool:
        """Whether the last event of the conversation is in."""
        found = (await self.get("conversations"))["conversations"]
        return [each["status"] for each in found] == ["ended"]

    async def decided(self, question: str, turn: int) -> str:
        """The decision that held when a turn was said."""
        at = self.said_at[turn].isoformat()
        found = await self.ask("retrieve", query=question, valid_at=at, filters={"memory_types": ["decision"]})
        (best, *_) = [each["text"] for each in found["results"] if each["kind"] == "memory"]
        return str(best)

    async def valid(self, turn: int) -> set[str]:
        """Contents of the decisions that held when a turn was said."""
        found = (await self.get("valid_at", at=self.said_at[turn].isoformat()))["memories"]
        return {each["content"] for each in found if each["type"] == "decision"}


@pytest.mark.behaviour("project-26")
@pytest.mark.fault("F1")
async def test_project_memory(stack: Stack) -> None:
    """One conversation for everything: it takes longer than what is asked of it."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as http:
        project = Project(http)
        await takes_in_the_conversation_though_it_is_killed(stack, project)
        await keeps_what_was_said(project)
        await travels_in_time(project)
        await takes_in_what_was_accessed(project)
        await assert_equal_to_replay(stack.settings, stack.url)


async def takes_in_the_conversation_though_it_is_killed(stack: Stack, project: Project) -> None:
    """Every turn counts once, whatever the role was doing when it was killed."""
    await stack.send(project.events[:_KILLED_AT])
    await until(project.known, "the first turns are in")
    await stack.send(project.events[_KILLED_AT:])
    await stack.kill_memory()
    await until(project.ended, "the end of the conversation is in")
    stats = await project.get("standing")

    assert stats["turn_count"] == sum(isinstance(event, Turn) for event in project.events) == 250


async def keeps_what_was_said(project: Project) -> None:
    """23-25 chunks in a row up to the messages at hand, memories of several types, a graph, an arc of all thirds."""
    talk = await project.get("conversations/tool-library")
    memories = (await project.get("memories", limit=1_000))["memories"]
    graph = await project.get("graph")
    arc = await project.get("arc", conversation_id="tool-library")
    context = await project.ask("context", query="What was our database decision?", conversation_id="tool-library")

    opened = await project.get(f"chunks/{talk['chunks'][3]['id']}")
    exported = await project.get("export", kind="chunk", originals=True)

    chunks, recent = talk["chunks"], talk["conversation"]["recent"]
    said = [event.content for event in project.events if isinstance(event, Turn)]
    assert [each["content"] for each in opened["messages"]] == said[30:40]
    assert [each["content"] for each in exported["messages"]] == said[: 10 * len(chunks)]
    assert (0, opened["chunk"]) == (opened["missing"], chunks[3])
    assert 23 <= len(chunks) <= 25
    assert [turn for each in chunks for turn in range(each["first_turn"], each["last_turn"] + 1)] + recent == [
        *range(250)
    ]
    assert len({each["type"] for each in memories}) >= 4
    assert sum(edge["type"] == "supersedes" for edge in graph["edges"]) >= len(_PIVOTS)
    assert min(len(arc[part]) for part in ("beginning", "middle", "end", "key_moments")) > 0
    assert "PostgreSQL" in context["retrieval_results"][0]["text"]
    assert "We decided to use PostgreSQL as the database" in context["text"]


async def travels_in_time(project: Project) -> None:
    """Before each pivot the earlier decision holds, from its turn on the later; what is unrelated holds throughout."""
    for turn, (question, before, after) in _PIVOTS.items():
        held, holds = await project.valid(turn - 1), await project.valid(turn)
        (gone,), (come,) = held - holds, holds - held

        assert (before in gone, after in come) == (True, True)
        assert before in await project.decided(question, turn - 1)
        assert after in await project.decided(question, turn)


async def takes_in_what_was_accessed(project: Project) -> None:
    """What the questions retrieved counts as accessed, in the memory that all readers have."""

    async def accessed() -> bool:
        memories = (await project.get("memories", limit=1_000))["memories"]
        (database,) = [each for each in memories if "use PostgreSQL as the database" in each["content"]]
        return bool(database["access_count"] >= 1)

    await until(accessed, "the access is in")
