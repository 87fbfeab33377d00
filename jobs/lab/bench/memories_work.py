"""Cost of making app memories: in the folds, in this process, without a broker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from statistics import median
from time import process_time

from aiokafka.structs import ConsumerRecord
from msgspec import Struct
from msgspec.structs import replace

from jobs.demo.conversations import load_conversations
from jobs.lab.bench.folds import BATCH_RECORDS, BEGINS, InMemory, records_of, time_fold
from jobs.lab.bench.measuring import BenchFailed
from jobs.lab.bench.traffic import TurnTraffic
from models.events import (
    AppMemoriesCompacted,
    AppMemoryChanged,
    ConversationEnded,
    OutputEvent,
    Position,
    SessionEnded,
    Turn,
    UserTurnAdded,
)
from models.events.topics import COMMANDS, TURNS
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.arrival import Command
from streams.inference.intake import Intake
from streams.ports import Embedder

ENDS = 100
"""Conversations that end on each app (app memory: remains stable with 100 and more)."""
_WARM_UP_RECORDS = 1_000
_END = re.compile(r"(?<=\w)([.!?])(?=\s|$)")
"""Of a sentence."""


class AppMemoryWork(Struct, frozen=True):
    """Conversations that ended on apps, one after the other.

    Attributes:
        created_ms: Milliseconds of CPU time for each that became a memory …
        compacted_ms: … and for each that also made one of eleven go, state read and written.
        most: Most memories that a reader saw of an app at any time.
        left: Memories of an app in the end, at the least and at the most.
        made: Of one app's conversations so many became memories of their own …
        merged: … so often two were merged …
        deleted: … and so often one went.
        memories: Everything told of memories, in order.
    """

    created_ms: list[float]
    compacted_ms: list[float]
    most: int
    left: tuple[int, int]
    made: int
    merged: int
    deleted: int
    memories: list[AppMemoryChanged]


class AppMemoryShare(Struct, frozen=True):
    """What memories of apps take of the folds over the same conversations; CPU time, medians over rounds.

    Attributes:
        turns: Of the conversations …
        ended: … of which so many ended.
        spaces_percent: Spaces' part of both folds …
        whole_percent: … and of these with what comes before them: decoding, scoring and embedding turns.
        ratio_sessions_fold: The sessions' fold with memories of apps divided by that without, in time.
        intake_s: What comes before the sessions' fold …
        sessions_s: … and that fold.
        memory_s: The fold of users and spaces …
        spaces_s: … of it for spaces.
        rounds_percent: `spaces_percent` of each round.
    """

    turns: int
    ended: int
    spaces_percent: float
    whole_percent: float
    ratio_sessions_fold: float
    intake_s: float
    sessions_s: float
    memory_s: float
    spaces_s: float
    rounds_percent: list[float]


def log_of(turns: int) -> list[ConsumerRecord]:
    """The demo's conversations over and over, interleaved, each ended behind its last turn."""
    conversations = load_conversations()
    lengths = {f"bench-{n}": len(conversations[n % len(conversations)].turns) for n in range(turns)}
    events: list[Turn | SessionEnded] = []
    for turn in TurnTraffic(0, conversations).backlog(turns, ends_at=BEGINS):
        events.append(turn)
        if turn.turn == lengths[turn.session_id] - 1:
            events.append(SessionEnded(session_id=turn.session_id, timestamp=turn.timestamp))
    return records_of(events)


def taken_in(log: Sequence[ConsumerRecord], policy: Policy, embedder: Embedder) -> tuple[float, list[DecodedArrival]]:
    """Seconds of CPU time of decoding, scoring and embedding, and what came of it."""
    intake, arrivals = Intake(policy, embedder, RuleScorer()), list[DecodedArrival]()
    began_s = process_time()
    for first in range(0, len(log), BATCH_RECORDS):
        arrivals += intake.take(log[first : first + BATCH_RECORDS]).arrivals
    return process_time() - began_s, arrivals


def sessions_folded(arrivals: Sequence[DecodedArrival], policy: Policy) -> tuple[float, list[OutputEvent]]:
    """Seconds of CPU time of the sessions' fold, and what came out."""
    return time_fold(InMemory(policy), arrivals)


def ended_in(outputs: Sequence[OutputEvent]) -> list[ConversationEnded]:
    """Conversations that ended.

    Raises:
        BenchFailed: None did.
    """
    ended = [event for event in outputs if isinstance(event, ConversationEnded)]
    if not ended:
        raise BenchFailed("no conversation ended: the policy has `apps.enabled` off, or there are too few turns")
    return ended


