"""Topics on the broker: what stands there, and how it is changed. Plain calls, no decisions.

Where the broker refuses, by its limits or for want of rights, they raise `ConfigurationError`; where what was changed
cannot be used in time, `StoreUnavailable`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from msgspec import Struct

from models.errors import ConfigurationError, StoreUnavailable

_SET_ON_TOPIC = 1
"""Kafka's config source of an entry that was set on the topic itself, not inherited."""
_KNOWN_WITHIN_S = 30.0
_POLL_S = 0.05


class BrokerTopic(Struct, frozen=True, kw_only=True):
    """A topic as the broker has it or is to have it.

    Attributes:
        name: Full name.
        partitions: Number of partitions.
        replication: Replicas of each, the least over the partitions.
        config: Entries by Kafka's names. Of a standing topic all, inherited ones too.
        own_config: Of a standing topic, what is set on the topic itself.
    """

    name: str
    partitions: int
    replication: int
    config: dict[str, str]
    own_config: dict[str, str] = {}


async def existing_topics(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, BrokerTopic]:
    """Those of the named topics that exist, by name."""
    present = set(await client.list_topics()) & set(names)
    if not present:
        return {}
    described = await client.describe_topics(sorted(present))
    configs = await _configs(client, sorted(present))
    return {
        topic["topic"]: BrokerTopic(
            name=topic["topic"],
            partitions=len(topic["partitions"]),
            replication=min(len(partition["replicas"]) for partition in topic["partitions"]),
            config={name: value for name, (value, _) in configs[topic["topic"]].items()},
            own_config={name: value for name, (value, own) in configs[topic["topic"]].items() if own},
        )
        for topic in described
    }


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, tuple[str, bool]]]:
    """By topic: entry -> value, and whether it is set on the topic itself."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for response in await client.describe_configs(resources):
        for code, message, _, name, entries in response.resources:
            _require(code, f"describe the configuration of {name}", message)
            found[name] = {entry[0]: (entry[1] or "", entry[3] == _SET_ON_TOPIC) for entry in entries}
    return found


GROWING = (
    "More partitions move keys away from their state, and Kafka cannot remove partitions. To change the number: stop "
    "the workers; set TURNTIDE_TOPIC_PREFIX to a new prefix and TURNTIDE_KAFKA__PARTITIONS to the new number; run "
    "`turntide topics apply`, then `turntide topics copy --from <old prefix>`; set the new prefix in producers and "
    "workers"
)
"""How a deployment gets more partitions without losing what its sessions remember."""


async def partition_counts(client: AIOKafkaAdminClient, names: Collection[str]) -> dict[str, int]:
    """Partitions of those of the named topics that exist and that this client may see."""
    return {
        topic["topic"]: len(topic["partitions"])
        for topic in await client.describe_topics()
        if topic["topic"] in names and not topic["error_code"]
    }


def require_equal(counts: Mapping[str, int]) -> None:
    """Check that topics are co-partitioned: what belongs together must lie on partitions of the same number.

    Raises:
        ConfigurationError: They are not; says which, and what to do.
    """
    by_count: dict[int, list[str]] = {}
    for name, count in sorted(counts.items()):
        by_count.setdefault(count, []).append(name)
    if len(by_count) > 1:
        told = "; ".join(f"{count}: {', '.join(names)}" for count, names in sorted(by_count.items()))
        raise ConfigurationError(f"topics have different numbers of partitions ({told}). {GROWING}.")


async def create(client: AIOKafkaAdminClient, topics: Sequence[BrokerTopic]) -> None:
    """Create topics and wait until they can be used; one that somebody else creates meanwhile is taken as it is."""
    if not topics:
        return
    new = [
        NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=dict(topic.config)) for topic in topics
    ]
    response = await client.create_topics(new)
    for name, code, *message in response.topic_errors:
        if code != TopicAlreadyExistsError.errno:
            _require(code, f"create topic {name}", message[0] if message else "")
    await _await_leaders(client, {topic.name: topic.partitions for topic in topics})


async def _await_leaders(client: AIOKafkaAdminClient, counts: Mapping[str, int]) -> None:
    async def led() -> bool:
        found = {
            topic["topic"]: sum(each["leader"] >= 0 and not each["error_code"] for each in topic["partitions"])
            for topic in await client.describe_topics()
        }
        return all(found.get(name, 0) >= count for name, count in counts.items())

    await _until(led, "new partitions have no leaders")


async def _until(holds: Callable[[], Awaitable[bool]], trouble: str) -> None:
    """The controller answers before the brokers know: until then they would tell the old state.

    Raises:
        StoreUnavailable: They still do after half a minute.
    """
    try:
        async with asyncio.timeout(_KNOWN_WITHIN_S):
            while not await holds():  # noqa: ASYNC110 - a broker has no event to wait for
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise StoreUnavailable(
            f"{trouble} after {_KNOWN_WITHIN_S:.0f} s: check the brokers, then repeat `turntide topics apply`"
        ) from None


async def add_partitions(client: AIOKafkaAdminClient, counts: Mapping[str, int]) -> None:
    """Raise topics to a number of partitions."""
    if not counts:
        return
    try:
        await client.create_partitions({name: NewPartitions(total) for name, total in counts.items()})
    except KafkaError as error:
        raise ConfigurationError(
            f"the broker refuses to add partitions: {error}. Check its limits and ACLs."
        ) from error
    await _await_leaders(client, counts)


async def set_config(client: AIOKafkaAdminClient, configs: Mapping[str, Mapping[str, str]]) -> None:
    """Set entries of topics, keep the others that were set on them.

    aiokafka has only Kafka's older request, which replaces all of a topic's entries: what stands is read first and sent
    along. Two of these calls at the same moment can undo each other; repeat `topics apply`.
    """
    if not configs:
        return
    existing = await existing_topics(client, sorted(configs))
    await replace_config(client, {name: {**existing[name].own_config, **wanted} for name, wanted in configs.items()})

    async def known() -> bool:
        found = await existing_topics(client, sorted(configs))
        return all(wanted.items() <= found[name].own_config.items() for name, wanted in configs.items())

    await _until(known, "a new configuration is not known")


async def replace_config(client: AIOKafkaAdminClient, configs: Mapping[str, Mapping[str, str]]) -> None:
    """Give topics exactly these entries of their own."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, configs=dict(own)) for name, own in configs.items()]
    for response in await client.alter_configs(resources) if resources else ():
        for code, message, _, name in response.resources:
            _require(code, f"set the configuration of {name}", message)


def _require(code: int, what: str, message: Any) -> None:
    if code:
        raise ConfigurationError(
            f"the broker refuses to {what}: {for_code(code).__name__} {message or ''}. Check its limits and ACLs."
        )
