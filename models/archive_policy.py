"""What analysts may see of the archive, how long it is kept, and what mining looks for. Part of `models.policy`.

None of it changes what the stream does: `models.policy_digest` leaves this section out.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from models.event_base import Ratio
from models.stream_policy import Section

Days = Annotated[int, Meta(ge=1, le=36_500)]
AtLeastTwo = Annotated[int, Meta(ge=2, le=1_000_000)]
AtLeastOne = Annotated[int, Meta(ge=1, le=10_000_000)]


class AnonymityPolicy(Section, frozen=True, kw_only=True):
    """How many sessions and users whatever is shown must be about (k-anonymity, Sweeney 2002)."""

    min_sessions: Annotated[int, Meta(ge=1, le=100_000)] = 5
    min_users: Annotated[int, Meta(ge=1, le=100_000)] = 5


class RetentionPolicy(Section, frozen=True, kw_only=True):
    """Age in days after which the archive lets go, by privacy class; None keeps it.

    Measured from the day on which the broker received the record. The class of a row is that of its most private
    column that is left: first the words go, then the row.
    """

    content_days: Days | None = None
    """Columns with words of people or made of them are emptied."""
    identified_days: Days | None = None
    """Rows that name a session or a user are removed."""
    operational_days: Days | None = None
    """Every row is removed."""


class EscalationMining(Section, frozen=True, kw_only=True):
    """Shapes of risk curves."""

    min_turns: AtLeastTwo = 8
    """Scored turns of a session whose curve has a shape."""


class SequenceMining(Section, frozen=True, kw_only=True):
    """Frequent sequences of modes and signals."""

    min_support: Ratio = 0.02
    """Share of sessions that a pattern must stand in."""


class TopicMining(Section, frozen=True, kw_only=True):
    """Clusters of topics, and campaigns."""

    clusters: AtLeastTwo = 20
    """At most so many clusters of topics."""


class MemoryMining(Section, frozen=True, kw_only=True):
    """Health of what is remembered."""

    stale_days: Days = 90
    """A fact not confirmed for so long is stale."""


class DriftMining(Section, frozen=True, kw_only=True):
    """Today against a baseline."""

    baseline_days: Days = 28
    """Days before the period that it is held against."""
    significance: Ratio = 0.01
    """False discovery rate over all tests of a run."""


class ArchivePolicy(Section, frozen=True, kw_only=True):
    """Rules of everything offline."""

    anonymity: AnonymityPolicy = AnonymityPolicy()
    mining_batch_rows: AtLeastOne = 4_000_000
    """Rows of as many days are mined at once: it bounds the memory, one day is the least."""
    retention: RetentionPolicy = RetentionPolicy()
    escalation: EscalationMining = EscalationMining()
    sequences: SequenceMining = SequenceMining()
    topics: TopicMining = TopicMining()
    memory: MemoryMining = MemoryMining()
    drift: DriftMining = DriftMining()
