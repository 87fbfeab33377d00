"""Hybrid search over a store: what is found, in which order, and what a scope keeps out."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from msgspec import json
from msgspec.structs import replace
from qdrant_client import AsyncQdrantClient

from models.events import EpisodeCompressed, SessionName, Turn
from models.retrieval.lexical import terms
from models.retrieval.traits import packed_traits
from models.text.language import language_of
from streams.index.between import Between
from streams.index.collections import TURNS
from streams.index.hybrid_search import HybridSearch, Scope
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory
from streams.index.turn_traits import turn_point
from streams.index.user_memory import UserMemory
from tests.support.api_doubles import said
from tests.support.blank_events import blank
from tests.support.loaded import loaded_embedder

pytestmark = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect:UserWarning", "ignore:Local mode performs exact:UserWarning"
)

MAY = datetime(2023, 5, 8, tzinfo=UTC)
SUBJECTS = ["The cat sleeps all day.", "My car needs new tyres.", "Rice takes twenty minutes.", "It rains in Bergen."]
ANN = Scope(user_id="ann")


class Searched:
    """An empty store, and search over it with the defaults."""

    def __init__(self) -> None:
        self.store = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")
        self.embedder = loaded_embedder()
        self.search = HybridSearch(self.store, self.embedder)

    async def index(self, *turns: Turn) -> None:
        """Write turns as the index role does."""
        vectors = self.embedder.embed([each.content for each in turns])
        await SessionVectorMemory(self.store, self.embedder).add_turns(turns, vectors)

    async def found(self, query: str, scope: Scope = ANN, top_k: int = 3) -> list[tuple[str, int]]:
        """Sessions and numbers of what is found."""
        return [(each.turn.session_id, each.turn.turn) for each in await self.search.turns(query, scope, top_k)]


@pytest.fixture
async def memory() -> AsyncIterator[Searched]:
    """It knows nothing yet."""
    made = Searched()
    yield made
    await made.store.close()


def turn(number: int, content: str, *, day: int = 0, user: str = "ann", app: str = "app", session: str = "s") -> Turn:
    """A turn; by default Ann's."""
    at = MAY + timedelta(days=day, minutes=number)
    return replace(said(number, content, app=app, user=user, session=session), timestamp=at)


@pytest.mark.parametrize(
    ("query", "expected"), [("What of Zyxwort?", ("s", 40)), ("vehicle wheels", ("s", 10))], ids=["words", "meaning"]
)
async def test_each_ranking_finds_what_the_other_does_not(
    memory: Searched, query: str, expected: tuple[str, int]
) -> None:
    """A name that no embedder knows; no word in common."""
    await memory.index(*(turn(10 * n, text) for n, text in enumerate([*SUBJECTS, "Ask Zyxwort about it."])))

    assert (await memory.found(query))[0] == expected


async def test_an_answer_is_found_beside_its_question(memory: Searched) -> None:
    """The reply has none of the words, but follows them."""
    told = [
        *SUBJECTS,
        "Which telescope should I buy for the Perseids?",
        "Take the second one, it is lighter.",
        *SUBJECTS,
    ]
    await memory.index(*(turn(n, text) for n, text in enumerate(told)))

    assert (await memory.found("Which telescope for the Perseids?"))[:1] == [("s", 4)]
    assert ("s", 5) in await memory.found("Which telescope for the Perseids?")


@pytest.mark.parametrize(
    "content", ["Anna: Did you see Bob's boat in May?", "Wie komme ich zum Bahnhof?", "", "日本語 tea " * 500]
)
def test_words_are_cut_once_and_are_the_same(content: str) -> None:
    """A point that is made when a turn is indexed has the words and traits of one that is made anew, the day's too."""
    point = turn_point(turn(7, content, day=60), None, np.zeros(2, np.float32))
    words = TURNS.found_by(turn(7, content, day=60))

    assert point.lexical is not None
    assert words is not None
    assert (point.lexical.indices.tolist(), point.lexical.values.tolist()) == (
        words.indices.tolist(),
        words.values.tolist(),
    )
    assert {*terms("7 July 2023")} <= {*words.indices.tolist()}
    assert json.decode(str(point.payload["rest"]))["traits"] == packed_traits(content, language=language_of(content))


async def test_what_an_earlier_release_indexed_is_found_as_it_was(memory: Searched) -> None:
    """Its turns have no one text: their fields stand alone, without traits or with them, beside turns of today."""
    turns = [turn(n, f"{text} Was it number {n}?") for n, text in enumerate(SUBJECTS * 2)]
    await memory.index(*turns)
    expected = await memory.search.turns("Which car needs tyres?", ANN, 5)
    rows = memory.embedder.embed([each.content for each in turns])
    for point in [turn_point(each, None, row) for each, row in zip(turns, rows, strict=True)][::2]:
        alone = json.decode(str(point.payload.pop("rest")))
        if point.payload["turn"] == 0:
            del alone["traits"]
        await memory.store.upsert(TURNS.name, [replace(point, payload={**point.payload, **alone})])

    found = await memory.search.turns("Which car needs tyres?", ANN, 5)

    assert [each.turn for each in found] == [each.turn for each in expected]
    assert [dict(each.signals) for each in found] == [pytest.approx(dict(each.signals)) for each in expected]


