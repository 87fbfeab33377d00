"""Retrieval, prompt assembly, search and look-ups of users' memory, without a socket."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from models.events import Role, UserMemoryChanged
from models.events.user import FactCategory, MemoryMode
from models.policy.retrieval import PromptPolicy
from streams.api.users.reading import MOST_READING
from streams.index.between import Between
from streams.settings.http import ApiToken, HttpSettings
from tests.support.api_doubles import AT, Served, bearer, episode, fact, said, stats, token_of


@pytest.fixture
async def served(served: Served) -> Served:
    """A role that knows one user of app `a`, and another one of the same id in app `b`."""
    served.users.known_facts += [
        fact("language", "Python", category=FactCategory.PREFERENCE, importance=0.6, confidence=0.9),
        fact("name", "Alex", importance=0.9),
        fact("snack", "nuts", category=FactCategory.PREFERENCE, importance=0.4),
        fact("location", "Bergen", importance=0.7, active=False, valid_until=AT),
        fact("name", "Bo", app="b"),
    ]
    served.users.known_episodes += [
        episode(1, "the user asked about vector databases like pgvector"),
        episode(2, "bread and how long it bakes"),
        episode(1, "vector databases of somebody else", app="b"),
    ]
    served.users.known_users += [
        stats(("s", 0), ("t", 0), ("s", 1), facts=3, episodes=2, compressed_turns=40, turn_count=43),
        stats(("other", 0), app="b"),
    ]
    await served.say(
        said(0, "hello there"),
        said(1, "which vector databases do you know", role=Role.ASSISTANT),
        said(0, "in between", session="t"),
        said(0, "not mine", session="s2", user="somebody"),
    )
    return served


async def posted(client: httpx.AsyncClient, path: str, **body: Any) -> Any:
    """An answer that must be one."""
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.behaviour("user-18", "user-19")
async def test_retrieval_takes_what_it_is_told(client: httpx.AsyncClient) -> None:
    """Least importance, greatest distance, number of episodes, and no text where none is wanted."""
    asked = {"user_id": "u", "app_id": "a", "query": "vector bread", "max_distance": 0.5, "format": False}
    both = await posted(client, "/v1/retrieve", **asked, min_importance=0.3)
    one = await posted(client, "/v1/retrieve", **asked, top_k_episodes=1, min_importance=0.9)
    none = await posted(client, "/v1/retrieve", **{**asked, "max_distance": 0.4})

    assert ([each["key"] for each in both["structured_facts"]], both["injection"]) == (
        ["name", "language", "snack"],
        None,
    )
    assert (len(both["episodic_context"]), len(one["episodic_context"]), len(none["episodic_context"])) == (2, 1, 0)
    assert [each["key"] for each in one["structured_facts"]] == ["name"]


@pytest.mark.behaviour("user-17")
@pytest.mark.parametrize("mode", MemoryMode)
async def test_a_memory_that_is_off_tells_nothing(client: httpx.AsyncClient, served: Served, mode: MemoryMode) -> None:
    """Neither facts and episodes nor what other sessions said; the named session's own turns are no memory."""
    served.users.known_users[0] = replace(served.users.known_users[0], memory_mode=mode)
    asked = {"user_id": "u", "app_id": "a", "query": "vector databases"}
    retrieved = await posted(client, "/v1/retrieve", **asked)
    context = await posted(client, "/v1/context", **asked, session_id="s")
    found = await posted(client, "/v1/search", **asked, kind="turns")

    tells = mode is not MemoryMode.OFF
    assert [mode, mode] == [retrieved["memory_mode"], context["memory_mode"]]
    assert {tells} == {bool(each) for each in (retrieved["structured_facts"], context["facts"], found["turns"])}
    assert tells == bool(retrieved["episodic_context"])
    assert context["recent"]


