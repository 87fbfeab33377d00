"""The topic table as resources of Strimzi, and a Kafka user for each role with no more rights than it needs. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from jobs.shared.topic_drift import wanted_topics
from models.entities import REGISTRY
from models.events import topics
from streams.settings import Settings

API_VERSION = "kafka.strimzi.io/v1"
"""Since Strimzi 0.49; the versions before are gone since 0.52."""
_READ = ("Read", "Describe")
_WRITE = ("Write", "Describe")
_PURGE = ("Delete", "DescribeConfigs", "AlterConfigs")
"""What an erasure does to topics: it cuts records off and has the broker clean sooner."""

_RESET = ("Delete", "Create")
"""What `turntide ops reset` does to a role's changelog."""

Resource = dict[str, Any]


class UserAccess(Struct, frozen=True, kw_only=True):
    """Rights of one Kafka user.

    Attributes:
        reads: Topics that it reads.
        writes: Topics that it writes.
        groups: Consumer groups that it joins, without the prefix; a name that ends with `*` is the beginning of some.
        asks_groups: It asks how far every group is: `roles` those of Turntide's roles, `all` everybody's.
        purges: It cuts off and cleans all topics.
        resets: It looks at every topic's configuration, and deletes and makes changelogs.
    """

    reads: tuple[topics.Topic, ...] = ()
    writes: tuple[topics.Topic, ...] = ()
    groups: tuple[str, ...] = ()
    asks_groups: Literal["roles", "all"] | None = None
    purges: bool = False
    resets: bool = False


def _owned(role: str) -> tuple[topics.Topic, ...]:
    return tuple(topic for topic in REGISTRY.topics if topic.owner == role)


_SERVING = (topics.COMMANDS, topics.ERASURES, topics.TURNS, topics.AUDIT)
"""What is written for whoever asks over HTTP: deeds of admins, erasures, acknowledged alerts, the audit."""
_SHOWN = (topics.PROFILES, topics.ALERTS, topics.COMPACTIONS, topics.ERASURES, topics.TURNS)
"""What the live page follows (`streams.api.live.feed`), and what an erasure is answered on."""

ACCESS: dict[str, UserAccess] = {
    "sessions": UserAccess(
        reads=(topics.TURNS, topics.SESSION_STATE, topics.DEAD_LETTERS),
        writes=(*_owned("sessions"), topics.REQUESTS, topics.TURNS),  # onto turns.v1 it writes what the clock says
        groups=("sessions",),
    ),
    "memory": UserAccess(
        reads=(topics.COMMANDS, topics.MEMORY_STATE, topics.DEAD_LETTERS),
        # Onto turns.v1 it writes topics of users who come back.
        writes=(*_owned("memory"), topics.COMMANDS, topics.TURNS, topics.DEAD_LETTERS),
        groups=("memory",),
    ),
    "enrich": UserAccess(reads=(topics.REQUESTS,), writes=(topics.COMMANDS, topics.TURNS), groups=("enrich",)),
    "judge": UserAccess(reads=(topics.JUDGEMENTS,), writes=(topics.TURNS,), groups=("judge",)),
    # A group for each generation of its collections.
    "index": UserAccess(
        reads=tuple(dict.fromkeys((*REGISTRY.indexed_topics, *_SHOWN))),
        writes=(*_SERVING, topics.DEAD_LETTERS),  # of turns whose number is taken
        groups=("index*",),
        asks_groups="roles",
    ),
    "api": UserAccess(reads=_SHOWN, writes=_SERVING, asks_groups="roles"),
    "gateway": UserAccess(writes=(topics.TURNS, topics.AUDIT)),
    # It carries out erasures: in every topic, once everybody who reads there has read.
    "archive": UserAccess(
        reads=tuple(dict.fromkeys((*REGISTRY.archived_topics, *REGISTRY.topics))),
        writes=REGISTRY.topics,
        groups=("archive",),
        asks_groups="all",
        purges=True,
    ),
    "notify": UserAccess(reads=(topics.ALERTS,), groups=("notify.*",)),
    # A person: `doctor`, `dlq`, `alerts`, `erase`, `reset`.
    "operator": UserAccess(reads=REGISTRY.topics, writes=_SERVING, groups=("*",), asks_groups="all", resets=True),
    "producer": UserAccess(writes=(topics.TURNS,)),
    "keda": UserAccess(asks_groups="roles"),
}
"""By user: the roles, whoever looks after them and sends turns, and what scales the roles by their lag."""


