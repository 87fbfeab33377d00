"""A bot that counts from 0 again, through the real topics: archive and index keep the same turns, and it is told."""

from datetime import timedelta

from models.events import DeadLetter, SessionName
from models.events.topics import DEAD_LETTERS
from streams.archive.catalog import paths_of, reading
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, running, said, send, until

PARTITIONS = 1
TURNS_BEFORE = 80
"""More than a session's state has numbers of."""


async def test_what_was_counted_first_stays_everywhere(settings: Settings) -> None:
    """A new text under turns 0 and 1 is two letters with both places; the same text under turn 2 is none.

    State, outputs, archive and index are the oracle's, which knows of no letters of the index.
    """
    settings = settings.model_copy(update={"archive": ArchiveSettings(flush_age=timedelta(seconds=1))})
    before = [said(n, content=f"first {n}") for n in range(TURNS_BEFORE)]
    restarted = [
        said(n, content=text, at=before[-1].timestamp) for n, text in enumerate(("second", "again", "first 2"))
    ]
    async with running(settings, "sessions", "memory", "index", "archive"):
        await send(settings, map(recorded, before))
        await send(settings, map(recorded, restarted))

        async def both_told() -> list[DeadLetter] | None:
            found = await events(settings, DEAD_LETTERS)
            return found if len(found) >= 2 else None

        letters = await until(both_told, "a letter of each turn whose number is taken")
        await assert_equal_to_replay(settings)
    with reading(paths_of(settings)) as lake:
        archived = [text for (text,) in lake.execute("SELECT content FROM turns ORDER BY turn").fetchall()]
    store = EdgeStore(settings.data_dir / "vectors", embedder="wordllama")
    memory = SessionVectorMemory(store, WordLlamaEmbedder())
    indexed = [turn.content for turn in await memory.last_turns(SessionName("a", "s"), 100)]
    await store.close()

    assert [(letter.reason, letter.offset) for letter in letters] == [
        ("turn_conflict", TURNS_BEFORE),
        ("turn_conflict", TURNS_BEFORE + 1),
    ]
    assert (
        f"turns.v1-0-0 with other text than at {settings.topic_prefix}.turns.v1-0-{TURNS_BEFORE}" in letters[0].detail
    )
    assert archived == indexed == [f"first {n}" for n in range(TURNS_BEFORE)]
