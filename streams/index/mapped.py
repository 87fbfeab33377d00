"""Files that an engine maps into this process: what it has read of them can be given back."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path


def give_back(folder: Path) -> None:
    """Let go of the pages of a folder's files that are mapped here; the system's cache has them for the next read.

    Qdrant reads whole files when it opens a collection, their holes too: 39 MB of resident memory for one with a
    hundred points, and there are eight. Call while nobody unmaps files of this folder. Linux only; elsewhere nothing.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, flags, *_, name = line.split(maxsplit=5)
        if flags.endswith("s") and Path(name).is_relative_to(folder):  # shared: what is not yet on the disk stays
            start, end = (int(address, 16) for address in place.split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)
