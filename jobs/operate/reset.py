"""`turntide ops reset`: let a role fold or index the log anew, after its state or store was lost."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from aiokafka import TopicPartition
from msgspec import Struct

from jobs.cli import with_examples
from jobs.operate.topics import apply_topics
from jobs.shared.log_read import log_extent
from jobs.shared.options import OutputOption, YesOption
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.role_groups import commit_offsets, require_empty
from models.entities import REGISTRY
from models.errors import ConfigurationError, StoreUnavailable
from models.events import ErasureProved
from models.events.topics import ERASURES, REQUESTS, Topic
from streams.index.generations import group_of
from streams.kafka.client import admin
from streams.kafka.records import events_on
from streams.oracle.replay import FOLDED
from streams.settings import Settings, load_settings

_WITHIN_S = 30.0
_POLL_S = 0.1


class ResetRole(StrEnum):
    """Roles whose work can be repeated from their logs."""

    SESSIONS = "sessions"
    MEMORY = "memory"
    ENRICH = "enrich"
    INDEX = "index"


SOURCES: dict[str, tuple[Topic, ...]] = {
    **{each.role: (each.source,) for each in FOLDED},
    ResetRole.ENRICH: (REQUESTS,),
    ResetRole.INDEX: REGISTRY.indexed_topics,
}
"""What each reads."""
_CHANGELOGS = {each.role: each.changelog for each in FOLDED}
_EXPIRED = {
    ResetRole.SESSIONS: "sessions that began in them are incomplete",
    ResetRole.MEMORY: "users and apps that were spoken with in them are remembered incompletely",
    ResetRole.ENRICH: "nothing in them waits for an answer any more, unless this role was away for longer than that",
    ResetRole.INDEX: "what they held is not indexed again",
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
