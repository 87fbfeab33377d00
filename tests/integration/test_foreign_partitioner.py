"""Producers that partition otherwise than Turntide does: what is said of a session reaches it where it stands."""

import asyncio
from binascii import crc32
from collections.abc import Callable
from functools import partial

from jobs.alerts.command import latest_alerts, say
from jobs.operate.doctor import check_partitioner
from jobs.operate.doctor.verdict import Status
from models.events import AlertAcknowledged, AlertChanged, AlertLabelled, AlertStatus
from models.events.topics import TURNS
from streams.kafka.producer import Producer
from streams.settings import ScorerSettings, Settings
from tests.support.fault_driver import recorded, records_on, said, send, sessions_role, until

PARTITIONS = 6
SESSION = "chat-7"
"""CRC32, librdkafka's default, puts it on partition 5, murmur2 on another one."""


def by_crc32(key: str) -> int:
    """Where librdkafka's clients put a key unless they are told otherwise (`consistent_random`)."""
    return crc32(key.encode()) % PARTITIONS


async def changed(settings: Settings, holds: Callable[[AlertChanged], bool]) -> list[AlertChanged]:
    """The latest change of each app's alert, once both apps have one for which it holds."""
    found = [alert for alert in (await latest_alerts(settings)).values() if holds(alert)]
    return sorted(found, key=lambda alert: alert.app_id)


async def test_an_acknowledgement_reaches_a_session_that_its_producer_put_elsewhere(
    settings: Settings, producer: Producer
) -> None:
    """Of two tenants with one session id that whose alert it is; a label likewise; the doctor sees who is torn."""
    settings = settings.model_copy(update={"scorer": ScorerSettings(kind="rules")})
    elsewhere = by_crc32(SESSION)
    ours = await producer.partition_of(TURNS.full_name(settings.topic_prefix), SESSION.encode())
    turns = [said(n, session_id=SESSION, risk=0.95, app_id=app) for n in range(12) for app in ("a", "b")]
    async with sessions_role(settings):
        await send(settings, map(recorded, turns), partition=elsewhere)

        async def both_fire() -> list[AlertChanged] | None:
            found = await changed(settings, lambda alert: alert.status is AlertStatus.FIRING)
            return found if len(found) == 2 else None

        first, second = await until(both_fire, "an alert of each app")
        await say(settings, [first.alert_id], AlertAcknowledged, by="anna", note="looking")
        await say(settings, [second.alert_id], AlertLabelled, escalating=True, by="anna")
        is_seen = partial(changed, settings, lambda alert: alert.status is AlertStatus.ACKNOWLEDGED)
        seen = await until(is_seen, "the acknowledgement in the alert", within_s=20)
    placed = {record.partition for record in await records_on(settings, TURNS)}
    fine = await asyncio.to_thread(check_partitioner, settings)
    await send(settings, [recorded(said(12, session_id=SESSION, app_id="b"))], partition=ours)
    torn = await asyncio.to_thread(check_partitioner, settings)

    assert ours != elsewhere
    assert [first.alert_id] == [alert.alert_id for alert in seen]
    assert {elsewhere} == placed
    assert (fine.status, "2 by another partitioner" in fine.detail) == (Status.OK, True)
    assert (torn.status, "1 of 2 sessions" in torn.detail, f"{SESSION} of b" in torn.detail) == (
        Status.WARN,
        True,
        True,
    )
