"""A slower stage makes memories and decides on compactions: what is asked, taken, refused and not waited for."""

from datetime import timedelta
from typing import Any

import pytest

from models.events import CompactionRequested, MemoryRequested, RequestedTurn, Role
from models.events.app import MemoryDeleted, MemoryEdited
from tests.support.app_driver import THINGS, Space


def asked(**apps: Any) -> Space:
    """A space whose ten memories a language model made, and an eleventh that waits for a decision."""
    space = Space(ask=True, **apps)
    for n in range(space.policy.apps.most + 1):
        space.end()
        space.propose(f"User bought {THINGS[n]}.")
    return space


def test_a_memory_is_asked_for_and_made_of_the_answer() -> None:
    """One line of it, with what it says of importance and tags."""
    space = Space(ask=True)
    turns = [RequestedTurn(Role.USER, "I decided to buy a red bicycle.")]
    request, stats = space.end(session="s1", turns=turns)
    assert isinstance(request, MemoryRequested)
    assert (request.request, request.session_id, request.turns, stats.waiting) == (1, "s1", turns, 1)  # type: ignore[union-attr]
    space.propose(
        " User buys\n a red bicycle. ", importance=0.7, tags=["bike", "bike", " "], tokens=500, elapsed_ms=2_000
    )
    memory = space.active[1]

    assert (memory.content, memory.importance, memory.tags) == ("User buys a red bicycle.", 0.7, ["bike"])
    assert (memory.session_id, memory.made_by, space.stats.waiting) == ("s1", "llm", 0)
    assert space.stats.spent_units == pytest.approx(10 + 500 / 1_000 * 2 + 2)


def test_one_request_at_a_time() -> None:
    """Conversations become memories in the order in which they ended."""
    space = Space(ask=True)
    for session in "abc":
        space.end(session=session)
    assert ([r.session_id for r in space.asked_for_memories], space.stats.waiting) == (["a"], 3)
    for n in range(3):
        space.store()
        space.propose(f"User likes thing {n}.")

    assert [r.session_id for r in space.asked_for_memories] == ["a", "b", "c"]
    assert [(m.session_id, m.content[-2]) for m in space.active.values()] == [("a", "0"), ("b", "1"), ("c", "2")]


@pytest.mark.behaviour("app-19")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"failure": "llm_error"}, "llm_error"),
        ({"failure": "something else"}, "rubbish"),
        ({"content": "x" * 401}, "rubbish"),
        ({"content": " \n"}, "nothing_said"),
    ],
)
def test_an_answer_without_a_usable_memory_skips_it(answer: dict[str, Any], reason: str) -> None:
    """App memory, Memory Creation Failures; the next conversation is not held up."""
    space = Space(ask=True)
    space.end(session="a")
    space.end(session="b")
    space.propose(**answer)
    space.propose("User likes tea.")

    assert (space.skipped, space.contents, space.stats.skipped) == ([("a", reason)], ["User likes tea."], 1)


@pytest.mark.parametrize("answered", [True, False])
def test_rules_make_it_instead_if_the_policy_says_so(answered: bool) -> None:
    """`when_it_fails: extractive`: for a failed call, and for one that never answers."""
    space = Space(ask=True, when_it_fails="extractive")
    space.end(said="I decided to buy a red bicycle.")
    space.propose(failure="timeout") if answered else space.wait(minutes=5)

    assert "red bicycle" in space.contents[0]
    assert space.active[1].made_by == "extractive"


@pytest.mark.parametrize("request_number", [0, 2, 99])
def test_answers_that_nobody_waits_for_change_nothing(request_number: int) -> None:
    """To what was never asked; again; a decision where a memory was asked for, and the other way round."""
    space = Space(ask=True)
    space.end()
    space.end()
    space.store()
    stored, outputs = dict(space.stored), list(space.outputs)
    if request_number:
        space.propose(request=request_number)
    space.decide(request=1)
    space.store()

    assert (space.stored, space.outputs) == (stored, outputs)


def test_an_answer_that_never_comes_is_not_waited_for() -> None:
    """After the policy's time the memory is skipped; the state says when that is due, and a late answer is nobody's."""
    space = Space(ask=True)
    space.end(session="a")
    due = space.now + timedelta(minutes=5)
    before = space.due
    space.store()
    assert (before, space.due) == (due, due)
    space.wait(seconds=200)
    assert space.skipped == []
    space.wait(seconds=100)
    space.propose("User likes tea.", request=1)

    assert (space.skipped, space.contents, space.due) == ([("a", "no_answer")], [], None)
    assert space.stats.spent_units == 10


@pytest.mark.behaviour("app-07")
def test_nobody_knows_the_candidate_before_it_is_decided() -> None:
    """Ten are told, and counted, while the eleventh waits; it is the request's new memory."""
    space = asked()
    (request,) = space.of(CompactionRequested)

    assert sorted(space.active) == [m.memory_id for m in request.memories] == [*range(1, 11)]
    assert (request.new_memory.memory_id, request.new_memory.content) == (11, f"User bought {THINGS[10]}.")
    assert (space.stats.memories, space.stats.waiting, space.stats.created) == (10, 1, 11)