def share_of_work(log: Sequence[ConsumerRecord], policy: Policy, embedder: Embedder, *, rounds: int) -> AppMemoryShare:
    """The sessions' fold, then the fold of what it forwards; the former also without memories of apps."""
    intake_s, arrivals = taken_in(log, policy, embedder)
    without = replace(policy, apps=replace(policy.apps, enabled=False))
    _commands_folded(sessions_folded(arrivals[:_WARM_UP_RECORDS], policy)[1], policy)
    measured = []
    for number in range(rounds):
        order = (without, policy) if number % 2 else (policy, without)
        taken = {each is policy: sessions_folded(arrivals, each) for each in order}
        measured.append((taken[True][0], taken[False][0], *_commands_folded(taken[True][1], policy)))
    percents = [100 * spaces / (sessions + memory) for sessions, _, memory, spaces in measured]
    return AppMemoryShare(
        turns=sum(isinstance(arrival.event, Turn) for arrival in arrivals),
        ended=sum(isinstance(arrival.event, SessionEnded) for arrival in arrivals),
        spaces_percent=median(percents),
        whole_percent=median(100 * spaces / (intake_s + sessions + memory) for sessions, _, memory, spaces in measured),
        ratio_sessions_fold=median(sessions / without_s for sessions, without_s, _, _ in measured),
        intake_s=intake_s,
        sessions_s=median(sessions for sessions, _, _, _ in measured),
        memory_s=median(memory for _, _, memory, _ in measured),
        spaces_s=median(spaces for _, _, _, spaces in measured),
        rounds_percent=percents,
    )


def _commands_folded(outputs: Sequence[OutputEvent], policy: Policy) -> tuple[float, float]:
    """Seconds of the memory role's fold over what the sessions forwarded, and those for spaces among them."""
    events = [event for event in outputs if isinstance(event, UserTurnAdded | ConversationEnded)]
    log = [Command(event, Position(COMMANDS.name, 0, n), event.timestamp) for n, event in enumerate(events)]
    partition = InMemory(policy, kind=partial(MemoryPartitionFold, seconds=process_time))
    seconds, _ = time_fold(partition, log)
    return seconds, partition.fold.take_spent()[0]


def walk(ended: Sequence[ConversationEnded], policy: Policy, *, apps: int) -> AppMemoryWork:
    """Let a hundred of these conversations end on each app, one command at a time as when little is to do.

    Apps take turns, and every conversation has words of its own: what the rules know of a sentence by heart is of
    little use, as with many apps.
    """
    partition = InMemory(policy, kind=MemoryPartitionFold)
    created_ms, compacted_ms, emitted = list[float](), list[float](), list[AppMemoryChanged]()
    held: dict[str, set[int]] = {}
    merged = deleted = most = 0
    for n in range(apps * ENDS):
        app_id = f"bench-app-{n % apps}"
        event = _as(ended[n // apps % len(ended)], app_id, n)
        taken_ms = partition.take([Command(event, Position(COMMANDS.name, 0, n), event.timestamp)]) * 1000
        outputs = partition.outputs
        slots = held.setdefault(app_id, set())
        for change in (output for output in outputs if isinstance(output, AppMemoryChanged)):
            emitted.append(change)
            (slots.add if change.active else slots.discard)(change.slot)
            most = max(most, len(slots))
        compactions = [output for output in outputs if isinstance(output, AppMemoriesCompacted)]
        (compacted_ms if compactions else created_ms).append(taken_ms)
        merged += sum(compaction.action == "edit" for compaction in compactions)
        deleted += sum(compaction.action == "delete" for compaction in compactions)
    left = [len(slots) for slots in held.values()]
    if not compacted_ms:
        raise BenchFailed(f"nothing was compacted: {most} memories at the most of {ENDS} conversations")
    made = sum(change.cause == "created" for change in emitted)
    return AppMemoryWork(
        created_ms, compacted_ms, most, (min(left), max(left)), made // apps, merged // apps, deleted // apps, emitted
    )


def _as(ended: ConversationEnded, app_id: str, n: int) -> ConversationEnded:
    """The conversation as another one, of another app and about something else."""
    notables = [replace(notable, text=_END.sub(f" in case {n}\\1", notable.text)) for notable in ended.notables]
    return replace(
        ended,
        id=f"{app_id}/{n}",
        session_id=f"{app_id}-{n}",
        app_id=app_id,
        source=Position(TURNS.name, 0, n),
        notables=notables,
        summary=_END.sub(f" in case {n}\\1", ended.summary),
    )
