"""State tables on a real broker: written through, rebuilt, fenced."""

import pytest

from models.errors import Fenced
from models.events.topics import SESSION_STATE
from streams.kafka.producer import Producer
from streams.settings import Settings
from streams.state.table import StateTable


async def table(settings: Settings, producer: Producer) -> StateTable:
    """A worker's table, its partitions recovered."""
    table = StateTable(settings, SESSION_STATE.full_name(settings.topic_prefix), producer)
    await table.recover([0, 1])
    return table


@pytest.mark.behaviour("topic-25", "card-02")
async def test_state_is_rebuilt_from_the_changelog(settings: Settings, producer: Producer) -> None:
    """What one table wrote, a second one recovers: changes, deletions and all, per partition; megabytes at once.

    A second recovery keeps what nobody else wrote to, takes in what another worker wrote, and releases partitions.
    """
    first = await table(settings, producer)
    await first.write(0, 5, {"a": {"head": b"1", "b0": b"x"}, "b": {"head": b"2"}})
    await first.write(0, 9, {"a": {"head": b"3", "b0": None}, "b": {"head": None}})
    large: dict[str, bytes | None] = {f"b{n}": bytes([n]) * 256 * 1024 for n in range(10)}
    await first.write(1, 1, {"c": large})

    second = await table(settings, producer)

    assert second.partition(0).entities == {"a": {"head": b"3"}}
    assert second.partition(1).entities == {"c": large}
    assert second.partition(0).size_bytes == first.partition(0).size_bytes == 1

    await first.write(0, 10, {"a": {"head": b"4"}})
    kept = first.partition(0)
    await first.recover([0, 1])
    await second.recover([0])

    assert first.partition(0) is kept
    assert second.partition(0).entities == {"a": {"head": b"4"}}
    with pytest.raises(KeyError):
        second.partition(1)


@pytest.mark.behaviour("card-02")
async def test_foreign_write_fences(settings: Settings, producer: Producer) -> None:
    """A worker whose partition another one wrote to must not go on."""
    zombie = await table(settings, producer)
    owner = await table(settings, producer)
    await owner.write(0, 7, {"a": {"head": b"new"}})

    with pytest.raises(Fenced):
        await zombie.write(0, 6, {"a": {"head": b"old"}})
    recovered = await table(settings, producer)

    assert recovered.partition(0).entities == {"a": {"head": b"new"}}
