"""`turntide bench project`: figures of project memory, each beside its limit."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from msgspec import Struct

from jobs.lab.bench.measuring import Figures, Say, spread_ms, times
from jobs.lab.bench.project_work import (
    FILLED,
    Log,
    consolidated,
    filled,
    read,
    render_times,
    retrieved,
    spoken,
)
from models.events import ProjectChanged, ProjectOutput
from models.policy import Policy

_TENTH = 10
_WARM_UP_LOT = 1_000_000


class ProjectSize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        memories: Of the filled project.
        asked: Questions of each kind.
        talks: Lengths of conversations and how many of each, in projects of their own; the shortest first.
    """

    memories: int = 10_000
    asked: int = 2_000
    talks: tuple[tuple[int, int], ...] = ((250, 10), (2_500, 2))


QUICK = ProjectSize(memories=1_000, asked=200, talks=((250, 2),))


def measure(policy: Policy, size: ProjectSize, *, say: Say) -> Figures:
    """Measure everything, in this process.

    Raises:
        BenchFailed: The project does not hold what was put into it.
    """
    talks, means = list[Figures](), list[float]()
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
        times("context", render_times(view, policy, size.asked)),
    ]
    say("consolidating")
    return {
        "memories": size.memories,
        "reading": reading,
        "consolidation": consolidated(log),
        "talks": talks,
        "ratio_full_project": mean(run[0]) / means[0],
        "fill_ms": fill_ms,
    }


def talk_of(what: str, runs: Sequence[tuple[Sequence[float], Sequence[ProjectOutput]]]) -> Figures:
    """Figures of conversations of one length.

    Args:
        what: Their name.
        runs: Milliseconds of each turn, and what came of them.
    """
    turns = len(runs[0][0])
    tenth = turns // _TENTH
    first = mean(ms for taken, _ in runs for ms in taken[:tenth])
    last = mean(ms for taken, _ in runs for ms in taken[turns - tenth :])
    stats = next(output for output in reversed(runs[-1][1]) if isinstance(output, ProjectChanged))
    all_ms = spread_ms([ms for taken, _ in runs for ms in taken])
    return {
        "what": what,
        "turns": turns,
        "p50_ms": all_ms.p50_ms,
        "p99_ms": all_ms.p99_ms,
        "ratio_last_tenth": last / first,
        "chunks": stats.chunks,
        "memories": stats.memories,
    }
