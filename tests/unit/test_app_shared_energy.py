"""One budget of all spaces of a partition beside that of each: what it refuses waits, and is counted."""

from datetime import datetime, timedelta

import pytest
from msgspec import convert

from models.events import AppMemoryChanged, ConversationEnded, Position, WorkDue
from models.partition.commands import MemoryPartitionFold
from models.policy import Policy
from models.policy.app import AppPolicy
from models.wire.arrival import Command
from streams.observe.telemetry import metrics
from streams.roles.memory import MemoryRole
from streams.settings import load_settings
from tests.support.app_driver import ended
from tests.support.entity_driver import NOON, Entities
from tests.support.user_partition import keep_result


class Partition:
    """The spaces of one partition; each command is stored and read anew, as after a crash."""

    def __init__(self, **energy: float) -> None:
        self.policy = Policy(apps=convert({"energy": energy}, AppPolicy))
        self.entities: Entities = {}
        self.offset = -1

    def put(self, event: ConversationEnded | WorkDue, at: datetime) -> list[str]:
        """Fold a command; gives whose memories were made."""
        self.fold = MemoryPartitionFold(self.entities, self.policy)
        self.offset += 1
        made: list[str] = []
        for folded in self.fold.fold([Command(event, Position("commands", 0, self.offset), at)]):
            keep_result(self.entities, folded)
            self.folded = folded
            made += [each.app_id for each in folded.outputs if isinstance(each, AppMemoryChanged)]
        return made

    def end(self, app: str, at: datetime) -> list[str]:
        """A conversation of an app ends, as the first of its space or a further one."""
        place = Position("turns", 0, self.offset + 1)
        return self.put(
            ended("I decided to buy a red bicycle.", f"s{self.offset}", place, at, app_id=app, space="app"), at
        )


@pytest.mark.behaviour("app-12")
def test_a_busy_app_takes_the_budget_of_all_and_the_others_wait() -> None:
    """Even a space that never did any work: it is reminded, and goes on once there is energy for all again."""
    partition = Partition(shared_capacity_units=25.0, shared_refill_units_per_hour=60.0)
    assert [["busy"], ["busy"], []] == [partition.end("busy", NOON) for _ in range(3)]
    assert [] == partition.end("quiet", NOON)
    assert {"all": 1} == partition.fold.shared.held

    later = NOON + timedelta(hours=1)
    (first, second) = sorted(due.app_id for due in partition.fold.progress["app"].due(later))
    assert ("busy", "quiet") == (first, second)
    assert [] == partition.put(WorkDue(app_id="quiet", timestamp=NOON), NOON)
    assert ["quiet"] == partition.put(WorkDue(app_id="quiet", timestamp=later), later)
    assert ["busy"] == partition.put(WorkDue(app_id="busy", timestamp=later), later)
    assert [] == partition.fold.progress["app"].due(later)


def test_without_one_no_app_takes_anothers_energy() -> None:
    """The default: each space has its own budget, and the partition keeps none."""
    partition = Partition(capacity_units=12.0, refill_units_per_hour=60.0)

    assert [["busy"], [], ["quiet"]] == [partition.end(app, NOON) for app in ("busy", "busy", "quiet")]
    assert "energy" not in partition.entities[""]


def test_a_space_beyond_its_bound_goes_on_without_energy() -> None:
    """Bounded state comes before any budget: what waits too long in one space is done."""
    partition = Partition(shared_capacity_units=12.0, shared_refill_units_per_hour=0.0)
    most = partition.policy.apps.waiting
    ends = [partition.end("busy", NOON) for _ in range(most + 3)]

    assert [0, most + 1, most + 2] == [place for place, made in enumerate(ends) if made]


async def test_what_waited_is_counted_by_whose_budget() -> None:
    """Once each, beside the units that were spent."""
    role, partition = MemoryRole(load_settings(), Policy()), Partition(shared_capacity_units=12.0)
    before = {each: _held(each) for each in ("space", "all")}
    for _ in range(2):
        partition.end("busy", NOON)
        role.folds = {0: partition.fold}
        role.count(0, partition.folded)

    assert {"space": 0.0, "all": 1.0} == {each: _held(each) - before[each] for each in before}


def _held(cause: str) -> float:
    return metrics.registry.get_sample_value("turntide_app_memory_held_total", {"cause": cause}) or 0.0
