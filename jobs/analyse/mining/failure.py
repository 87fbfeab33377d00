"""Failures of a mining job, told apart from an end by somebody."""

from __future__ import annotations

import traceback
from pathlib import Path

from models.errors import TurntideError

_JOBS = Path(__file__).parent.parent


def told(error: Exception) -> str:
    """What went wrong, without a text of a turn: an engine's message may quote one, ours never do.

    >>> told(ValueError("what somebody said")).partition(" in ")[0]
    'ValueError'

    Raises:
        KeyboardInterrupt: Nothing did: Ctrl-C ended it, which DuckDB tells as an error of its own.
    """
    if isinstance(error.__cause__, KeyboardInterrupt):
        raise KeyboardInterrupt from None
    if isinstance(error, TurntideError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"the Python package `{error.name}` is not installed: `turntide[local]` has everything"
    # Where in our own code: a line of a library's says nothing to whoever has to mend it.
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent.parent == _JOBS
    ]
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
