"""Files that are made of the code and kept in the repository: what differs from it, and writing that."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from jobs.shared.output import OutputFormat, Printer

DirectoryOption = Annotated[Path, typer.Option("--directory", help="Folder of the files.")]


def write_files(
    directory: Path, generated: Mapping[str, str], title: str, output: OutputFormat, *, only_json_of: Path
) -> None:
    """Write what differs (`differing`), and print what was written."""
    changed = differing(directory, generated, only_json_of=only_json_of)
    for name in changed:
        path = directory / name
        if name in generated:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated[name], encoding="utf-8")
        else:
            path.unlink()
    Printer(output).rows(title, [{"file": name, "state": state} for name, state in changed.items()])
    if not changed:
        Printer(output).message(f"{title}: every file is as the code says")


def differing(directory: Path, generated: Mapping[str, str], *, only_json_of: Path) -> dict[str, str]:
    """Files that differ from what the code says: path below the folder -> missing, changed or left over.

    All JSON files of the folder `only_json_of` are generated: others there are left over.
    """
    found: dict[str, str] = {}
    for name, text in generated.items():
        path = directory / name
        if not path.is_file():
            found[name] = "missing"
        elif path.read_text(encoding="utf-8") != text:
            found[name] = "changed"
    there = {str(only_json_of / path.name) for path in (directory / only_json_of).glob("*.json")}
    return found | dict.fromkeys(sorted(there - generated.keys()), "left over")
