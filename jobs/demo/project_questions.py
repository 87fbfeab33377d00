"""Questions of the demo to project memory at the end of the play, over HTTP, and the right answers."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import Struct

from jobs.demo.conversations import CueAct, load_play, schedule
from models.events.project_items import SUPERSEDES
from streams.api.projects.answers import ArcAnswer, ConversationAnswer, GraphAnswer, MemoryPage, PendingFacts
from streams.api.projects.messages import FoundItems, ProjectContext
from streams.http.route import path_part

_ANSWER_WITHIN_S = 15.0
_Answer = TypeVar("_Answer")


class Pivot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn that changed what holds.

    Attributes:
        turn: Of the conversation.
        query: What is asked about it.
        before: What the best answer must say if only what held right before the turn counts …
        after: … and right after it.
    """

    turn: int
    query: str
    before: str
    after: str


class ProjectQuestions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked, and what must be answered.

    Attributes:
        query: For whose answer a context is built, too.
        answer: What the best hit must say.
        fewest_chunks: Of the conversation.
        fewest_types: Of memories.
    """

    app_id: str
    project_id: str
    conversation_id: str
    query: str
    answer: str
    fewest_chunks: int
    most_chunks: int
    fewest_types: int
    pivots: list[Pivot]


class ProjectAnswer(Struct, frozen=True, kw_only=True):
    """The best answer to one question."""

    query: str
    said: str
    """Empty if nothing was found."""
    at: datetime | None = None
    """Only what held then counted; None: what holds now."""
    when: str = ""
    """The same in words."""
    milliseconds: float

    @property
    def asked(self) -> str:
        """The question, and as of when."""
        return f"{self.query} {self.when}".strip()


class ProjectRecalled(Struct, frozen=True, kw_only=True):
    """What the memory of a project answered; empty where it did not."""

    app_id: str
    project_id: str
    chunks: int = 0
    """Of the conversation."""
    memories: dict[str, int] = {}
    """Type → how many."""
    superseded: int = 0
    """Relationships by which a memory replaced another."""
    pending: int = 0
    key_moments: list[str] = []
    """Titles, in order of time."""
    context_tokens: int = 0
    """Of the context that was built for the question."""
    answers: list[ProjectAnswer] = []
    problems: list[str] = []
    """What is wrong with it."""


def load_project_questions() -> ProjectQuestions:
    """The questions about the project of the play.

    Raises:
        msgspec.ValidationError: The file is wrong: a defect of the package.
    """
    text = (files("jobs.demo") / "project_questions.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), ProjectQuestions)


async def ask_project(
    questions: ProjectQuestions, url: str, *, transport: httpx.AsyncBaseTransport | None = None
) -> ProjectRecalled:
    """Ask the index role; a request that fails is an answer with a problem.

    Args:
        questions: With what must be answered.
        url: Of the index role.
        transport: How it is reached; None: over the network.
    """
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
        asking = _Asking(questions, client)
        try:
            return await asking.everything()
        except httpx.HTTPStatusError as error:
            problem = f"{error.request.url.path} answered {error.response.status_code}"
        except httpx.TransportError as error:
            problem = f"{error.request.url.path} failed: {type(error).__name__}"
        except msgspec.MsgspecError as error:
            problem = f"something else was answered: {error}"
    return ProjectRecalled(app_id=questions.app_id, project_id=questions.project_id, problems=[problem])


class _Asking:
    """One round of questions."""

    def __init__(self, questions: ProjectQuestions, client: httpx.AsyncClient) -> None:
        self._questions = questions
        self._client = client

    async def everything(self) -> ProjectRecalled:
        """All that is asked, judged."""
        of = self._questions
        talk, _ = await self._get(f"conversations/{of.conversation_id}", ConversationAnswer)
        arc, _ = await self._get("arc", ArcAnswer, conversation_id=of.conversation_id)
        memories, _ = await self._get("memories", MemoryPage, limit=1_000)
        graph, _ = await self._get("graph", GraphAnswer)
        pending, _ = await self._get("pending", PendingFacts)
        body = {"query": of.query, "conversation_id": of.conversation_id}
        context, took_ms = await self._post("context", body, ProjectContext)
        said = next((each.text for each in context.retrieval_results), "")
        recalled = ProjectRecalled(
            app_id=of.app_id,
            project_id=of.project_id,
            chunks=len(talk.chunks),
            memories=dict(Counter(each.type.value for each in memories.memories).most_common()),
            superseded=sum(edge.type == SUPERSEDES for edge in graph.edges),
            pending=len(pending.pending),
            key_moments=[each.title for each in arc.key_moments],
            context_tokens=context.total_tokens,
            answers=[
                ProjectAnswer(query=of.query, said=said, milliseconds=took_ms),
                *await self._then(talk.conversation.started_at),
            ],
        )
        return msgspec.structs.replace(recalled, problems=[*judged(of, recalled)])

    async def _then(self, started_at: datetime) -> list[ProjectAnswer]:
        """Each pivot's question, right before and right after it."""
        offsets = _said_after(self._questions.conversation_id)
        answers = []
        for pivot in self._questions.pivots:
            for turn, when in ((pivot.turn - 1, "before"), (pivot.turn + 1, "after")):
                at = started_at + offsets[turn]
                body = {"query": pivot.query, "valid_at": at.isoformat(), "filters": {"memory_types": ["decision"]}}
                found, took_ms = await self._post("retrieve", body, FoundItems)
                said = next((each.text for each in found.results if each.kind == "memory"), "")
                told = f"{when} turn {pivot.turn}"
                answers.append(ProjectAnswer(query=pivot.query, said=said, at=at, when=told, milliseconds=took_ms))
        return answers

    async def _get(self, end: str, kind: type[_Answer], **params: Any) -> tuple[_Answer, float]:
        return await self._asked("GET", end, kind, params=params)

    async def _post(self, end: str, body: Mapping[str, Any], kind: type[_Answer]) -> tuple[_Answer, float]:
        return await self._asked("POST", end, kind, body=body)

    async def _asked(
        self,
        method: str,
        end: str,
        kind: type[_Answer],
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[_Answer, float]:
        """An answer, and the milliseconds that it took."""
        named = {"app_id": self._questions.app_id, **(params or {})}
        path = f"/v1/projects/{path_part(self._questions.project_id)}/{end}"
        response = await self._client.request(method, path, params=named, json=body)
        response.raise_for_status()
        answer = msgspec.json.decode(response.content, type=kind)
        return answer, round(response.elapsed.total_seconds() * 1_000, 1)


def judged(questions: ProjectQuestions, recalled: ProjectRecalled) -> Iterator[str]:
    """What is wrong with what was answered."""
    if not questions.fewest_chunks <= recalled.chunks <= questions.most_chunks:
        yield f"has {recalled.chunks} chunks, not {questions.fewest_chunks} to {questions.most_chunks}"
    if len(recalled.memories) < questions.fewest_types:
        yield f"has memories of {len(recalled.memories)} types, not of {questions.fewest_types}"
    if recalled.superseded < len(questions.pivots):
        yield f"has {recalled.superseded} memories that superseded another, not {len(questions.pivots)}"
    if not recalled.key_moments:
        yield "has an arc without key moments"
    wanted = [questions.answer, *(said for pivot in questions.pivots for said in (pivot.before, pivot.after))]
    for should, answer in zip(wanted, recalled.answers, strict=True):
        if should not in answer.said:
            yield f"{answer.asked} should say {should}, memory says {answer.said or 'nothing'}"


def _said_after(session_id: str) -> dict[int, timedelta]:
    """Turn → when it is said in the play, counted from the first."""
    (conversation,) = (each for each in load_play() if each.session_id == session_id)
    at = {cue.turn: cue.at for cue in schedule([conversation]) if cue.act is CueAct.TURN}
    return {turn: after - at[0] for turn, after in at.items()}
