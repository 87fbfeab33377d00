"""`turntide ops migrate`: what of an earlier release stands here, and what makes it this one's."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec
import typer
from msgspec import Struct

from jobs.cli import with_examples
from jobs.operate.doctor.scoring import check_policy, check_scorer, check_vectors
from jobs.operate.doctor.verdict import Status, Verdict, guarded
from jobs.operate.topics import apply_topics, differences
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from jobs.shared.topic_drift import DriftKind, TopicDrift, refused
from models.errors import ConfigurationError
from models.partition.commands import FOLDS
from models.partition.log_fold import PARTITION_ENTITY
from models.session import state as session_state
from streams.kafka.client import read_to_end
from streams.oracle.replay import FOLDED, SESSIONS, Folded
from streams.settings import Settings, load_settings
from streams.state.changelog import OFFSET_BYTES, name_of

_EXIT_NEEDED = 1


class Does(StrEnum):
    """Ways in which a step is carried out."""

    NOTHING = "nothing"
    """It is as this release has it."""
    APPLY = "apply"
    """`turntide ops migrate --apply`, while the roles run."""
    BY_HAND = "by hand"
    """Whoever reads this: it takes a decision or stopped workers."""
    REFUSED = "refused"
    """Nobody: a later release wrote it, and this one must not touch it."""


class Step(Struct, frozen=True, kw_only=True):
    """One thing that carries a version: as it stands, as this release has it, and who is to do what about it."""

    what: str
    standing: str
    wanted: str
    does: Does = Does.NOTHING
    action: str = ""


@with_examples(
    "turntide ops migrate",
    "turntide ops migrate --apply",
    "turntide ops migrate --output json | jq '.[] | select(.does != \"nothing\")'",
)
def migrate(
    *,
    check: Annotated[bool, typer.Option("--check/--apply", help="Only print what is needed, or do it.")] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the topics, state, archive, index and policy entries of another release, and bring them to this release.

    With --apply, the command creates and configures topics (`turntide topics apply`) and adds to the archive what this
    release reads (`turntide archive upgrade`). Both steps only add, can be repeated, and do not disturb older workers:
    run them before you start the new workers. Steps that need a decision are listed, not taken. The exit code is 1
    while a step is open, 0 once none is. `deploy/upgrading.md` has the order.
    """
    settings = load_settings()
    printed = Printer(output)
    found = steps(settings)
    if not check:
        apply(settings, found)
        found = steps(settings)
    printed.rows("migrate", [msgspec.to_builtins(step) for step in found])
    left = [step for step in found if step.does is not Does.NOTHING]
    if left:
        if check and any(step.does is Does.APPLY for step in left):
            printed.message("`turntide ops migrate --apply` carries out the steps marked apply")
        raise typer.Exit(_EXIT_NEEDED)
    printed.message("nothing to do: everything is of this release")


def steps(settings: Settings) -> list[Step]:
    """Steps for everything that carries a version, in the order of migration.

    Raises:
        StoreUnavailable: Kafka, or the archive, does not answer.
    """
    topics = asyncio.run(differences(settings))
    return [*_topics(topics), *_states(settings, topics), _archive(settings), *_by_doctor(settings)]


def apply(settings: Settings, found: list[Step]) -> None:
    """Carry out what says apply.

    Raises:
        ConfigurationError: A later release wrote here; nothing was changed.
    """
    if later := [step for step in found if step.does is Does.REFUSED]:
        raise ConfigurationError(f"nothing was changed. {later[0].what}: {later[0].action}")
    wanted = {step.what.partition(" ")[0] for step in found if step.does is Does.APPLY}
    if "topics" in wanted:
        asyncio.run(apply_topics(settings))
    if "archive" in wanted:
        from streams.archive.maintenance import upgrade
        from streams.archive.place import paths_of

        upgrade(paths_of(settings))


def _topics(found: list[TopicDrift]) -> list[Step]:
    if not found:
        return [Step(what="topics", standing="as wanted", wanted="as wanted")]
    if reasons := refused(found, allow_repartition=False):
        return [
            Step(what="topics", standing="other partition counts", wanted="", does=Does.BY_HAND, action=r)
            for r in reasons
        ]
    return [
        Step(
            what=f"topics {difference.topic}",
            standing=f"{difference.field} {difference.standing or 'missing'}",
            wanted=f"{difference.field} {difference.wanted}",
            does=Does.BY_HAND if difference.kind in {DriftKind.REPLICATION, DriftKind.CO_PARTITIONING} else Does.APPLY,
            action=difference.action,
        )
        for difference in found
    ]


def _states(settings: Settings, topics: list[TopicDrift]) -> list[Step]:
    missing = [d.topic for d in topics if d.kind is DriftKind.MISSING and d.topic.endswith("-state.v1")]
    if missing:
        return [Step(what="state", standing="none yet: `turntide worker` makes it", wanted="")]
    with progress_bar("Reading state") as progress:
        return state_steps(asyncio.run(state_versions(settings, lambda records: progress(records, records))))


