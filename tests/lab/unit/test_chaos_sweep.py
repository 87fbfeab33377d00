"""Seed after seed: what is kept, what is not done again, and the totals."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.lab.chaos import sweep as sweeping
from jobs.lab.chaos.command import _terminable, acts_of
from jobs.lab.chaos.driver import ChaosOptions
from jobs.lab.chaos.result import ChaosResult, FaultKind
from jobs.lab.chaos.sweep import Saved, read_saved, sweep, totals_of
from models.errors import ConfigurationError, StoreUnavailable


def result(seed: int, *, differences: int = 0) -> ChaosResult:
    """What a run of this seed found."""
    return ChaosResult(
        seed=seed, kills=10, acts={"kill": 10}, restarts=10, turns=100, lost=differences, doubled=0, alerts=3,
        alerts_missing=0, alerts_false=0, worst_alert_delay_s=float(seed), worst_alert_delay_after_kill_s=1.0,
        alerts_after_kill=2, repeats=1, differences=differences, counts={}, checked={}, not_checked={}, examples=[],
        seconds=30.0,
    )  # fmt: skip


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that were really run: 2 differs, 3 cannot be finished."""
    seeds: list[int] = []

    async def run(options: ChaosOptions, folder: Path, _report: Callable[[str], None]) -> ChaosResult:
        seeds.append(options.seed)
        await asyncio.to_thread(folder.mkdir, parents=True)
        if options.seed == 3:
            raise StoreUnavailable("no broker")
        return result(options.seed, differences=int(options.seed == 2))

    monkeypatch.setattr(sweeping, "run_chaos", run)
    return seeds


def swept(folder: Path, seeds: range, *, save: Path | None = None) -> list[Saved]:
    """A sweep of short runs below the folder."""
    options = ChaosOptions(seed=0, minutes=0.1, turns_per_s=50)
    return list(sweep(options, seeds, folder, save=save, keep=False, report=lambda _: None))


def test_failed_runs_keep_their_folder_and_say_how_to_repeat(ran: list[int], tmp_path: Path) -> None:
    """A difference, or a run that could not be finished, stops no other one."""
    runs = swept(tmp_path, range(1, 5))

    assert ([1, 2, 3, 4], [False, True, True, False]) == (ran, [run.failed for run in runs])
    assert {"seed-2", "seed-3"} == {folder.name for folder in tmp_path.iterdir()}
    assert "turntide lab chaos --seed 3 --minutes 0.1 --turns-per-s 50" == runs[2].again()
    assert "StoreUnavailable: no broker" == runs[2].error


def test_what_is_saved_and_did_not_fail_is_not_run_again(ran: list[int], tmp_path: Path) -> None:
    """An interrupted sweep goes on; what failed is tried again."""
    save = tmp_path / "runs.jsonl"
    swept(tmp_path / "first", range(1, 3), save=save)
    swept(tmp_path / "second", range(1, 5), save=save)

    assert [1, 2, 2, 3, 4] == ran
    assert [1, 2, 2, 3, 4] == [run.seed for run in read_saved(save)]


def test_other_files_and_acts_are_refused(tmp_path: Path) -> None:
    """Nobody's notes are appended to; what is no act is said, with what there is."""
    (tmp_path / "notes").write_text("hello\n")

    with pytest.raises(ConfigurationError, match="name another file"):
        read_saved(tmp_path / "notes")

    assert {FaultKind.KILL, FaultKind.STOP} == acts_of("kill, stop")
    with pytest.raises(ConfigurationError, match=r"explode.*There are kill, freeze"):
        acts_of("explode")


@pytest.mark.usefixtures("ran")
def test_totals(tmp_path: Path) -> None:
    """Sums of what was finished, the worst of the delays, and every run counted."""
    totals = totals_of(swept(tmp_path, range(1, 5)))
    sums = [totals[name] for name in ("runs", "failed", "kills", "turns", "lost", "differences", "seconds")]

    assert sums == [4, 2, 30, 300, 1, 1, 90.0]
    assert (totals["worst_alert_delay_s"], totals["worst_alert_delay_after_kill_s"]) == (4.0, 1.0)


def test_sigterm_ends_a_sweep_that_a_shell_started_in_the_background() -> None:
    """Such a process ignores SIGINT, and SIGTERM takes the way of Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), _terminable():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
