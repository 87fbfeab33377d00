"""`turntide doctor`: the settings, redacted, and whether everything they name works.

Read first: `command.py`, with the table of all checks. `verdict.py` runs them; the other files hold the checks.
"""

from jobs.operate.doctor.command import CHECKS, doctor, redacted, setting_rows

__all__ = ["CHECKS", "doctor", "redacted", "setting_rows"]
