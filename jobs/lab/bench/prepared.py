"""Turns ready to be folded: the demo's conversations, scored and embedded beforehand, said by any session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import process_time

import msgspec
from aiokafka.structs import ConsumerRecord

from jobs.demo.conversations import load_conversations
from jobs.lab.bench.event_fold import record_of
from models.events import Position, Turn
from models.events.topics import TURNS
from models.partition.sessions import Arrival, PartitionFold
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.inference.intake import Intake
from streams.settings import load_settings
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable
from streams.wiring import stream_embedder_of

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first turn."""


class Prepared:
    """Makes arrivals without any work that belongs to another stage than the fold.

    Attributes:
        lines: Turns of all conversations, one conversation after the other.
    """

    def __init__(self, policy: Policy) -> None:
        intake = Intake(policy, stream_embedder_of(load_settings()), RuleScorer())
        self._conversations: list[list[Arrival]] = []
        for conversation in load_conversations():
            said = []
            for number, turn in enumerate(conversation.turns):
                ((role, content),) = turn.items()
                said.append(
                    Turn(
                        session_id=conversation.session_id,
                        user_id=conversation.user_id,
                        app_id=conversation.app_id,
                        turn=number,
                        role=role,
                        content=content,
                        timestamp=BEGINS,
                    )
                )
            self._conversations.append(intake.take(map(_record, said)).arrivals)
        self.lines = [arrival for arrivals in self._conversations for arrival in arrivals]

    def line(self, number: int, session_id: str, turn: int, offset: int, after: timedelta) -> Arrival:
        """Line `number` of all conversations, counted on from the first again after the last, as a session's turn.

        Args:
            number: Which line.
            session_id: Who says it.
            turn: Its number within the session.
            offset: Its place in the log.
            after: Event time after `BEGINS`.
        """
        return _as(self.lines[number % len(self.lines)], session_id, turn, offset, after)

    def turn(self, session: int, turn: int, offset: int, after: timedelta) -> Arrival:
        """Turn `turn` of the conversation that session number `session` has; short ones begin anew."""
        said = self._conversations[session % len(self._conversations)]
        return _as(said[turn % len(said)], f"bench-{session}", turn, offset, after)


class InMemory:
    """One partition's fold and table, as the sessions role has them, without a changelog."""

    def __init__(self, policy: Policy, table: MemoryTable | None = None) -> None:
        self.table = table or MemoryTable()
        self._fold = PartitionFold(self.table.entities, policy)

    @property
    def next_offset(self) -> int:
        """Where the next arrival stands in the log."""
        return self._fold.offset + 1

    @property
    def open_sessions(self) -> int:
        """Sessions that are open."""
        return self._fold.open_sessions

    def take(self, arrivals: Sequence[Arrival]) -> float:
        """Fold a micro-batch and keep its state.

        Returns:
            Seconds of CPU time: the fold waits for nothing, and what else runs on the machine takes none of it.
        """
        began_s = process_time()
        for folded in self._fold.fold(arrivals):
            self.table.apply(keyed(folded.changed), offset=folded.offset, applied=0, tail=None, now_ms=0)
        return process_time() - began_s


def _record(turn: Turn) -> ConsumerRecord:
    return record_of(
        topic=TURNS.name,
        partition=0,
        offset=turn.turn,
        timestamp_ms=round(turn.timestamp.timestamp() * 1000),
        key=turn.session_id.encode(),
        value=encode(turn),
    )


def _as(line: Arrival, session_id: str, turn: int, offset: int, after: timedelta) -> Arrival:
    at = BEGINS + after
    event = msgspec.structs.replace(line.event, session_id=session_id, turn=turn, timestamp=at)
    return Arrival(event, Position(TURNS.name, 0, offset), at, line.risk, line.vector)
