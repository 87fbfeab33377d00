"""`turntide lab soak`: roles under steady load, and whether their memory stays flat (fault F15)."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Annotated

import msgspec
import numpy as np
import psutil
import typer
from msgspec import Struct, field

from jobs.cli import with_examples
from jobs.lab.chaos.driver import EVENT_TIME_PER_TIME, send_load
from jobs.lab.chaos.supervisor import ROLES, own_cluster, supervised
from jobs.lab.chaos.traffic import traffic
from jobs.shared.output import OutputFormat, OutputOption, Printer, Progress, progress_bar
from jobs.shared.role_process import RoleFailed
from streams.settings import Settings

MOST_POINTS = 600
"""Beyond it neighbours are joined by their median: all pairs of slopes are taken, which grows with the square."""


class SlopeEstimate(Struct, frozen=True):
    """Change per unit of x: the median over all pairs of points, and its 95 % interval.

    The interval takes the points as independent; memory is not quite, so it is somewhat too narrow.
    """

    slope: float
    low: float
    high: float


def theil_sen(x: Sequence[float], y: Sequence[float]) -> SlopeEstimate:
    """Slope of y over x (`scipy.stats.theilslopes`), to two decimals.

    Raises:
        ValueError: Fewer than three points.

    >>> theil_sen([0, 1, 2, 3, 4], [1, 3, 5, 99, 9])
    SlopeEstimate(slope=2.0, low=-90.0, high=94.0)
    """
    from scipy.stats import theilslopes

    if len(x) < 3:  # noqa: PLR2004 - a slope and a doubt
        raise ValueError(f"a trend needs three points and more, not {len(x)}")
    slope, _, low, high = theilslopes(joined(y), joined(x), 0.95)
    return SlopeEstimate(*(round(float(each), 2) for each in (slope, low, high)))


def joined(values: Sequence[float], most: int = MOST_POINTS) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """At most so many values: medians of neighbours.

    >>> joined([1, 2, 9, 4, 5, 6], most=2).tolist()
    [2.0, 5.0]
    """
    parts = np.array_split(np.asarray(values, dtype=np.float64), min(most, len(values)))
    return np.array([np.median(part) for part in parts])


FLAT_PER_HOUR = 0.02
"""Growth by this share of the memory per hour still counts as flat."""
_WARM_UP = 0.25
"""Share of the run that is left out: caches, weights and the first sessions are taken in."""
_PICTURE_POINTS = 8
_MINUTES_FROM_S = 1_200
_MB = 1e6
_EXIT_GROWS = 1


class Memory(Struct, frozen=True, kw_only=True):
    """Resident memory of one role over the run, without pages of files.

    Attributes:
        median_mb: Over the samples after the warm-up.
        peak_mb: The highest, of all.
        mb_per_hour: Slope and its 95 % interval.
        mb_per_million_turns: The same by turns.
        verdict: `flat`, `grows`, or `open` when the interval holds both: run it longer.
    """

    median_mb: float
    peak_mb: float
    mb_per_hour: SlopeEstimate
    mb_per_million_turns: SlopeEstimate
    verdict: str


class Soaked(Struct, kw_only=True):
    """What a run found."""

    minutes: float
    turns: int
    turns_per_s: float
    samples: int
    roles: dict[str, Memory] = field(default_factory=dict)

    @property
    def flat(self) -> bool:
        """Whether no role's memory was seen to grow."""
        return all(memory.verdict != "grows" for memory in self.roles.values())


class Samples(Struct):
    """Memory over time: seconds since the start, turns sent by then, and bytes by role."""

    at_s: list[float] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    own_bytes: dict[str, list[int]] = field(default_factory=lambda: {role: [] for role in ROLES})


