"""Programs that are no Python packages: where they are, and what to say where they are not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turntide-tools"
"""Where `.ci/tools` puts what is no package of the system's: programs in `bin`, and schemas."""


def tool(name: str) -> Path:
    """Where a program is; its test fails without it in CI and is skipped elsewhere.

    `.ci/tools` installs all of them.
    """
    found = shutil.which(name) or shutil.which(name, path=FOLDER / "bin")
    return Path(found) if found else _missing(name)


def kept(name: str) -> Path:
    """A file or folder of schemas that `.ci/tools` keeps; its test fails without it likewise."""
    path = FOLDER / name
    return path if path.exists() else _missing(name)


def _missing(name: str) -> NoReturn:
    said = f"{name} is not installed: run .ci/tools (Debian or Ubuntu, as root)"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)
