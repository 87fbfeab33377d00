"""What is missing is named with the smallest extra that brings it."""

from __future__ import annotations

from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobs.cli import _missing
from jobs.shared.extras import install_of
from tests.support.installed import PROJECT, brought_by, bytes_of

EXTRAS = {
    extra: {canonicalize_name(Requirement(line).name) for line in lines} - {"turntide"}
    for extra, lines in PROJECT["optional-dependencies"].items()
}
DEFAULT = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
NEVER_IMPORTED = {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"}
"""Their modules stand below one of opentelemetry-api."""


@pytest.mark.parametrize("package", sorted(set().union(*EXTRAS.values()) - DEFAULT - NEVER_IMPORTED))
def test_an_extra_that_names_the_package_is_named(package: str) -> None:
    """By the name under which the package is imported."""
    modules = [
        top for top, of in packages_distributions().items() if package in {str(canonicalize_name(each)) for each in of}
    ]
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
