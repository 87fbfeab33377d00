"""Retrieval, prompt assembly, search and look-ups of users' memory, without a socket."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from models.events import Role
from models.events.user import FactCategory
from tests.support.api_doubles import AT, Served, episode, fact, said, stats


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


async def test_a_context_without_a_session_has_the_users_last_turns(client: httpx.AsyncClient) -> None:
    """Across sessions, in order of arrival, so many as are asked for; a session of another user's has none."""
    found = await posted(client, "/v1/context", user_id="u", app_id="a", query="?", recent_turns=2)
    none = await posted(client, "/v1/context", user_id="u", app_id="a", query="?", recent_turns=0)
    others = await posted(client, "/v1/context", user_id="u", app_id="a", session_id="s2", query="?")

    assert [turn["content"] for turn in found["recent"]] == ["in between", "which vector databases do you know"]
    assert (none["recent"], others["recent"]) == ([], [])


async def test_a_search_finds_turns_or_episodes(client: httpx.AsyncClient, served: Served) -> None:
    """Within the scope that the request names, best first, each with its score; a session is of one app."""
    turns = await posted(client, "/v1/search", user_id="u", app_id="a", query="vector databases in between")
    episodes = await posted(client, "/v1/search", user_id="u", query="vector", kind="episodes", top_k=1)
    of_session = await posted(client, "/v1/search", session_id="t", query="in between")

    assert [(hit["turn"]["session_id"], hit["score"]) for hit in turns["turns"]] == [("s", 0.5), ("t", 0.5)]
    assert (episodes["turns"], [hit["episode"]["turn_range"] for hit in episodes["episodes"]]) == ([], ["turns 1-20"])
    assert [hit["turn"]["content"] for hit in of_session["turns"]] == ["in between"]
    assert [(each.app_ids, each.user_id, each.session_id) for each in served.search.asked] == [
        (("a",), "u", None),
        (None, "u", None),
        (("a",), None, "t"),
    ]
