"""Compiled modules for child processes, so that one that is started again need not compile everything anew.

Where Python is told to write no bytecode (`PYTHONDONTWRITEBYTECODE`, as many containers have it), each start of a role
compiles some 2,000 modules: measured, 2.9 s of processor time to import the sessions role, 1.1 s with bytecode. After a
kill that is time without alerts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_WRITE_NONE = "PYTHONDONTWRITEBYTECODE"
_PREFIX = "PYTHONPYCACHEPREFIX"


def with_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for children that keep their bytecode below the user's cache, if they would keep none.

    Nothing beside the sources is written: who forbids bytecode wants his folders as they are.
    """
    if not sys.dont_write_bytecode:
        return dict(environment)
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = {name: value for name, value in environment.items() if name != _WRITE_NONE}
    return {_PREFIX: str(Path(base) / "turntide" / "bytecode")} | kept
