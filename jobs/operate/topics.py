"""`turntide topics`: the topic table against the broker, and turns of one prefix sent to another one's topic."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from jobs.cli import examples, group
from jobs.operate.strimzi import rendered, topic_resources, user_resources
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.sending import turns_sender
from jobs.shared.topic_drift import DriftKind, TopicDrift, compare, refused, wanted_topics
from models.errors import ConfigurationError, InvalidRecord
from models.events import ClockTicked
from models.events.topics import TURNS
from models.policy import IntakePolicy
from models.wire.codec import decode_input
from streams.kafka.client import admin, consumer, require_topic
from streams.kafka.producer import Record
from streams.kafka.records import appended_at
from streams.kafka.topics import GROWING, add_partitions, create, existing_topics, set_config
from streams.settings import Settings, load_settings

_EXIT_DRIFT = 1

AllowRepartition = Annotated[
    bool,
    typer.Option(
        "--allow-repartition", help="Add partitions to existing topics although keys move; stop the workers first."
    ),
]

app = group(
    "Compare the broker's topics with the wanted ones (models/events/topics.py, the settings' prefix, partitions "
    "and replication), and apply them."
)


@app.command(epilog=examples("turntide topics plan", "turntide topics plan --output json"))
def plan(output: OutputOption = OutputFormat.TABLE) -> None:
    """Show what `apply` would change, and how a deployment gets more partitions."""
    found = asyncio.run(differences(load_settings()))
    _show("planned", found, output)
    if {DriftKind.TOO_FEW_PARTITIONS, DriftKind.CO_PARTITIONING} & {difference.kind for difference in found}:
        Printer(output).message(GROWING)


@app.command(epilog=examples("turntide topics apply", "TURNTIDE_KAFKA__REPLICATION=3 turntide topics apply"))
def apply(
    *,
    allow_repartition: AllowRepartition = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Create topics, add partitions, set configuration. Repeating it changes nothing; nothing is ever deleted."""
    _show("applied", asyncio.run(apply_topics(load_settings(), allow_repartition=allow_repartition)), output)


@app.command(epilog=examples("turntide topics check || turntide topics plan"))
def check(output: OutputOption = OutputFormat.TABLE) -> None:
    """Exit with code 1 if the broker's topics differ from the wanted ones."""
    found = asyncio.run(differences(load_settings()))
    _show("drift", found, output)
    if found:
        raise typer.Exit(_EXIT_DRIFT)


