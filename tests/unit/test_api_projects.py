"""Memory of projects over HTTP: the source's usage example, time travel, the context, and what makes no sense."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from streams.api import commands
from tests.support.api_doubles import Served, said
from tests.support.api_projects import SAID
from tests.support.projects_indexed import pending

QUESTION = "What was our database decision?"


async def emit(served: Served, project: str = "p") -> None:
    """The source's conversation, as the roles would have it."""
    for role, content in SAID:
        turn = served.projects.say(role, content, project=project)
        await served.say(said(turn, content, role=role))


@pytest.fixture
async def served(served: Served) -> Served:
    """A role that knows a project in which the database was chosen."""
    await emit(served)
    return served


async def asked(client: httpx.AsyncClient, method: str, end: str, status: int = 200, /, **body: Any) -> Any:
    """An answer of that status about the project."""
    between = "&" if "?" in end else "?"
    answer = await client.request(method, f"/v1/projects/p/{end}{between}app_id=a", json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json()


async def add(client: httpx.AsyncClient, content: str, **more: Any) -> str:
    """Id of a memory written by hand."""
    done = await asked(client, "POST", "memories", content=content, **{"type": "fact", **more})
    found: str = done["item_id"]
    return found


@pytest.mark.parametrize("end", ["retrieve", "search"])
@pytest.mark.parametrize("strategy", ["tfidf", "hybrid"])
async def test_the_seeds_question_finds_the_decision(
    client: httpx.AsyncClient, served: Served, end: str, strategy: str
) -> None:
    """By either strategy, also in what is weak; what is found counts as accessed, unless asked otherwise."""
    found = await asked(client, "POST", end, query=QUESTION, strategy=strategy)
    await asked(client, "POST", end, query=QUESTION, strategy=strategy, record_access=False)
    best, *_ = (each for each in found["results"] if end == "retrieve" or each["kind"] == "memory")

    assert ("PostgreSQL" in best["text"], best["memory"]["type"]) == (True, "decision")
    assert served.projects.accessed == [
        ("a", "p", [each["id"] for each in found["results"] if each["kind"] != "chunk"])
    ]


async def test_a_prompt_larger_than_the_budget(client: httpx.AsyncClient) -> None:
    """422 with what to do, not a prompt that was cut."""
    told = await asked(
        client, "POST", "context", 422, query="x", system_prompt="word " * 500, budget={"total_tokens": 100}
    )

    assert (told["code"], "shorten the prompt" in told["detail"]) == ("budget_too_small", True)


async def test_a_consolidation_puts_away_from_the_present_only(client: httpx.AsyncClient, served: Served) -> None:
    """Who asks what held then, or what was known then, is told."""
    memory_id = await add(client, "Deploy on servers of our own.", subject="deployment")
    await asked(client, "PUT", f"memories/{memory_id}", archived=True)
    now = quote(served.projects.now.isoformat())

    async def held(times: str) -> bool:
        found = await asked(client, "GET", f"valid_at{times}")
        return memory_id in [each["id"] for each in found["memories"]]

    assert [await held(times) for times in ("", f"?at={now}", f"?known_at={now}")] == [False, True, True]


async def test_relationships_that_cannot_be(client: httpx.AsyncClient) -> None:
    """To itself, in a circle, to nothing: refused with the reason, and nothing is written."""
    first, second = await add(client, "Alpha runs."), await add(client, "Beta runs.")
    relate = {"source_id": first, "target_id": second, "relation": "depends_on"}
    await asked(client, "PUT", "relationships", **relate)
    circle = await asked(client, "PUT", "relationships", 422, **{**relate, "source_id": second, "target_id": first})
    itself = await asked(client, "PUT", "relationships", 422, **{**relate, "target_id": first})
    await asked(client, "PUT", "relationships", 404, **{**relate, "target_id": "zzz-00000000"})

    assert [each["detail"] != "" for each in (circle, itself)] == [True, True]
    assert len((await asked(client, "GET", "graph"))["edges"]) == 1


async def test_pages_of_pending_facts(served: Served, client: httpx.AsyncClient) -> None:
    """Each once, the surest first, also when the last one of a page went meanwhile."""
    served.projects.put("a", "p", [pending(n, confidence=0.3 + n % 3 / 10) for n in range(7)])
    whole = (await asked(client, "GET", "pending"))["pending"]
    listed: list[str] = []
    after = ""
    for _ in range(4):
        page = await asked(client, "GET", f"pending?limit=2&after={quote(after)}")
        listed += [each["id"] for each in page["pending"]]
        await asked(client, "POST", f"pending/{listed[-1]}/discard")
        after = page["next"]
    refused = await asked(client, "GET", "pending?after=here", 422)

    assert [each["id"] for each in whole] == listed
    assert (after, refused["errors"][0]["field"]) == ("", "after")
    assert [each["confidence"] for each in whole] == sorted((each["confidence"] for each in whole), reverse=True)


async def test_a_project_that_nothing_is_known_of(served: Served, client: httpx.AsyncClient) -> None:
    """Reading it is no error; what changes something in it is, at once."""
    empty = (await client.get("/v1/projects/none/memories?app_id=a")).json()
    refused = await client.post("/v1/projects/none/consolidate?app_id=a")

    assert (empty, refused.status_code) == ({"memories": [], "next": ""}, 404)
    assert served.projects.sent == []


async def test_pages_of_memories(client: httpx.AsyncClient) -> None:
    """Each memory once, the newest first; an export has them by id."""
    for number in range(5):
        await add(client, f"Service {number} runs.")
    listed, page = list[str](), {"next": ""}
    while page["next"] or not listed:
        page = await asked(client, "GET", f"memories?limit=2&before={page['next']}")
        listed += [each["id"] for each in page["memories"]]
    first = await asked(client, "GET", "export?kind=memory&limit=4")
    second = await asked(client, "GET", f"export?kind=memory&limit=4&after={first['next']}")

    assert listed == sorted(listed, reverse=True)
    assert [each["id"] for each in first["memories"] + second["memories"]] == sorted(set(listed))


async def test_while_the_memory_role_is_away(
    served: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """202 and where to look; nothing is claimed to be done."""
    monkeypatch.setattr(commands, "WAIT_S", 0.0)
    served.projects.away = True
    answer = await client.post("/v1/projects/p/memories?app_id=a", json={"content": "x", "type": "fact"})

    assert (answer.status_code, answer.json()["pending"]) == (202, True)
    assert answer.headers["location"] == "/v1/projects/p/standing?app_id=a"
