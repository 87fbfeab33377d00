"""The folder of a project's four files (`models.project.files`)."""

import os
from pathlib import Path

from models.errors import ConfigurationError
from models.project.files import read, written
from models.project.saved import FILES, SavedProject


def read_folder(folder: Path) -> dict[str, str]:
    """Texts of a project's files, by name; those that are missing are left out.

    Raises:
        ConfigurationError: One cannot be read, or is no text.
    """
    texts: dict[str, str] = {}
    for name in FILES:
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{folder / name} is damaged: byte {error.start} is not UTF-8") from error
        except OSError as error:
            raise ConfigurationError(f"cannot read {folder / name}: {error.strerror}") from error
    return texts


class ProjectFolder:
    """A folder, made when something is to be written, of which one process writes; unchanged files are left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._on_disk: dict[str, str] = {}

    def read(self) -> SavedProject:
        """The project that is there.

        Raises:
            ConfigurationError: A file cannot be read, or is damaged.
        """
        self._on_disk = read_folder(self.path)
        return read(self._on_disk)

    def write(self, saved: SavedProject, name: str) -> None:
        """Write the files that changed, each whole or not at all.

        Raises:
            ConfigurationError: The folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for file, text in written(saved, name).items():
                if self._on_disk.get(file) != text:
                    replace_file(self.path / file, text)
                    self._on_disk[file] = text
        except OSError as error:
            raise ConfigurationError(f"cannot write {self.path}: {error.strerror}. Choose another folder") from error


def replace_file(to: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner alone: it holds what people said."""
    beside = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(to)
    finally:
        beside.unlink(missing_ok=True)