@pytest.mark.behaviour("user-17")
@pytest.mark.parametrize("off", ["a", "b"])
@pytest.mark.parametrize("token", [False, True])
async def test_an_off_memory_tells_nothing_to_who_reads_several_apps(off: str, token: bool) -> None:
    """Without an app in the request too: of that app nothing, whichever spoke last; the other's, however few."""
    reads = ApiToken(token=SecretStr(token_of("a")), apps=["a", "b"], name="both")
    made = Served(settings=HttpSettings(tokens=[reads]) if token else None)
    for app, later in (("a", timedelta()), ("b", timedelta(minutes=1))):
        mode = MemoryMode.OFF if app == off else MemoryMode.ACTIVE
        made.users.known_users.append(replace(stats((app, 0), app=app), memory_mode=mode, timestamp=AT + later))
        made.users.known_facts.append(fact("name", f"Alex of {app}", importance=0.9, app=app))
        made.users.known_episodes.append(episode(1, f"boats of {app}", app=app))
        await made.say(said(0, f"my boats of {app}", app=app, session=app))
    on = {"a": "b", "b": "a"}[off]
    async with made.client(headers=bearer("a") if token else None) as client:
        asked = {"user_id": "u", "query": "boats"}
        answers = [
            await posted(client, "/v1/retrieve", **asked, max_distance=2.0, top_k_episodes=1),
            await posted(client, "/v1/context", **asked),
            await posted(client, "/v1/search", **asked, kind="turns"),
            await posted(client, "/v1/search", **asked, kind="episodes"),
        ]

    assert [(on,)] * 3 == [scope.app_ids for scope in made.search.asked]  # so the best of the other fill the answer
    assert {on} == set(re.findall(r'"app_id": "(\w+)"', json.dumps(answers)))
    assert [1, 1, 1, 1] == [len(answers[0][part]) for part in ("structured_facts", "episodic_context")] + [
        len(answers[2]["turns"]),
        len(answers[3]["episodes"]),
    ]
    assert ["active", "active"] == [answer["memory_mode"] for answer in answers[:2]]
    assert f"Alex of {off}" not in answers[1]["prompt"]


async def test_a_context_without_a_session_has_the_users_last_turns(client: httpx.AsyncClient, served: Served) -> None:
    """Across sessions, in order of arrival, so many as are asked for; a session of another user's has none.

    Facts that share words with the question come first, then the most important.
    """
    served.users.known_facts.append(fact("coding_style", "black", importance=0.5))
    styled = await posted(client, "/v1/context", user_id="u", app_id="a", query="Which coding style?")
    found = await posted(client, "/v1/context", user_id="u", app_id="a", query="?", recent_turns=2)
    none = await posted(client, "/v1/context", user_id="u", app_id="a", query="?", recent_turns=0)
    others = await posted(client, "/v1/context", user_id="u", app_id="a", session_id="s2", query="?")

    assert [turn["content"] for turn in found["recent"]] == ["in between", "which vector databases do you know"]
    assert (none["recent"], others["recent"]) == ([], [])
    assert [each["key"] for each in styled["facts"]] == ["coding_style", "name", "language"]


