"""`turntide doctor`: the settings, redacted, and whether everything they name works.

Read first: `checks.py`, the table of all checks. `running.py` runs them side by side, each with a time-out; the other
files have a room of checks each. A check gets the settings and returns a `jobs.operate.doctor.verdict.Verdict`; it
changes nothing.
"""

from jobs.operate.doctor.checks import CHECKS
from jobs.operate.doctor.command import doctor
from jobs.operate.doctor.shown import redacted, setting_rows

__all__ = ["CHECKS", "doctor", "redacted", "setting_rows"]
