"""`turntide doctor`: the settings, redacted, and whether everything they name works.

Read first: `checks.py`, the table of all checks. `running.py` runs them side by side, each with a time-out; the other
files have a room of checks each. A check gets the settings and returns a `jobs.verdict.Verdict`; it changes nothing.
"""

from jobs.doctor.checks import CHECKS
from jobs.doctor.command import doctor
from jobs.doctor.shown import redacted, setting_rows

__all__ = ["CHECKS", "doctor", "redacted", "setting_rows"]
