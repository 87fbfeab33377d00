"""What a folding role does by itself, it does for its own partitions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from models.policy import Policy
from models.risk.scorer import RuleScorer
from streams.embed.wordllama import WordLlamaEmbedder
from streams.roles.sessions import SessionsRole
from streams.settings import load_settings


class Due:
    """A fold on which something is due since long."""

    watermark = datetime(2026, 1, 1, tzinfo=UTC)

    def next_deadline(self) -> datetime:
        """When."""
        return self.watermark


class Log:
    """Doubles the producer."""

    def __init__(self) -> None:
        self.partitions: list[int] = []

    async def write(self, _topic: str, partition: int, _records: Any) -> list[Any]:
        """Remember where."""
        self.partitions.append(partition)
        return []


@pytest.mark.parametrize(("owned", "ticked"), [([1], [1]), ([], []), ([0, 1], [0, 1])])
async def test_the_clock_moves_only_in_partitions_that_are_owned(owned: list[int], ticked: list[int]) -> None:
    """A worker that lost one would go on writing into it beside its new owner."""
    role, log = SessionsRole(load_settings(), Policy(), WordLlamaEmbedder(), RuleScorer()), Log()
    role.folds, role.producer = {0: Due(), 1: Due()}, log  # type: ignore[assignment, dict-item]
    role._last_record_s = {0: 0.0, 1: 0.0}
    role.shown.keep(owned)

    await role.on_idle()

    assert log.partitions == ticked
