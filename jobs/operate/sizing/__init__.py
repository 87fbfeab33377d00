"""Sizing for a number of turns a day: partitions, workers, memory, disk and money, from measured costs of a turn."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from jobs.cli import with_examples
from jobs.operate.sizing.plan import Cost, ExpectedLoad, Plan, Prices, plan
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)")
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
STEPS = ("1M", "100M", "10G")


def turns_of(text: str) -> float:
    """A number with k, M or G behind it.

    >>> turns_of("100M"), turns_of("2500")
    (100000000.0, 2500.0)

    Raises:
        ConfigurationError: It is none, or zero.
    """
    found = _NUMBER.fullmatch(text.strip())
    value = float(found[1]) * _SCALE[found[2]] if found else 0.0
    if not value:
        raise ConfigurationError(f"{text!r} is not a number of turns: write 1000000, 1M, 2.5k or 10G")
    return value


@with_examples(
    "turntide ops sizing",
    "turntide ops sizing 5M --turn-bytes 1500 --replication 2",
    "turntide ops sizing 100M --measured roles.json --output json | jq '.plans[0].workers'",
)
def sizing(
    turns_per_day: Annotated[
        list[str] | None, typer.Argument(help="Turns a day, as 250k, 1M or 10G. Default: 1M 100M 10G.")
    ] = None,
    *,
    peak: Annotated[float, typer.Option(min=1, help="Ratio of the busiest hour to the mean.")] = 3.0,
    turn_bytes: Annotated[float | None, typer.Option(min=50, help="Mean size as JSON. Default: as measured.")] = None,
    turns_per_session: Annotated[float, typer.Option(min=1, help="Mean turns of a session.")] = 20.0,
    open_minutes: Annotated[float, typer.Option(min=1, help="Mean time from first turn to end or time-out.")] = 45.0,
    replication: Annotated[int, typer.Option(min=1, help="Replicas of each partition.")] = 3,
    archive_days: Annotated[float, typer.Option(min=1, help="Days that the archive keeps.")] = 365.0,
    index_days: Annotated[float, typer.Option(min=1, help="Days of turns that the index holds.")] = 30.0,
    core_hour: Annotated[float, typer.Option(min=0, help="Price of a core for an hour.")] = 0.04,
    memory_gb_month: Annotated[float, typer.Option(min=0, help="Price of a GB of memory for a month.")] = 3.0,
    disk_gb_month: Annotated[float, typer.Option(min=0, help="Price of a GB on disk for a month.")] = 0.10,
    object_gb_month: Annotated[float, typer.Option(min=0, help="Price of a GB of object storage for a month.")] = 0.023,
    measured: Annotated[
        Path | None, typer.Option(help="Output of `turntide lab bench roles --output json` on your machine.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Plan partitions, workers, memory, disk and money for a number of turns a day.

    The plan uses costs measured on one machine, and a load of 60 % of each core at the peak. It includes no discounts,
    no traffic between zones and no staff. deploy/sizing.md lists its assumptions and what reaches its limit first.
    """
    given = locals()  # options have the names of the fields that they set
    load = msgspec.convert(given | {"turns_per_day": 1.0}, ExpectedLoad)
    prices = msgspec.convert(given, Prices)
    cost = measured_cost(measured)
    plans = [
        plan(msgspec.structs.replace(load, turns_per_day=turns_of(text)), cost, prices)
        for text in turns_per_day or STEPS
    ]
    printed = Printer(output)
    if output is OutputFormat.JSON:
        printed.record({"plans": msgspec.to_builtins(plans), "cost": msgspec.to_builtins(cost)})
        return
    columns, rows = table_of(plans)
    printed.table("plan", columns, rows)
    for each in plans:
        for limit in each.limits:
            printed.message(f"{each.turns_per_day:,.0f} a day: {limit}")


def shipped_cost() -> Cost:
    """Costs that were measured for this release (`measured.toml`)."""
    return msgspec.toml.decode(files("jobs.operate.sizing").joinpath("measured.toml").read_bytes(), type=Cost)


def measured_cost(file: Path | None) -> Cost:
    """The shipped costs, or those that a run of `turntide lab bench roles` found.

    Raises:
        ConfigurationError: The file cannot be read or is no such output.
    """
    shipped = shipped_cost()
    if file is None:
        return shipped
    try:
        measured = msgspec.json.decode(file.read_bytes(), type=_Measured)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(
            f"{file} is not an output of `turntide lab bench roles --output json`: {error}. Write it again"
        ) from error
    return msgspec.structs.replace(  # what a run does not measure (memory) stays as shipped
        shipped,
        turn_bytes=measured.turn_bytes,
        cpu_us={each.role: each.cpu_us_per_turn for each in measured.roles},
        topic_bytes={each.topic: each.bytes_per_turn for each in measured.topics},
        archive_bytes=measured.archive_bytes_per_turn,
        index_bytes=measured.index_bytes_per_turn,
    )


class _Role(msgspec.Struct):
    role: str
    cpu_us_per_turn: float


class _Topic(msgspec.Struct):
    topic: str
    bytes_per_turn: float


class _Measured(msgspec.Struct):
    turn_bytes: float
    roles: list[_Role]
    topics: list[_Topic]
    archive_bytes_per_turn: float
    index_bytes_per_turn: float


def table_of(plans: Sequence[Plan]) -> tuple[list[str], list[tuple[str, ...]]]:
    """A column for each plan."""
    roles = list(dict.fromkeys(role for each in plans for role in each.workers))
    rows: list[tuple[str, ...]] = [
        ("turns a second, mean / peak", *(f"{p.turns_per_s:,.0f} / {p.peak_turns_per_s:,.0f}" for p in plans)),
        ("partitions of each topic", *(f"{p.partitions:,}" for p in plans)),
        *((f"workers: {role}", *(f"{p.workers[role]:,}" for p in plans)) for role in roles),
        ("brokers, cores of all", *(f"{p.brokers}, {p.broker_cores:,}" for p in plans)),
        ("sessions open at the peak", *(f"{p.open_sessions:,}" for p in plans)),
        ("memory of the workers", *(_gb(p.workers_memory_gb) for p in plans)),
        ("Kafka's disks, all copies", *(_gb(p.kafka_disk_gb) for p in plans)),
        ("index: points", *(f"{p.index_points:,.0f}" for p in plans)),
        ("index: size", *(_gb(p.index_gb) for p in plans)),
        ("archive, a day", *(_gb(p.archive_gb_per_day) for p in plans)),
        ("archive, in all", *(_gb(p.archive_gb) for p in plans)),
        ("money a month", *(f"{p.money_per_month:,.0f}" for p in plans)),
        ("money per million turns", *(f"{p.money_per_million_turns:,.2f}" for p in plans)),
    ]
    return ["turns a day", *(f"{p.turns_per_day:,.0f}" for p in plans)], rows


def _gb(value: float) -> str:
    return f"{value / 1e3:,.1f} TB" if value >= 1e3 else f"{value:,.1f} GB"  # noqa: PLR2004 - a thousand
