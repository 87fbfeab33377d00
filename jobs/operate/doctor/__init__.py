"""`turntide doctor`: the settings, redacted, and checks of everything that they name.

`CHECKS` is the table of all checks, `verdict.py` runs them, and the other files hold them, but for that of where
sessions stand: each on one partition, whichever partitioner its producer has.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated

import typer
from aiokafka import TopicPartition
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import ConsumerRecord
from pydantic import BaseModel

from jobs.cli import with_examples
from jobs.operate.doctor import places, scoring, serving
from jobs.operate.doctor.verdict import Check, Status, Verdict, fail, ok, verdicts, warn
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from models.errors import ConfigurationError
from models.events import AnyTurn, SessionName
from models.events.topics import TURNS
from models.policy import Policy
from streams.inference.intake import decode
from streams.kafka.client import Extent, consumer, read_extents, require_topic
from streams.settings import Settings, load_settings
from streams.settings.reading import unknown_variables
from streams.wiring import policy_of

LOOKED_AT = 500
"""Records of each partition, the newest."""
_NAMED = 3
_ADVICE = (
    "alerts and memory of such a session are incomplete: give all its producers the same partitioner, "
    "`partitioner=murmur2_random` in librdkafka's clients (deploy/producers.md)"
)


def check_partitioner(settings: Settings) -> Verdict:
    """Check that each session of the newest turns stands on one partition."""
    records = asyncio.run(_newest(settings))
    return verdict_of(standing(records, policy_of(settings)), partitions=len(records))


def standing(records: Mapping[int, list[ConsumerRecord]], policy: Policy) -> dict[SessionName, set[int]]:
    """On which partitions the turns of each session stand."""
    found = defaultdict[SessionName, set[int]](set)
    for partition, each in records.items():
        for arrival in decode(each, policy).arrivals:
            if isinstance(arrival.event, AnyTurn):
                found[SessionName(arrival.event.app_id, arrival.event.session_id)].add(partition)
    return dict(found)


def verdict_of(found: Mapping[SessionName, set[int]], *, partitions: int) -> Verdict:
    """What is to be said of where sessions stand."""
    torn = sorted(session for session, held_by in found.items() if len(held_by) > 1)
    if torn:
        named = ", ".join(f"{each.session_id} of {each.app_id}" for each in torn[:_NAMED])
        return warn(f"{len(torn)} of {len(found)} sessions stand on two partitions and more: {named}", _ADVICE)
    choose, numbers = DefaultPartitioner(), list(range(partitions))
    foreign = sum({choose(each.session_id.encode(), numbers, numbers)} != held_by for each, held_by in found.items())
    return ok(
        f"{len(found)} sessions of the newest turns stand on one partition each; {foreign} by another partitioner"
    )


async def _newest(settings: Settings) -> dict[int, list[ConsumerRecord]]:
    """The newest records of every partition."""
    topic = TURNS.full_name(settings.topic_prefix)
    newest = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    found: dict[int, list[ConsumerRecord]] = {place.partition: [] for place in newest}
    async with consumer(settings.kafka) as client:
        starts, ends = await client.beginning_offsets(newest), await client.end_offsets(newest)
        extents = {each: Extent(max(starts[each], ends[each] - LOOKED_AT), ends[each]) for each in newest}
        async for record in read_extents(client, extents):
            found[record.partition].append(record)
    return found


def check_settings(settings: Settings) -> Verdict:
    """A misspelt variable changes nothing, and its setting keeps its default: told by name."""
    unknown = unknown_variables(type(settings))
    if not unknown:
        return ok("every TURNTIDE_ variable is a setting")
    return fail("; ".join(each.rendered for each in unknown), "rename or unset them: they have no effect")


CHECKS = {
    "settings": Check(check_settings, "TurntideRestarting"),
    "broker": Check(serving.check_broker, "TurntideNotReady"),
    "topics": Check(serving.check_topics, "TurntideNotReady", rests_on="broker"),
    "partitioner": Check(check_partitioner, "TurntideSessionOnTwoPartitions", rests_on="topics"),
    "clock": Check(serving.check_clock, "TurntideDeadLetters", rests_on="broker"),
    "disk": Check(places.check_disk, "TurntideArchiveBehind"),
    "lake": Check(places.check_lake, "TurntideArchiveBehind"),
    "archive": Check(places.check_archive, "TurntideArchiveNotSettled", rests_on="lake"),
    "iceberg": Check(places.check_iceberg),
    "locks": Check(places.check_locks, "TurntideArchiveBehind"),
    "embedder": Check(scoring.check_embedder, "TurntideNotReady"),
    "vectors": Check(scoring.check_vectors, "TurntideIndexBehind"),
    "encryption": Check(places.check_encryption, "TurntideRestarting"),
    "ports": Check(serving.check_ports),
    "access": Check(serving.check_access, "TurntideRestarting"),
    "tokens": Check(serving.check_tokens, "TurntideHttpErrors"),
    "workers": Check(serving.check_workers, "TurntideRoleAway", rests_on="broker"),
    "policy": Check(scoring.check_policy, "TurntideRestarting"),
    "scorer": Check(scoring.check_scorer, "TurntideRestarting", rests_on="embedder"),
    "judge": Check(scoring.check_judge, "TurntideJudgeFailing"),
    "llm": Check(scoring.check_llm, "TurntideLlmFailing"),
    "sinks": Check(serving.check_sinks, "TurntideSinkFailing"),
}
"""Every check by name, in the order they are printed."""


def setting_rows(settings: Settings | None) -> Iterator[dict[str, object]]:
    """Every field with its value, or its default where the settings are wrong."""
    yield from _rows(Settings, settings, ())


def _rows(model: type[BaseModel], values: BaseModel | None, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for name, field in model.model_fields.items():
        place = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _rows(kind, getattr(values, name, None), place)
            continue
        value = field.get_default(call_default_factory=True) if values is None else getattr(values, name)
        yield {
            "setting": ".".join(place),
            "value": "" if value is None else redacted(name, str(value)),
            "description": field.description or "",
        }


def redacted(name: str, value: str) -> str:
    """The value without what may be a secret in an address: user and password, and a webhook's path.

    >>> redacted("url", "https://me:secret@example.org/api"), redacted("webhook_url", "https://example.org/hook/123")
    ('https://…@example.org/api', 'https://example.org/…')
    """
    value = re.sub(r"//[^/@]*@", "//…@", value)
    return re.sub(r"(//[^/]+/).+", r"\1…", value) if name == "webhook_url" else value


_EXIT_FAILED = 1


@with_examples(
    "turntide doctor",
    "turntide doctor --check broker --check topics",
    "turntide doctor --output json | jq '.checks[] | select(.status == \"fail\")'",
)
def doctor(
    *,
    check: Annotated[
        list[str] | None, typer.Option("--check", help="Only this check, and no list of settings; may be repeated.")
    ] = None,
    within: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds that a check may wait for a service; while it computes, ten times that."),
    ] = 20.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print every setting, secrets redacted, and check whether what they name is there and works.

    The checks run side by side. Exits with code 1 when one fails. Nothing is changed.
    """
    wanted = {name: CHECKS[name] for name in _known(check)} if check else CHECKS
    settings: Settings | None = None
    try:
        settings = load_settings()
    except ConfigurationError as error:
        found = {"settings": fail(str(error), "correct these settings, then run `turntide doctor` again")}
    else:
        with progress_bar("Checking") as progress:
            found = verdicts(wanted, settings, within_s=within, done=progress)
    _print(Printer(output), [] if check else list(setting_rows(settings)), found, whole=not check)
    if any(verdict.status is Status.FAIL for verdict in found.values()):
        raise typer.Exit(_EXIT_FAILED)


