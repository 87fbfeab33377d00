"""`turntide contracts`: the generated contracts against the ones in the repository."""

from __future__ import annotations

from pathlib import Path

import typer

from jobs.cli import examples
from jobs.contracts.documents import documents
from jobs.contracts.view_contract import NAME, breaks, views_contract
from jobs.shared.generated_files import DirectoryOption, differing, write_files
from jobs.shared.options import OutputOption
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError

_EXIT_DRIFT = 1

_DIRECTORY = Path("deploy") / "contracts"
_SCHEMAS = Path("schemas")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Write or check JSON Schemas, the AsyncAPI document, the data dictionary and the archive's views. Example "
    "records are kept by hand: what was once written must decode for ever.",
)


@app.command(epilog=examples("turntide contracts write", "turntide contracts write --directory contracts"))
def write(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Write what differs. Refused where a view lost a column of its version, which would break readers."""
    if lost := breaks(directory):
        raise ConfigurationError(
            f"readers rely on what {directory / NAME} promises: {'; '.join(lost)}. Keep it, or raise VIEWS_VERSION"
        )
    write_files(directory, _generated(), "contracts", output, only_json_of=_SCHEMAS)


@app.command(epilog=examples("turntide contracts check"))
def check(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Exit with code 1 when a file differs from what the code says; `write` mends it."""
    changed, printed = drift(directory), Printer(output)
    printed.rows("contracts", [{"file": name, "state": state} for name, state in changed.items()])
    for broken in breaks(directory):
        printed.message(f"BREAKS READERS {broken}: keep it, or raise VIEWS_VERSION")
    if changed:
        raise typer.Exit(_EXIT_DRIFT)
    printed.message("contracts are as the code says")


def _generated() -> dict[str, str]:
    return {**documents(), NAME: views_contract()}


def drift(directory: Path) -> dict[str, str]:
    """Files that differ from what the code says: path below the folder -> missing, changed or left over."""
    return differing(directory, _generated(), only_json_of=_SCHEMAS)
