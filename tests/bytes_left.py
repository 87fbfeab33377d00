"""What a store still has of somebody who was erased: a look at every byte of its files."""

from __future__ import annotations

from pathlib import Path


def files_with(folder: Path, *needles: bytes) -> list[str]:
    """Files below a folder in which any of these bytes stand, by their path from there."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    found = [file for file in files for content in [file.read_bytes()] if any(each in content for each in needles)]
    return [str(file.relative_to(folder)) for file in found]
