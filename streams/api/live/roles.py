"""Health of the roles: each is asked by HTTP, and how far it is behind by Kafka. Only while somebody watches."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus

import httpx
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from msgspec import structs

from models.errors import TurntideError
from streams.api.live.hub import Hub
from streams.api.live.messages import RoleRow
from streams.index.generations import group_of
from streams.kafka.client import admin, consumer
from streams.settings import Settings

log = structlog.get_logger(__name__)

EVERY_S = 5.0
WITHIN_S = 1.0
LAG_WITHIN_S = 4.0
MOST_DETAIL = 300

Lags = Callable[[], Awaitable[Mapping[str, int]]]


def role_addresses(settings: Settings) -> dict[str, str]:
    """Where each role answers: as told (`live.roles`), else on this host those that the settings would start."""
    if settings.live.roles:
        return {role: url.rstrip("/") for role, url in settings.live.roles.items()}
    wanted = {
        "sessions": True,
        "memory": True,
        "enrich": True,
        "index": True,
        "archive": True,
        "notify": settings.notify.has_sinks,
        "judge": settings.judge.kind != "off",
        "api": settings.vectors.url is not None,
        "gateway": True,
    }
    runs = [role for role, is_wanted in wanted.items() if is_wanted]
    return {role: url for role in runs if (url := settings.http.url_of(role)) is not None}


class RoleWatch:
    """Asks every five seconds, all roles at once.

    Args:
        addresses: Where each role answers.
        hub: Is told.
        lags: Records that wait for each role, as far as that is known.
        transport: For tests.
    """

    def __init__(
        self, addresses: Mapping[str, str], hub: Hub, lags: Lags, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._addresses = dict(addresses)
        self._hub = hub
        self._lags = lags
        self._transport = transport
        hub.set_roles([RoleRow(role=role, state="unknown", detail="not checked yet") for role in addresses])

    async def run(self) -> None:
        """Ask while somebody watches, until cancelled."""
        async with httpx.AsyncClient(timeout=WITHIN_S, transport=self._transport, trust_env=False) as client:
            while True:
                await self._hub.joined.wait()
                self._hub.set_roles(await self.look(client))
                await asyncio.sleep(EVERY_S)

    async def look(self, client: httpx.AsyncClient) -> list[RoleRow]:
        """How each role is now."""
        asking = asyncio.gather(*[_asked(client, role, url) for role, url in self._addresses.items()])
        lags, rows = await asyncio.gather(self._known_lags(), asking)
        if lags is None:
            # They are ready, and nothing reaches them.
            return [structs.replace(row, detail=f"{row.detail}; Kafka does not answer") for row in rows]
        return [structs.replace(row, lag_records=lags.get(row.role)) for row in rows]

    async def _known_lags(self) -> Mapping[str, int] | None:
        """None where Kafka does not answer."""
        try:
            async with asyncio.timeout(LAG_WITHIN_S):
                return await self._lags()
        except (TurntideError, KafkaError, OSError, TimeoutError) as error:
            log.debug("live_lags_unknown", error=type(error).__name__)
            return None


async def _asked(client: httpx.AsyncClient, role: str, url: str) -> RoleRow:
    try:
        async with asyncio.timeout(WITHIN_S):
            answer = await client.get(f"{url}/readyz")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
        return RoleRow(role=role, state="away", detail=f"{_place(url)} does not answer ({type(error).__name__})")
    ready = answer.status_code == HTTPStatus.OK
    return RoleRow(role=role, state="ready" if ready else "not_ready", detail=answer.text[:MOST_DETAIL])


def _place(url: str) -> str:
    """Host and port, without the user and password that an address may hold."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2] or "its address in live.roles"


class KafkaLags:
    """Records between what a role's group has committed and the ends of its partitions; connected while it is used.

    Args:
        settings: Which cluster, and the groups' prefix.
        roles: Whose.
    """

    def __init__(self, settings: Settings, roles: Mapping[str, str]) -> None:
        self._settings = settings
        self._groups = {role: group_of(settings, role) for role in roles if role not in {"api", "gateway"}}

    async def __call__(self) -> dict[str, int]:
        """Records that wait for each role that ever committed.

        Raises:
            StoreUnavailable: Kafka does not answer.
        """
        kafka = self._settings.kafka
        async with admin(kafka) as asked, consumer(kafka) as client:
            found = await asyncio.gather(*[_lag(asked, client, group) for group in self._groups.values()])
        return {role: lag for role, lag in zip(self._groups, found, strict=True) if lag is not None}


async def _lag(asked: AIOKafkaAdminClient, client: AIOKafkaConsumer, group: str) -> int | None:
    committed = None
    with suppress(KafkaError):
        committed = await asked.list_consumer_group_offsets(group)
    if not committed:
        return None
    ends = await client.end_offsets(list(committed))
    return sum(max(0, int(ends[place]) - max(0, int(said.offset))) for place, said in committed.items())
