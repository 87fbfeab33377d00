"""`turntide ops replay`: fold the logs again with the pure functions, and hold what the roles left against it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct

from jobs.cli import examples
from jobs.replay.alert import AlertCompared, replay_alert
from jobs.replay.comparison import settle
from jobs.shared.log_read import log_extent
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from models.errors import ConfigurationError
from models.events import SessionName
from models.events.topics import TURNS
from models.partition.log_fold import PARTITION_ENTITY
from streams.observe.telemetry import configure_logging
from streams.oracle.comparison import Comparison
from streams.oracle.replay import SESSIONS, USERS, Entities, LogReplay, Replayed, SessionReplay, UsersReplay, feed_log
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

_EXIT_DIFFERENT = 1
_ORIGINS = {
    "history": "by the history of the partition",
    "alert": "as the alert names it",
    "file": "as asked for, not as it was",
}


class Digest(Struct, frozen=True, kw_only=True):
    """State of a partition or of one entity in it, in one line; equal digests mean equal bytes.

    Attributes:
        role: Whose state it is.
        entity: Session, or user, space or project (or a part of one) as in the keys of `commands.v1`; empty for a whole
            partition, which includes its clock and app windows.
        entities: How many of them.
        bytes: Of all parts.
        sha256: Over sorted names and parts, each preceded by its length.
    """

    role: str
    partition: int
    entity: str
    entities: int
    parts: int
    bytes: int
    sha256: str


def replay(
    *,
    session: Annotated[
        str | None, typer.Option(help="Only digests of the sessions with this id, one for each app.")
    ] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Print digests of sessions and users instead of partitions.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Fold at most this many records a partition.")] = None,
    archive: Annotated[bool, typer.Option("--archive", help="Fold the archived turns instead of the topic.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare changelog, output topics, archive and index with the replay.")
    ] = False,
    alert: Annotated[
        str | None, typer.Option(help="Recompute this alert with the policy and scorer of its time, and compare.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="With --alert: fold with this policy and the configured scorer instead."),
    ] = None,
    scorer: Annotated[
        str | None,
        typer.Option(help="With --alert: `rules` or a scorer's file, if the history has none, or with --policy."),
    ] = None,
    wait_s: Annotated[float, typer.Option(min=0, help="With --compare: seconds for the roles to catch up.")] = 30,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Fold turns.v1 and commands.v1 from their beginnings through the roles' own pure functions, and print digests.

    With --archive, the replay includes turns that retention has removed from the topic. If retention has removed none,
    and the archive has caught up, the digests of sessions are the same. There are no digests of users, since the
    archive does not store their input topic.

    With --compare, the command compares the roles' output with the replay: state byte for byte, outputs by id and
    payload, that every turn of a user is in one episode or still uncompressed, the archive's turns and ids, the index's
    turns, facts and episodes. Exit code 1 with any difference.

    With --alert, the command folds the alert's partition up to the last change of the alert, with the policy and scorer
    that the sessions workers stored in the data directory's `versions`. It compares each change with the record on the
    topic, or in the archive. Exit code 1 if a byte differs, 2 if the comparison is impossible.
    """
    settings = load_settings()
    if alert is not None:
        if limit is not None or session is not None or sessions or compare:
            raise ConfigurationError("--alert can be combined only with --archive, --policy, --scorer and --output")
        made = replay_alert(settings, alert, archive=archive, policy_file=policy, scorer=scorer, bar=folding)
        _print_alert(asyncio.run(made), output)
        return
    if policy is not None or scorer is not None:
        raise ConfigurationError("--policy and --scorer need --alert: other replays use the configured ones")
    if compare:
        if limit is not None or session is not None or sessions or archive:
            raise ConfigurationError(
                "--compare compares everything: leave out --session, --sessions, --limit and --archive"
            )
        configure_logging(settings.log_format, "warning")
        _print_comparison(_compared(settings, wait_s), Printer(output))
        return
    only_sessions = archive or session is not None
    replayed = _replayed_archive(settings, limit) if archive else _replayed(settings, limit, only_sessions)
    single = sessions or session is not None
    shown = [digest for role, each in replayed.items() for digest in digests(role, each.entities, single=single)]
    if session is not None:
        shown = [digest for digest in shown if SessionName.of_key(digest.entity).session_id == session]
        if not shown:
            raise ConfigurationError(
                f"session {session} has no state: it is not in the log, or its state was already released"
            )
    Printer(output).rows("replay", [msgspec.to_builtins(digest) for digest in shown])
    for role, each in replayed.items():
        Printer(output).message(f"{role}: {each.turns} turns folded, {len(each.outputs)} outputs")


