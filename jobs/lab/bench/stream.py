"""All contenders over the same logs, in rounds: the sessions role and whom it is compared with.

Each round has topics of its own. Its contenders run one after the other, beginning with another one each round, so
that whatever slows the machine for a while slows them all; ratios are taken within a round, throughput after a warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from msgspec import Struct

from jobs.lab.bench.contender import CONTENDERS, missing_package, run_contender
from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import SESSIONS_ROLE, BenchFailed, Figures, Say, Timing, medians, spread_ms
from jobs.lab.bench.sessions_role import Backlog, alert_latencies_ms, take_backlog
from jobs.lab.bench.traffic import TurnTraffic, send_all
from jobs.operate.topics import apply_topics

_PER_EVENT = ("per_event_faust", "quix")


class StreamSize(Struct, frozen=True):
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


FULL = StreamSize(runs=3, turns=20_000, per_event_turns=4_000, latency_seconds=10.0)
QUICK = StreamSize(runs=1, turns=5_000, per_event_turns=1_000, latency_seconds=2.0)


class Round(Struct, frozen=True):
    """One run of each contender over the same log, one after the other.

    Attributes:
        timings: Contender → its time; a contender that is not installed is missing.
        latencies_ms: Of each alert, from the moment a turn was due to be sent to the receipt of the alert.
        changelog_bytes_per_turn: Of the sessions role.
        mb_per_10000_sessions: State of the sessions role.
        turn_bytes: Mean size of a turn's record value.
        stage_us_per_turn: Stage of the sessions role → microseconds per turn.
    """

    timings: dict[str, Timing]
    latencies_ms: list[float]
    changelog_bytes_per_turn: float
    mb_per_10000_sessions: float
    turn_bytes: float
    stage_us_per_turn: dict[str, float]

    def figures(self) -> dict[str, float]:
        """Under the keys that `rounds` of the report has.

        Raises:
            BenchFailed: No alert came.
        """
        if not self.latencies_ms:
            raise BenchFailed("no alert arrived in a run: look at the policy's `alerts.single_turn_risk`")
        rates = {name: timing.turns_per_s for name, timing in self.timings.items()}
        alerts = spread_ms(self.latencies_ms)
        return {
            "turns_per_s": rates[SESSIONS_ROLE],
            **{f"ratio_{name}": rates[SESSIONS_ROLE] / rates[name] for name in CONTENDERS if name in rates},
            "alert_latency_ms_p50": alerts.p50_ms,
            "alert_latency_ms_p99": alerts.p99_ms,
            "changelog_bytes_per_turn": self.changelog_bytes_per_turn,
            "mb_per_10000_sessions": self.mb_per_10000_sessions,
            **{f"{name}_turns_per_s": rate for name, rate in rates.items()},
        }


def summarise(rounds: Sequence[Round], *, turns: int) -> Figures:
    """The report of all rounds: medians, of alerts those of each round's percentiles.

    Raises:
        BenchFailed: A round in which too few turns or no alert were measured.
    """
    by_round = [each.figures() for each in rounds]
    middle = medians(by_round)
    return {
        "turns_per_s": middle["turns_per_s"],
        **{f"ratio_{name}": middle.get(f"ratio_{name}") for name in CONTENDERS},
        "alert_latency_ms": {
            "p50": middle["alert_latency_ms_p50"],
            "p99": middle["alert_latency_ms_p99"],
            "alerts": sum(len(each.latencies_ms) for each in rounds),
        },
        "changelog_bytes_per_turn": middle["changelog_bytes_per_turn"],
        "mb_per_10000_sessions": middle["mb_per_10000_sessions"],
        "turn_bytes": median(each.turn_bytes for each in rounds),
        "absolute_turns_per_s": medians([{n: t.turns_per_s for n, t in each.timings.items()} for each in rounds]),
        "stage_us_per_turn": medians([each.stage_us_per_turn for each in rounds]),
        "rounds": by_round,
        "spread": {key: [most(row[key] for row in by_round if key in row) for most in (min, max)] for key in middle},
        "runs": len(rounds),
        "turns": turns,
    }


async def measure(environment: BenchEnvironment, size: StreamSize, *, say: Say) -> Figures:
    """Run everything.

    Raises:
        BenchFailed: A contender failed, or a run was too short to be measured.
    """
    rounds = []
    for run in range(size.runs):
        say(f"run {run + 1} of {size.runs}")
        rounds.append(await _round(environment, size, run, say))
    return summarise(rounds, turns=size.turns)


async def _round(environment: BenchEnvironment, size: StreamSize, run: int, say: Say) -> Round:
    settings = environment.settings()
    await apply_topics(settings)
    turn_bytes = await send_all(settings, TurnTraffic(run).backlog(size.turns, ends_at=datetime.now(UTC)))
    timings: dict[str, Timing] = {}
    backlog: Backlog | None = None
    for name in order(run):
        if name == SESSIONS_ROLE:
            backlog = await take_backlog(settings, size.turns)
            timings[name] = backlog.timing
        else:
            turns = size.per_event_turns if name in _PER_EVENT else size.turns
            timings[name] = await run_contender(name, settings, turns)
        say(f"  {name}: {timings[name].turns_per_s:,.0f} turns/s")
    if backlog is None:
        raise BenchFailed("the sessions role was not measured")
    alerting = environment.settings()
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
