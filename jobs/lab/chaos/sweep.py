"""Many seeds one after the other: a row for each, their totals, and how to repeat what failed."""

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from jobs.lab.chaos.driver import ChaosOptions, run_chaos
from jobs.lab.chaos.result import OUTAGE_S, ChaosResult, FaultKind
from models.errors import ConfigurationError, TurntideError


class Saved(ChaosOptions, kw_only=True):
    """A run as a line of the file of `--save`."""

    result: ChaosResult | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether something differed, or nothing could be compared."""
        return self.result is None or self.result.differences > 0

    def again(self) -> str:
        """The command that repeats it."""
        acts = "" if set(self.acts) == {*FaultKind} else f" --acts {','.join(self.acts)}"
        outage = "" if self.outage_s == OUTAGE_S else f" --outage-s {self.outage_s:g}"
        turns = f"--turns-per-s {self.turns_per_s:g}"
        return f"turntide lab chaos --seed {self.seed} --minutes {self.minutes:g} {turns}{acts}{outage}"


_COLUMNS = {
    "kills": "kills",
    "turns": "turns",
    "lost": "lost",
    "doubled": "doubled",
    "alerts": "alerts",
    "missing": "alerts_missing",
    "false": "alerts_false",
    "repeats": "repeats",
    "worst_delay_s": "worst_alert_delay_s",
    "after_kill_s": "worst_alert_delay_after_kill_s",
    "differences": "differences",
    "seconds": "seconds",
}
"""Column of the table → field of a result."""
_WORST = ("worst_alert_delay_s", "worst_alert_delay_after_kill_s")
_SUMMED = [name for name in (*_COLUMNS.values(), "alerts_after_kill") if name not in _WORST]


def totals_of(runs: Sequence[Saved]) -> dict[str, float]:
    """Sums over the runs that were finished, and the worst of their delays; `runs` and `failed` count all."""
    results = [run.result for run in runs if run.result is not None]
    return {
        "runs": len(runs),
        "failed": sum(run.failed for run in runs),
        **{name: round(sum(getattr(result, name) for result in results), 1) for name in _SUMMED},
        **{name: max((getattr(result, name) for result in results), default=0.0) for name in _WORST},
    }


def rows_of(runs: Sequence[Saved]) -> Iterator[dict[str, object]]:
    """A row for each run with short names, and the totals as the last one."""
    for run in runs:
        found = structs.asdict(run.result) if run.result else {"differences": run.error.partition("\n")[0]}
        yield {"seed": run.seed} | {short: found.get(name, "") for short, name in _COLUMNS.items()}
    totals = totals_of(runs)
    yield {"seed": f"all {totals['runs']}"} | {short: totals[name] for short, name in _COLUMNS.items()}


def read_saved(file: Path) -> list[Saved]:
    """The runs in a file of `--save`; none if there is no such file.

    Raises:
        ConfigurationError: It holds something else.
    """
    try:
        return msgspec.json.Decoder(Saved).decode_lines(file.read_bytes())
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            f"--save {file} holds something else than runs ({error}): name another file"
        ) from error


def sweep(
    options: ChaosOptions,
    seeds: Sequence[int],
    folder: Path,
    *,
    save: Path | None,
    keep: bool,
    report: Callable[[str], None],
) -> Iterator[Saved]:
    """Run seed after seed, each in a folder of its own below this one, and yield each run as it ends.

    A run that is in the file of `save` with the same options is not done again, unless it failed. The folder of a run
    that differed in nothing is removed unless `keep`.
    """
    known = {run.again(): run for run in (read_saved(save) if save else []) if not run.failed}
    for number, seed in enumerate(seeds, 1):
        own, run = folder / f"seed-{seed}", Saved(**{**structs.asdict(options), "seed": seed})
        if (before := known.get(run.again())) is not None:
            report(f"seed {seed} ({number} of {len(seeds)}): done before")
            yield before
            continue
        report(f"seed {seed} ({number} of {len(seeds)})")
        try:
            run.result = asyncio.run(run_chaos(run, own, report))
        except TurntideError as error:
            run.error = f"{type(error).__name__}: {error}"
        if save:
            with save.open("ab") as file:
                file.write(msgspec.json.encode(run) + b"\n")
        if run.failed:
            report(f"seed {seed} failed: {run.error or run.result}. Kept: {own}. To repeat: {run.again()}")
        elif not keep:
            shutil.rmtree(own, ignore_errors=True)
        yield run
