"""`turntide lab chaos` from outside: everything harmed for half a minute, and nothing differs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

KEYS = {
    "seed", "kills", "turns", "lost", "doubled", "alerts_missing", "alerts_false", "worst_alert_delay_s",
    "worst_alert_delay_after_kill_s", "differences", "seconds",
}  # fmt: skip


def command(folder: Path, *arguments: str) -> list[str]:
    """The command line of a run in this folder."""
    return [sys.executable, "-m", "jobs.cli", "lab", "chaos", "--data-dir", str(folder), *arguments, "--output", "json"]


@pytest.mark.parametrize(
    ("acts", "store"),
    [
        pytest.param("", "memory", id="everything"),
        pytest.param("kill", "rocksdb", marks=pytest.mark.fault("F1")),
        pytest.param("broker", "memory", marks=pytest.mark.fault("F3")),
        pytest.param("join_or_leave", "memory", marks=pytest.mark.fault("F4")),
        ("vectors", "memory"),
    ],
)
def test_half_a_minute_of_chaos_differs_in_nothing(tmp_path: Path, acts: str, store: str) -> None:
    """Roles and broker harmed by seed 2 under load: state, outputs, archive and index equal the replay."""
    done = subprocess.run(  # noqa: S603 - our own command
        command(
            tmp_path, "--seed", "2", "--minutes", "0.5", "--turns-per-s", "100", *(["--acts", acts] if acts else [])
        ),
        env={**os.environ, "TURNTIDE_STATE__STORE": store},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result = json.loads(done.stdout)
    assert result.keys() >= KEYS
    assert (result["seed"], result["turns"], result["differences"], result["counts"]) == (2, 3_000, 0, {})
    assert [result[name] for name in ("lost", "doubled", "alerts_missing", "alerts_false")] == [0, 0, 0, 0]
    assert sum(result["acts"].values()) > 0
    assert result["alerts"] > 0
    assert result["checked"]["archive turns"] == result["checked"]["index"] == 3_000
    assert result["not_checked"] == {}


def test_ctrl_c_ends_all_children(tmp_path: Path) -> None:
    """Interrupted while it starts: broker, keeper and roles are gone, and the exit code says interrupted."""
    run = subprocess.Popen(  # noqa: S603 - our own command
        command(tmp_path, "--minutes", "5"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline_s = time.monotonic() + 90
    while not (tmp_path / "seed-1" / "logs" / "sessions-1.log").exists() and time.monotonic() < deadline_s:
        time.sleep(0.1)  # poll for the last role to be started
    children = psutil.Process(run.pid).children(recursive=True)
    os.kill(run.pid, signal.SIGINT)
    code = run.wait(60)
    _, alive = psutil.wait_procs(children, timeout=10)

    assert len(children) >= 5
    assert (code, [child.name() for child in alive]) == (130, [])
