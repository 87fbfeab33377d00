"""The examples, as the documentation shows them, each in an app of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[2] / "examples"
_HOME = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
"""No framework asks the network for prices, or tells anybody of its use."""
_OSLO = ["You live in Oslo."]
_SAYS = {
    "langgraph_agent": ["Hello!", *_OSLO, "['Norwegian']"],
    "langchain_history": ["['I am Alex.', 'Hello Alex.', 'Who am I?', 'You are Alex.']"],
    "llama_index_chat": ["Noted.", *_OSLO],
    "openai_agents_chat": ["Noted, after 1 items.", "You live in Oslo, after 3 items."],
    "pydantic_ai_chat": ["Noted.", *_OSLO],
    "litellm_calls": ["Noted."],
}


def _run(name: str, app: str, *arguments: str) -> list[str]:
    program = (_FOLDER / f"{name}.py").read_text().replace('app="', f'app="{app}-')
    command, environment = [sys.executable, "-c", program, *arguments], {**os.environ, **_HOME}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", _SAYS)
def test_an_example_says_what_it_shows(name: str, app: str) -> None:
    """With the real framework and a scripted model."""
    assert list(dict.fromkeys(_run(name, app))) == _SAYS[name]
