"""Verdict of a check of `turntide doctor`."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Verdict of a check: a warning does not keep anything from running."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Verdict(NamedTuple):
    """What a check found, and what to do about it."""

    status: Status
    detail: str
    advice: str = ""