def topic_resources(settings: Settings, cluster: str) -> Iterator[Resource]:
    """A `KafkaTopic` for each topic, for the operator of the `Kafka` resource called `cluster`."""
    for topic in wanted_topics(settings):
        yield {
            **_head("KafkaTopic", topic.name, cluster),
            "spec": {
                "topicName": topic.name,
                "partitions": topic.partitions,
                "replicas": topic.replication,
                "config": topic.config,
            },
        }


def user_resources(settings: Settings, cluster: str) -> Iterator[Resource]:
    """A `KafkaUser` for each of `ACCESS`; the operator makes a secret of its name with a `password`."""
    prefix = settings.topic_prefix
    for name, access in ACCESS.items():
        yield {
            **_head("KafkaUser", f"{prefix}-{name}", cluster),
            "spec": {
                "authentication": {"type": "scram-sha-512"},
                "authorization": {"type": "simple", "acls": list(_rules(access, prefix))},
            },
        }


def _head(kind: str, name: str, cluster: str) -> Resource:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": _resource_name(name),
            "labels": {"strimzi.io/cluster": cluster, "app.kubernetes.io/part-of": "turntide"},
        },
    }


def _resource_name(name: str) -> str:
    """Kubernetes takes small letters, digits, dots and hyphens.

    >>> _resource_name("Team_A.turns.v1")
    'team-a.turns.v1'
    """
    return re.sub(r"[^a-z0-9.-]", "-", name.lower()).strip("-.")


def _rules(access: UserAccess, prefix: str) -> Iterator[Resource]:
    for topic in REGISTRY.topics:
        operations = _on_topic(access, topic)
        if operations:
            yield _rule("topic", topic.full_name(prefix), operations)
    for group in access.groups:
        beginning = group.endswith("*")
        yield _rule("group", f"{prefix}.{group.removesuffix('*')}", ("Read",), beginning=beginning)
    if access.asks_groups is not None:
        whose = ("*", False) if access.asks_groups == "all" else (f"{prefix}.", True)
        yield _rule("group", whose[0], ("Describe",), beginning=whose[1])
        yield _rule("topic", f"{prefix}.", ("Describe",), beginning=True)
    if access.asks_groups == "all":
        yield {"resource": {"type": "cluster"}, "operations": ["Describe"], "host": "*"}


def _on_topic(access: UserAccess, topic: topics.Topic) -> tuple[str, ...]:
    operations = (
        *(_READ if topic in access.reads else ()),
        *(_WRITE if topic in access.writes else ()),
        *(_PURGE if access.purges else ()),
        *(("DescribeConfigs",) if access.resets else ()),
        *(_RESET if access.resets and not topic.public else ()),
    )
    return tuple(dict.fromkeys(operations))


def _rule(kind: str, name: str, operations: Iterable[str], *, beginning: bool = False) -> Resource:
    pattern = "prefix" if beginning else "literal"
    return {
        "resource": {"type": kind, "name": name, "patternType": pattern},
        "operations": list(operations),
        "host": "*",
    }


def rendered(resources: Iterable[Resource], said: str) -> str:
    """Resources as a YAML file, below a comment."""
    documents = [msgspec.yaml.encode(resource).decode() for resource in resources]
    return f"# {said}\n" + "---\n".join(documents)
