"""A command of ours in a process of its own that leaves behind how much memory it had at most.

`wait4` cannot say: a process that was started by a large one counts that one's memory as its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PEAK = "VmHWM:"


def peak_mb() -> float:
    """Most memory of this process so far, megabytes (10⁶); 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    found = [line.split()[1] for line in status.read_text().splitlines() if line.startswith(_PEAK)]
    return int(found[0]) * 1_024 / 1_000_000 if found else 0.0


def main() -> None:
    """Run a command line; its first argument names the file for the figure."""
    from jobs.cli import main as run

    file, *sys.argv[1:] = sys.argv[1:]
    try:
        run()
    finally:
        Path(file).write_text(str(peak_mb()))


if __name__ == "__main__":
    main()
