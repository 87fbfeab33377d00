"""Consumer groups of the roles: their members, and where they go on."""

import asyncio
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from models.errors import ConfigurationError, StoreUnavailable
from streams.index.generations import group_of
from streams.kafka.client import admin, consumer
from streams.settings import Settings

_WITHIN_S = 20.0
_POLL_S = 0.2


class RoleGroup(NamedTuple):
    """One role's group.

    Attributes:
        state: In Kafka's words; `Dead` for a group that never was, or whose offsets have expired.
        members: Workers, killed ones among them until their session time-out is over.
    """

    state: str
    members: int

    @property
    def known(self) -> bool:
        """True if a worker of the role has ever joined, or offsets were committed."""
        return self.state != "Dead"


async def role_groups(settings: Settings, roles: Iterable[str]) -> dict[str, RoleGroup]:
    """The group of each role; of `notify`, which has one for each sink, that with most members.

    Raises:
        StoreUnavailable: Kafka does not answer.
    """
    async with admin(settings.kafka) as client:
        return {role: await _group(client, settings, role) for role in roles}


async def _group(client: AIOKafkaAdminClient, settings: Settings, role: str) -> RoleGroup:
    if role != "notify":
        return await _described(client, group_of(settings, role))
    sinks = f"{group_of(settings, role)}."
    names = [name for name, *_ in await client.list_consumer_groups() if name.startswith(sinks)]
    found = [await _described(client, name) for name in names]
    return max(found, key=lambda each: each.members, default=RoleGroup("Dead", 0))


async def require_empty(settings: Settings, group: str) -> None:
    """Refuse to go on while workers are in a group.

    Raises:
        ConfigurationError: The group has members.
        StoreUnavailable: Kafka does not answer.
    """
    async with admin(settings.kafka) as client:
        state = (await _described(client, group)).state
    if state not in {"Empty", "Dead"}:
        raise ConfigurationError(
            f"group {group} has members ({state}): stop its workers first. A killed worker counts until its "
            "session time-out ends."
        )


async def commit_offsets(settings: Settings, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit where a group without members goes on."""
    async with consumer(settings.kafka, group_id=group) as client:
        client.assign([*offsets])
        await client.commit({place: OffsetAndMetadata(offset, "") for place, offset in offsets.items()})


async def _described(client: AIOKafkaAdminClient, name: str) -> RoleGroup:
    """As the broker answers; a cluster that never had a group needs a moment to choose who keeps them.

    One group in a request: aiokafka 0.14 reads the answer to its version 3 as one of version 2, which is shorter.
    """
    deadline_s = monotonic() + _WITHIN_S
    while True:
        try:
            (answer,) = await client.describe_consumer_groups([name])
        except KafkaError as error:
            if not error.retriable or monotonic() > deadline_s:
                raise StoreUnavailable(
                    f"Kafka does not return the consumer groups: {error!r}. Check its brokers"
                ) from error
            await asyncio.sleep(_POLL_S)
        else:
            ((_code, _name, state, _type, _protocol, members, *_),) = answer.groups
            return RoleGroup(state, len(members))