async def test_a_context_is_filled_with_what_was_said_of_it(client: httpx.AsyncClient, served: Served) -> None:
    """What a search finds, an answer beside its question, the newest last; nothing twice, nothing of anybody else."""
    at = [said(0, "").timestamp + timedelta(days=day) for day in range(4)]
    turns = [
        said(0, "what is my daughter allergic to", session="k"),
        said(1, "you told me: peanuts", session="k", role=Role.ASSISTANT),
        said(2, "thanks", session="k"),
        said(0, "my daughter is allergic to peanuts", session="j"),
        said(1, "walnuts are fine", session="j", user="somebody"),
        said(0, "my daughter is allergic to milk", session="j", app="b"),
        said(0, "her daughter is allergic to eggs", session="x", user="somebody"),
    ]
    of = {"k": at[2], "j": at[1]}
    await served.say(*(replace(turn, timestamp=of.get(turn.session_id, at[3])) for turn in turns))
    question = {"user_id": "u", "app_id": "a", "query": "allergic daughter"}
    found = await posted(client, "/v1/context", **question)
    tight = await posted(client, "/v1/context", **question, token_budget=64)
    again = await posted(client, "/v1/context", **question, session_id="j")
    day = await posted(client, "/v1/context", **question, **{"from": "2026-03-01", "to": "2026-03-02"})

    said_before = found["prompt"].partition("## Said Before\n")[2].partition("\n\n")[0].splitlines()
    assert [
        "- [2026-03-02 12:00] user: my daughter is allergic to peanuts",
        "- [2026-03-03 12:00] user: what is my daughter allergic to",
        "- [2026-03-03 12:00] assistant: you told me: peanuts",
    ] == said_before
    assert {(hit["turn"]["session_id"], hit["turn"]["turn"], hit["is_neighbour"]) for hit in found["found"]} == {
        ("j", 0, False),
        ("k", 0, False),
        ("k", 1, True),
    }
    assert (found["left_out"]["found"], tight["tokens"] <= 64, tight["left_out"]["found"]) == (0, True, 2)
    assert [turn["session_id"] for turn in again["recent"]] == ["j"]
    assert [hit["turn"]["session_id"] for hit in again["found"]] == ["k", "k"]
    assert [hit["turn"]["session_id"] for hit in day["found"]] == ["j"]


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/context", "/v1/search"])
async def test_only_some_retrievals_are_worked_on_at_once(
    served: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are answered; the others wait in order, so that what is begun is soon answered and refusals are quick."""
    begun, full, release, standings = 0, asyncio.Event(), asyncio.Event(), served.users.standings

    async def held(*asked: Any) -> list[UserMemoryChanged]:
        nonlocal begun
        begun += 1
        if begun == MOST_READING:
            full.set()
        await release.wait()
        return await standings(*asked)

    monkeypatch.setattr(served.users, "standings", held)
    async with served.client() as client:
        asked = [posted(client, path, user_id="u", app_id="a", query="boat") for _ in range(2 * MOST_READING)]
        answers = asyncio.gather(*asked)
        await full.wait()
        await client.get("/livez")  # time enough for the others
        at_once = begun
        release.set()
        await answers

    assert (MOST_READING, 2 * MOST_READING) == (at_once, begun)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"from": "2026-02-30"}, "from"),
        ({"to": "2026-02-01T25:00:00Z"}, "to"),
        ({"to": "9999-12-31T23:59:59-01:00"}, "to"),
        ({"from": "2026-02-02", "to": "2026-02-01"}, "to"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-02-01T10:00:00"}, "from"),
    ],
)
async def test_no_time_is_guessed(client: httpx.AsyncClient, asked: dict[str, str], field: str) -> None:
    """No day or time, a time without its zone, an end before the beginning are refused at once, with the field."""
    never = {"session_id": "s", "turn": 99, "timeout_ms": 0}
    found = await client.post("/v1/search", json={"user_id": "u", "query": "boat", **asked})
    prompt = await client.post("/v1/context", json={"user_id": "u", "query": "boat", "after": never, **asked})

    for answer in (found, prompt):
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (422, [field])


async def test_a_day_is_meant_whole(client: httpx.AsyncClient, served: Served) -> None:
    """In UTC, from its first moment to its last; times with other offsets are the same moments."""
    await posted(client, "/v1/search", user_id="u", query="boat", **{"from": "2026-02-01", "to": "2026-02-01"})
    await posted(client, "/v1/search", user_id="u", query="boat", **{"from": "2026-02-01T02:00:00+02:00"})
    day, since = (each.between for each in served.search.asked)

    assert day == Between(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 1, 23, 59, 59, 999_999, tzinfo=UTC))
    assert since == Between(day.first)


@pytest.mark.behaviour("user-20")
@pytest.mark.parametrize(("distance", "found"), [(None, 1), (0.0, 0)])
async def test_how_near_an_episode_must_be(distance: float | None, found: int) -> None:
    """As the policy says; where it says nothing, as the embedder does. A request's own distance comes first."""
    made = Served(policy=PromptPolicy(episode_distance=distance))
    made.users.known_users.append(stats(("s", 0)))
    made.users.known_episodes.append(episode(1, "the user asked about vector databases like pgvector"))
    asked = {"user_id": "u", "app_id": "a", "query": "vector databases, bread"}
    async with made.client() as client:
        own = await posted(client, "/v1/retrieve", **asked)
        wide = await posted(client, "/v1/retrieve", **asked, max_distance=2.0)

    assert [found, 1] == [len(each["episodic_context"]) for each in (own, wide)]
