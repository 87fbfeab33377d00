"""Questions of the demo to user memory at the end of the play, over HTTP, and the right answers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files

import httpx
import msgspec
from msgspec import Struct

from streams.api.users.messages import EpisodeAnswer, FactAnswer, Retrieved

_ANSWER_WITHIN_S = 15.0


class DemoQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question of one user, and what must be answered.

    Attributes:
        facts: Category/key → value; each must be among the facts.
        gone: Category/key of what the user took back; none of it may be among them.
        episode: Turn range of the episode that must be the nearest; None: any or none.
    """

    app_id: str
    user_id: str
    query: str
    facts: dict[str, str] = {}
    gone: list[str] = []
    episode: str | None = None


class Recalled(Struct, frozen=True, kw_only=True):
    """A question with memory's answer; empty where there was none."""

    app_id: str
    user_id: str
    query: str
    facts: dict[str, str] = {}
    """Category/key → value, the most important first."""
    nearest_episode: EpisodeAnswer | None = None
    injection: str = ""
    """Facts and episodes as text for a prompt (user memory, stage 3)."""
    milliseconds: float = 0.0
    problems: list[str] = []
    """What is wrong with the answer."""


class _Questions(Struct, frozen=True, forbid_unknown_fields=True):
    questions: list[DemoQuestion]


def load_questions() -> list[DemoQuestion]:
    """All questions, in the order of their asking.

    Raises:
        msgspec.ValidationError: The file is wrong: a defect of the package.
    """
    text = (files("jobs.demo") / "questions.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Questions).questions


async def ask(
    questions: Iterable[DemoQuestion], url: str, *, transport: httpx.AsyncBaseTransport | None = None
) -> list[Recalled]:
    """Ask the index role, one question after the other; a request that fails is an answer with a problem.

    Args:
        questions: With what must be answered.
        url: Of the index role.
        transport: How it is reached; None: over the network.
    """
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
        return [await _ask(question, client) for question in questions]


async def _ask(question: DemoQuestion, client: httpx.AsyncClient) -> Recalled:
    body = {"app_id": question.app_id, "user_id": question.user_id, "query": question.query, "format": True}
    try:
        response = await client.post("/v1/retrieve", json=body)
        response.raise_for_status()
        return judged(question, msgspec.json.decode(response.content, type=Retrieved), milliseconds=_took(response))
    except httpx.HTTPStatusError as error:
        problem = f"POST /v1/retrieve answered {error.response.status_code}"
    except httpx.TransportError as error:
        problem = f"POST /v1/retrieve failed: {type(error).__name__}"
    except msgspec.MsgspecError as error:
        problem = f"POST /v1/retrieve answered something else: {error}"
    return Recalled(app_id=question.app_id, user_id=question.user_id, query=question.query, problems=[problem])


def judged(question: DemoQuestion, answer: Retrieved, *, milliseconds: float) -> Recalled:
    """The answer beside its question, with what is wrong about it."""
    facts = {_name(fact): fact.value for fact in answer.structured_facts}
    nearest = next(iter(answer.episodic_context), None)
    return Recalled(
        app_id=question.app_id,
        user_id=question.user_id,
        query=question.query,
        facts=facts,
        nearest_episode=nearest,
        injection=answer.injection or "",
        milliseconds=milliseconds,
        problems=[*_wrong_facts(question, facts), *_wrong_episode(question, nearest)],
    )


def _wrong_facts(question: DemoQuestion, facts: dict[str, str]) -> Iterable[str]:
    for name, value in question.facts.items():
        if facts.get(name) != value:
            yield f"{name} should be {value}, memory says {facts.get(name, 'nothing')}"
    for name in question.gone:
        if name in facts:
            yield f"{name} was taken back, memory still says {facts[name]}"


def _wrong_episode(question: DemoQuestion, nearest: EpisodeAnswer | None) -> Iterable[str]:
    found = nearest.turn_range if nearest else "none"
    if question.episode is not None and found != question.episode:
        yield f"the nearest episode should be {question.episode}, memory finds {found}"


def _name(fact: FactAnswer) -> str:
    return f"{fact.category}/{fact.key}"


def _took(response: httpx.Response) -> float:
    return round(response.elapsed.total_seconds() * 1_000, 1)
