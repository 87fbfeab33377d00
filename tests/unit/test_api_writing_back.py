"""Writing back over HTTP through the real folds: facts, topics, turns; and reading a session whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from models.entities import TOPIC_OF
from models.events import DEFAULT_APP, Position, SessionName, Turn, UserTurnAdded, UserTurnCorrected
from models.events.topics import COMMANDS, TURNS
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import MemoryPolicy, Policy
from models.wire.arrival import Command
from models.wire.codec import decode_input
from streams.api.answers import answered
from streams.archive.history import ArchivedTurn
from streams.kafka.producer import Record
from streams.kafka.records import input_record
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import bearer, token_of
from tests.support.entity_driver import Entities, keep_entities
from tests.support.http_api import api_of, client_of
from tests.support.session_driver import said
from tests.unit.test_index_role import Noting, Quiet

POLICY = Policy(memory=MemoryPolicy(stored_vectors=100))
NOW = datetime(2026, 4, 1, tzinfo=UTC)


class World:
    """Folds of sessions and users, the index, and an archive that keeps every turn; commands are done at once."""

    def __init__(self, folder: Path) -> None:
        self.role = Quiet(Noting(), folder, POLICY, commands=self, writer=self, archive=self)
        self.states: dict[str, Entities] = {TURNS.name: {}, COMMANDS.name: {}}
        self.offsets = {TURNS.name: 0, COMMANDS.name: 0}
        self.archived: list[Turn] | None = []
        self.done = True

    async def send(self, command: Any) -> Position:
        """Fold a command and index what comes of it."""
        place = self._place(COMMANDS.name)
        fold = MemoryPartitionFold(self.states[COMMANDS.name], POLICY)
        for result in fold.fold([Command(command, place, NOW)]) if self.done else ():
            keep_entities(self.states[COMMANDS.name], result.changed)
            for output in result.outputs:
                if TOPIC_OF[type(output)] in self.role.sources:
                    await self.role.take(output, first=place.offset)
        return place

    async def write(self, topic: str, record: Record) -> Position:
        """Likewise of a record of `turns.v1`."""
        assert topic == TURNS.name
        event, place = (
            decode_input(record.value, record.key, NOW + timedelta(days=999), POLICY.intake),
            self._place(topic),
        )
        fold = PartitionFold(self.states[topic], POLICY)
        await self.role.take(event, first=place.offset)
        for result in fold.fold([DecodedArrival(event, place, NOW)]):
            keep_entities(self.states[topic], result.changed)
            for output in result.outputs:
                if isinstance(output, UserTurnAdded | UserTurnCorrected):
                    await self.send(output)
                elif TOPIC_OF[type(output)] in self.role.sources:
                    await self.role.take(output, first=place.offset)
        if self.archived is not None and isinstance(event, Turn):
            self.archived.append(event)
        return place

    async def say(self, *turns: Turn) -> None:
        """Turns, one after the other."""
        for turn in turns:
            await self.write(TURNS.name, input_record(turn))

    async def turns(self, session: SessionName, first: int, limit: int) -> list[ArchivedTurn] | None:
        """As the archive has them."""
        mine = [t for t in self.archived or [] if (t.app_id, t.session_id) == session and t.turn >= first][:limit]
        beside = {"partition": 0, "corrected_at": None, "event_offset": None, "similarity": None}
        return None if self.archived is None else [answered(ArchivedTurn, t, **beside) for t in mine]

    def _place(self, topic: str) -> Position:
        self.offsets[topic] += 1
        return Position(topic, 0, self.offsets[topic])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Two tenants whose users and sessions have the same ids."""
    made = World(tmp_path)
    for app in ("a", "b"):
        await made.say(said(0, "My name is Alex", app_id=app), said(1, "I like boats", app_id=app))
    yield made
    await made.role._store.close()


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """What the role serves."""
    async with client_of(api_of(world.role.routes())) as made:
        yield made


NAME = "/v1/users/u/facts/identity/name"


async def test_what_cannot_be_done_is_said(world: World, client: httpx.AsyncClient) -> None:
    """Nothing named, a fact of nobody, a key that is none, and a fold that is away."""
    nobody = "/v1/users/nobody/facts/identity/name"
    told = [
        await client.put(NAME, json={}),
        await client.put(nobody, json={"pinned": True}),
        await client.put("/v1/users/u/facts/identity/No%20Key", json={"value": "x"}),
        await client.put("/v1/users/u/facts/nothing/name", json={"value": "x"}),
        await client.delete(nobody),
        await client.put(nobody, json={"value": "Nemo"}),
    ]

    assert [each.status_code for each in told] == [422, 404, 422, 422, 200, 200]
    assert world.states[COMMANDS.name].keys() >= {f"user:{DEFAULT_APP}/nobody"}


