"""The demo from beginning to end: a broker, topics, roles, the play, the summary, and nothing left running."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

from jobs.demo.asking import (
    ERASED_USER,
    ERASED_USERS_APP,
    PURGED_APP,
    Answers,
    ask_project_memory,
    ask_user_memory,
    erase,
    index_client,
    purge,
)
from jobs.demo.conversations import load_play, schedule
from jobs.demo.play import DemoState, Play
from jobs.demo.questions import Questions, ask_archive, load_questions
from jobs.demo.stage import COMPRESSED_CLOCK, Stage, held, told
from jobs.demo.summary import DemoSummary, summarise, tidy_archive
from jobs.demo.watch import watching
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.broker.serving import broker_for, terminable
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleFailed, RoleProcess, environment_of, own_command, with_bytecode
from jobs.shared.sending import turns_sender
from models.errors import ConfigurationError, TurntideError
from streams.archive.catalog import open_reader, paths_of
from streams.settings import KafkaSettings, Settings, VectorSettings, load_settings
from streams.settings.archive import ArchiveSettings
from streams.settings.live import LIVE_PAGE

ROLES = ("sessions", "memory", "enrich", "archive", "index")
"""The last one serves memory and the live page, which asks the others how they are."""
PARTITIONS = 4
_READY_WITHIN_S = 90.0
_CAUGHT_UP_WITHIN_S = 60.0
_LOOK_AT_ROLES_EVERY_S = 0.5
_OWN_ARCHIVE = {"TURNTIDE_ARCHIVE__CATALOG": "", "TURNTIDE_ARCHIVE__DATA_PATH": ""}


def run(data_dir: Path, stage: Stage, *, speed: float, keep: bool) -> DemoSummary:
    """Run the whole demo; what was started is ended on the way out, however that is.

    Args:
        data_dir: Where everything goes; empty or new.
        stage: Where it is shown.
        speed: Multiple of the usual pace.
        keep: Leave broker and roles running until Ctrl-C.

    Raises:
        TurntideError: Something did not start, ended by itself, or did not finish in time.
    """
    began_s = time.monotonic()
    state, questions = DemoState.of(load_play()), load_questions()
    if data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigurationError(f"--data-dir {data_dir} is not empty: give a new folder, or none for a temporary one")
    data_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        running.enter_context(held(data_dir))
        running.enter_context(terminable())
        settings = running.enter_context(_cluster(data_dir, stage))
        _provide_topics(settings, running, stage)
        roles = _start_roles(settings, running)
        asyncio.run(_perform(settings, state, roles, speed, stage))
        with closing(open_reader(paths_of(settings))) as lake:
            counted = ask_archive(lake, state.conversations.values(), questions.users)
        answers = asyncio.run(_ask(questions, roles[-1].url, stage))
        if not keep:
            _stop(roles)  # a running archive role lands what an idle tick closes, in the middle of the count
        stage.step("archive", "merging small files and checking every record")
        archive = tidy_archive(settings)
        stage.step("report", "writing a page of figures and patterns")
        report = _report(settings)
        seconds = time.monotonic() - began_s
        summary = summarise(state, counted, answers, archive, seconds=seconds, data_dir=data_dir, report=report)
        if keep:
            stage.result(summary)
            _keep(settings, roles, stage)
    if not keep:
        stage.result(summary)
    return summary


# --- what is started


@contextmanager
def _cluster(data_dir: Path, stage: Stage) -> Iterator[Settings]:
    """The cluster that the settings name, under a prefix of the demo's own; or a broker started for it."""
    given = load_settings()
    named = "bootstrap" in given.kafka.model_fields_set
    with broker_for(given.kafka, lambda: LocalKafka(data_dir), partial(stage.step, "kafka")) as kafka:
        if not named:
            stage.done(kafka.bootstrap)
        mine = kafka.model_copy(update={"partitions": given.kafka.partitions or PARTITIONS})
        yield _settings(given, data_dir, mine, prefix=f"demo-{uuid4().hex[:8]}" if named else given.topic_prefix)


def _settings(given: Settings, data_dir: Path, kafka: KafkaSettings, *, prefix: str) -> Settings:
    policy_file = data_dir / "policy.toml"
    policy_file.write_bytes(demo_policy())
    for name in ("URL", "GENERATION"):  # the roles inherit the environment
        os.environ.pop(f"TURNTIDE_VECTORS__{name}", None)
    mine = {"kafka": kafka, "topic_prefix": prefix, "data_dir": data_dir, "policy_file": policy_file}
    # Whatever archive or vector store the environment names: the demo writes to its own folder only.
    return given.model_copy(update={**mine, "archive": ArchiveSettings(), "vectors": VectorSettings()})


def demo_policy() -> bytes:
    """The policy that everything runs under, TOML."""
    return (files("jobs.demo") / "policy.toml").read_bytes()


def _provide_topics(settings: Settings, running: ExitStack, stage: Stage) -> None:
    """Create the topics; on a cluster that was there before, they go when the demo goes."""
    stage.step("topics", f"creating {settings.topic_prefix}.*")
    if settings.topic_prefix.startswith("demo-"):
        running.callback(lambda: asyncio.run(_delete_topics(settings)))
    created = asyncio.run(apply_topics(settings))
    stage.done(f"{len(created)} topics, {settings.kafka.partitions} partitions each")


