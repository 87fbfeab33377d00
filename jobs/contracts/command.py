"""`turntide contracts`: the generated contracts against the ones in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.contracts.documents import documents
from jobs.contracts.view_contract import NAME, breaks, views_contract
from jobs.shared.generated_files import differing, write_differing
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError

_EXIT_DRIFT = 1

Directory = Annotated[Path, typer.Option("--directory", help="Folder of the contracts.")]
_DIRECTORY = Path("deploy") / "contracts"
_SCHEMAS = Path("schemas")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Write or check JSON Schemas, the AsyncAPI document, the data dictionary and the archive's views. Example "
    "records are kept by hand: what was once written must decode for ever.",
)


@app.command(epilog=examples("turntide contracts write", "turntide contracts write --directory contracts"))
def write(directory: Directory = _DIRECTORY, output: OutputFormat = OutputFormat.TABLE) -> None:
    """Write what differs. Refused where a view lost a column of its version, which would break readers."""
    if lost := breaks(directory):
        raise ConfigurationError(
            f"readers rely on what {directory / NAME} promises: {'; '.join(lost)}. Keep it, or raise VIEWS_VERSION"
        )
    generated = _generated()
    changed = differing(directory, generated, only_json_of=_SCHEMAS)
    write_differing(directory, generated, changed)
    _show(changed, output)


@app.command(epilog=examples("turntide contracts check"))
def check(directory: Directory = _DIRECTORY, output: OutputFormat = OutputFormat.TABLE) -> None:
    """Exit with code 1 when a file differs from what the code says; `write` mends it."""
    changed = drift(directory)
    _show(changed, output)
    for broken in breaks(directory):
        Printer(output).message(f"BREAKS READERS {broken}: keep it, or raise VIEWS_VERSION")
    if changed:
        raise typer.Exit(_EXIT_DRIFT)


def _generated() -> dict[str, str]:
    return {**documents(), NAME: views_contract()}


def drift(directory: Path) -> dict[str, str]:
    """Files that differ from what the code says: path below the folder -> missing, changed or left over."""
    return differing(directory, _generated(), only_json_of=_SCHEMAS)


def _show(changed: dict[str, str], output: OutputFormat) -> None:
    printed = Printer(output)
    printed.rows("contracts", [{"file": name, "state": state} for name, state in changed.items()])
    if not changed:
        printed.message("contracts are as the code says")
