"""Both clients against the real thing."""

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from turntide import ApiError, Context, Episode, Fact, Found, Memory, NotYet, Turn, Unreachable, answers

_EXAMPLE = Path(__file__).parents[2] / "examples" / "chatbot.py"
_SAID = [
    {"role": "user", "content": "My name is Alex and I live in Oslo.", "message_id": "m-1"},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello Alex."}]},
]


def test_what_is_added_is_found(call: Callable[..., Any]) -> None:
    """In a prompt, by search, as facts, and as what was said."""
    added = call("add", _SAID, user_id="u-1", wait="visible")
    later = call("add", "I moved to Bergen.", user_id="u-1")

    context = call("context", "Where do I live?", user_id="u-1", after=later)

    assert [turn.turn for turn in added.turns] == [0, 1]
    assert later.session_id == added.session_id
    assert "Bergen" in context.prompt
    assert context.known
    assert {(fact.key, fact.value) for fact in call("facts", "u-1", category="identity")} >= {("name", "Alex")}
    assert [turn.content for turn in call("recent", "u-1", last=1)] == ["I moved to Bergen."]
    assert [turn.role for turn in call("turns", added.session_id)] == ["user", "assistant", "user"]
    assert "Oslo" in call("search", "Alex Oslo", user_id="u-1", limit=1).turns[0].turn.content
    today = datetime.now(UTC).date()
    assert call("search", "Alex Oslo", user_id="u-1", since=today - timedelta(1), until=datetime.now(UTC)).turns
    assert call("search", "Alex Oslo", user_id="u-1", since=today + timedelta(2)).turns == []
    context = call("context", "Alex Oslo", user_id="u-1", recent_turns=1, until=datetime.now(UTC))
    assert "Oslo" in context.prompt
    assert "Oslo" not in call("context", "Alex", user_id="u-1", recent_turns=1, since=today + timedelta(2)).prompt
    assert call("episodes", "u-1") == []
    assert call("end", user_id="u-1") is None


@pytest.mark.behaviour("app-18")
def test_the_app_of_a_session_is_told(memory: Memory, app: str) -> None:
    """By the session alone, also to who has a client of another app; of an unknown one there is none."""
    said = memory.add("I live in Oslo.", user_id="u-1", session_id=f"session of {app}", wait="visible")

    assert Memory(app="another").app_of(said.session_id) == memory.app
    with pytest.raises(ApiError, match="no turn of this session"):
        memory.app_of("unknown")


@pytest.mark.behaviour("risk-06", "risk-11")
def test_a_session_is_read_in_short(memory: Memory) -> None:
    """Five turns are a segment with a summary, what follows stands as it was said; the profile tells of its risk."""
    said = [{"role": "user", "content": f"Berth {n} of the marina in Oslo is free."} for n in range(7)]
    memory.add(said, user_id="u-1", session_id="s-1", wait="visible")
    until = time.monotonic() + 20.0
    while not (short := memory.segments("s-1")).segments and time.monotonic() < until:
        time.sleep(0.1)

    assert [(each.first_turn, each.last_turn) for each in short.segments] == [(0, 4)]
    assert "marina" in short.segments[0].summary
    assert [turn.turn for turn in short.open_turns] == [5, 6]
    while _turns_in_profile(memory, "s-1") < 6 and time.monotonic() < until:
        time.sleep(0.1)
    assert (memory.profile("s-1").turn_count, memory.profile("s-1").mode) == (6, "calm")


def _turns_in_profile(memory: Memory, session_id: str) -> int:
    try:
        return memory.profile(session_id).turn_count
    except ApiError:
        return 0


def test_a_repeat_changes_nothing(memory: Memory) -> None:
    """A message that comes again under its id is one turn, also by another object in the same session."""
    for _ in range(2):
        memory.add(_SAID[0], user_id="u-1", session_id="s-1", wait="visible")
    memory.add("and now?", user_id="u-1", session_id="s-1", wait="visible")

    assert [turn.content for turn in memory.turns("s-1")] == [_SAID[0]["content"], "and now?"]


def test_a_long_history_keeps_its_order(memory: Memory) -> None:
    """It goes in several requests, by number and by size."""
    said = [{"role": "user", "content": f"{n} " + "word " * 300} for n in range(230)]

    added = memory.add(said, user_id="u-1", session_id="s-1", wait="visible")

    assert len({turn.message_id for turn in added.turns}) == len(said)
    assert [turn.content.split()[0] for turn in memory.turns("s-1", last=230)] == [str(n) for n in range(230)]


