"""Work that waits in the memory role goes on by itself, on the real broker: apps' memories and projects."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from models.entities import entity_key
from models.events import AppMemoriesChanged, AppMemoryChanged, ProjectChanged, ProjectItemChanged
from models.events.topics import COMMANDS, MEMORIES, PROJECTS, Topic
from models.policy import Policy
from models.policy.app import AppPolicy, EnergyPolicy
from models.policy.project import ConsolidationPolicy, ProjectPolicy
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.kafka.producer import Record
from streams.observe.telemetry import metrics
from streams.roles.memory import MemoryRole
from streams.settings import Settings
from tests.support.app_driver import Space
from tests.support.fault_driver import events, until, working, write
from tests.support.project_driver import Project

ENERGY = EnergyPolicy(capacity_units=12.0, refill_units_per_hour=5 * 3_600.0)
"""For one memory, then none; after a second for the next."""
POLICY = Policy(
    apps=AppPolicy(most=2, most_pinned=0, redundant_similarity=1.0, energy=ENERGY),
    projects=ProjectPolicy(consolidation=ConsolidationPolicy(every=timedelta(seconds=1))),
)
SAID = ("What database should we use?", "I recommend PostgreSQL.", "We decided to use PostgreSQL.")


async def settled(
    settings: Settings,
    said: Sequence[Sequence[Any]],
    topic: Topic,
    done: Callable[[list[Any]], bool],
    policy: Policy = POLICY,
) -> list[Any]:
    """What stands on a topic once it is as wanted, by a role that is sent these commands and nothing else."""
    for commands in said:
        records = [Record(entity_key(each).encode(), encode(each), headers_for(each)) for each in commands]
        await write(settings, COMMANDS, records, partition=None)

    async def wanted() -> list[Any]:
        found = await events(settings, topic)
        return found if done(found) else []

    async with working(MemoryRole(settings, policy).run) as (task,):
        found: list[Any] = await until(wanted, "the topic is as wanted")
    task.result()
    return found


async def test_work_that_waits_for_energy_goes_on(settings: Settings) -> None:
    """No conversation is lost, and there is never one too many: three end at once, two may be kept."""
    apps, cause = ("shop", "bank/ü"), {"cause": "compaction"}
    before = metrics.registry.get_sample_value("turntide_app_memory_energy_units_total", cause) or 0.0
    ends = [[space.ended() for _ in range(3)] for space in [Space(app=app) for app in apps]]

    def last(events: list[Any]) -> dict[str, AppMemoriesChanged]:
        return {event.app_id: event for event in events if isinstance(event, AppMemoriesChanged)}

    events = await settled(
        settings, ends, MEMORIES, lambda told: [each.waiting for each in last(told).values()] == [0, 0]
    )
    spent = (metrics.registry.get_sample_value("turntide_app_memory_energy_units_total", cause) or 0.0) - before

    for app in apps:
        assert (last(events)[app].created, last(events)[app].compactions, last(events)[app].memories) == (3, 1, 2)
        assert {event.slot for event in events if isinstance(event, AppMemoryChanged) and event.app_id == app} == {0, 1}
    assert spent >= 2 * 20


@pytest.mark.behaviour("app-29")
async def test_a_memory_expires_by_itself(settings: Settings) -> None:
    """A second after its conversation, though nothing else is said; by an event that has its text no longer."""
    policy = structs.replace(POLICY, apps=AppPolicy(expire_after=timedelta(seconds=1)))
    space = Space(app="shop")
    space.now = datetime.now(UTC)
    told = await settled(settings, [[space.ended()]], MEMORIES, lambda told: len(told) > 2, policy)
    changes = [(each.cause, each.active, bool(each.content)) for each in told if isinstance(each, AppMemoryChanged)]

    assert [("created", True, True), ("expired", False, False)] == changes


@pytest.mark.behaviour("project-18")
async def test_a_project_is_consolidated(settings: Settings) -> None:
    """A second after its turns became memories."""
    project = Project()
    events = await settled(
        settings,
        [[project.turn(text) for text in SAID]],
        PROJECTS,
        lambda told: any(isinstance(each, ProjectChanged) and each.consolidated_at for each in told),
    )
    stats = [event for event in events if isinstance(event, ProjectChanged)][-1]
    kinds = {event.kind for event in events if isinstance(event, ProjectItemChanged) and event.active}

    assert (3, 1, 1) == (stats.turn_count, stats.memories, stats.episodes)
    assert {"conversation", "memory", "episode"} == kinds
