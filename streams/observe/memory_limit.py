"""Memory limit of this process."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Of a container, as version 2 and version 1 of control groups have them."""


def memory_limit_bytes(cgroup: Path = _CGROUP) -> int:
    """The container's limit, or else all of the machine's memory."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _LIMITS:
        try:
            said = (cgroup / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if said.isdecimal():  # `max` is no limit
            return min(int(said), machine)
    return machine
