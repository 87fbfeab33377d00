"""Examples in the core's docstrings run as tests."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "policy.digest",
        "risk.combination",
        "risk.message",
        "risk.modes",
        "risk.scorer",
        "risk.signals",
        "text.features",
        "text.keywords",
        "text.words",
    ],
)
def test_examples_hold(module: str) -> None:
    """Every example gives what it says, and there is at least one."""
    actual = doctest.testmod(importlib.import_module(f"models.{module}"))

    assert (0, True) == (actual.failed, actual.attempted > 0)
