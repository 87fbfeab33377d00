"""What a store still has of somebody who was erased: a look at every byte of its files."""

from pathlib import Path


def files_with(folder: Path, *needles: str | bytes) -> list[str]:
    """Files and folders below a folder in which, or in whose path, any of these stand; by their path from there."""
    wanted = [each.encode() if isinstance(each, str) else each for each in needles]
    paths = [(str(path.relative_to(folder)), path) for path in sorted(folder.rglob("*"))]
    held = [(name, name.encode() + (path.read_bytes() if path.is_file() else b"")) for name, path in paths]
    return [name for name, data in held if any(each in data for each in wanted)]
