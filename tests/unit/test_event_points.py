"""Events as points: read again as they were, also from what earlier releases wrote, and with fields that come later."""

import lzma
import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace

from models.errors import InvalidRecord
from models.events import (
    AppMemoriesChanged,
    AppMemoryChanged,
    FactChanged,
    ProjectItemChanged,
    TopicChanged,
    Turn,
    TurnCorrected,
)
from models.events.topics import CONVERSATION_TOPICS, FACTS, MEMORIES, PROJECTS, TURNS, USER_EPISODES
from models.policy import Policy
from models.wire.codec import decode_input, decode_output
from models.wire.envelope import schema_of
from streams.api.answers import answered, without
from streams.index import collections as index
from streams.index.edge import EdgeStore
from streams.index.event_points import Collection
from streams.index.session_keys import bind_to_apps
from tests.upgrades.make import KeptRecord, Log

_HERE = Path(__file__).parents[1]
_EXAMPLES = _HERE.parent / "deploy" / "contracts" / "examples"
_RELEASES = sorted(folder.name for folder in (_HERE / "upgrades").glob("v*"))
_ALL = [*index.COLLECTIONS.values(), index.PROJECTS]
_OWN: dict[type[Struct], dict[str, str]] = {AppMemoriesChanged: {"user_id": ""}}
"""A space has no user of its own, unless it is one's: who spoke last is not kept."""
_BLANK = np.zeros(1, dtype=np.float32)
_OFFSET = 7
_ALONE = 7
"""Session, user, app, turn, offset, one filter of the collection's own, and the rest."""


def written(collection: Collection[Any]) -> type[Struct]:
    """Type of the events that a collection takes."""
    kinds: dict[str, type[Struct]] = {"turns": Turn, "topics": TopicChanged, "corrections": TurnCorrected}
    return kinds.get(collection.name, collection.event)


@pytest.mark.parametrize("collection", _ALL, ids=lambda each: f"{each.name}-{each.event.__name__}")
def test_an_event_reads_as_it_was_written(collection: Collection[Any]) -> None:
    """Every field but those that a collection leaves out; of the payload's scalars those are few that stand alone."""
    kind = written(collection)
    event = msgspec.json.decode((_EXAMPLES / f"{schema_of(kind)}.json").read_bytes(), type=kind)
    point = collection.point(event, _OFFSET, _BLANK)
    found = collection.event_of(point.payload)
    expected = {name: value for name, value in asdict(event).items() if name not in collection.without}

    assert {type(value) for value in point.payload.values()} <= {str, int, float, type(None)}
    assert point.payload["event_offset"] == _OFFSET
    assert collection.asked_by is None or len(point.payload) <= _ALONE + len(collection.asked_by)
    assert {name: getattr(found, name) for name in expected} == expected | _OWN.get(collection.event, {})
    assert not any(getattr(found, name) for name in collection.without if name != "type")


@pytest.mark.parametrize(
    "release", [*(pytest.param(each, marks=pytest.mark.slow) for each in _RELEASES[:-1]), _RELEASES[-1]]
)
async def test_what_a_release_wrote_reads_the_same(release: str, tmp_path: Path) -> None:
    """Each point tells of its event what it was written to tell: of the log's last event of its key."""
    folder = _HERE / "upgrades" / release
    with tarfile.open(folder / "vectors.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    log = msgspec.msgpack.decode(lzma.decompress((folder / "log.xz").read_bytes()), type=Log, strict=False)
    store = EdgeStore(tmp_path / "vectors", embedder="wordllama")
    bound = await bind_to_apps(store)
    for collection in index.OF_SESSIONS:
        points, _ = await store.page(collection.name, "", 10_000)
        bound -= len(points)
        assert [each.key for each in points] == [collection.key(SimpleNamespace(**each.payload)) for each in points]
    assert bound == 0  # every point of a session had a key of its id alone
    for collection, events in last_events(log).items():
        if not events:
            continue  # the release had none
        payloads = await store.read(collection.name, [*events], where={})
        assert payloads, collection.name
        for key, payload in payloads.items():
            found, event = asdict(collection.event_of(payload)), events[key]
            if isinstance(event, AppMemoryChanged | ProjectItemChanged) and not event.active:
                continue  # it went
            told = {name for name in found if "event" in payload or collection.kept_as.get(name, name) in payload}
            told.discard("risk")  # the scorer's, where the producer gave none
            expected = {name: value for name, value in asdict(event).items() if name in told}
            assert {name: found[name] for name in expected} == expected | _OWN.get(collection.event, {}), key
    await store.close()


def last_events(log: Log) -> dict[Collection[Any], dict[str, Struct]]:
    """The last event of each point of a log."""
    found: dict[Collection[Any], dict[str, Struct]] = {each: {} for each in _ALL}
    for topic in (TURNS, CONVERSATION_TOPICS, FACTS, USER_EPISODES, MEMORIES, PROJECTS):
        for record in chain.from_iterable(log.records.get(topic.name, {}).values()):
            with suppress(InvalidRecord):
                event: Any = _turn(record) if topic is TURNS else decode_output(topic, record.value or b"")
                for collection in filter(partial(takes, event), _ALL):
                    found[collection][collection.key(event)] = event
    return found


def _turn(record: KeptRecord) -> Struct:
    received_at = datetime.fromtimestamp(record.timestamp_ms / 1_000, UTC)
    return decode_input(record.value, record.key, received_at, Policy().intake)


def takes(event: Struct, collection: Collection[Any]) -> bool:
    """Whether an event is found in a collection."""
    if isinstance(event, ProjectItemChanged):
        return collection is (index.PROJECT_ITEMS if event.kind in index.EMBEDDED else index.PROJECT_PARTS)
    return isinstance(event, written(collection))


def test_a_field_that_comes_later_is_found_without_another_word() -> None:
    """In the index, in what is read of points from before, and in answers."""

    class Later(FactChanged, frozen=True, kw_only=True, tag="fact_changed"):
        quoted: str = ""
        spoken: bool = False

    @without("history")
    class LaterAnswer(Later, frozen=True, kw_only=True, tag=False):
        pass

    facts: Collection[Later] = Collection(
        "facts", Later, key=lambda _: "key", filters=index.FACTS.filters, without=index.FACTS.without
    )
    event = msgspec.json.decode((_EXAMPLES / "fact_changed.v1.json").read_bytes(), type=Later)
    before = index.FACTS.point(msgspec.convert(event, FactChanged, from_attributes=True), _OFFSET, _BLANK)
    found = facts.event_of(facts.point(replace(event, quoted="so", spoken=True), _OFFSET, _BLANK).payload)

    assert (found.quoted, found.spoken, facts.event_of(before.payload).quoted) == ("so", True, "")
    assert {*Later.__struct_fields__} - {*LaterAnswer.__struct_fields__} == {"history"}
    assert answered(LaterAnswer, found).quoted == "so"
