"""What a store still has of somebody who was erased: a look at every byte of its files."""

from __future__ import annotations

from pathlib import Path


def files_with(folder: Path, *needles: str | bytes) -> list[str]:
    """Files below a folder in which, or in whose path, any of these stand; by their path from there."""
    wanted = [each.encode() if isinstance(each, str) else each for each in needles]
    files = [(str(file.relative_to(folder)), file) for file in sorted(folder.rglob("*")) if file.is_file()]
    return [name for name, file in files if any(each in name.encode() + file.read_bytes() for each in wanted)]