def state_steps(found: StateVersions) -> list[Step]:
    """A step for each kind of entity and version."""
    if not found:
        return [Step(what="state", standing="none", wanted="")]
    made = []
    for (role, kind, version), entities in sorted(found.items()):
        reads, does, action = READ[kind], Does.NOTHING, ""
        anew = f"stop its workers, `turntide ops reset {role} --from-beginning`, start them: the log is folded anew"
        if version > reads:
            does = Does.REFUSED
            action = f"a later release wrote this: role {role} does not start on it. Run that release again, or {anew}"
        elif version < reads and (kind, version) not in BROUGHT_UP:
            does, action = Does.BY_HAND, f"role {role} does not start on it: {anew}"
        by_role = f": role {role} migrates it when it starts" if (kind, version) in BROUGHT_UP else ""
        what, standing = f"state of {entities} {kind} entities", f"version {version}{by_role}"
        made.append(Step(what=what, standing=standing, wanted=f"version {reads}", does=does, action=action))
    return made


def _archive(settings: Settings) -> Step:
    from streams.archive.catalog import open_any_reader, paths_of
    from streams.archive.views.published import VIEWS_VERSION, lacking, version_of

    wanted = f"views version {VIEWS_VERSION}"
    try:
        con = open_any_reader(paths_of(settings))
    except ConfigurationError:
        return Step(what="archive", standing="none yet", wanted=wanted)
    with closing(con):
        version, less = version_of(con), lacking(con)
    standing = "views of no version" if version is None else f"views version {version}"
    does, action = Does.NOTHING, ""
    if version is not None and version > VIEWS_VERSION:
        does = Does.REFUSED
        action = (
            "a later release wrote this archive: run that one, or give this one an archive of its own "
            "(TURNTIDE_ARCHIVE__CATALOG and …DATA_PATH)"
        )
    elif less:
        standing += f", without {', '.join(less[:5])}"
        does, action = Does.APPLY, "add them (`turntide archive upgrade`)"
    return Step(what="archive", standing=standing, wanted=wanted, does=does, action=action)


def _by_doctor(settings: Settings) -> list[Step]:
    return [
        _checked("index", settings.vectors.embedder, settings, check_vectors),
        _checked("policy", "one that this release reads", settings, check_policy, check_scorer),
    ]


def _checked(what: str, wanted: str, settings: Settings, *checks: Callable[[Settings], Verdict]) -> Step:
    """A step by what `turntide doctor` says; of several checks the first that finds something."""
    verdicts = [guarded(check, settings) for check in checks]
    wrong = next((verdict for verdict in verdicts if verdict.status is not Status.OK), None)
    if wrong is None:
        return Step(what=what, standing=verdicts[0].detail, wanted=wanted)
    return Step(what=what, standing=wrong.detail, wanted=wanted, does=Does.BY_HAND, action=wrong.advice)


# --- versions in the changelogs, read without decoding more than the versions

_HEAD = "head"
READ: Mapping[str, int] = {
    "session": session_state.LAYOUT.version,
    **{kind: each.state.layout.version for kind, each in FOLDS.items()},
}
"""What this release reads and writes, by the kind of entity (of the memory role, the word its key begins with)."""
BROUGHT_UP = frozenset({("session", 1)})
"""Kind and version of state that a role migrates by itself (`models.partition.sessions_v1`)."""


class _Versioned(Struct, array_like=True):
    version: int


_version_of = msgspec.msgpack.Decoder(_Versioned).decode
StateVersions: TypeAlias = dict[tuple[str, str, int], int]
"""Role, kind of entity and version → entities."""


async def state_versions(settings: Settings, progress: Callable[[int], None] = lambda _: None) -> StateVersions:
    """Versions of the entities in the changelogs, by their last heads.

    Raises:
        ConfigurationError: A changelog is missing.
        StoreUnavailable: Kafka does not answer.
    """
    found: Counter[tuple[str, str, int]] = Counter()
    records = 0
    for folded in FOLDED:
        heads: dict[str, tuple[str, str, int]] = {}
        async for record in read_to_end(settings.kafka, folded.changelog.full_name(settings.topic_prefix)):
            records += 1
            progress(records)
            entity, part = name_of(record.key)
            if part != _HEAD or entity == PARTITION_ENTITY or (kind := kind_of(folded, entity)) is None:
                continue
            if record.value is None:
                heads.pop(entity, None)
            else:
                heads[entity] = (folded.role, kind, version_of(record.value[OFFSET_BYTES:]))
        found.update(heads.values())
    return dict(found)


def kind_of(folded: Folded, entity: str) -> str | None:
    """Kind of an entity; None for what has no version of its own: a part of a project.

    >>> kind_of(FOLDED[1], "user:app/u"), kind_of(FOLDED[1], "project:app/p"), kind_of(FOLDED[0], "user:odd name")
    ('user', 'project', 'session')
    """
    if folded is SESSIONS:
        return "session"
    kind, _, rest = entity.partition(":")
    if kind == "project" and rest.count("/") > 1:
        return None
    return kind if kind in READ else None


def version_of(head: bytes) -> int:
    """Version of a head; −1 for one that has none.

    >>> version_of(msgspec.msgpack.encode([3, "more"])), version_of(b"rubbish")
    (3, -1)
    """
    try:
        return _version_of(head).version
    except msgspec.MsgspecError:
        return -1
