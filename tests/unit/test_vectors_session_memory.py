"""Vector memory of sessions: what is kept of turns, and what is found again."""

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from models.errors import AmbiguousApp
from models.events import Position, SessionName, Turn
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory, forget_before
from tests.support.api_doubles import said
from tests.support.loaded import loaded_embedder

S = SessionName("a", "s")
START = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def memory(store: ServerStore) -> SessionVectorMemory:
    """A memory that keeps ten turns per session."""
    return SessionVectorMemory(store, loaded_embedder(), keep_turns=10)


def turn(number: int, content: str = "hello", *, session: str = "s", app: str = "a", risk: float | None = None) -> Turn:
    """A user's turn."""
    return replace(
        said(number, content, app=app, session=session, risk=risk), timestamp=START + timedelta(seconds=number)
    )


async def add(memory: SessionVectorMemory, *turns: Turn, risks: list[float | None] | None = None) -> None:
    """Embed and add a batch."""
    vectors = memory._embedder.embed([t.content for t in turns])
    await memory.add_turns(turns, vectors, risks)


async def kept(memory: SessionVectorMemory, session: str = "s") -> list[int]:
    """Numbers of the turns kept, in the order given."""
    return [found.turn for found in await memory.last_turns(SessionName("a", session), 1_000)]


@pytest.mark.behaviour("risk-22")
async def test_a_rephrased_question_is_found(memory: SessionVectorMemory) -> None:
    """Use case 1 of risk memory: the same question in other words comes first, with everything readers need."""
    await add(
        memory,
        turn(1, "Which vaccine do I need for Kenya?"),
        turn(2, "How do I reset my password?", risk=0.25),
        turn(3, "Thanks, that helped a lot."),
    )
    found = await memory.find_similar("I forgot my password, how can I reset it?", S, top_k=2)

    asked = asdict(turn(2, "How do I reset my password?", risk=0.25)) | {"similarity": found[0].similarity}
    assert {name: getattr(found[0], name) for name in asked} == asked
    assert len(found) == 2
    assert (found[0].similarity or 0) > 0.66 > (found[1].similarity or 0)


@pytest.mark.behaviour("risk-23", "risk-25")
@pytest.mark.parametrize("seed", range(5))
async def test_the_limit_holds_for_any_cut_of_the_log(memory: SessionVectorMemory, seed: int) -> None:
    """Batches of random size over several sessions end on the newest ten of each."""
    rng = random.Random(seed)
    log = [turn(n, session=session) for n in range(35) for session in "abc"]
    while log:
        size = rng.randint(1, 20)
        await add(memory, *log[:size])
        del log[:size]

    assert [list(range(25, 35))] * 3 == [await kept(memory, session) for session in "abc"]


async def test_a_turn_later_than_the_limit_goes_with_the_next_batch(memory: SessionVectorMemory) -> None:
    """The stated rule for late turns: kept until the session brings a newer one."""
    await add(memory, *(turn(n) for n in range(5, 20)))
    await add(memory, turn(3))
    meanwhile = await kept(memory)
    await add(memory, turn(20))

    assert [3, *range(10, 20)] == meanwhile
    assert list(range(11, 21)) == await kept(memory)


@pytest.mark.behaviour("risk-02", "risk-21")
async def test_last_turns_are_the_newest_oldest_first(memory: SessionVectorMemory) -> None:
    """Context for a reader, including turns without words. The producer's risk wins: 0.0 is a verdict, not a gap."""
    await add(memory, turn(3), turn(1, risk=0.0), turn(4, ""), turn(2), risks=[0.4, 0.9, None, 0.1])

    assert [(t.turn, t.risk) for t in await memory.last_turns(S, 3)] == [(2, 0.1), (3, 0.4), (4, None)]
    assert (await memory.last_turns(S))[0].risk == 0.0
    with pytest.raises(ValueError, match="shorter"):  # a vector under another turn's name would never be noticed later
        await memory.add_turns([turn(1), turn(2)], np.zeros((1, 256), dtype=np.float32))


async def test_one_id_in_two_apps_is_two_sessions(memory: SessionVectorMemory) -> None:
    """Neither replaces, trims, erases or finds a turn of the other; an erasure that names no app (0.2) takes both."""
    of_b = SessionName("b", "s")
    for app in ("a", "b"):
        await add(memory, *(turn(n, f"boats of {app}", app=app) for n in range(3)))
    both = [[each.content for each in await memory.last_turns(session)] for session in (S, of_b)]
    near = await memory.find_similar("boats of b", S, 10)
    await add(memory, turn(20, app="b"))
    trimmed = [[each.turn for each in await memory.last_turns(session)] for session in (S, of_b)]
    places = [Position("turns.v1", 0, 5)] * 2
    again = [turn(20, "more", app=app) for app in ("a", "b")]
    await memory.add_turns(again, memory._embedder.embed([each.content for each in again]), None, places)
    await forget_before(memory._store, {(of_b, 0): 9})
    erased = [len(await memory.last_turns(session)) for session in (S, of_b)]
    await forget_before(memory._store, {(SessionName("", "s"), 0): 9})

    assert both == [["boats of a"] * 3, ["boats of b"] * 3]
    assert {each.app_id for each in near} == {"a"}
    assert trimmed == [[0, 1, 2], [20]]
    assert erased == [1, 0]
    assert await memory.last_turns(S) == []


async def test_which_app_is_meant_where_none_is_named(memory: SessionVectorMemory) -> None:
    """The only one, or the default app; of several others none."""
    await add(memory, *(turn(n, session="one") for n in range(3)), turn(7, app="b", session="two"))
    await add(memory, turn(0, session="two"), turn(0, session="three"), turn(9, app="default", session="three"))

    assert await memory.app_of("none") is None
    assert await memory.app_of("one") == "a"
    assert await memory.app_of("three") == "default"
    with pytest.raises(AmbiguousApp, match="give app_id"):
        await memory.app_of("two")
