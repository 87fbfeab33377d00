"""`turntide analyse notebook`: the archive in marimo, to ask it interactively."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli import examples
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.role_process import own_command
from models.errors import ConfigurationError

if TYPE_CHECKING:
    from marimo import App

_FILE = Path("turntide-notebook.py")


def notebook(
    *,
    to: Annotated[Path, typer.Option(help="File of the notebook; created if it does not exist.")] = _FILE,
    check: Annotated[bool, typer.Option(help="Run every cell once without opening it; print the result.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Open a marimo notebook over the archive in the browser: headline, a query, polars, a picture, a mining result.

    The notebook is a Python file of your own: the command never overwrites it. It listens on this machine only.
    """
    _ours()
    if check:
        Printer(output).record(checked())
        return
    copied(to)
    command = [*own_command("marimo"), "edit", "--skip-update-check", str(to)]
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own interpreter and file


notebook.epilog = examples(  # type: ignore[attr-defined]
    "turntide analyse notebook",
    "turntide analyse notebook --to march.py",
    "turntide analyse notebook --check --output json",
)


def copied(place: Path) -> None:
    """Put our notebook there, unless there is a file already.

    Raises:
        ConfigurationError: The place cannot be written to.
    """
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write((files("jobs.analyse.report") / "notebook.py").read_text("utf-8"))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigurationError(f"cannot write the notebook to {place}: {error.strerror}") from None


def _ours() -> App:
    """Our notebook.

    Raises:
        ConfigurationError: marimo is not installed.
    """
    try:
        from jobs.analyse.report.notebook import app
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`turntide analyse notebook` needs the Python package `{error.name}`: install `turntide[notebook]`"
        ) from None
    return app


def checked() -> dict[str, object]:
    """Run our notebook's cells over the archive of the settings; gives some of their values."""
    _, defined = _ours().run()
    headline = defined["headline"].row(0, named=True)
    return {
        **headline,
        "apps": defined["by_app"].height,
        "points": len(defined["along"]),
        "findings": len(defined["overview"].section.findings),
    }
