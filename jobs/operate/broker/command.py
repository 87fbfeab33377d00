"""`turntide kafka`: a local broker to develop, try and test against."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import group
from jobs.operate.broker.jars import KAFKA_VERSION, write_pins
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.broker.serving import usual_port
from jobs.shared.output import OutputFormat, OutputOption, Printer
from streams.settings import default_data_dir, load_settings

_NOT_RUNNING = 3  # as `systemctl status` and `service status` have it


DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="TURNTIDE_DATA_DIR",
        default_factory=default_data_dir,
        show_default="~/.local/share/turntide",
        help="Folder of topics, configuration and log.",
    ),
]

app = group("Run a real single-node Apache Kafka on loopback; needs neither Docker nor an installed Java.")


@app.command(
    epilog="Examples:  [cyan]turntide kafka start[/]  ·  "
    "[cyan]turntide kafka start --port 9092 --data-dir ./kafka[/]  ·  "
    "[cyan]export TURNTIDE_KAFKA=$(turntide kafka start --output json | jq -r .bootstrap)[/]"
)
def start(
    data_dir: DataDir,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Loopback port. Default: the previous one, else that of the settings."),
    ] = None,
    heap: Annotated[str, typer.Option(help="Java heap limit.")] = "512m",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in the foreground; stop the broker on Ctrl-C or SIGTERM.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Start the broker and return once it answers; it runs until `turntide kafka stop`.

    Commands with the same data directory find it, unless TURNTIDE_KAFKA is set to another broker. If another program
    uses the port, the command fails and chooses no other port: else later commands would reach that program.
    """
    broker = LocalKafka(
        data_dir, port=port or usual_port(data_dir, "turntide kafka start --port"), heap=heap, detached=not foreground
    )
    if not foreground:
        broker.start()
        _render(broker, output)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with broker:
            _render(broker, output)
            code = broker.wait()
    except KeyboardInterrupt:
        code = 0
    raise typer.Exit(code)


@app.command(epilog="Example:  [cyan]turntide kafka stop --data-dir ./kafka[/]")
def stop(data_dir: DataDir) -> None:
    """Stop the broker that serves the data directory; its data stays."""
    broker = LocalKafka(data_dir)
    running = broker.running()
    broker.stop()
    typer.echo(f"stopped {running.bootstrap}" if running else f"no broker serves {data_dir}")


@app.command(epilog="Example:  [cyan]turntide kafka status --output json[/]")
def status(data_dir: DataDir, output: OutputOption = OutputFormat.TABLE) -> None:
    """Print whether a broker serves the data directory; exit code 0 if it runs, 3 if not."""
    broker = LocalKafka(data_dir)
    _render(broker, output)
    raise typer.Exit(0 if broker.running() else _NOT_RUNNING)


@app.command(hidden=True)
def pin_jars() -> None:
    """Resolve Kafka's jars anew and rewrite the file of their checksums, for a new Kafka version."""
    typer.echo(f"pinned {len(write_pins())} jars of Apache Kafka {KAFKA_VERSION}")


def _render(broker: LocalKafka, output: OutputFormat) -> None:
    running = broker.running()
    if output is OutputFormat.JSON:
        Printer(output).record(
            {
                "running": running is not None,
                "bootstrap": running and running.bootstrap,
                "pid": running and running.pid,
                "data_dir": str(broker.home.parent),
                "log": str(broker.log),
            }
        )
    elif running:
        typer.echo(f"running at {running.bootstrap} (pid {running.pid}, log {broker.log})")
        if load_settings().kafka.bootstrap != running.bootstrap:
            typer.echo(f"to use it: export TURNTIDE_KAFKA={running.bootstrap}")
    else:
        typer.echo(f"no broker serves {broker.home.parent}: start one with `turntide kafka start`")
