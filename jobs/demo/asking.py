"""Requests of the demo to the index role over HTTP at the end of the play: questions to memory, a purge, an erasure.

A request that fails is an answer with a problem: the demo goes on to its verdict, which fails.
"""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import Struct, structs

from jobs.demo.conversations import CueAct, load_play, schedule
from jobs.demo.questions import (
    DemoQuestion,
    ProjectAnswer,
    ProjectQuestions,
    ProjectRecalled,
    Recalled,
    wrong_answers,
    wrong_project,
)
from models.events import ErasureProved
from models.events.project_items import SUPERSEDES
from streams.api.apps.messages import Purged
from streams.api.erase.routes import ErasureAccepted, ErasureStanding
from streams.api.projects.answers import ArcAnswer, ConversationAnswer, GraphAnswer, MemoryPage
from streams.api.projects.messages import FoundItems, ProjectContext
from streams.api.users.messages import Found, Retrieved
from streams.http.route import path_part

PURGED_APP = "isp-support"
ERASED_USER, ERASED_USERS_APP = "user-edith", "assistant"
"""Somebody whose conversation became a memory of the app."""
_ANSWER_WITHIN_S = 15.0
_PROOF_WITHIN_S = 300.0
"""On two idle cores it takes three seconds; a machine with other things to do takes its time."""
_LOOK_AGAIN_S = 0.5
_REASONS = 3
"""Terms of a score that are told."""
_FAILURES = (httpx.HTTPError, msgspec.MsgspecError, TimeoutError)
_Answer = TypeVar("_Answer")


class PurgedApp(Struct, frozen=True, kw_only=True):
    """All memories of an app, taken away."""

    app_id: str
    deleted: int = 0
    left: int = 0
    """What a read finds right after it."""
    milliseconds: float = 0.0
    problems: list[str] = []


class Erased(Struct, frozen=True, kw_only=True):
    """A user, forgotten, with the proof."""

    user_id: str
    request_id: str = ""
    """Empty: it was not even taken."""
    seconds: float = 0.0
    """Until the proof, or until the demo gave up."""
    proof: ErasureProved | None = None
    problems: list[str] = []


class _Listed(Struct):
    memories: list[Any]


class Answers(Struct, frozen=True, kw_only=True):
    """What the index role answered to everything that the demo asks."""

    recalled: list[Recalled]
    """What memory knows of users."""
    project: ProjectRecalled
    purged: PurgedApp
    erased: Erased

    @property
    def problems(self) -> list[str]:
        """What is wrong with them, each with what it is about."""
        return [
            *(f"{each.query} {problem}" for each in self.recalled for problem in each.problems),
            *(f"{self.project.project_id}: {problem}" for problem in self.project.problems),
            *(f"{self.purged.app_id} {problem}" for problem in self.purged.problems),
            *(f"{self.erased.user_id}: {problem}" for problem in self.erased.problems),
        ]


def index_client(url: str) -> httpx.AsyncClient:
    """Somebody who asks the index role at this URL."""
    return httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S)


async def ask_user_memory(question: DemoQuestion, client: httpx.AsyncClient) -> Recalled:
    """Ask for what is known of a user, as an assistant would."""
    asked: dict[str, Any] = {"app_id": question.app_id, "user_id": question.user_id, "query": question.query}
    try:
        answer, took_ms = await _asked(client, "POST", "/v1/retrieve", Retrieved, json=asked)
        search = asked | {"kind": "turns", "top_k": 1, "explain": True}
        found, _ = await _asked(client, "POST", "/v1/search", Found, json=search)
    except _FAILURES as error:
        return Recalled(**asked, problems=[_failure(error)])
    facts = {f"{fact.category}/{fact.key}": fact.value for fact in answer.structured_facts}
    nearest = next(iter(answer.episodic_context), None)
    best = next(iter(found.turns), None)
    signals = (best.signals or {}) if best else {}
    return Recalled(
        **asked,
        facts=facts,
        nearest_episode=nearest,
        turn=best.turn.content if best else "",
        because=dict(sorted(signals.items(), key=lambda each: -each[1])[:_REASONS]),
        milliseconds=took_ms,
        problems=[*wrong_answers(question, facts, nearest.turn_range if nearest else "none")],
    )


async def ask_project_memory(questions: ProjectQuestions, client: httpx.AsyncClient) -> ProjectRecalled:
    """Ask for a project's memory, and for its decisions right before and right after each pivot."""
    try:
        recalled = await _project(questions, client)
    except _FAILURES as error:
        problem = _failure(error)
        return ProjectRecalled(app_id=questions.app_id, project_id=questions.project_id, problems=[problem])
    return structs.replace(recalled, problems=[*wrong_project(questions, recalled)])


