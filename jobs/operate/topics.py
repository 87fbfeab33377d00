"""`turntide topics`: the topic table against the broker, and turns of one prefix sent to another one's topic.

`turntide ops reset`: let a role fold or index the log anew, after its state or store was lost.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from msgspec import Struct

from jobs.cli import examples, group, with_examples
from jobs.operate.strimzi import rendered, topic_resources, user_resources
from jobs.shared.log_read import log_extent
from jobs.shared.output import OutputFormat, OutputOption, Printer, YesOption
from jobs.shared.role_groups import commit_offsets, require_empty
from jobs.shared.sending import turns_sender
from jobs.shared.topic_drift import DriftKind, TopicDrift, compare, refused, wanted_topics
from models.entities import REGISTRY
from models.errors import ConfigurationError, InvalidRecord, StoreUnavailable
from models.events import ClockTicked, ErasureProved
from models.events.topics import ERASURES, REQUESTS, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import decode_input
from streams.index.generations import group_of
from streams.kafka.client import admin, consumer, require_topic
from streams.kafka.producer import Record
from streams.kafka.records import appended_at, events_on
from streams.kafka.topics import GROWING, add_partitions, create, existing_topics, set_config
from streams.oracle.replay import FOLDED
from streams.settings import Settings, load_settings

_EXIT_DRIFT = 1

AllowRepartition = Annotated[
    bool,
    typer.Option(
        "--allow-repartition", help="Add partitions to existing topics although keys move; stop the workers before."
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
    """Exit with code 1 when the broker's topics differ from the wanted ones."""
    found = asyncio.run(differences(load_settings()))
    _show("drift", found, output)
    if found:
        raise typer.Exit(_EXIT_DRIFT)


@app.command(epilog=examples("TURNTIDE_TOPIC_PREFIX=next turntide topics copy --from turntide"))
def copy(
    *,
    old_prefix: Annotated[str, typer.Option("--from", help="Prefix of the topics that have the turns.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Send the turns of another prefix to this one's topic, in the order of their arrival; stop their producers first.

    So a deployment gets more partitions: the roles fold the turns anew under the new prefix. What admins changed in
    memories by hand is not carried over.
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
        Path | None, typer.Option("--folder", help="Write topics.yaml and users.yaml there, instead of printing them.")
    ] = None,
) -> None:
    """Print the topics as Strimzi's KafkaTopic resources, and a KafkaUser with its ACLs for each role.

    With the settings' prefix and partitions, and three replicas unless the settings want more. No broker is asked.
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
        raise ConfigurationError(f"{old_prefix} is the present prefix: set TURNTIDE_TOPIC_PREFIX to the new one")
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


_WITHIN_S = 30.0
_POLL_S = 0.1


ResetRole = Literal["sessions", "memory", "enrich", "index"]
"""Roles whose work can be repeated from their logs."""


SOURCES: dict[str, tuple[Topic, ...]] = {
    **{each.role: (each.source,) for each in FOLDED},
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
}
"""What each reads."""
_CHANGELOGS = {each.role: each.changelog for each in FOLDED}
_EXPIRED = {
    "sessions": "sessions that began in them are incomplete",
    "memory": "users and apps that were spoken with in them are remembered incompletely",
    "enrich": "nothing in them waits for an answer any more, unless this role was away for longer than that",
    "index": "what they held is not indexed again",
}


class Reset(Struct, frozen=True, kw_only=True):
    """Result of `reset`.

    Attributes:
        group: Consumer group whose offsets were set back.
        partitions: How many, of all its sources.
        records: Records that will be read again; of a compacted topic at most.
        expired_records: Records that retention has removed: what they changed cannot be rebuilt.
        changelog: Topic that was emptied; empty for a role without one.
        erasures_in_log: Erasures whose records are in the logs until retention removes them.
    """

    group: str
    partitions: int
    records: int
    expired_records: int
    changelog: str
    erasures_in_log: int


@with_examples(
    "turntide ops reset sessions --from-beginning",
    "turntide ops reset memory --from-beginning",
    "turntide ops reset index --from-beginning --yes --output json",
)
def reset(
    role: Annotated[ResetRole, typer.Argument(help="The role whose work is repeated.")],
    *,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Read the log again from its first record.")
    ] = False,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Rebuild a role's work from its logs: its offsets go back to the beginning, and its changelog is emptied.

    For state that was lost (a changelog deleted, recreated or cut; a vector store lost). Stop the role's workers
    before, start them afterwards. Outputs come again with the ids they had, so readers recognise them.
    """
    if not from_beginning:
        raise ConfigurationError("--from-beginning is required: it reads the whole log again")
    settings = load_settings()
    if not yes:
        also = " and empty its state" if role in _CHANGELOGS else ""
        typer.confirm(f"Set {group_of(settings, role)} back to the beginning{also}?", abort=True, err=True)
    done = asyncio.run(reset_role(settings, role))
    Printer(output).record(msgspec.to_builtins(done))
    if done.expired_records:
        typer.echo(f"{done.expired_records} records were removed by retention: {_EXPIRED[role]}", err=True)
    if done.erasures_in_log:
        typer.echo(
            f"what {done.erasures_in_log} erasures took is still in the logs, and is read again: "
            "once the role has caught up, repeat them with `turntide memory erase`",
            err=True,
        )


async def reset_role(settings: Settings, role: ResetRole) -> Reset:
    """Set the group's offsets back, then empty its changelog; cut short in between, it changed nothing yet.

    Raises:
        ConfigurationError: Workers are running, or a topic is missing.
        StoreUnavailable: Kafka does not answer, or does not finish in time.
    """
    group = group_of(settings, role)
    extents = {topic: await log_extent(settings, topic) for topic in SOURCES[role]}
    proofs = [proof async for proof in events_on(settings, ERASURES, ErasureProved)]
    await require_empty(settings, group)
    starts = {
        TopicPartition(topic.full_name(settings.topic_prefix), number): start
        for topic, extent in extents.items()
        for number, (start, _) in extent.items()
    }
    await commit_offsets(settings, group, starts)
    changelog = _CHANGELOGS[role].full_name(settings.topic_prefix) if role in _CHANGELOGS else ""
    if changelog:
        await _recreate(settings, changelog)
    spans = [span for extent in extents.values() for span in extent.values()]
    return Reset(
        group=group,
        partitions=len(spans),
        records=sum(end - start for start, end in spans),
        expired_records=sum(start for start, _ in spans),
        changelog=changelog,
        erasures_in_log=still_in_logs(proofs, datetime.now(UTC)),
    )


def still_in_logs(proofs: Iterable[ErasureProved], now: datetime) -> int:
    """Number of erasures with records that retention has not removed yet; null records do not count."""
    return sum(
        any(s.expires_at is not None and s.expires_at > now and not s.store.startswith("keys ") for s in proof.stores)
        for proof in proofs
    )


async def _recreate(settings: Settings, topic: str) -> None:
    """Delete the topic and make it anew; tombstones would not do, for the higher source offset wins in recovery."""
    async with admin(settings.kafka) as client:
        if topic in await client.list_topics():
            await client.delete_topics([topic])
        try:
            async with asyncio.timeout(_WITHIN_S):
                while topic in await client.list_topics():  # noqa: ASYNC110 - a broker has no event to wait for
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise StoreUnavailable(
                f"the broker has not deleted {topic} in {_WITHIN_S:.0f} s: is delete.topic.enable on? Try again"
            ) from None
    await apply_topics(settings)