def _known(names: list[str]) -> list[str]:
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"--check {name}: no such check.{meant} The checks are {', '.join(CHECKS)}")
    return names


def _print(printed: Printer, settings: list[dict[str, object]], found: dict[str, Verdict], *, whole: bool) -> None:
    checks = [_row(name, verdict) for name, verdict in found.items()]
    failed = any(verdict.status is Status.FAIL for verdict in found.values())
    if printed.form is OutputFormat.JSON:
        printed.record({"ok": not failed, **({"settings": settings} if whole else {}), "checks": checks})
        return
    if whole:
        printed.rows("settings", settings)
        printed.message("kafka.bootstrap is set by TURNTIDE_KAFKA__BOOTSTRAP, others likewise, or in TURNTIDE_CONFIG")
    on_a_line_each = printed.form is OutputFormat.TABLE  # paths would fold the other columns
    runbooks = {row["check"]: row.pop("runbook") for row in checks} if on_a_line_each else {}
    printed.rows("checks", checks)
    for name, runbook in runbooks.items():
        if runbook:
            printed.text(f"more on {name}: {runbook}")


def _row(name: str, verdict: Verdict) -> dict[str, object]:
    alert = "" if verdict.status is Status.OK else CHECKS[name].runbook
    return {
        "check": name,
        "status": verdict.status.value,
        "detail": verdict.detail,
        "advice": verdict.advice,
        "runbook": f"deploy/runbooks/{alert}.md" if alert else "",
    }