async def _delete_topics(settings: Settings) -> None:
    from models.entities import REGISTRY
    from streams.kafka.client import admin

    async with admin(settings.kafka) as client:
        await client.delete_topics([topic.full_name(settings.topic_prefix) for topic in REGISTRY.topics])


def _start_roles(settings: Settings, running: ExitStack) -> list[RoleProcess]:
    own = {
        **_OWN_ARCHIVE,
        "TURNTIDE_HTTP__HOST": "127.0.0.1",
        "TURNTIDE_HTTP__TOKENS": "[]",  # memory is asked here, on this machine
    }
    roles: list[RoleProcess] = []
    for name in ROLES:
        log = settings.data_dir / "logs" / f"{name}.log"
        ports = {f"TURNTIDE_HTTP__{each.role.upper()}_PORT": str(each.port) for each in roles}
        roles.append(RoleProcess(name, settings, log=log, extra_environment={**own, **ports}))
    running.callback(_stop, roles)
    for role in roles:
        role.start()
    return roles


def _stop(roles: list[RoleProcess]) -> None:
    """Stop all that were started, at the same time."""
    started = [role for role in roles if role.running()]
    with ThreadPoolExecutor(len(roles)) as pool:
        list(pool.map(RoleProcess.stop, started))


# --- the play


async def _perform(settings: Settings, state: DemoState, roles: list[RoleProcess], speed: float, stage: Stage) -> None:
    stage.step("roles", f"starting {', '.join(ROLES)}")
    began_s = time.monotonic()
    await asyncio.gather(*(role.ready(_READY_WITHIN_S) for role in roles))
    stage.done(f"ready after {time.monotonic() - began_s:.0f} s")
    stage.page(f"{roles[-1].url}{LIVE_PAGE}")
    stage.step("play", COMPRESSED_CLOCK)
    async with watching(settings, state, emit=stage.event) as watch, turns_sender(settings) as to_turns:
        play = Play(to_turns, state, schedule([*state.conversations.values()]), speed=speed)
        try:
            async with asyncio.TaskGroup() as together:
                beside = [
                    together.create_task(watch.follow()),
                    together.create_task(watch.measure()),
                    together.create_task(_see_that_they_run(roles)),
                    together.create_task(stage.draw(state)),
                ]
                await play.run()
                await watch.caught_up(_CAUGHT_UP_WITHIN_S)
                for task in beside:
                    task.cancel()
        except ExceptionGroup as group:
            raise _first_expected(group) from group


async def _ask(questions: Questions, url: str, stage: Stage) -> Answers:
    """Ask memory as an assistant would, then purge an app and erase a user as an operator would."""
    async with index_client(url) as client:
        stage.step("memory", f"asking {url}/v1/retrieve")
        recalled = [await ask_user_memory(question, client) for question in questions.users]
        for each in recalled:
            stage.done(*told(each), problems=each.problems)
        stage.step("project", f"asking {url}/v1/projects/{questions.project.project_id}")
        project = await ask_project_memory(questions.project, client)
        stage.done(*told(project), problems=project.problems)
        stage.step("purge", f"deleting the memories of {PURGED_APP}")
        purged = await purge(PURGED_APP, client)
        stage.done(*told(purged), problems=purged.problems)
        stage.step("erase", f"forgetting {ERASED_USER} of {ERASED_USERS_APP} in every store")
        erased = await erase(ERASED_USERS_APP, ERASED_USER, client)
        stage.done(*told(erased), problems=erased.problems)
    return Answers(recalled=recalled, project=project, purged=purged, erased=erased)


async def _see_that_they_run(roles: list[RoleProcess]) -> None:
    while True:
        for role in roles:
            if not role.running():
                raise RoleFailed(f"role {role.role} ended during the demo:\n{role.log_tail()}")
        await asyncio.sleep(_LOOK_AT_ROLES_EVERY_S)


def _first_expected(group: ExceptionGroup[Exception]) -> Exception:
    """What happened, out of the group that a task group wraps it in."""
    expected, _ = group.split(TurntideError)
    found: BaseException = expected or group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, Exception)  # noqa: S101 - a group of exceptions holds nothing else
    return found


def _report(settings: Settings) -> Path:
    """The page of `turntide analyse report` about what was played.

    Raises:
        RoleFailed: It could not be written.
    """
    page = settings.data_dir / "report.html"
    options = ["--days", "1", "--to", str(page), "--output", "json"]
    command = [*own_command(), "analyse", "report", *options]
    environment = {**with_bytecode(os.environ), **environment_of(settings), **_OWN_ARCHIVE}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if not page.exists():
        raise RoleFailed(f"`turntide analyse report` ended with {made.returncode}: {made.stderr.strip()}")
    return page


def _keep(settings: Settings, roles: list[RoleProcess], stage: Stage) -> None:
    """Stay until Ctrl-C, and watch over the roles."""
    stage.kept(settings, {role.role: role.url for role in roles})
    try:
        asyncio.run(_see_that_they_run(roles))
    except KeyboardInterrupt:
        stage.step("stopping", "roles and Kafka")