replay.epilog = examples(  # type: ignore[attr-defined]
    "turntide ops replay",
    "turntide ops replay --session s-1 --output json",
    "turntide ops replay --archive --sessions --output csv",
    "turntide ops replay --compare",
    "turntide ops replay --alert 1b4e28ba-…",
    "turntide ops replay --alert 1b4e28ba-… --policy stricter.toml --output json",
)


def digests(role: str, partitions: Mapping[int, Entities], *, single: bool) -> list[Digest]:
    """Digest of each partition, or of each single session or user, in order."""
    return [
        _digest(role, number, name, held)
        for number, entities in sorted(partitions.items())
        for name, held in (
            [(name, {name: parts}) for name, parts in sorted(entities.items()) if name != PARTITION_ENTITY]
            if single
            else [("", entities)]
        )
    ]


def _digest(role: str, partition: int, entity: str, entities: Entities) -> Digest:
    parts = [(name, part, value) for name, held in sorted(entities.items()) for part, value in sorted(held.items())]
    digest = sha256()
    for name, part, value in parts:
        for field in (name.encode(), part.encode(), value):
            digest.update(len(field).to_bytes(8, "big") + field)
    return Digest(
        role=role,
        partition=partition,
        entity=entity,
        entities=len(entities.keys() - {PARTITION_ENTITY}),
        parts=len(parts),
        bytes=sum(len(value) for _, _, value in parts),
        sha256=digest.hexdigest(),
    )


def _replayed(settings: Settings, limit: int | None, only_sessions: bool) -> dict[str, Replayed]:
    async def fold(replay: LogReplay[Any]) -> Replayed:
        extent = await log_extent(settings, replay.folded.source)
        records = sum(end - start if limit is None else min(limit, end - start) for start, end in extent.values())
        with folding(records) as progress:
            return await feed_log(settings, replay, limit=limit, progress=progress)

    async def run() -> dict[str, Replayed]:
        policy = policy_of(settings)
        embedder = stream_embedder_of(settings)
        found = {SESSIONS.role: await fold(SessionReplay(policy, embedder, scorer_of(settings, embedder)))}
        return found if only_sessions else found | {USERS.role: await fold(UsersReplay(policy))}

    return asyncio.run(run())


def _replayed_archive(settings: Settings, limit: int | None) -> dict[str, Replayed]:
    from streams.archive.catalog import paths_of, reading
    from streams.archive.inputs import archived_count, archived_inputs

    with reading(paths_of(settings)) as lake, folding(archived_count(lake)) as progress:
        embedder = stream_embedder_of(settings)
        replay = SessionReplay(policy_of(settings), embedder, scorer_of(settings, embedder))
        replay.limit, replay.progress = limit, progress
        for record in archived_inputs(lake, TURNS.full_name(settings.topic_prefix)):
            replay.take(record)
        return {SESSIONS.role: replay.result()}


def _compared(settings: Settings, wait_s: float) -> Comparison:
    async def run() -> Comparison:
        extent = await log_extent(settings, TURNS)
        with folding(sum(end - start for start, end in extent.values())) as progress:
            return (await settle(settings, within_s=wait_s, progress=progress)).comparison

    return asyncio.run(run())


def _print_comparison(found: Comparison, printed: Printer) -> None:
    shown = ("differences", "counts", "checked", "not_checked", "repeats", "examples")
    printed.record(msgspec.to_builtins({name: getattr(found, name) for name in shown}))
    if found.differences:
        raise typer.Exit(_EXIT_DIFFERENT)


def _print_alert(found: AlertCompared, form: OutputFormat) -> None:
    printed = Printer(form)
    if form is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(found))
    else:
        printed.rows(f"alert {found.alert_id}", [msgspec.to_builtins(change) for change in found.changes])
        same = sum(change.equal for change in found.changes)
        printed.message(
            f"session {found.session_id}, partition {found.partition}: {found.records} records folded, {same} of "
            f"{len(found.changes)} changes are the same bit for bit; policy {', then '.join(found.policies)} "
            f"({_ORIGINS[found.rules]})"
        )
        if found.assumed_below:
            printed.message(
                f"below offset {found.assumed_below} nothing says by which rules it was folded: the earliest that are "
                "known stand for them"
            )
        if found.erased and not found.equal:
            printed.message(
                f"{found.erased} records below the alert's last offset were erased since: the fold is without them, "
                "which alone may make the difference"
            )
    if not found.equal:
        raise typer.Exit(_EXIT_DIFFERENT)


@contextmanager
def folding(records: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, where that is a terminal; call what it gives with the records folded."""
    with progress_bar("folding records") as progress:
        yield lambda done: progress(done, records)