@with_examples(
    "turntide lab soak --minutes 120",
    "turntide lab soak --minutes 30 --turns-per-s 500 --picture memory.svg",
    "turntide lab soak --minutes 10 --output json | jq .roles.sessions.mb_per_hour",
)
def soak(
    *,
    minutes: Annotated[float, typer.Option(min=0.2, help="How long to send turns.")] = 60.0,
    turns_per_s: Annotated[float, typer.Option("--turns-per-s", min=1, help="Turns per second.")] = 200.0,
    sample_s: Annotated[float, typer.Option("--sample-s", min=0.1, help="Seconds between two samples.")] = 5.0,
    picture: Annotated[Path | None, typer.Option(help="SVG of memory over time; needs the extra `report`.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for broker, archive and logs; none: a temporary one, deleted at the end."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Run all roles and their own broker under steady load; check that memory does not grow.

    An hour of conversation passes in a minute, so sessions end, time out and are forgotten all the time. The index
    role writes to a vector server apart, as a store grows with what it stores. Samples each role's resident memory
    without file pages; a robust slope over all but the first quarter gives MB per hour and per million turns.
    Exit code 1 if a role's memory grows. In runs below half an hour, filling caches are most of the growth.
    """
    folder = (data_dir or Path(tempfile.mkdtemp(prefix="turntide-soak-"))).resolve()
    printed = Printer(output)
    try:
        with progress_bar("soaking, s") as progress:
            samples = asyncio.run(_run(folder, minutes * 60, turns_per_s, sample_s, progress))
    finally:
        if data_dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    result = judged(samples)
    _print(printed, result)
    if picture is not None:
        draw(picture, samples)
        printed.message(f"picture: {picture}")
    if not result.flat:
        raise typer.Exit(_EXIT_GROWS)


def _print(printed: Printer, result: Soaked) -> None:
    """For people, roles in a table of their own, without intervals."""
    fields = msgspec.to_builtins(result) | {"flat": result.flat}
    if printed.form is OutputFormat.TABLE:
        slopes = ("mb_per_hour", "mb_per_million_turns")
        roles = fields.pop("roles")
        printed.rows("memory", [{"role": r, **of, **{s: of[s]["slope"] for s in slopes}} for r, of in roles.items()])
    printed.record(fields)


async def _run(folder: Path, seconds: float, turns_per_s: float, sample_s: float, progress: Progress) -> Samples:
    """Start everything, load it and sample; what was started is ended on the way out.

    Raises:
        RoleFailed: A role ended on the way.
    """
    samples, turns = Samples(), 0
    span = timedelta(seconds=seconds * EVENT_TIME_PER_TIME)
    async with (
        own_cluster(folder, "soak") as (_, settings),
        supervised(_forgetful(settings), ROLES, vector_server=True) as supervisor,
    ):
        roles = supervisor.roles
        processes = {name: psutil.Process(role.pid) for name, role in roles.items()}
        load = traffic(15, turns=int(seconds * turns_per_s), ends_at=datetime.now(UTC), span=span)
        began_s = monotonic()

        def note(_turn: object) -> None:
            nonlocal turns
            turns += 1

        sending = asyncio.create_task(send_load(settings, load, turns_per_s, note))
        try:
            while not sending.done():
                await asyncio.wait({sending}, timeout=sample_s)
                for name, role in roles.items():
                    if not role.running():
                        raise RoleFailed(f"role {name} ended under load:\n{role.log_tail()}")
                    samples.own_bytes[name].append(_own_bytes(processes[name]))
                samples.at_s.append(monotonic() - began_s)
                samples.turns.append(turns)
                progress(round(samples.at_s[-1]), round(seconds))
            await sending
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    return samples


def _forgetful(settings: Settings) -> Settings:
    """With a policy by which state is full after minutes of a run: closed sessions are remembered for an hour."""
    policy_file = settings.data_dir / "policy.toml"
    policy_file.write_text('version = "soak"\n[session]\nclosed_retention = "PT1H"\n')
    return settings.model_copy(update={"policy_file": policy_file})


def _own_bytes(process: psutil.Process) -> int:
    """Resident memory but for pages of files, which the system takes back when it wants (Qdrant Edge maps its data)."""
    memory = process.memory_info()
    return int(memory.rss - getattr(memory, "shared", 0))


def judged(samples: Samples) -> Soaked:
    """Slopes and verdicts over all but the first quarter.

    Raises:
        ValueError: Too few samples for a slope.
    """
    first = int(len(samples.at_s) * _WARM_UP)
    hours, million_turns = (
        [each / unit for each in of[first:]] for of, unit in ((samples.at_s, 3600), (samples.turns, 1e6))
    )
    result = Soaked(
        minutes=round(samples.at_s[-1] / 60, 2),
        turns=samples.turns[-1],
        turns_per_s=round(samples.turns[-1] / samples.at_s[-1], 1),
        samples=len(samples.at_s),
    )
    for role, own_bytes in samples.own_bytes.items():
        own_mb = [each / _MB for each in own_bytes]
        median_mb, per_hour = median(own_mb[first:]), theil_sen(hours, own_mb[first:])
        result.roles[role] = Memory(
            median_mb=round(median_mb, 1),
            peak_mb=round(max(own_mb), 1),
            mb_per_hour=per_hour,
            mb_per_million_turns=theil_sen(million_turns, own_mb[first:]),
            verdict=verdict(per_hour, median_mb),
        )
    return result


def verdict(mb_per_hour: SlopeEstimate, median_mb: float) -> str:
    """What the interval allows to say, against `FLAT_PER_HOUR` of the memory."""
    limit = FLAT_PER_HOUR * median_mb
    if mb_per_hour.low > limit:
        return "grows"
    return "flat" if mb_per_hour.high <= limit else "open"


def draw(picture: Path, samples: Samples) -> None:
    """Memory over time, one curve a role."""
    from jobs.shared.pictures import Curve, draw_curves

    unit, name = (60, "minutes") if samples.at_s[-1] >= _MINUTES_FROM_S else (1, "seconds")
    passed = joined(samples.at_s, _PICTURE_POINTS) / unit
    curves = [
        Curve(role, list(zip(passed.tolist(), (joined(own_bytes, _PICTURE_POINTS) / _MB).tolist(), strict=True)))
        for role, own_bytes in samples.own_bytes.items()
    ]
    title = "Memory of each role under steady load"
    draw_curves(picture, title=title, x_label=name, y_label="MB", curves=curves, log_x=False)
