"""`turntide bench topics`: figures of topic memory, measured on real conversations, each beside its limit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from jobs.lab.bench.machine import Ground
from jobs.lab.bench.measuring import BenchFailed, Figure, Say, at_least, at_most, held_row
from jobs.lab.bench.topics_ratio import (
    PackingRow,
    Ratio,
    conversations_of,
    fold_ratio,
    packing_rows,
    role_ratio,
    traffic_turns,
    unpack_ms,
)
from jobs.lab.bench.topics_work import TWENTY, Probes, Walked, long_sessions, match_ms, probe_packed, walk
from jobs.lab.eval.topics_dialogues import Dialogue
from jobs.shared.output import Output
from models.policy import Policy
from streams.ports import Embedder

ADD_MS = 1.0
MATCH_MS = 1.0
UNPACK_MS = 5.0
SAVES_PERCENT = 70.0
KB_PER_TOPIC = 20.0
KB_FOR_20_TOPICS = 400.0
THROUGHPUT_RATIO = 0.6
FOLD_RUNS = 3
_KB = 1_000
_TIMED = (
    "add_ms", "match_ms", "unpack_ms", "unpack_deflate_ms", "add_with_compaction_ms", "add_with_unpacking_ms",
)  # fmt: skip
_RATIOS = ("ratio_throughput", "ratio_fold", "ratio_fold_traffic")
_SIZES = ("kb_per_topic", "kb_for_20_topics")


class Size(Struct, frozen=True):
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


FULL = Size(sessions=16, searched=500, runs=3, fold_turns=10_000, role_turns=20_000)
QUICK = Size(sessions=3, searched=60, runs=1, fold_turns=2_000, role_turns=3_000)


class Times(Struct, frozen=True):
    """Milliseconds of CPU time; None where nothing of the kind happened."""

    median: float
    p99: float
    count: int


class Kilobytes(Struct, frozen=True):
    """Sizes in the state, in 1,000 bytes."""

    median: float
    largest: float


class Report(Struct, frozen=True):
    """Everything about topic memory on these conversations.

    Attributes:
        held: What has a limit, in one list.
        add_ms: Adding a message that neither packs nor unpacks anything, from stored parts to changed ones.
        match_ms: Comparing a message with twenty topics.
        unpack_ms: Unpacking fifty messages, as the source packs them.
        unpack_deflate_ms: The same with the second codec.
        add_with_compaction_ms: The source allows an LLM 500-2,000 ms; the summary here is extractive.
        add_with_unpacking_ms: Adding a message that brings packed ones back.
        packing: By number of messages.
        kb_per_topic: Of all parts of a topic.
        kb_for_20_topics: The twenty largest topics of a session that has as many.
        most_topics: Of a session at once.
        ratio_throughput: The sessions role with topic memory divided by that without; None where it was not run.
        ratio_fold: The fold alone over the given conversations …
        ratio_fold_traffic: … and over the traffic of `turntide bench stream`.
        probes: What a search finds of packed messages.
    """

    held: list[Figure]
    embedder: str
    similarity_threshold: float
    dialogues: int
    sessions: int
    turns: int
    add_ms: Times
    match_ms: Times
    unpack_ms: Times
    unpack_deflate_ms: Times
    add_with_compaction_ms: Times | None
    add_with_unpacking_ms: Times | None
    packing: list[PackingRow]
    kb_per_topic: Kilobytes
    kb_for_20_topics: Kilobytes | None
    most_topics: int
    ratio_throughput: Ratio | None
    ratio_fold: Ratio
    ratio_fold_traffic: Ratio
    probes: Probes
    notes: list[str]
    runs: int
    load_average_at_start: float
    cpus: int


async def measure(
    dialogues: Sequence[Dialogue],
    embedder: Embedder,
    policy: Policy,
    size: Size,
    *,
    ground: AbstractContextManager[Ground] | None,
    say: Say,
) -> Report:
    """Measure everything.

    Raises:
        BenchFailed: The conversations are too short, or the role failed.
    """
    load_average = os.getloadavg()[0]
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
    if ground is not None:
        say("the sessions role with topics and without")
        with ground as place:
            role = await role_ratio(place, conversations, policy, runs=size.runs, turns=size.role_turns, say=say)
    report = Report(
        held=[],
        embedder=embedder.name,
        similarity_threshold=policy.topics.threshold,
        dialogues=len(dialogues),
        sessions=len(sessions),
        turns=turns,
        add_ms=times(walked.plain_ms),
        match_ms=times(match_ms(sessions, policy)),
        unpack_ms=times(unpack_ms(sessions, "gzip")),
        unpack_deflate_ms=times(unpack_ms(sessions, "deflate")),
        add_with_compaction_ms=times(walked.compacting_ms) if walked.compacting_ms else None,
        add_with_unpacking_ms=times(walked.unpacking_ms) if walked.unpacking_ms else None,
        packing=packing,
        kb_per_topic=_kilobytes(walked.topic_bytes),
        kb_for_20_topics=_kilobytes(walked.twenty_topics_bytes) if walked.twenty_topics_bytes else None,
        most_topics=walked.most_topics,
        ratio_throughput=role,
        ratio_fold=fold_ratio(given, policy, embedder, runs=FOLD_RUNS),
        ratio_fold_traffic=fold_ratio(usual, policy, embedder, runs=FOLD_RUNS),
        probes=probes,
        notes=_notes(walked, packing, role),
        runs=size.runs,
        load_average_at_start=load_average,
        cpus=os.cpu_count() or 1,
    )
    return replace(report, held=held_figures(report))


def held_figures(report: Report) -> list[Figure]:
    """Every figure with a limit, the slowest of a hundred where it is a time, the largest where it is a size."""
    figures = [
        at_most("add_ms, median", report.add_ms.median, ADD_MS, "ms"),
        at_most("add_ms, p99", report.add_ms.p99, ADD_MS, "ms"),
        at_most("match_ms at 20 topics, p99", report.match_ms.p99, MATCH_MS, "ms"),
        at_most("unpack_ms at 50 messages, p99", report.unpack_ms.p99, UNPACK_MS, "ms"),
    ]
    for row in report.packing:
        what = f"saved at {row.messages} messages"
        figures.append(at_least(f"{what}, gzip and base64", row.gzip_base64_saves_percent, SAVES_PERCENT, "%"))
        figures.append(at_least(f"{what}, deflate", row.deflate_saves_percent, SAVES_PERCENT, "%"))
    figures.append(at_most("kb_per_topic, largest", report.kb_per_topic.largest, KB_PER_TOPIC, "KB"))
    if report.kb_for_20_topics is not None:
        figures.append(at_most("kb_for_20_topics, largest", report.kb_for_20_topics.largest, KB_FOR_20_TOPICS, "KB"))
    if report.ratio_throughput is not None:
        figures.append(at_least("ratio_throughput", report.ratio_throughput.ratio, THROUGHPUT_RATIO, "×"))
    return figures


def times(values_ms: Sequence[float]) -> Times:
    """Median and the slowest of a hundred (`numpy.percentile`, linear).

    >>> times([1.0, 2.0, 3.0]).median
    2.0
    """
    return Times(median(values_ms), float(np.percentile(values_ms, 99)), len(values_ms))


def _kilobytes(sizes_bytes: Sequence[int]) -> Kilobytes:
    return Kilobytes(median(sizes_bytes) / _KB, max(sizes_bytes) / _KB)


def _notes(walked: Walked, packing: Sequence[PackingRow], role: Ratio | None) -> list[str]:
    """What was not measured, and what base64 costs."""
    notes = []
    if packing:
        costs = median(row.base64_costs_percent for row in packing)
        notes.append(f"base64 costs {costs:.0f} % of what gzip leaves: four characters for three bytes")
    if any(row.zstd_saves_percent is None for row in packing):
        notes.append("zstd is left out where there are few strings or the package zstandard is not installed")
    if not walked.twenty_topics_bytes:
        notes.append(f"no session had {TWENTY} topics at once, the most were {walked.most_topics}")
    if role is None:
        notes.append("the sessions role was not run: ratio_fold is the fold alone, where topics weigh most")
    return notes


def show(printed: Output, report: Report) -> None:
    """Print the tables, then what there is to say about them."""
    printed.message(
        f"{report.dialogues:,} dialogues as {report.sessions} long sessions of {report.turns:,} turns; "
        f"{report.embedder} at {report.similarity_threshold:g}; load average before: {report.load_average_at_start:.2f}"
    )
    printed.rows("What is held to", [held_row(figure) for figure in report.held])
    printed.rows("Time, CPU ms", _rows(report, _TIMED, lambda each: {
        "median": f"{each.median:.3f}", "p99": f"{each.p99:.3f}", "count": str(each.count),
    }))  # fmt: skip
    printed.rows("Packing", map(_short, report.packing))
    printed.rows("Throughput with topics to that without", _rows(report, _RATIOS, lambda each: {
        "ratio": f"{each.ratio:.2f}",
        "rounds": " ".join(f"{one:.2f}" for one in each.rounds),
        "with, turns/s": f"{each.with_topics_turns_per_s:,.0f}",
        "without, turns/s": f"{each.without_topics_turns_per_s:,.0f}",
    }))  # fmt: skip
    printed.rows("State, KB of 1,000 bytes", _rows(report, _SIZES, lambda each: {
        "median": f"{each.median:.1f}", "largest": f"{each.largest:.1f}",
    }))  # fmt: skip
    printed.rows("Packed messages, searched for", [_short(report.probes)])
    for note in report.notes:
        printed.message(note)


def _rows(report: Report, names: Sequence[str], row: Callable[[Any], dict[str, str]]) -> Iterator[dict[str, str]]:
    """A row for each of these figures that was measured."""
    for name in names:
        if (measured := getattr(report, name)) is not None:
            yield {"what": name, **row(measured)}


def _short(row: Struct) -> dict[str, str]:
    """Each value in three figures."""
    return {
        name: f"{value:.3g}" if isinstance(value, float) else "" if value is None else f"{value}"
        for name, value in msgspec.to_builtins(row).items()
    }
