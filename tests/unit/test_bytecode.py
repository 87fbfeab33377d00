"""Children keep their bytecode also where this process may not."""

from __future__ import annotations

import sys

import pytest

from jobs.shared.role_process import with_bytecode

FORBIDDEN = {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": "/cache", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("forbidden", "environment", "expected"),
    [
        (True, FORBIDDEN,
         {"PYTHONPYCACHEPREFIX": "/cache/turntide/bytecode", "XDG_CACHE_HOME": "/cache", "PATH": "/bin"}),
        (True, {"PYTHONPYCACHEPREFIX": "/own", "XDG_CACHE_HOME": "/cache"},
         {"PYTHONPYCACHEPREFIX": "/own", "XDG_CACHE_HOME": "/cache"}),
        (False, {"PATH": "/bin"}, {"PATH": "/bin"}),
    ],
)  # fmt: skip
def test_bytecode_goes_below_the_cache(
    monkeypatch: pytest.MonkeyPatch, *, forbidden: bool, environment: dict[str, str], expected: dict[str, str]
) -> None:
    """Only where none would be written, and where the user has not named a folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)

    assert expected == with_bytecode(environment)
