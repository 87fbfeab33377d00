"""`turntide worker archive` that is killed −9 as it comes to a step of an erasure.

Argument: the step, a method of `streams.erase.erasure.Erasure`.
"""

import os
import signal
import sys
from typing import Any

from jobs import cli
from streams.erase.erasure import Erasure


async def _die(*_arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(step: str) -> None:
    """Run the role."""
    assert callable(getattr(Erasure, step))
    setattr(Erasure, step, _die)
    sys.argv = ["turntide", "worker", "archive"]
    cli.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
