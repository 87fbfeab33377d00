"""Facts and turns put right through the real topics: state, index and archive agree, and so does a replay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from models.events import DeadLetter, FactCategory, FactChanged, FactEdited, SessionName, TurnCorrected
from models.events.topics import DEAD_LETTERS, FACTS
from streams.api.commands import KafkaCommands
from streams.archive.catalog import paths_of, reading
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.inference.wordllama import WordLlamaEmbedder
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, running, said, send, until

PARTITIONS = 1
TENANTS = ("a", "b")


def right(turn: int, content: str) -> TurnCorrected:
    """A turn of a's session is put right."""
    ids = {"session_id": "s", "app_id": "a", "user_id": "u"}
    return TurnCorrected(**ids, timestamp=datetime.now(UTC), turn=turn, content=content, by="ops")


async def test_what_is_put_right_is_so_everywhere_for_one_tenant(settings: Settings) -> None:
    """The other, with the same ids, keeps what it said; a turn that never came is a dead letter; a pin holds."""
    settings = settings.model_copy(update={"archive": ArchiveSettings(flush_age=timedelta(seconds=1))})
    talks = [said(n, content="My name is Alex" if n == 0 else "yes", app_id=app) for app in TENANTS for n in range(3)]
    commands = KafkaCommands(settings)

    async def names() -> dict[str, FactChanged]:
        found = [each for each in await events(settings, FACTS) if isinstance(each, FactChanged) and each.key == "name"]
        return {each.app_id: each for each in found}

    async with running(settings, "sessions", "memory", "index", "archive"):
        await send(settings, map(recorded, talks))

        async def both_known() -> bool:
            return (await names()).keys() == {*TENANTS}

        await until(both_known, "a name of each tenant's user")
        await send(settings, [recorded(right(0, "My name is Alexander"))])

        async def told() -> list[DeadLetter] | None:
            # An index that reads what was there before it tells of none: its turn may be on its way.
            await send(settings, [recorded(right(99, "nobody said this"))])
            return [each for each in await events(settings, DEAD_LETTERS) if isinstance(each, DeadLetter)] or None

        letter, *_ = await until(told, "a letter of the turn that never came")
        edited = FactEdited(
            app_id="b",
            user_id="u",
            timestamp=datetime.now(UTC),
            category=FactCategory.IDENTITY,
            key="name",
            value="Beatrix",
            pinned=True,
            request_id="r",
            by="ops",
        )
        await commands.send(edited)
        await send(settings, [recorded(said(3, content="My full name is Eve", app_id="b", at=datetime.now(UTC)))])

        async def contradicted() -> dict[str, FactChanged] | None:
            found = await names()
            return found if found["b"].cause == "contradicted" and found["a"].value == "Alexander" else None

        known = await until(contradicted, "the pinned fact with what was said against it")
        await assert_equal_to_replay(settings)
    await commands.close()
    with reading(paths_of(settings)) as lake:
        archived = dict(lake.execute("SELECT app_id, content FROM turns WHERE turn = 0").fetchall())
        texts = lake.execute("SELECT content FROM turn_texts WHERE turn = 0 AND app_id = 'a'").fetchall()
    store = EdgeStore(settings.data_dir / "vectors", embedder="wordllama")
    memory = SessionVectorMemory(store, WordLlamaEmbedder())
    indexed = {app: (await memory.last_turns(SessionName(app, "s"), 9))[0].content for app in TENANTS}
    await store.close()

    assert (letter.reason, letter.value) == ("unknown_turn", None)
    assert (known["b"].value, known["b"].history[-1].value) == ("Beatrix", "Eve")
    assert archived == indexed == {"a": "My name is Alexander", "b": "My name is Alex"}
    assert sorted(texts) == [("My name is Alex",), ("My name is Alexander",)]
