"""The energy budget of a space of memories, and of all together (app memory, Energy Consumption).

A level between nothing and the capacity. It refills with time, work takes from it, and work begins only above the
floor; what may not begin waits. What cannot wait takes what is there.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from models.policy.app import EnergyPolicy

Work = Literal["creation", "compaction"]
_HOUR = timedelta(hours=1)
_A_MOMENT = timedelta(milliseconds=1)
"""Beyond the time at which the level is the floor: work begins above it."""
_LONGEST_HOURS = 10 * 365 * 24.0
_TOKENS = 1_000


class Energy(Struct, frozen=True, array_like=True, gc=False):
    """Level at the last charge."""

    level_units: float
    at: datetime


def level_units(energy: Energy | None, now: datetime, policy: EnergyPolicy) -> float:
    """Level at this time; None was never charged. Time that goes back refills nothing."""
    if energy is None:
        return policy.capacity_units
    refilled = max(now - energy.at, timedelta()) / _HOUR * policy.refill_units_per_hour
    return min(policy.capacity_units, energy.level_units + refilled)


def floor_units(policy: EnergyPolicy) -> float:
    """Work begins only above it (app memory, energy > 20 %)."""
    return policy.floor_ratio * policy.capacity_units


def may_begin(energy: Energy | None, now: datetime, policy: EnergyPolicy) -> bool:
    """True if there is enough for work to begin."""
    return level_units(energy, now, policy) > floor_units(policy)


def cost_units(work: Work, tokens: int, elapsed: timedelta, policy: EnergyPolicy) -> float:
    """Cost of a piece of work: its least, beyond it what it took, up to its most.

    Args:
        work: Of which kind.
        tokens: Read and written.
        elapsed: How long it took; nothing for what a fold does itself, which has no clock.
        policy: Prices.
    """
    if work == "creation":
        least, most = policy.creation_least_units, policy.creation_most_units
    else:
        least, most = policy.compaction_least_units, policy.compaction_most_units
    taken = tokens / _TOKENS * policy.units_per_1000_tokens + elapsed.total_seconds() * policy.units_per_second
    return min(most, least + taken)


def charge(energy: Energy | None, units: float, now: datetime, policy: EnergyPolicy) -> Energy:
    """Pay for work. The level never falls below nothing: what could not wait leaves no debt."""
    left = max(0.0, level_units(energy, now, policy) - units)
    return Energy(left, now if energy is None else max(energy.at, now))


def begins_at(energy: Energy | None, policy: EnergyPolicy) -> datetime | None:
    """Time at which work may begin again, past if it may already; None if it never will, or never had to wait."""
    if energy is None:
        return None
    missing = floor_units(policy) - energy.level_units
    if missing < 0:
        return energy.at
    if not policy.refill_units_per_hour:
        return None
    hours = missing / policy.refill_units_per_hour
    return energy.at + timedelta(hours=hours) + _A_MOMENT if hours < _LONGEST_HOURS else None


class SharedEnergy:
    """The budget of all spaces of a partition together; there is no bound where the policy has none.

    Attributes:
        energy: Level at the last charge; None was never charged.
        held: Pieces of work that had to wait since this was last emptied, by whose budget: `space` or `all`.
    """

    def __init__(self, policy: EnergyPolicy, energy: Energy | None = None) -> None:
        capacity, refill = policy.shared_capacity_units, policy.shared_refill_units_per_hour
        self._policy: EnergyPolicy | None = None
        if capacity is not None:
            self._policy = replace(policy, capacity_units=capacity, refill_units_per_hour=refill)
        self.energy = energy
        self.held = Counter[str]()

    def may_begin(self, now: datetime) -> bool:
        """True if there is enough for work of any space to begin."""
        return self._policy is None or may_begin(self.energy, now, self._policy)

    def charge(self, units: float, now: datetime) -> None:
        """Pay for work of a space."""
        if self._policy is not None:
            self.energy = charge(self.energy, units, now, self._policy)