@pytest.mark.behaviour("app-06")
@pytest.mark.parametrize("target", [1, 5, 10, 11])
def test_the_decided_one_goes(target: int) -> None:
    """One of the ten, or the new one, of which then nobody ever hears."""
    space = asked()
    space.decide("delete", target, reason=" it is\n old ", tokens=1_000, elapsed_ms=3_000)
    (compaction,) = space.compactions

    assert sorted(space.active) == [n for n in range(1, 12) if n != target]
    assert (compaction.action, compaction.target_memory_id, compaction.merged_memory_id) == ("delete", target, None)
    assert (compaction.decided_by, compaction.fallback, compaction.reason) == ("llm", "", "it is old")
    assert space.stats.spent_units == pytest.approx(11 * 10 + 20 + 2 + 3)


@pytest.mark.behaviour("app-06")
@pytest.mark.parametrize(
    ("target", "content", "gone"),
    [
        (3, f"User bought {THINGS[2]} and {THINGS[10]}.", 11),
        (3, f"User bought {THINGS[2]} and {THINGS[6]}.", 7),
        (11, f"{THINGS[10]} and {THINGS[4]}", 5),
    ],
)
def test_two_are_merged(target: int, content: str, gone: int) -> None:
    """The target gets the text and names the other's conversation; the other goes; ten are left."""
    space = asked()
    space.decide("edit", target, new_content=content)
    (compaction,) = space.compactions

    assert sorted(space.active) == [n for n in range(1, 12) if n != gone]
    assert (compaction.merged_memory_id, compaction.new_content) == (gone, content)
    assert space.active[target].content == content
    assert space.active[target].related_conversations == [f"s{gone - 1}"]
    assert space.active[target].importance == max(
        memory.importance for memory in compaction.before if memory.memory_id in {target, gone}
    )


@pytest.mark.behaviour("app-21")
@pytest.mark.parametrize(
    ("decision", "fallback"),
    [
        ({"action": "keep"}, "unknown_action"),
        ({"action": "edit", "target": 3, "new_content": "x" * 50_000}, "too_long"),
        ({"action": "delete", "target": 2}, "pinned"),
        ({"failure": "timeout"}, "timeout"),
        ({"failure": "\N{GRINNING FACE}"}, "rubbish"),
    ],
)
def test_a_decision_that_cannot_be_carried_out_lets_the_oldest_go(decision: dict[str, Any], fallback: str) -> None:
    """App memory, Memory Compaction Failures: FIFO, and the event says so. Another app's memory is unknown here."""
    space = asked()
    space.command(MemoryEdited, memory_id=2, pinned=True)
    space.decide(**decision)
    (compaction,) = space.compactions

    assert (compaction.decided_by, compaction.fallback) == ("fifo", fallback)
    assert (compaction.action, compaction.target_memory_id) == ("delete", 1)
    assert sorted(space.active) == [*range(2, 12)]


@pytest.mark.parametrize("kind", ["delete", "edit", "erase"])
def test_what_was_let_go_does_not_come_back_with_an_answer(kind: str) -> None:
    """A conversation went on, and its remake is asked for; then an admin takes the text out. It is asked for anew."""
    space = Space(ask=True)
    space.end(session="a", last_turn=4)
    space.propose("User's card is 4711.")
    space.end(session="a", first_turn=5, last_turn=9)
    before = space.state.head.requests
    if kind == "erase":
        space.erase("a")
    elif kind == "delete":
        space.command(MemoryDeleted, memory_id=1)
    else:
        space.command(MemoryEdited, memory_id=1, content="User has a card.")
    space.propose("User's card is 4711, and she likes tea.", request=before)

    assert [m.content for m in space.active.values()] == (["User has a card."] if kind == "edit" else [])
    assert space.state.head.requests == before + (kind != "erase")


def test_a_request_tells_nothing_of_other_conversations() -> None:
    """A memory into which another conversation went is not shown to the stage that makes it anew; it is joined here."""
    space = asked()
    space.decide("edit", target=1, new_content="User bought a red bicycle and a tall lamp.")
    merged = next(m for m in space.active.values() if m.related_conversations)
    space.end(session=merged.session_id, first_turn=50, last_turn=59, summary="They spoke of a bell.")
    request = space.asked_for_memories[-1]
    space.propose("User bought a bell.")

    assert "lamp" not in request.summary
    assert (space.active[merged.memory_id].content.count("lamp"), "bell" in space.active[merged.memory_id].content) == (
        1,
        True,
    )


def test_memories_expire_where_the_policy_says_so() -> None:
    """By the time of their conversations, a pinned one never; when the next does is known beforehand."""
    space = Space(expire_after=timedelta(days=30))
    for _ in range(3):
        space.end()
        space.now += timedelta(days=1)
    space.command(MemoryEdited, memory_id=1, pinned=True)
    second, third = (space.memories[n].updated_at + timedelta(days=30) for n in (2, 3))
    first_due, space.now = space.due, second + timedelta(hours=1)
    space.end()

    assert (second, third) == (first_due, space.due)
    assert [1, 3, 4] == sorted(space.active)
    assert Space().due is None
