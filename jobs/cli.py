"""`turntide`: the command line.

Commands are imported when they are called: `turntide --help` must not wait for a Kafka client or a database.
"""

import logging
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from models.errors import ConfigurationError, TurntideError

# Before numpy is imported. A second thread of its linear algebra waits busily: a search of 10,000 held turns takes
# 7.6 ms of CPU with it, 4.4 without, in nearly the same time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_Command = TypeVar("_Command", bound=Callable[..., None])
_EXIT_FAILED = 2
_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class CommandEntry(NamedTuple):
    """One row of the table of commands.

    Attributes:
        path: Words after `turntide`: a name of the first page, or a group and a name within it.
        target: `module:attribute` of a function or a `typer.Typer`; empty for a group that has only rows of its own.
        summary: Its line on the help page.
    """

    path: str
    target: str
    summary: str

    @property
    def alias(self) -> str:
        """Its name of earlier releases, when all commands stood on the first page; hidden, goes with 0.4."""
        return _RENAMED.get(self.path) or self.path.rpartition(" ")[2]


_RENAMED = {"memory apps": "memories"}

_TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
COMMANDS = tuple(CommandEntry(*row) for row in _TABLE["commands"])
"""Every command, in the order of the help pages."""


def examples(*lines: str) -> str:
    """Epilog of a command's help: one example a line."""
    return "\n\n".join(["Examples:", *(f"[cyan]{line}[/]" for line in lines)])


def with_examples(*lines: str) -> Callable[[_Command], _Command]:
    """Show these examples on the help page of a command."""

    def show(command: _Command) -> _Command:
        command.epilog = examples(*lines)  # type: ignore[attr-defined] # read by `_imported`
        return command

    return show


def group(text: str) -> typer.Typer:
    """A group of commands with this help."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=text)


class _LazyGroup(TyperGroup):
    """Lists commands by their summaries and imports the one that is called."""

    def __init__(self, *, path: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries = dict(_named(path))
        for name, entry in self._entries.items():
            hidden = not path and entry.path != name
            self.add_command(TyperCommand(name, help=entry.summary, hidden=hidden))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or name not in self._entries:
            return name, command, rest
        entry = self._entries[name]
        if self.commands[name].hidden and sys.stderr.isatty():
            typer.echo(f"`turntide {name}` is now `turntide {entry.path}`", err=True)
        return name, _load(entry, name), rest


def _named(group: str) -> Iterator[tuple[str, CommandEntry]]:
    """Entries of a group by name; the first page also takes the names of earlier releases."""
    for entry in COMMANDS:
        parent, _, name = entry.path.rpartition(" ")
        if parent == group:
            yield name, entry
        elif not group:
            yield entry.alias, entry


def _load(entry: CommandEntry, name: str) -> Any:
    command = _imported(entry, name) if entry.target else TyperGroup(name=name)
    if not any(_named(entry.path)):
        return command
    return _LazyGroup(
        path=entry.path,
        name=name,
        commands=command.commands,
        help=entry.summary,
        rich_markup_mode="rich",
        no_args_is_help=True,
    )


def _imported(entry: CommandEntry, name: str) -> Any:
    module, _, attribute = entry.target.partition(":")
    try:
        target = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    if not isinstance(target, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, epilog=getattr(target, "epilog", None))(target)
        target = alone
    command = typer.main.get_command(target)
    command.name = name
    return command


def _missing(name: str, error: ModuleNotFoundError) -> ConfigurationError:
    from jobs.shared.extras import install_of

    return ConfigurationError(
        f"`turntide {name}` needs the Python package `{error.name}`, which is not installed: "
        f"install {install_of(error.name)}"
    )


app = typer.Typer(
    name="turntide",
    cls=_LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=examples(
        "turntide demo",
        "turntide kafka start && turntide topics apply && turntide worker all",
        "turntide produce chats.jsonl --output json",
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"turntide {metadata.version('turntide')}")
        raise typer.Exit


@app.callback()
def turntide(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Live memory, risk and alerts for long AI conversations: Kafka in, explained alerts and open Parquet out."""


def main() -> None:
    """Console entry: expected failures are one line on stderr and exit code 2; a result's own codes are kept."""
    # What aiokafka has to say about a broker that is down is said once, by our own error; each request is no news.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        app()
    except TurntideError as error:
        _print_error(error)
        sys.exit(_EXIT_FAILED)
    except ModuleNotFoundError as error:
        _print_error(_missing(sys.argv[1], error))
        sys.exit(_EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # as DuckDB tells it
            sys.exit(_EXIT_INTERRUPTED)
        raise


def _print_error(error: TurntideError) -> None:
    from jobs.shared.output import Printer, form_of

    Printer(form_of(sys.argv[1:])).error(error)


if __name__ == "__main__":
    main()
