"""Admins' commands and the audit on a real broker: as the memory role takes them; a broker that is away is told."""

from datetime import UTC, datetime

import pytest

from models.errors import DeliveryFailed
from models.events import AccessAudited, MemoriesPurged, MemoryDeleted, Position
from models.events.topics import AUDIT, COMMANDS
from models.policy import IntakePolicy
from models.wire.codec import decode_command, encode
from streams.api.commands import KafkaCommands
from streams.http.audit import KafkaAudit
from streams.settings import Settings, load_settings
from tests.support.fault_driver import events, records_on


async def test_commands_are_where_they_are_said_to_be(settings: Settings) -> None:
    """Each under its space's key, one after the other; the memory role decodes what was sent; it connects again."""
    now = datetime.now(UTC)
    sent = [
        MemoryDeleted(app_id="shop/eu ü", timestamp=now, request_id="1", by="ops", memory_id=7),
        MemoriesPurged(app_id="shop/eu ü", timestamp=now, request_id="2", by="ops"),
    ]
    commands = KafkaCommands(settings)
    places = []
    for command in sent:
        places.append(await commands.send(command))
        await commands.close()
    found = await records_on(settings, COMMANDS)

    assert places == [Position(COMMANDS.name, found[0].partition, offset) for offset in (0, 1)]
    assert [decode_command(each.value, each.key, now, IntakePolicy()) for each in found] == sent


async def test_a_broker_that_is_away(topic_prefix: str) -> None:
    """Said at once, and nothing is left open."""
    commands = KafkaCommands(load_settings(kafka={"bootstrap": "127.0.0.1:9"}, topic_prefix=topic_prefix))
    with pytest.raises(DeliveryFailed, match="cannot reach Kafka"):
        await commands.send(MemoriesPurged(app_id="a", timestamp=datetime.now(UTC)))

    assert not commands._producer.connected


def event(number: int) -> AccessAudited:
    """A record."""
    return AccessAudited(
        id=f"{number:032}", timestamp=datetime.now(UTC), kind="acted", by="b", method="GET", route="/x", status=200
    )


async def test_records_arrive(settings: Settings) -> None:
    """What is waited for, and what is left when the role ends."""
    log = KafkaAudit(settings)
    sent = [event(n) for n in range(5)]
    async with log.running():
        await log.write(sent[0])
        for each in sent[1:]:
            log.record(each)

    assert sorted(map(encode, await events(settings, AUDIT))) == sorted(map(encode, sent))
