"""Role memory: what changes users in; facts, episodes and requests to slower stages out (seed 002).

Start reading at `models/user.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.structs import ConsumerRecord

from models.arrival import Command
from models.events import EpisodeCompressed, FactChanged, Position
from models.memory_partition import MemoryPartitionFold, commands_offset
from models.partition import PartitionFolded, Parts
from models.policy import Policy
from models.topics import COMMANDS, MEMORY_STATE
from streams.intake import Decoded, decode_commands
from streams.kafka.state_loss import LossRule
from streams.roles.folding_role import FoldingRole
from streams.settings import Settings
from streams.telemetry import metrics


class MemoryRole(FoldingRole[Command, MemoryPartitionFold]):
    """Folds every user of the partitions that this worker owns."""

    name = "memory"
    sources = (COMMANDS,)
    changelog = MEMORY_STATE

    def __init__(self, settings: Settings, policy: Policy) -> None:
        super().__init__(settings, policy, http_port=settings.http.memory_port)

    def decode(self, batches: Mapping[int, list[ConsumerRecord]]) -> dict[int, Decoded[Command]]:
        """Decoded and checked."""
        rules = self.policy.intake
        return {n: decode_commands(records, rules, above=self.folds[n].offset) for n, records in batches.items()}

    def new_fold(self, entities: Mapping[str, Parts]) -> MemoryPartitionFold:
        """Users of one partition."""
        return MemoryPartitionFold(entities, self.policy)

    def loss_rule(self) -> LossRule:
        """Commands that were folded are in the state, or were dead letters."""
        return LossRule(self.name, COMMANDS, self.changelog, commands_offset, self._usable)

    def _usable(self, records: list[ConsumerRecord]) -> list[Position]:
        return [command.position for command in decode_commands(records, self.policy.intake).arrivals]

    def count(self, number: int, folded: PartitionFolded) -> None:  # noqa: ARG002 - what others count by partition
        """Facts and episodes."""
        for event in folded.outputs:
            if isinstance(event, FactChanged):
                metrics.counter("fact_changes_total", cause=event.cause).inc()
            elif isinstance(event, EpisodeCompressed):
                metrics.counter("episodes_total").inc()
                metrics.counter("episode_tokens_total").inc(event.tokens_after)
                metrics.counter("episode_turn_tokens_total").inc(event.tokens_before)