def test_a_user_is_forgotten(memory: Memory) -> None:
    """Everywhere, with a proof; the app's other users stay."""
    for user in ("u-1", "u-2"):
        memory.add(_SAID[0], user_id=user, session_id=user, wait="visible")

    erasure = memory.forget(user_id="u-1", wait=True)

    assert erasure.proved
    assert (memory.facts("u-1"), memory.turns("u-1")) == ([], [])
    assert memory.facts("u-2")


def test_facts_are_corrected(memory: Memory) -> None:
    """Set, pinned and taken back by hand."""
    memory.add(_SAID[0], user_id="u-1", wait="visible")

    assert memory.set_fact("u-1", "identity", "location", "Bergen", importance=0.9).success
    assert memory.pin_fact("u-1", "identity", "location").success
    assert memory.delete_fact("u-1", "identity", "name").success
    assert [(fact.key, fact.value, fact.pinned) for fact in memory.facts("u-1")] == [("location", "Bergen", True)]
    with pytest.raises(ApiError, match="404 not_found"):
        memory.pin_fact("u-1", "identity", "shoe_size")


@pytest.mark.behaviour("user-17")
def test_a_memory_is_switched_off(memory: Memory) -> None:
    """Then nothing is learned and nothing told; switched on again it knows what it knew."""
    memory.add("My name is Alex.", user_id="u-1", wait="visible")

    assert memory.set_memory_mode("u-1", "off")
    memory.add("I live in Oslo.", user_id="u-1", wait="visible")
    assert memory.context("Who am I?", user_id="u-1").facts == []
    assert memory.set_memory_mode("u-1", "active")
    assert [fact.key for fact in memory.context("Who am I?", user_id="u-1").facts] == ["name"]


def test_names_may_hold_anything(memory: Memory) -> None:
    """A user and a session whose ids are steps of a path, or hold slashes."""
    for name in ("..", "a/b c?ü"):
        memory.add("I live in Oslo.", user_id=name, session_id=name, wait="visible")

        assert len(memory.turns(name)) == 1
        assert [fact.value for fact in memory.facts(name)] == ["Oslo"]


def test_what_is_wrong_is_said(memory: Memory) -> None:
    """Of a request, of a wait, and of an address; calls that would erase more than one are none."""
    with pytest.raises(ApiError) as refused:
        memory.search("anything", user_id="u-1", limit=0)
    assert (refused.value.status, refused.value.code) == (422, "invalid_request")
    assert [error.field for error in refused.value.errors] == ["top_k"]
    with pytest.raises(Unreachable, match="is `turntide` running"):
        Memory("http://127.0.0.1:9", "shop", retries=0).facts("u-1")
    with pytest.raises(TypeError):
        memory.forget()


def test_what_does_not_come_in_time_is_told(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for a turn that nobody sent."""
    monkeypatch.setattr("turntide.calls._VISIBLE_WITHIN_MS", 50)
    added = memory.add("I live in Oslo.", user_id="u-1", session_id="s-1")
    (turn,) = added.turns
    unsent = dataclasses.replace(added, turns=[dataclasses.replace(turn, message_id="never")])

    with pytest.raises(NotYet):
        memory.context("Where?", user_id="u-1", after=unsent)


def test_answers_are_those_of_the_contract() -> None:
    """Every field is in the server's OpenAPI; what the client needs there is required."""
    contract = httpx.get(f"{os.environ['TURNTIDE_URL']}/openapi.json").json()["components"]["schemas"]
    forms = {
        answers.Accepted: "AcceptedTurn", Turn: "TurnAnswer", Fact: "FactAnswer", Episode: "EpisodeAnswer",
        answers.TurnHit: "TurnHit", answers.EpisodeHit: "EpisodeHit", Found: "Found", Context: "AssembledContext",
        answers.Erasure: "ErasureStanding", answers.Segments: "SegmentedSession", answers.Segment: "SegmentAnswer",
        answers.Profile: "ProfileAnswer",
    }  # fmt: skip
    for form, name in forms.items():
        has = contract[name]["properties"].keys()
        for field in dataclasses.fields(form):  # type: ignore[arg-type]  # mypy takes the keys for one type
            assert field.name in has, f"{name} has no {field.name}"


def test_a_chatbot_remembers_across_two_runs(app: str) -> None:
    """The example, as the documentation shows it."""
    program = _EXAMPLE.read_text().replace('app="', f'app="{app}-')

    told, asked = (
        subprocess.run([sys.executable, "-c", program, said], check=True, capture_output=True, text=True).stdout
        for said in ("Hi, my name is Alex.", "What is my name?")
    )

    assert (told, asked) == ("Nice to meet you!\n", "You are Alex.\n")