@app.command(epilog=examples("TURNTIDE_TOPIC_PREFIX=next turntide topics copy --from turntide"))
def copy(
    *,
    old_prefix: Annotated[str, typer.Option("--from", help="Prefix of the topics to copy from.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Copy the turns of another prefix to this prefix's topic, in the order of arrival. Stop their producers first.

    This gives a deployment more partitions: the roles fold all turns again under the new prefix. Changes that admins
    made to memories are not copied.
    """
    settings = load_settings()
    copied = asyncio.run(copy_turns(settings, old_prefix))
    Printer(output).record({"copied": copied, "topic": TURNS.full_name(settings.topic_prefix)})


@app.command(
    epilog=examples(
        "turntide topics strimzi --folder deploy/kubernetes/topics",
        "TURNTIDE_KAFKA__PARTITIONS=48 turntide topics strimzi --cluster main | kubectl apply -f -",
    )
)
def strimzi(
    *,
    cluster: Annotated[str, typer.Option("--cluster", help="Name of Strimzi's Kafka resource.")] = "turntide",
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Write topics.yaml and users.yaml here instead of printing them."),
    ] = None,
) -> None:
    """Print the topics as Strimzi's KafkaTopic resources, and a KafkaUser with its ACLs for each role.

    Prefix and partitions are those of the settings; replicas are at least three. The command needs no broker.
    """
    settings = load_settings()
    kafka = settings.kafka.model_copy(update={"replication": max(settings.kafka.replication, STRIMZI_REPLICAS)})
    files = strimzi_files(settings.model_copy(update={"kafka": kafka}), cluster)
    if folder is None:
        typer.echo("---\n".join(files.values()), nl=False)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
        Printer(OutputFormat.TABLE).message(f"written: {folder / name}")


STRIMZI_REPLICAS = 3
"""With `min.insync.replicas` 2 what was acknowledged outlives a broker."""
_GENERATED = "Made by `turntide topics strimzi`; change models/events/topics.py or jobs/operate/strimzi.py instead."


def strimzi_files(settings: Settings, cluster: str) -> dict[str, str]:
    """The files of `turntide topics strimzi --folder`, by name."""
    return {
        "topics.yaml": rendered(topic_resources(settings, cluster), _GENERATED),
        "users.yaml": rendered(user_resources(settings, cluster), _GENERATED),
    }


async def differences(settings: Settings) -> list[TopicDrift]:
    """Differences between the broker's topics and the wanted ones.

    Raises:
        StoreUnavailable: The cluster does not answer.
    """
    wanted = wanted_topics(settings)
    async with admin(settings.kafka) as client:
        return compare(wanted, await existing_topics(client, [topic.name for topic in wanted]))


async def apply_topics(settings: Settings, *, allow_repartition: bool = False) -> list[TopicDrift]:
    """Bring the broker's topics to the wanted state; what was changed is returned. Idempotent.

    Raises:
        ConfigurationError: A difference cannot be mended, or not without moving keys; nothing was changed.
        StoreUnavailable: The cluster does not answer.
    """
    wanted = {topic.name: topic for topic in wanted_topics(settings)}
    async with admin(settings.kafka) as client:
        found = compare(list(wanted.values()), await existing_topics(client, list(wanted)))
        if reasons := refused(found, allow_repartition=allow_repartition):
            raise ConfigurationError(" ".join(reasons))
        by_kind = {kind: [d.topic for d in found if d.kind is kind] for kind in DriftKind}
        await create(client, [wanted[name] for name in by_kind[DriftKind.MISSING]])
        await add_partitions(client, {name: wanted[name].partitions for name in by_kind[DriftKind.TOO_FEW_PARTITIONS]})
        await set_config(client, {name: wanted[name].config for name in by_kind[DriftKind.CONFIG]})
    return found


def _show(title: str, found: list[TopicDrift], output: OutputFormat) -> None:
    printed = Printer(output)
    printed.rows(title, [msgspec.to_builtins(difference) for difference in found])
    if not found:
        printed.message("topics are as wanted")


_POLL_MS = 500
_AT_ONCE = 500


async def copy_turns(settings: Settings, old_prefix: str) -> int:
    """Send every record of the old prefix's `turns.v1` that its log still has to the present one's; returns how many.

    Keys, headers and bytes stay, also of records that are refused. Clock ticks stay behind: they are of a partition,
    and workers write their own. What was appended first is sent first, over all partitions: the clock of a partition
    follows its records. Run twice it sends everything twice, and the second time counts as duplicates.

    Raises:
        ConfigurationError: It is the same prefix, or a topic is missing.
        StoreUnavailable: The cluster does not answer.
        DeliveryFailed: The broker did not confirm.
    """
    if old_prefix == settings.topic_prefix:
        raise ConfigurationError(f"{old_prefix} is the settings' own prefix: set TURNTIDE_TOPIC_PREFIX to the new one")
    name = TURNS.full_name(old_prefix)
    places = [TopicPartition(name, number) for number in await require_topic(settings.kafka, name)]
    async with consumer(settings.kafka) as client, turns_sender(settings) as sender:
        client.assign(places)
        await client.seek_to_beginning(*places)
        ends = await client.end_offsets(places)
        async for record in _by_arrival(client, ends):
            if not _is_tick(record):
                await sender.add(Record(record.key, record.value, [(n, v or b"") for n, v in record.headers]))
        await sender.finish()
        return sender.acknowledged


async def _by_arrival(client: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> AsyncIterator[ConsumerRecord]:
    """Records of all partitions below their ends, merged by the broker's time."""
    waiting: dict[TopicPartition, deque[ConsumerRecord]] = {place: deque() for place in ends}
    while waiting:
        for place in [place for place, records in waiting.items() if not records]:
            await _refill(client, place, ends[place], waiting)
        if waiting:
            first = min(waiting, key=lambda place: waiting[place][0].timestamp)
            yield waiting[first].popleft()


async def _refill(
    client: AIOKafkaConsumer, place: TopicPartition, end: int, waiting: dict[TopicPartition, deque[ConsumerRecord]]
) -> None:
    """Read on in a partition; one that is at its end waits no longer."""
    while not waiting[place]:
        if await client.position(place) >= end:
            del waiting[place]
            return
        polled = await client.getmany(place, timeout_ms=_POLL_MS, max_records=_AT_ONCE)
        waiting[place].extend(record for record in polled.get(place, ()) if record.offset < end)


def _is_tick(record: ConsumerRecord) -> bool:
    try:
        return isinstance(decode_input(record.value, record.key, appended_at(record), IntakePolicy()), ClockTicked)
    except InvalidRecord:
        return False
