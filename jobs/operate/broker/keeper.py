"""Runs the broker for a parent that may die: ends it as soon as the parent is gone.

Started by `LocalKafka` as `python -I keeper.py COMMAND…`, standard library only. The parent holds
the other end of this process's stdin and never writes to it: end of file means that the parent stopped the
broker, ended, crashed or was killed, on Linux and macOS alike. Should a fork of the parent keep that end
open, the changed parent id tells the same. The first line on stdout is the broker's process id.
"""

import os
import select
import signal
import subprocess
import sys

_CHECK_SECONDS = 0.5
_GRACE_SECONDS = 20.0


def main(command: list[str]) -> int:
    """Run `command` until it ends or the parent is gone; return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parent = os.getppid()
    broker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)  # noqa: S603
    try:
        print(broker.pid, flush=True)  # noqa: T201
        while broker.poll() is None and os.getppid() == parent:
            if select.select([sys.stdin], [], [], _CHECK_SECONDS)[0]:
                break
    finally:
        _end(broker)
    return broker.returncode


def _end(broker: subprocess.Popen[bytes]) -> None:
    """Ask first, then insist."""
    broker.terminate()
    try:
        broker.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        broker.kill()
        broker.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
