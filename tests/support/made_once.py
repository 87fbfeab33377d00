"""Folders that take long to make, made once for all processes of a test run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of the whole run, filled by the process that asks first; the others wait for it.

    Args:
        factory: Of temporary folders.
        name: Of the folder.
        make: Fills a folder that does not exist yet.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            made = folder.with_suffix(".new")
            make(made)
            made.rename(folder)
    return folder
