"""Where DuckDB puts rows that do not fit into memory, with whatever text is in them.

Each connection has a folder of its own: names of files are the same in all. Only the own user may look into it. DuckDB
removes it at the end; what a killed process left goes with the next connection, so with every erasure, too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_OURS_ALONE = 0o700


def spill_folder(root: Path | None = None) -> Path:
    """A folder for one connection; it is not there before something is spilt.

    Args:
        root: Of all of them; none: in the folder for temporary files.
    """
    root = root or Path(tempfile.gettempdir()) / f"turntide-spill-{os.getuid()}"
    with suppress(FileExistsError):
        root.mkdir(mode=_OURS_ALONE)
    for left in root.iterdir():
        if not _is_alive(left.name.partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    return root / f"{os.getpid()}-{uuid4().hex}"


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