async def _project(of: ProjectQuestions, client: httpx.AsyncClient) -> ProjectRecalled:
    async def get(end: str, kind: type[_Answer], **params: Any) -> _Answer:
        answer, _ = await _asked(client, "GET", f"{place}/{end}", kind, params={"app_id": of.app_id, **params})
        return answer

    async def post(end: str, kind: type[_Answer], body: dict[str, Any]) -> tuple[_Answer, float]:
        return await _asked(client, "POST", f"{place}/{end}", kind, params={"app_id": of.app_id}, json=body)

    place = f"/v1/projects/{path_part(of.project_id)}"
    talk = await get(f"conversations/{of.conversation_id}", ConversationAnswer)
    arc = await get("arc", ArcAnswer, conversation_id=of.conversation_id)
    memories = await get("memories", MemoryPage, limit=1_000)
    graph = await get("graph", GraphAnswer)
    context, took_ms = await post("context", ProjectContext, {"query": of.query, "conversation_id": of.conversation_id})
    said = next((each.text for each in context.retrieval_results), "")
    answers = [ProjectAnswer(query=of.query, said=said, milliseconds=took_ms)]
    offsets = _said_after(of.conversation_id)
    for pivot in of.pivots:
        for turn, when in ((pivot.turn - 1, "before"), (pivot.turn + 1, "after")):
            at = talk.conversation.started_at + offsets[turn]
            body = {"query": pivot.query, "valid_at": at.isoformat(), "filters": {"memory_types": ["decision"]}}
            found, took_ms = await post("retrieve", FoundItems, body)
            said = next((each.text for each in found.results if each.kind == "memory"), "")
            as_of = f"{when} turn {pivot.turn}"
            answers.append(ProjectAnswer(query=pivot.query, said=said, at=at, when=as_of, milliseconds=took_ms))
    return ProjectRecalled(
        app_id=of.app_id,
        project_id=of.project_id,
        chunks=len(talk.chunks),
        memories=dict(Counter(each.type.value for each in memories.memories).most_common()),
        superseded=sum(edge.type == SUPERSEDES for edge in graph.edges),
        key_moments=[each.title for each in arc.key_moments],
        answers=answers,
    )


def _said_after(session_id: str) -> dict[int, timedelta]:
    """Turn → when it is said in the play, counted from the first."""
    (conversation,) = (each for each in load_play() if each.session_id == session_id)
    at = {cue.turn: cue.at for cue in schedule([conversation]) if cue.act is CueAct.TURN}
    return {turn: after - at[0] for turn, after in at.items()}


async def purge(app_id: str, client: httpx.AsyncClient) -> PurgedApp:
    """Delete all memories of an app, and read at once."""
    place = f"/apps/{path_part(app_id)}/memories"
    try:
        purged, took_ms = await _asked(client, "DELETE", place, Purged)
        listed, read_ms = await _asked(client, "GET", place, _Listed)
    except _FAILURES as error:
        return PurgedApp(app_id=app_id, problems=[_failure(error)])
    deleted, left = purged.deleted_count, len(listed.memories)
    problems = ([] if deleted else ["had no memory to purge"]) + (["a purged memory was read again"] if left else [])
    return PurgedApp(
        app_id=app_id, deleted=deleted, left=left, milliseconds=round(took_ms + read_ms, 1), problems=problems
    )


async def erase(app_id: str, user_id: str, client: httpx.AsyncClient) -> Erased:
    """Erase a user of an app, and wait for the proof."""
    began_s, request_id = time.monotonic(), ""
    try:
        subject = {"app_id": app_id, "user_id": user_id}
        asked, _ = await _asked(client, "POST", "/v1/erase", ErasureAccepted, json=subject)
        request_id = asked.request_id
        proof = await _proof(client, request_id)
    except _FAILURES as error:
        seconds = round(time.monotonic() - began_s, 1)
        return Erased(user_id=user_id, request_id=request_id, seconds=seconds, problems=[_failure(error)])
    kept = [each.store for each in proof.stores if each.remaining and each.expires_at is None]
    problems = [f"{store} still holds what was erased" for store in kept]
    seconds = round(time.monotonic() - began_s, 1)
    return Erased(user_id=user_id, request_id=request_id, seconds=seconds, proof=proof, problems=problems)


async def _proof(client: httpx.AsyncClient, request_id: str) -> ErasureProved:
    async with asyncio.timeout(_PROOF_WITHIN_S):
        while True:
            answer, _ = await _asked(client, "GET", f"/v1/erase/{request_id}", ErasureStanding)
            if answer.proof is not None:
                return answer.proof
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _asked(
    client: httpx.AsyncClient, method: str, place: str, kind: type[_Answer], **request: Any
) -> tuple[_Answer, float]:
    """An answer, and the milliseconds that it took."""
    began_s = time.monotonic()
    response = await client.request(method, place, **request)
    took_ms = round((time.monotonic() - began_s) * 1_000, 1)
    response.raise_for_status()
    return msgspec.json.decode(response.content, type=kind), took_ms


def _failure(error: Exception) -> str:
    match error:
        case httpx.HTTPStatusError():
            return f"{error.request.url.path} answered {error.response.status_code}"
        case httpx.HTTPError():
            return f"{error.request.url.path} failed: {type(error).__name__}"
        case TimeoutError():
            return f"no proof of the erasure within {_PROOF_WITHIN_S:g} s"
        case _:
            return f"something else was answered: {error}"
