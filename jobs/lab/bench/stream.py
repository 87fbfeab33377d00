"""All contenders over the same logs, in rounds: the sessions role and whom it is compared with.

Each round has topics of its own. Its contenders run one after the other, beginning with another one each round, so
that whatever slows the machine for a while slows them all; ratios are taken within a round, throughput after a warm-up.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from jobs.lab.bench.contender import CONTENDERS, missing_package, run_contender
from jobs.lab.bench.environment import Ground
from jobs.lab.bench.figures import SESSIONS_ROLE, BenchFailed, Report, Round, Timing, summarise
from jobs.lab.bench.sessions_role import Backlog, alert_latencies_ms, take_backlog
from jobs.lab.bench.traffic import Traffic, send_all
from jobs.operate.topics import apply_topics
from streams.settings import Settings, load_settings

PARTITIONS = 4
_PER_EVENT = ("per_event_faust", "quix")

Say = Callable[[str], None]


class Size(Struct, frozen=True):
    """How much is measured.

    Attributes:
        runs: Rounds.
        turns: Length of each round's log.
        per_event_turns: After how many of them the contenders that work per event stop.
        latency_seconds: How long turns are sent for the alert latency, after a warm-up.
    """

    runs: int
    turns: int
    per_event_turns: int
    latency_seconds: float


FULL = Size(runs=3, turns=20_000, per_event_turns=4_000, latency_seconds=10.0)
QUICK = Size(runs=1, turns=5_000, per_event_turns=1_000, latency_seconds=2.0)


def stream_settings(bootstrap: str, home: Path) -> Settings:
    """Fresh topics with four partitions and a policy as it comes; nothing of the user's own settings but the cluster.

    Args:
        bootstrap: Address of the broker.
        home: Where contenders keep local state and logs.
    """
    return load_settings(
        kafka={"bootstrap": bootstrap, "partitions": PARTITIONS},
        topic_prefix=f"bench-{uuid.uuid4().hex[:8]}",
        data_dir=home,
    )


async def measure(ground: Ground, size: Size, *, say: Say) -> Report:
    """Run everything.

    Args:
        ground: A broker without other work, and an empty folder.
        size: How much.
        say: Called with what is going on.

    Raises:
        BenchFailed: A contender failed, or a run was too short to be measured.
    """
    rounds = []
    for number in range(size.runs):
        say(f"run {number + 1} of {size.runs}")
        rounds.append(await _round(ground, size, number, say))
    return summarise(rounds, turns=size.turns, load_average=ground.load_average, cpus=os.cpu_count() or 1)


async def _round(ground: Ground, size: Size, number: int, say: Say) -> Round:
    settings = stream_settings(ground.bootstrap, ground.home)
    await apply_topics(settings)
    turn_bytes = await send_all(settings, Traffic(number).backlog(size.turns, ends_at=datetime.now(UTC)))
    timings: dict[str, Timing] = {}
    backlog: Backlog | None = None
    for name in order(number):
        if name == SESSIONS_ROLE:
            backlog = await take_backlog(settings, size.turns)
            timings[name] = backlog.timing
        else:
            turns = size.per_event_turns if name in _PER_EVENT else size.turns
            timings[name] = await run_contender(name, settings, turns, os.environ)
        say(f"  {name}: {timings[name].turns_per_s:,.0f} turns/s")
    if backlog is None:
        raise BenchFailed("the sessions role was not measured")
    alerting = stream_settings(ground.bootstrap, ground.home)
    await apply_topics(alerting)
    return Round(
        timings=timings,
        latencies_ms=await alert_latencies_ms(alerting, size.latency_seconds),
        changelog_bytes_per_turn=backlog.changelog_bytes_per_turn,
        mb_per_10000_sessions=backlog.mb_per_10000_sessions,
        turn_bytes=turn_bytes,
        stage_us_per_turn=backlog.stage_us_per_turn,
    )


def order(number: int) -> list[str]:
    """Contenders that are installed, and the sessions role, in the order of a round: each round begins with the next.

    >>> order(0)[:2], order(1)[:2]
    (['sessions_role', 'raw_read'], ['raw_read', 'plain_fold'])
    """
    names = [SESSIONS_ROLE, *(name for name in CONTENDERS if missing_package(name) is None)]
    first = number % len(names)
    return names[first:] + names[:first]
