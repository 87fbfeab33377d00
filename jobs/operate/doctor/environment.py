"""Environment check: variables that look like settings and are none."""

from __future__ import annotations

from jobs.operate.doctor.verdict import Status, Verdict
from streams.settings import Settings
from streams.settings.reading import unknown_variables


def check_settings(settings: Settings) -> Verdict:
    """A misspelt variable changes nothing, and its setting keeps its default: told by name."""
    unknown = unknown_variables(type(settings))
    if not unknown:
        return Verdict(Status.OK, "every TURNTIDE_ variable is a setting")
    return Verdict(Status.FAIL, "; ".join(each.told for each in unknown), "rename or unset them: they change nothing")
