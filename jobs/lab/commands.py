"""Groups of commands of the lab, each command with examples on its help page."""

from collections.abc import Callable
from typing import Any, TypeVar

from typer import Typer

from jobs.cli import examples

_Function = TypeVar("_Function", bound=Callable[..., Any])


class LabGroup(Typer):
    """A group of commands at this path, as in "lab eval", with this help."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode="rich", help=text)
        self._path = path

    def shown(self, *lines: str, **options: Any) -> Callable[[_Function], _Function]:
        """Add a command with examples: what stands behind the path, or whole lines that name `turntide` themselves."""
        whole = [line if "turntide " in line else f"turntide {self._path} {line}" for line in lines]
        return self.command(epilog=examples(*whole), **options)