async def test_tokens_write_for_their_apps_and_only_from_writer_on(world: World) -> None:
    """A reader may not; another tenant is refused; who may not read text is shown none."""
    for role, text, expected in (("reader", True, 403), ("writer", False, 200)):
        token = ApiToken(token=SecretStr(token_of("a")), apps=["a"], role=TokenRole(role), text=text)
        settings = HttpSettings(tokens=[token])
        async with client_of(api_of(world.role.routes(), http=settings), bearer("a")) as client:
            told = await client.put(NAME, json={"value": "Alexa"})
            other = await client.put(NAME, params={"app_id": "b"}, json={"value": "Alexa"})
            assert (told.status_code, other.status_code) == (expected, 403)
            if expected == 200:
                assert told.json() == {"success": True, "fact": None}
                refused = await client.put("/v1/sessions/s/turns/0", json={"content": "x"})
                assert refused.status_code == 403


@pytest.mark.behaviour("topic-27", "topic-28")
async def test_topics_take_tags_importance_and_feedback(world: World, client: httpx.AsyncClient) -> None:
    """As the fold has them a moment later; what is not there is refused before anything is written."""
    of_a = {"app_id": "a"}
    ended = said(0, "boats", app_id="a", session_id="ended")
    fresh = [said(n, "boats", app_id="a", session_id="fresh", timestamp=datetime.now(UTC)) for n in range(2)]
    await world.say(ended, *fresh)
    topic = (await client.get("/v1/sessions/fresh/topics", params=of_a)).json()[0]["topic_id"]
    await client.put(f"/v1/sessions/fresh/topics/{topic}", params=of_a, json={"importance": 0.9, "tags": ["boats"]})
    rated = (await client.get(f"/v1/sessions/fresh/topics/{topic}", params=of_a)).json()
    await client.post("/v1/sessions/fresh/feedback", params=of_a, json={"value": -1.0, "turn": 1})
    learnt = (await client.get(f"/v1/sessions/fresh/topics/{topic}", params=of_a)).json()
    offset = world.offsets[TURNS.name]
    refused = [
        await client.put("/v1/sessions/fresh/topics/nothing", params=of_a, json={"importance": 0.9}),
        await client.post("/v1/sessions/fresh/feedback", params=of_a, json={"value": 1.0, "turn": 77}),
        await client.put(f"/v1/sessions/fresh/topics/{topic}", params=of_a, json={}),
        await client.post("/v1/sessions/ended/feedback", params=of_a, json={"value": 1.0}),
    ]

    assert (rated["importance"], rated["tags"]) == (0.9, ["boats"])
    assert learnt["importance"] < 0.9
    assert [each.status_code for each in refused] == [404, 404, 422, 409]
    assert world.offsets[TURNS.name] == offset


@pytest.mark.behaviour("topic-19", "topic-24")
@pytest.mark.parametrize("has_archive", [True, False])
async def test_every_turn_of_a_long_session_is_read_or_named_as_missing(
    world: World, client: httpx.AsyncClient, has_archive: bool
) -> None:
    """The index keeps 100 of 120: the others come from the archive, or the answer says that they are gone."""
    await world.say(*(said(n, f"boats {n}", app_id="a", session_id="long") for n in range(120)))
    world.archived = world.archived if has_archive else None
    pages: list[dict[str, Any]] = [{"next": 0, "turns": [], "missing": []}]
    while (first := pages[-1]["next"]) is not None:
        asked: dict[str, Any] = {"app_id": "a", "first": first, "limit": 50}
        pages.append((await client.get("/v1/sessions/long/history", params=asked)).json())
    turns = [(each["turn"], each["stored"]) for page in pages for each in page["turns"]]
    missing = [each for page in pages for each in page["missing"]]

    assert turns == [(n, "archive" if n < 20 else "index") for n in range(0 if has_archive else 20, 120)]
    assert missing == ([] if has_archive else [{"first": 0, "last": 19, "why": "released"}])
    assert pages[1]["archive"] is has_archive
