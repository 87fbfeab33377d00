"""The live page as the index role serves it, over a log and a store in this process; its board is filled by hand."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient

from models.errors import DeliveryFailed
from models.events import EpisodeCompressed, FactChanged, Position, TopicChanged, Turn, UserMemoryChanged
from models.events.topics import COMMANDS
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.live.service import LivePage
from streams.http.health import Api, Endpoint
from streams.index.app_memory import AppMemoryIndex
from streams.index.server import ServerStore
from streams.index.session_memory import SessionVectorMemory, TopicMemory
from streams.index.user_memory import UserMemory
from streams.kafka.producer import Record
from streams.settings import load_settings
from streams.settings.http import ApiToken, TokenRole
from tests.support.app_driver import Space
from tests.support.http_api import api_of
from tests.support.loaded import loaded_embedder

Holders = Mapping[str, tuple[TokenRole, list[str], bool]]
"""Role, apps and whether text may be read, by the token's name."""


def live_token(name: str) -> str:
    """The token of that name."""
    return f"token-of-{name}-1234"


class WrittenLog:
    """Doubles the log: keeps what is written and where, or does not answer."""

    def __init__(self) -> None:
        self.records: list[tuple[str, Record]] = []
        self.answers = True

    async def write(self, topic: str, record: Record) -> Position:
        """As the port says."""
        if not self.answers:
            raise DeliveryFailed("Kafka did not confirm the record.")
        self.records.append((topic, record))
        return Position(topic, 3, len(self.records))


class Saving:
    """Doubles the way to apps' spaces and back: folds each command as it comes, and has what came of it indexed."""

    def __init__(self, memories: AppMemoryIndex) -> None:
        self._memories = memories
        self._spaces: dict[str, Space] = {}

    async def send(self, command: Any) -> Position:
        """As the port says."""
        space = self._spaces.setdefault(command.app_id, Space(app=command.app_id))
        space.put(command)
        await self._memories.add_stats([(space.stats, space.offset)])
        return Position(COMMANDS.name, 0, space.offset)


class LiveServed:
    """The page, what it writes to and what it reads.

    Args:
        holders: Of tokens.
        http: Further settings.
    """

    def __init__(self, holders: Holders, **http: Any) -> None:
        self._holders, self._http = holders, {"mcp": False, **http}
        self.log = WrittenLog()
        self.page = LivePage(load_settings(http=self._told(holders)), self.log)
        self.store = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")

    def app(self, names: Iterable[str] | None = None, endpoints: Sequence[Endpoint] = ()) -> Api:
        """As a role that starts makes it; only these tokens are known, by default all."""
        http = load_settings(http=self._told(self._holders if names is None else names)).http
        saving = Saving(AppMemoryIndex(self.store, loaded_embedder()))
        to = {"live": self.page, "writer": self.log, "commands": saving}
        made = memory_api(self.store, loaded_embedder(), Policy(), http, topic_prefix="test", **to)  # type: ignore[arg-type]
        return api_of(made.routes, endpoints=endpoints, http=http)

    async def remember(
        self,
        turns: Sequence[Turn],
        topic: TopicChanged,
        facts: Sequence[FactChanged],
        episode: EpisodeCompressed,
        stats: UserMemoryChanged | None = None,
    ) -> None:
        """Index everything that is known of a session."""
        said, users = SessionVectorMemory(self.store, loaded_embedder()), UserMemory(self.store, loaded_embedder())
        await said.add_turns(turns, loaded_embedder().embed([each.content for each in turns]))
        await TopicMemory(self.store, loaded_embedder(), said).add_changes(
            [(topic, 0)], loaded_embedder().embed([topic.title])
        )
        await users.add_facts([(fact, number) for number, fact in enumerate(facts)])
        await users.add_episodes([(episode, 0)])
        await users.add_stats([] if stats is None else [(stats, 0)])

    def _told(self, names: Iterable[str]) -> dict[str, Any]:
        tokens = [
            ApiToken(token=SecretStr(live_token(name)), name=name, role=role, apps=apps, text=text)
            for name, (role, apps, text) in self._holders.items()
            if name in set(names)
        ]
        return {"tokens": tokens, **self._http}
