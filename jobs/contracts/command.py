"""`turntide ops contracts`: the generated contracts against the ones in the repository."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import typer

from jobs.cli import examples, group
from jobs.contracts.documents import documents
from jobs.shared.generated_files import DirectoryOption, differing, write_files
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError
from streams.archive.views.published import VIEWS_VERSION, columns_of_views

_EXIT_DRIFT = 1
NAME = "views.json"
"""View → column → type. A column may be added; one that goes, or has another type, makes a new version of the views."""
Columns = Mapping[str, Mapping[str, str]]

_DIRECTORY = Path("deploy") / "contracts"
_SCHEMAS = Path("schemas")

app = group(
    "Write or check JSON Schemas, the AsyncAPI document, the data dictionary and the archive's views. Example "
    "records are maintained by hand: every release must decode the records of earlier ones.",
)


@app.command(epilog=examples("turntide ops contracts write", "turntide ops contracts write --directory contracts"))
def write(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Write the files that differ. Fails if a view would lose a column of its version, which would break readers."""
    if lost := breaks(directory):
        raise ConfigurationError(
            f"{directory / NAME} loses what readers rely on: {'; '.join(lost)}. Keep it, or raise VIEWS_VERSION"
        )
    write_files(directory, _generated(), "contracts", output, only_json_of=_SCHEMAS)


@app.command(epilog=examples("turntide ops contracts check"))
def check(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Exit with code 1 if a file differs from the code; `write` fixes it."""
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


# --- the contract of the archive's views


def views_contract() -> str:
    """The document, from the definitions."""
    document = {"version": VIEWS_VERSION, "views": columns_of_views()}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def breaks(directory: Path) -> list[str]:
    """What the committed contract promises and the code no longer has, in words; empty without a contract.

    Another version promises anew.
    """
    path = directory / NAME
    if not path.is_file():
        return []
    promised: Any = msgspec.json.decode(path.read_bytes())
    return [] if promised["version"] != VIEWS_VERSION else lost(promised["views"], columns_of_views())


def lost(promised: Columns, present: Columns) -> list[str]:
    """Columns that went or changed their type.

    >>> lost({"turns": {"turn": "BIGINT", "risk": "DOUBLE"}}, {"turns": {"turn": "VARCHAR", "new": "DOUBLE"}})
    ['turns.turn was BIGINT, is VARCHAR', 'turns.risk is gone']
    """
    found = []
    for view, columns in promised.items():
        for column, kind in columns.items():
            now = present.get(view, {}).get(column)
            if now is None:
                found.append(f"{view}.{column} is gone")
            elif not _grew(kind, now):
                found.append(f"{view}.{column} was {kind}, is {now}")
    return found


def _grew(promised: str, present: str) -> bool:
    """Whether a type is the same, or the same with further fields in its structs."""
    import duckdb

    from streams.archive.columns import grows

    if promised == present:
        return True
    with duckdb.connect() as con:
        return grows(con, promised, present)
