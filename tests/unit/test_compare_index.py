"""What a comparison reads of index and archive: what the role's own routes give, and whatever a role emits."""

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from jobs.replay.archive_read import read_archive
from jobs.replay.index_read import NobodyToAsk, read_index, read_projects, read_users
from models.entities import REGISTRY
from models.errors import StoreUnavailable
from models.events import DeadLetter, Output, Position, ProjectItem, ProjectItemChanged, SessionName
from models.events.topics import TURNS
from models.policy import Policy
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.erase.concerned import Project, User
from streams.http.answering import ServedRoute
from streams.http.health import Api
from streams.index.project_memory import ProjectMemories
from streams.index.server import ServerStore
from streams.oracle.followers import Indexed, IndexedUser
from streams.oracle.replay import OUTPUT_TOPICS
from streams.settings import Settings, load_settings
from streams.settings.http import ApiToken, HttpSettings
from tests.support import projects_indexed
from tests.support.api_doubles import AT, Served, episode, fact, said, settings_of, stats, token_of
from tests.support.lake_records import PREFIX, land_all
from tests.support.projects_indexed import changed, remembered, stands
from tests.support.users_indexed import MatterEmbedder
from tests.unit.test_lake_erasing import examples

URL = "http://127.0.0.1:1"
ODD = User("b/c", "a user/with ../ odd?name")


def settings(**more: Any) -> Settings:
    """The prefix of the role's doubles."""
    return load_settings(topic_prefix="test", **more)


def answering(monkeypatch: pytest.MonkeyPatch, app: ASGIApp) -> None:
    """Let this app answer all clients of a comparison."""
    client = partial(httpx.AsyncClient, transport=httpx.ASGITransport(app))
    monkeypatch.setattr(httpx, "AsyncClient", client)


def sized(prefix: str) -> Api:
    """A role that says for which topics it is, and nothing else."""

    async def index(_request: Request) -> Response:
        return JSONResponse({"topic_prefix": prefix, "turns": 0})

    return Api([ServedRoute("/v1/index", index, ["GET"])], [])


@pytest.fixture
async def served() -> Served:
    """A role that knows users of two apps."""
    made = Served()
    made.users.known_facts += [
        fact("name", "Alex"),
        fact("location", "Bergen", active=False, valid_until=AT),
        fact("name", "Bo", app=ODD.app_id, user=ODD.user_id),
    ]
    made.users.known_episodes += [episode(1, "bread"), episode(2, "salt")]
    made.users.known_users += [stats(turn_count=43), stats(turn_count=3, app=ODD.app_id, user=ODD.user_id)]
    await made.say(said(0, "hello"), said(1, "there"), said(0, "odd", session="..", app=ODD.app_id))
    return made


async def test_turns_facts_episodes_and_standings(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sessions and users with any name; past facts are not read, a user that nobody knows has nothing."""
    answering(monkeypatch, served.app)
    sessions = [SessionName("a", "s"), SessionName(ODD.app_id, "..")]
    turns = await read_index(settings(), sessions, index_url=URL)
    users = await read_users(settings(), [User("a", "u"), ODD, User("a", "nobody")], index_url=URL)

    assert Indexed(turns=[("a", "s", 0), ("a", "s", 1), (ODD.app_id, "..", 0)], at_most=1_000, points=3) == turns
    assert [
        IndexedUser(facts=[("identity", "name", "Alex")], episodes=[(21, 40), (1, 20)], turn_count=43),
        IndexedUser(facts=[("identity", "name", "Bo")], episodes=[], turn_count=3),
        IndexedUser(facts=[], episodes=[], turn_count=0),
    ] == [*users.values()]


async def test_every_item_of_a_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds, over as many pages as there are; a project that the index does not know has none.

    The role is another installation's: the same API reads the vector store that settings name.
    """
    answering(monkeypatch, sized("other"))
    store, odd = ServerStore(AsyncQdrantClient(":memory:"), embedder="matter"), Project("b/c", "a web/with ../ name")
    projects = ProjectMemories(store, MatterEmbedder(), Policy().projects)
    items: list[ProjectItem] = [
        *(remembered(number) for number in range(501)),
        projects_indexed.episode(1),
        projects_indexed.chunk(1),
        projects_indexed.conversation(),
        projects_indexed.pending(1),
    ]
    events: list[ProjectItemChanged] = [
        changed(item, slot, app=odd.app_id, project=odd.project_id) for slot, item in enumerate(items)
    ]
    await projects.add_items([(event, 1) for event in events])
    await projects.add_stats([(stands(app=odd.app_id, project=odd.project_id), 2)])
    monkeypatch.setattr("streams.wiring.vector_store_of", lambda *_: store)
    monkeypatch.setattr("jobs.replay.index_read.embedder_of", lambda _: MatterEmbedder())
    found = await read_projects(settings(vectors={"url": URL}), [odd, Project("a", "unknown")])

    assert {odd: items, Project("a", "unknown"): []} == found


@pytest.mark.parametrize(
    ("prefix", "url", "said"), [("other", None, "another topic prefix"), ("test", URL, "does not serve")]
)
async def test_who_cannot_be_compared_with_is_said(
    monkeypatch: pytest.MonkeyPatch, prefix: str, url: str | None, said: str
) -> None:
    """Another installation's role at the port; one of an older release, which answers 404."""
    answering(monkeypatch, sized(prefix))
    with pytest.raises(NobodyToAsk, match=said):
        await read_users(settings(), [ODD], index_url=url)


async def test_a_token_for_all_apps_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the API takes tokens; one that reads a single app would compare a part."""
    guarded = settings_of("a")
    everything = HttpSettings(tokens=[*guarded.tokens, ApiToken(token=SecretStr(token_of("all")))])
    made = Served(settings=everything)
    answering(monkeypatch, made.app)
    with pytest.raises(StoreUnavailable, match="401"):
        await read_users(settings(http=guarded), [ODD], index_url=URL)

    assert {ODD: IndexedUser(facts=[], episodes=[], turn_count=0)} == await read_users(
        settings(http=everything), [ODD], index_url=URL
    )


def test_every_output_is_looked_for(tmp_path: Path) -> None:
    """A kind that is left out would be missing in every comparison, or false ones never be found."""
    settings = Settings(data_dir=tmp_path, topic_prefix=PREFIX)
    emitted: dict[Any, list[Any]] = {
        topic: [
            _named(event, f"{topic.name} {n}", TURNS.full_name(PREFIX), n)
            for n, event in enumerate(examples(topic))
            if isinstance(event, Output | DeadLetter)
        ]
        for topic in OUTPUT_TOPICS
        if topic in REGISTRY.archived_topics
    }
    writer = LakeWriter(paths_of(settings))
    land_all(writer, emitted)
    writer.close()

    found = read_archive(settings, {TURNS: {}}).ids

    assert {topic.name: {event.id for event in events} for topic, events in emitted.items()} == found

    below = read_archive(settings, {TURNS: {0: 1}}).ids

    assert below == {topic: {each for each in ids if each.endswith(" 0")} for topic, ids in found.items()}


def _named(event: Any, event_id: str, topic: str, offset: int) -> Any:
    """An output of this id that came of this place."""
    place: dict[str, Any] = {"topic": topic, "partition": 0, "offset": offset}
    if isinstance(event, DeadLetter):
        return replace(event, id=event_id, **place)
    return replace(event, id=event_id, source=Position(**place))
