"""`turntide bench topics`: figures of topic memory, measured on real conversations, each beside its limit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from statistics import median

import numpy as np
from msgspec import Struct

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, Say
from jobs.lab.bench.topics_ratio import (
    Ratio,
    conversations_of,
    fold_ratio,
    packing_rows,
    role_ratio,
    traffic_turns,
    unpack_ms,
)
from jobs.lab.bench.topics_work import TWENTY, TopicWork, long_sessions, match_ms, probe_packed, walk
from jobs.lab.eval.topics_dialogues import TopicDialogue
from models.policy import Policy
from streams.ports import Embedder

FOLD_RUNS = 3
_KB = 1_000


class TopicSize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        sessions: Long sessions at the most.
        searched: Packed messages looked for in the vector memory.
        runs: Rounds of the sessions role.
        fold_turns: Turns of each round of the fold.
        role_turns: Turns of each round of the sessions role.
    """

    sessions: int
    searched: int
    runs: int
    fold_turns: int
    role_turns: int


FULL = TopicSize(sessions=16, searched=500, runs=3, fold_turns=10_000, role_turns=20_000)
QUICK = TopicSize(sessions=3, searched=60, runs=1, fold_turns=2_000, role_turns=3_000)


class CpuTimes(Struct, frozen=True):
    """Milliseconds of CPU time; None where nothing of the kind happened."""

    median: float
    p99: float
    count: int


class Kilobytes(Struct, frozen=True):
    """Sizes in the state, in 1,000 bytes."""

    median: float
    largest: float


async def measure(
    dialogues: Sequence[TopicDialogue],
    embedder: Embedder,
    policy: Policy,
    size: TopicSize,
    *,
    environment: AbstractContextManager[BenchEnvironment] | None,
    say: Say,
) -> Figures:
    """Measure everything.

    Raises:
        BenchFailed: The conversations are too short, or the role failed.
    """
    sessions = long_sessions(dialogues, embedder, size.sessions)
    turns = sum(len(session.turns) for session in sessions)
    say(f"{len(sessions)} long sessions of {turns:,} turns, message by message")
    walked = walk(sessions, policy)
    if not walked.topic_bytes:
        raise BenchFailed(f"{turns} turns are too few to measure: give more files, or none for the demo's")
    say("packing and matching")
    packing = packing_rows(sessions)
    say("searching for packed messages")
    probes = await probe_packed(sessions, walked, embedder, policy, most=size.searched)
    conversations = conversations_of(dialogues)
    given, usual = traffic_turns(conversations, size.fold_turns), traffic_turns(None, size.fold_turns)
    role = None
    if environment is not None:
        say("the sessions role with topics and without")
        with environment as place:
            role = await role_ratio(place, conversations, policy, runs=size.runs, turns=size.role_turns, say=say)
    return {
        "embedder": embedder.name,
        "similarity_threshold": policy.topics.threshold,
        "dialogues": len(dialogues),
        "sessions": len(sessions),
        "turns": turns,
        "add_ms": times(walked.plain_ms),
        "match_ms": times(match_ms(sessions, policy)),
        "unpack_ms": times(unpack_ms(sessions, "gzip")),
        "unpack_deflate_ms": times(unpack_ms(sessions, "deflate")),
        "add_with_compaction_ms": times(walked.compacting_ms) if walked.compacting_ms else None,
        "add_with_unpacking_ms": times(walked.unpacking_ms) if walked.unpacking_ms else None,
        "packing": packing,
        "kb_per_topic": _kilobytes(walked.topic_bytes),
        "kb_for_20_topics": _kilobytes(walked.twenty_topics_bytes) if walked.twenty_topics_bytes else None,
        "most_topics": walked.most_topics,
        "ratio_throughput": role,
        "ratio_fold": fold_ratio(given, policy, embedder, runs=FOLD_RUNS),
        "ratio_fold_traffic": fold_ratio(usual, policy, embedder, runs=FOLD_RUNS),
        "probes": probes,
        "notes": _notes(walked, packing, role),
        "runs": size.runs,
    }


def times(values_ms: Sequence[float]) -> CpuTimes:
    """Median and the slowest of a hundred (`numpy.percentile`, linear).

    >>> times([1.0, 2.0, 3.0]).median
    2.0
    """
    return CpuTimes(median(values_ms), float(np.percentile(values_ms, 99)), len(values_ms))


def _kilobytes(sizes_bytes: Sequence[int]) -> Kilobytes:
    return Kilobytes(median(sizes_bytes) / _KB, max(sizes_bytes) / _KB)


def _notes(walked: TopicWork, packing: Sequence[Figures], role: Ratio | None) -> list[str]:
    """What was not measured, and what base64 costs."""
    notes = []
    if packing:
        costs = median(row["base64_costs_percent"] for row in packing)
        notes.append(f"base64 costs {costs:.0f} % of what gzip leaves: four characters for three bytes")
    if any(row["zstd_saves_percent"] is None for row in packing):
        notes.append("zstd is left out where there are few strings or the package zstandard is not installed")
    if not walked.twenty_topics_bytes:
        notes.append(f"no session had {TWENTY} topics at once, the most were {walked.most_topics}")
    if role is None:
        notes.append("the sessions role was not run: ratio_fold is the fold alone, where topics weigh most")
    return notes
