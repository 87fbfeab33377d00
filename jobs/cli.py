"""`turntide`: the command line.

Commands are imported when they are called: `turntide --help` must not wait for a Kafka client or a database.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module, metadata
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from models.errors import ConfigurationError, TurntideError

_EXIT_FAILED = 2
_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class _CommandEntry(NamedTuple):
    """Where a command stands, and what the list of commands says about it."""

    module: str
    attribute: str
    summary: str


_COMMANDS = {
    "demo": _CommandEntry("jobs.demo", "demo", "Run everything on this machine and watch it work."),
    "worker": _CommandEntry("jobs.operate.worker", "worker", "Run one role, or all of them on this machine."),
    "produce": _CommandEntry("jobs.produce.command", "produce", "Send conversations from a file or stdin."),
    "memory": _CommandEntry(
        "jobs.memory.topics", "app", "Read a session's topics in the archive, restore an evicted one."
    ),
    "memories": _CommandEntry("jobs.memory.memories", "app", "Read, search, edit, pin and delete what apps remember."),
    "export": _CommandEntry("jobs.memory.export", "export", "Save what apps remember as JSON."),
    "project": _CommandEntry(
        "jobs.memory.project", "app", "Read and put right what is remembered of a project; travel in time."
    ),
    "consolidate": _CommandEntry(
        "jobs.memory.consolidate", "consolidate", "Archive what is old and weak in a project, now."
    ),
    "query": _CommandEntry("jobs.archive.query", "query", "Ask the archive in SQL."),
    "shell": _CommandEntry("jobs.archive.shell", "shell", "Ask the archive in SQL, statement by statement."),
    "dictionary": _CommandEntry(
        "jobs.archive.dictionary", "dictionary", "Say what the archive's views and columns mean."
    ),
    "mine": _CommandEntry(
        "jobs.analyse.mining.command", "mine", "Find patterns across sessions, each with its evidence."
    ),
    "report": _CommandEntry(
        "jobs.analyse.report.command", "report", "Write what the archive shows as one page, and pictures for chat."
    ),
    "notebook": _CommandEntry(
        "jobs.analyse.report.notebook_command", "notebook", "Open a marimo notebook over the archive."
    ),
    "archive": _CommandEntry(
        "jobs.archive.command", "app", "Verify, merge, upgrade and publish the archive; retention; versions."
    ),
    "topics": _CommandEntry(
        "jobs.operate.topics", "app", "Compare the broker's topics with the wanted ones, and apply them."
    ),
    "kafka": _CommandEntry("jobs.operate.broker.command", "app", "Run a local Apache Kafka, without Docker or Java."),
    "erase": _CommandEntry(
        "jobs.memory.erase", "erase", "Forget a user, a session or an app everywhere, with a proof."
    ),
    "replay": _CommandEntry(
        "jobs.replay.command", "replay", "Fold the log again; compare what the roles left with it."
    ),
    "backtest": _CommandEntry(
        "jobs.escalation.backtest.command", "backtest", "Judge known traffic by two policies, side by side."
    ),
    "calibrate": _CommandEntry(
        "jobs.escalation.calibrate.command", "calibrate", "Propose thresholds by false alarms or alerts per day."
    ),
    "chaos": _CommandEntry(
        "jobs.lab.chaos.command", "chaos", "Kill, freeze and restart everything under load, then compare."
    ),
    "reset": _CommandEntry("jobs.operate.reset", "reset", "Rebuild a role's state from the log, after it was lost."),
    "reindex": _CommandEntry(
        "jobs.operate.reindex", "reindex", "Embed the vector store anew with another model, without downtime."
    ),
    "mcp": _CommandEntry("jobs.memory.mcp", "mcp", "Serve memory to assistants over MCP, from a running role."),
    "sizing": _CommandEntry(
        "jobs.operate.sizing.command", "sizing", "Plan workers, disks and money for a number of turns a day."
    ),
    "soak": _CommandEntry("jobs.lab.soak", "soak", "Run everything under steady load and see whether memory grows."),
    "dlq": _CommandEntry("jobs.operate.dlq", "app", "List, show and replay dead letters."),
    "alerts": _CommandEntry("jobs.alerts.command", "app", "List, acknowledge and label alerts, test the sinks."),
    "doctor": _CommandEntry("jobs.operate.doctor", "doctor", "Print the settings and check everything they name."),
    "metrics": _CommandEntry(
        "jobs.operate.metrics", "metrics", "List every metric: what it means, and what to do about it."
    ),
    "migrate": _CommandEntry(
        "jobs.operate.migrate", "migrate", "Say what of an earlier release stands here, and bring it to this one."
    ),
    "bench": _CommandEntry(
        "jobs.lab.bench.command", "app", "Measure speed on this machine, beside other ways to do the same."
    ),
    "eval": _CommandEntry(
        "jobs.lab.eval.command", "app", "Measure how good a judgement is, on your dialogues or the demo's."
    ),
    "train": _CommandEntry("jobs.lab.train.command", "app", "Learn the scorer's weights from labelled dialogues."),
    "monitoring": _CommandEntry(
        "jobs.operate.monitoring.command", "app", "Write or check dashboards, rules and runbooks."
    ),
    "contracts": _CommandEntry(
        "jobs.contracts.command", "app", "Write or check schemas, AsyncAPI and data dictionary."
    ),
}


def examples(*lines: str) -> str:
    """Epilog of a command's help: one example a line."""
    return "\n\n".join(["Examples:", *(f"[cyan]{line}[/]" for line in lines)])


def command_names() -> tuple[str, ...]:
    """Every command of the first level."""
    return tuple(_COMMANDS)


class _LazyGroup(TyperGroup):
    """Lists commands by their summaries and imports the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=entry.summary) for name, entry in _COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if name is None or command is None else _load(name), rest


def _load(name: str) -> Any:
    entry = _COMMANDS[name]
    try:
        target = getattr(import_module(entry.module), entry.attribute)
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
    return ConfigurationError(
        f"`turntide {name}` needs the Python package `{error.name}`, which is not installed: "
        "install `turntide[local]`, which has everything"
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
