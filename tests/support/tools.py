"""Programs that are no Python packages: where they are, and what to say where they are not."""

import os
import shutil
import warnings
from pathlib import Path
from typing import NoReturn

import pytest

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turntide-tools"
"""Where `.ci/tools` puts what is no package of the system's: programs in `bin`, and schemas."""


def tool(name: str) -> Path:
    """Where a program is; its test fails without it in CI and is skipped elsewhere.

    `.ci/tools` installs all of them.
    """
    found = _found(name)
    return Path(found) if found else _missing(name)


def has(name: str) -> bool:
    """Whether a program is there that only a part of a test needs.

    Without it the test fails in CI; elsewhere it goes on, and pytest's summary warns of the part that was left out.
    """
    if _found(name) is not None:
        return True
    if os.environ.get("CI"):
        _missing(name)
    warnings.warn(f"a part of this test was left out: {_what_to_do(name)}", stacklevel=2)
    return False


def kept(name: str) -> Path:
    """A file or folder of schemas that `.ci/tools` keeps; its test fails without it likewise."""
    path = FOLDER / name
    return path if path.exists() else _missing(name)


def _found(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=FOLDER / "bin")


def _what_to_do(name: str) -> str:
    return f"{name} is not installed: run .ci/tools (Debian or Ubuntu, as root)"


def _missing(name: str) -> NoReturn:
    said = _what_to_do(name)
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)