async def test_dates_find_what_was_said_then(memory: Searched) -> None:
    """The content names no date; the turn's time does."""
    await memory.index(*(turn(0, "We went for a long walk.", session=f"s{n}", day=40 * n) for n in range(4)))

    assert (await memory.found("What did we do in July 2023?"))[0] == ("s2", 0)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(user_id="ann"), {("s", 0), ("t", 0)}),
        (Scope(app_ids=("app",), user_id="ann"), {("s", 0)}),
        (Scope(app_ids=("app", "second"), user_id="ann"), {("s", 0), ("t", 0)}),
        (Scope(app_ids=("third",)), {("v", 0)}),
        (Scope(session_id="u"), {("u", 0)}),
        (Scope(session_id="u", user_id="ann"), set()),
        (Scope(app_ids=("nobody",), user_id="ann"), set()),
    ],
)
async def test_a_scope_holds(memory: Searched, scope: Scope, expected: set[tuple[str, int]]) -> None:
    """Every field that is named must hold, however well the rest would match."""
    text = "The boat lies in the harbour."
    await memory.index(
        turn(0, text),
        turn(0, text, session="t", app="second"),
        turn(0, text, session="u", user="bo"),
        turn(0, text, session="v", user="bo", app="third"),
    )

    assert set(await memory.found("boat harbour", scope, 10)) == expected


async def test_neighbours_are_of_the_same_app(memory: Searched) -> None:
    """A search over two apps that have a session of one id: what stands beside a match is the match's own session."""
    both = Scope(app_ids=("app", "second"))
    await memory.index(turn(4, "The boat lies in the harbour."), turn(5, "Something of the others", app="second"))
    found = await memory.search.turns("boat harbour", both, 10)

    assert [(each.turn.app_id, each.turn.turn) for each in found if each.score > 0][:1] == [("app", 4)]
    await memory.index(turn(4, "Nothing of boats", app="second"))
    again = await memory.search.turns("boat harbour", both, 1)
    assert [(each.turn.app_id, each.turn.content) for each in again] == [("app", "The boat lies in the harbour.")]


async def test_a_neighbour_of_somebody_else_is_not_given(memory: Searched) -> None:
    """One session of two users: what stands beside a match is read within the scope too."""
    await memory.index(turn(4, "The boat lies in the harbour."), turn(5, "My secret", user="bo"))

    assert await memory.found("boat harbour", top_k=10) == [("s", 4)]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (Between(MAY + timedelta(days=10)), {10, 20}),
        (Between(last=MAY + timedelta(days=10)), {0, 10}),
        (Between(MAY + timedelta(days=1), MAY + timedelta(days=9, hours=1)), {10}),
        (Between(MAY + timedelta(days=20, minutes=20), MAY + timedelta(days=20, minutes=20)), {20}),
        (Between(MAY + timedelta(days=21)), set()),
    ],
    ids=["from", "to", "told", "to the minute", "none"],
)
async def test_a_window_holds(memory: Searched, between: Between, expected: set[int]) -> None:
    """Of what was said, or is told of, within it, both ends inside; what stands beside a hit must be within it too."""
    texts = {0: "The boat came.", 10: "The boat sailed yesterday.", 20: "The boat sank."}
    await memory.index(*(turn(number, text, day=number) for number, text in texts.items()))
    scope = Scope(user_id="ann", between=between)
    near = await SessionVectorMemory(memory.store, memory.embedder).find_similar(
        "boat", SessionName("app", "s"), 9, between
    )

    assert {number for _, number in await memory.found("boat", scope, 10)} == expected
    assert {each.turn for each in near} == expected


@pytest.mark.parametrize("fields", [{}, {"app_ids": ()}, {"app_ids": (), "user_id": "ann"}])
def test_no_scope_holds_everything(fields: dict[str, object]) -> None:
    """A look-up without an owner, or for no app at all, cannot be written down."""
    with pytest.raises(ValueError, match="scope"):
        Scope(**fields)  # type: ignore[arg-type]


def episode(number: int, summary: str, *, user: str = "ann") -> EpisodeCompressed:
    """An episode that ended forty days after the last."""
    ended = MAY + timedelta(days=40 * number)
    return blank(
        EpisodeCompressed,
        user_id=user,
        app_id="app",
        episode=number,
        first_turn=20 * number,
        summary=summary,
        started_at=ended,
        ended_at=ended,
    )


async def test_episodes_are_found_by_words_meaning_and_date(memory: Searched) -> None:
    """Each way leads to the right one, and none to another user's of the same words."""
    texts = ["Compared vector databases.", "Planned a trip to Lisbon with Zyxwort.", "Fixed the leaking tap."]
    episodes = [episode(n, text) for n, text in enumerate(texts, 1)]
    await UserMemory(memory.store, memory.embedder).add_episodes(
        [(each, n) for n, each in enumerate([*episodes, *(episode(n, texts[0], user="bo") for n in (1, 2))])]
    )
    queries = ["Zyxwort", "plumbing repair", "What was in June 2023?"]
    best = [(await memory.search.episodes(query, ANN, 3))[0][0] for query in queries]

    june = Scope(user_id="ann", between=Between(MAY + timedelta(days=39), MAY + timedelta(days=79)))
    assert [found.episode for found, _ in await memory.search.episodes("trip tap databases", june, 3)] == [1]
    assert [found.episode for found in best] == [2, 3, 1]
    assert {found.user_id for found, _ in await memory.search.episodes("vector databases", ANN, 9)} == {"ann"}
