"""Memory of users in this process: folded as the memory role does, indexed as the index role does, without Kafka."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from models.events import EpisodeCompressed, EpisodeRequested, FactChanged, Position, Turn, UserMemoryChanged
from models.events.topics import COMMANDS, TURNS
from models.events.user import EpisodeSummarised, UserEvent, UserOutput, UserTurnAdded
from models.policy import Policy
from models.text.summary import Passage
from models.user.fold import fold as fold_user
from models.user.fold import summarise_episode
from models.user.state import UserState
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.ports import Embedder, VectorStore

_AT_ONCE = 500


def folded_user(
    turns: Iterable[Turn], policy: Policy, *, first_turn: int = 0, first_offset: int = 0
) -> Iterator[UserOutput]:
    """Outputs of the fold of one user for these turns; its requests are answered before the next turn, extractively.

    Turns and commands are placed in their topics from `first_turn` and `first_offset` on.
    """
    state, waiting, offset = UserState("user:bench/u", lambda _: None, policy), list[UserEvent](), first_offset
    for place, turn in enumerate(turns, first_turn):
        fields = _fields(turn, "session_id", "user_id", "app_id", "timestamp", "turn", "role", "content")
        waiting.append(UserTurnAdded(id=f"{turn.user_id}/{place}", source=Position(TURNS.name, 0, place), **fields))
        while waiting:
            for output in fold_user(state, waiting.pop(0), Position(COMMANDS.name, 0, offset), policy):
                if isinstance(output, EpisodeRequested):
                    waiting.append(_summarised(output, policy))
                yield output
            offset += 1


def _summarised(request: EpisodeRequested, policy: Policy) -> EpisodeSummarised:
    fields = _fields(request, "app_id", "user_id", "timestamp", "first_turn", "last_turn")
    summary = summarise_episode([Passage(turn.content) for turn in request.turns], policy).text
    return EpisodeSummarised(summary=summary or "(no text)", summarised_by="extractive", **fields)


def _fields(event: Struct, *names: str) -> dict[str, Any]:
    return {name: getattr(event, name) for name in names}


async def index_user(
    store: VectorStore,
    embedder: Embedder,
    turns: Sequence[Turn],
    outputs: Sequence[UserOutput] = (),
    first_turn: int = 0,
) -> None:
    """Index a user's turns, placed in the log from `first_turn` on, and what the fold made of them."""
    sessions, memory = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    for lot in (turns[first : first + _AT_ONCE] for first in range(0, len(turns), _AT_ONCE)):
        places = [Position("turns", 0, first_turn + n) for n in range(len(lot))]
        first_turn += len(lot)
        await sessions.add_turns(lot, embedder.embed([turn.content for turn in lot]), places=places)
    await memory.add_episodes([(e, e.source.offset) for e in outputs if isinstance(e, EpisodeCompressed)])
    await memory.add_facts([(e, e.source.offset) for e in outputs if isinstance(e, FactChanged)])
    await memory.add_stats([(e, e.source.offset) for e in outputs if isinstance(e, UserMemoryChanged)][-1:])


@asynccontextmanager
async def open_store(embedder: Embedder, folder: Path | None = None) -> AsyncIterator[EdgeStore]:
    """The index of a folder; without one an empty index in a folder of its own, which goes at the end."""
    with TemporaryDirectory(prefix="turntide-index-") as own:
        store = EdgeStore(folder or Path(own), embedder=embedder.name)
        try:
            yield store
        finally:
            await store.close()
