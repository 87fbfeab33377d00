"""Checks of the Kafka cluster: does it answer, are its topics as wanted, who works there."""

from __future__ import annotations

import asyncio
import time

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from jobs.shared.role_groups import role_groups
from jobs.shared.topic_drift import DriftKind, TopicDrift
from models.errors import StoreUnavailable
from streams.kafka.client import admin
from streams.settings import Settings
from streams.wiring import ROLES

_FOLLOWS = {"memory": "sessions", "enrich": "memory", "index": "sessions", "archive": "sessions"}
"""Role → the one that it takes its work from; `judge` too, where one is configured."""
_NAMED = 3
_COUNTS = (DriftKind.TOO_FEW_PARTITIONS, DriftKind.TOO_MANY_PARTITIONS, DriftKind.CO_PARTITIONING)


def check_broker(settings: Settings) -> Verdict:
    """Whether it answers at the configured address, with as many brokers as topics have copies."""

    async def ask() -> int:
        async with admin(settings.kafka) as client:
            return len((await client.describe_cluster())["brokers"])

    began = time.monotonic()
    try:
        brokers = asyncio.run(ask())
    except StoreUnavailable as error:
        return fail(
            str(error),
            f"start the broker at {settings.kafka.bootstrap}, or set TURNTIDE_KAFKA__BOOTSTRAP to where it is",
        )
    took_ms = (time.monotonic() - began) * 1000
    if brokers < settings.kafka.replication:
        return fail(
            f"{brokers} brokers, replication {settings.kafka.replication}",
            "start more brokers or lower TURNTIDE_KAFKA__REPLICATION",
        )
    return ok(f"{settings.kafka.bootstrap}: {brokers} brokers, connected in {took_ms:.0f} ms")


def check_topics(settings: Settings) -> Verdict:
    """Whether every topic is there, with the wanted partitions and configuration."""
    from jobs.operate.topics import differences

    found = asyncio.run(differences(settings))
    if not found:
        return ok(f"all as wanted under {settings.topic_prefix}")
    missing, counts = _named(found, DriftKind.MISSING), _named(found, *_COUNTS)
    if missing:
        return fail(
            f"missing: {missing}",
            "`turntide topics plan`, then `turntide topics apply`; or check TURNTIDE_TOPIC_PREFIX",
        )
    if counts:
        standing = sorted({d.standing for d in found if d.kind in _COUNTS})
        return fail(
            f"partitions not as wanted: {counts}",
            f"TURNTIDE_KAFKA__PARTITIONS={standing[0]} takes them as they are, where all have so many; "
            "`turntide topics plan` shows each. Sessions would be looked for in the wrong partition: mend it before "
            "a worker starts",
        )
    return warn(f"{len(found)} entries differ: {_named(found, *DriftKind)}", "`turntide topics plan`, then `apply`")


def _named(found: list[TopicDrift], *kinds: DriftKind) -> str:
    names = sorted({difference.topic for difference in found if difference.kind in kinds})
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def check_workers(settings: Settings) -> Verdict:
    """Only what belongs together: whoever runs sessions and no memory finds requests and turns piling up."""
    groups = asyncio.run(role_groups(settings, ROLES))
    members = {role: group.members for role, group in groups.items()}
    shown = ", ".join(f"{role} {count}" for role, count in members.items())
    follows = _FOLLOWS if settings.judge.kind == "off" else {**_FOLLOWS, "judge": "sessions"}
    away = [role for role, before in follows.items() if members[before] and not members[role]]
    if not away:
        return ok(shown)
    return warn(shown, f"`turntide worker {away[0]}` is not running: what it reads waits, until retention removes it")
