"""`turntide up`: a broker, its topics and all roles, with one command and until Ctrl-C."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import with_examples
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.broker.serving import broker_for, terminable, usual_port
from jobs.operate.supervisor import only_one, require_free_ports, supervise
from jobs.operate.topics import apply_topics
from jobs.operate.worker import STOP_ALL_WITHIN_S, run_until_stopped
from jobs.shared.role_process import called_as
from streams.settings import Settings, default_data_dir, load_settings

_HEAP, _LIGHT_HEAP = "256m", "128m"


@with_examples(
    "turntide up",
    "turntide up --light",
    "turntide up --data-dir ./memory --kafka-port 9093",
    "TURNTIDE_KAFKA=broker:9092 turntide up",
)
def up(
    *,
    light: Annotated[
        bool, typer.Option("--light", help="All roles in one process: for a laptop or a small machine.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for all data.", show_default="~/.local/share/turntide"),
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the broker. Default: the previous one, else 9092.")
    ] = None,
) -> None:
    """Start everything on this machine, print where to write and to read, and stop it all on Ctrl-C.

    Starts a real Apache Kafka (fetched once, 45 MB; TURNTIDE_KAFKA=host:port uses yours instead, and a broker of
    `turntide kafka start` is used and left running), the topics, and the roles as in `turntide worker all`. Everything
    listens on this machine only. The folder keeps the data: the next `turntide up` continues with it.
    """
    settings = load_settings(**({"data_dir": data_dir.resolve()} if data_dir else {}))
    folder = settings.data_dir

    def broker() -> LocalKafka:
        port = kafka_port or usual_port(folder, "turntide up --kafka-port")
        return LocalKafka(folder, port=port, heap=_LIGHT_HEAP if light else _HEAP, light=True)

    with terminable(), only_one(folder):
        require_free_ports(settings)
        with broker_for(settings.kafka, broker, typer.echo) as kafka:
            settings = settings.model_copy(update={"kafka": kafka})
            changed = asyncio.run(apply_topics(settings))
            typer.echo(f"{len(changed)} topics created or changed; starting the roles, logs are in {folder / 'logs'}")
            run_until_stopped(
                lambda stop: supervise(
                    settings, stop, typer.echo, light=light, logs=folder / "logs", further=_further(settings)
                ),
                exit_with_parent=False,
                within_s=STOP_ALL_WITHIN_S,
            )
    typer.echo(f"ended; the data is in {folder}, and the next `{called_as()} up` continues with it")


def _further(settings: Settings) -> dict[str, str]:
    """What is told with the addresses."""
    folder = shlex.quote(str(settings.data_dir))
    environment = f"export TURNTIDE_DATA_DIR={folder}; " if settings.data_dir != default_data_dir() else ""
    return {
        "try": f"{environment}{called_as()} produce chats.jsonl",
        "data": f"{folder}, to begin anew: end this and remove it",
        "end": "Ctrl-C",
    }
