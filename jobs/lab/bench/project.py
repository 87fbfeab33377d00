"""`turntide bench project`: figures of project memory, each beside its limit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import mean

from msgspec import Struct
from msgspec.structs import replace

from jobs.lab.bench.measuring import Figure, Say, Times, at_most, held_row, rounded, spread_ms, times
from jobs.lab.bench.project_work import (
    FILLED,
    Consolidated,
    Log,
    Talk,
    consolidated,
    filled,
    read,
    retrieved,
    spoken,
    told,
)
from jobs.shared.output import Output
from models.events import ProjectChanged, ProjectOutput
from models.policy import Policy

RETRIEVAL_MS = 5.0
"""Of the slowest of a hundred questions."""
CONSOLIDATION_MS = 100.0
"""For a hundred memories."""
FLAT_RATIO = 1.5
"""A turn at the end of a conversation, or into a full project, to one at the beginning, or into an empty one."""
_TENTH = 10
_WARM_UP_LOT = 1_000_000


class Size(Struct, frozen=True):
    """How much is measured.

    Attributes:
        memories: Of the filled project.
        asked: Questions of each kind.
        talks: Lengths of conversations and how many of each, in projects of their own; the shortest first.
    """

    memories: int = 10_000
    asked: int = 2_000
    talks: tuple[tuple[int, int], ...] = ((250, 10), (2_500, 2))


QUICK = Size(memories=1_000, asked=200, talks=((250, 2),))


class Report(Struct, frozen=True):
    """Everything about projects' memory.

    Attributes:
        held: What has a limit, in one list.
        reading: Retrieval and context of the filled project, time that passes.
        talks: Conversations turn by turn, CPU time of the fold that reads and writes its state.
        ratio_full_project: A turn into the filled project divided by one into an empty one, means.
        fill_ms: CPU time for each memory that was added by hand.
    """

    held: list[Figure]
    memories: int
    reading: list[Times]
    consolidation: Consolidated
    talks: list[Talk]
    ratio_full_project: float
    fill_ms: float
    load_average_at_start: float
    cpus: int


def measure(policy: Policy, size: Size, *, say: Say) -> Report:
    """Measure everything, in this process.

    Raises:
        BenchFailed: The project does not hold what was put into it.
    """
    load_average = os.getloadavg()[0]
    talks, means = list[Talk](), list[float]()
    spoken(Log(policy), "warm-up", size.talks[0][0], lot=_WARM_UP_LOT)
    for turns, count in size.talks:
        say(f"{count} conversations of {turns:,} turns")
        runs = [spoken(Log(policy), "empty", turns, lot=turns * n) for n in range(count)]
        talks.append(talk_of(f"{turns:,} turns", runs))
        means.append(mean(ms for taken, _ in runs for ms in taken))
    say(f"a project of {size.memories:,} memories")
    log, view, fill_ms = filled(policy, size.memories)
    turns, _ = size.talks[0]
    run = spoken(log, FILLED, turns, lot=_WARM_UP_LOT + 1)
    read(view, run[1])
    talks.append(talk_of(f"{turns:,} turns into {size.memories:,} memories", [run]))
    say(f"asking {size.asked:,} times each")
    retrieved(view, size.asked // 10, fresh=True)
    reading = [
        times("retrieval", retrieved(view, size.asked, fresh=False)),
        times("retrieval after a change", retrieved(view, size.asked, fresh=True)),
        times("context", told(view, policy, size.asked)),
    ]
    say("consolidating")
    report = Report(
        held=[],
        memories=size.memories,
        reading=reading,
        consolidation=consolidated(log),
        talks=talks,
        ratio_full_project=mean(run[0]) / means[0],
        fill_ms=fill_ms,
        load_average_at_start=load_average,
        cpus=os.cpu_count() or 1,
    )
    return replace(report, held=held_figures(report))


def talk_of(what: str, runs: Sequence[tuple[Sequence[float], Sequence[ProjectOutput]]]) -> Talk:
    """Figures of conversations of one length.

    Args:
        what: Their name.
        runs: Milliseconds of each turn, and what came of them.
    """
    turns = len(runs[0][0])
    tenth = turns // _TENTH
    first = mean(ms for taken, _ in runs for ms in taken[:tenth])
    last = mean(ms for taken, _ in runs for ms in taken[turns - tenth :])
    standing = next(output for output in reversed(runs[-1][1]) if isinstance(output, ProjectChanged))
    all_ms = spread_ms([ms for taken, _ in runs for ms in taken])
    return Talk(what, turns, all_ms.p50_ms, all_ms.p99_ms, last / first, standing.chunks, standing.memories)


def held_figures(report: Report) -> list[Figure]:
    """Every figure with a limit, the slowest of a hundred where it is a time that passes."""
    return [
        *(at_most(f"{each.what}, p99", each.p99_ms, RETRIEVAL_MS, "ms") for each in report.reading[:2]),
        at_most("consolidation of 100 memories", report.consolidation.ms_per_100, CONSOLIDATION_MS, "ms"),
        *(at_most(f"{each.what}, last tenth to first", each.ratio_last_tenth, FLAT_RATIO, "") for each in report.talks),
        at_most("a turn into a full project to one into an empty one", report.ratio_full_project, FLAT_RATIO, ""),
    ]


def show(printed: Output, report: Report) -> None:
    """Print the tables."""
    printed.rows("What is held to", [held_row(figure) for figure in report.held])
    printed.rows(f"Reading a project of {report.memories:,} memories, ms", map(rounded, report.reading))
    printed.rows("Conversations, CPU ms of a turn", map(rounded, report.talks))
    printed.rows("Consolidation, CPU ms", [rounded(report.consolidation)])
    printed.message(
        f"A turn into the full project takes {report.ratio_full_project:.2f} times one into an empty one; adding a "
        f"memory by hand {report.fill_ms:.2f} ms. Load average before: {report.load_average_at_start:.1f}, "
        f"{report.cpus} CPUs"
    )
