"""CrewAI, in an environment of its own: it wants another `openai` than the other frameworks."""

import os
import subprocess
import sys
from pathlib import Path

from turntide import Memory

_EXAMPLE = Path(__file__).parents[2] / "examples" / "crewai_crew.py"
_QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}


def test_a_crew_remembers(app: str) -> None:
    """From one run of the example to the next; it is asked by `recall` and emptied by `reset`."""
    from turntide.crewai import TurntideCrewMemory

    program, environment = _EXAMPLE.read_text().replace('app="', f'app="{app}-'), {**os.environ, **_QUIET}
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    assert said.splitlines()[-2:] == ["The harbour opens at nine.", "I remember: nine."]
    crew = TurntideCrewMemory.of(Memory(app=f"{app}-crewai"), "harbour-crew")
    assert "at nine" in crew.recall("harbour", limit=1)[0].record.content
    crew.reset()
    assert crew.recall("harbour") == []
