"""Programs that are no Python packages: where they are, and what to say where they are not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def tool(name: str) -> Path:
    """Where a program is; its test fails without it in CI and is skipped elsewhere.

    `.ci/tools` installs all of them.
    """
    found = shutil.which(name)
    if found is None:
        said = f"{name} is not installed: run .ci/tools (Debian or Ubuntu, as root)"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    return Path(found)
