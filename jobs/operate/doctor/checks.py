"""Every check of `turntide doctor`, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.operate.doctor.clocks import check_clock
from jobs.operate.doctor.cluster import check_broker, check_topics, check_workers
from jobs.operate.doctor.lake import check_archive, check_iceberg
from jobs.operate.doctor.locks import check_locks
from jobs.operate.doctor.places import check_disk, check_lake
from jobs.operate.doctor.scoring import check_embedder, check_judge, check_llm, check_policy, check_scorer
from jobs.operate.doctor.serving import check_access, check_ports, check_sinks, check_tokens
from jobs.operate.doctor.vectors import check_vectors
from jobs.operate.doctor.verdict import Status, Verdict
from streams.settings import Settings
from streams.settings.reading import unknown_variables


def check_settings(settings: Settings) -> Verdict:
    """A misspelt variable changes nothing, and its setting keeps its default: told by name."""
    unknown = unknown_variables(type(settings))
    if not unknown:
        return Verdict(Status.OK, "every TURNTIDE_ variable is a setting")
    return Verdict(
        Status.FAIL, "; ".join(each.rendered for each in unknown), "rename or unset them: they change nothing"
    )


CHECKS: dict[str, Callable[[Settings], Verdict]] = {
    "settings": check_settings,
    "broker": check_broker,
    "topics": check_topics,
    "clock": check_clock,
    "disk": check_disk,
    "lake": check_lake,
    "archive": check_archive,
    "iceberg": check_iceberg,
    "locks": check_locks,
    "embedder": check_embedder,
    "vectors": check_vectors,
    "ports": check_ports,
    "access": check_access,
    "tokens": check_tokens,
    "workers": check_workers,
    "policy": check_policy,
    "scorer": check_scorer,
    "judge": check_judge,
    "llm": check_llm,
    "sinks": check_sinks,
}
"""Every check by name, in the order they are printed."""

RESTS_ON: Mapping[str, str] = {
    "topics": "broker",
    "clock": "broker",
    "workers": "broker",
    "archive": "lake",
    "scorer": "embedder",
}
"""Check → another one without which it says nothing of its own: one fault is told once."""

RUNBOOKS: Mapping[str, str] = {
    "settings": "TurntideRestarting",
    "broker": "TurntideNotReady",
    "topics": "TurntideNotReady",
    "clock": "TurntideDeadLetters",
    "disk": "TurntideArchiveBehind",
    "lake": "TurntideArchiveBehind",
    "archive": "TurntideArchiveNotSettled",
    "locks": "TurntideArchiveBehind",
    "embedder": "TurntideNotReady",
    "vectors": "TurntideIndexBehind",
    "access": "TurntideRestarting",
    "tokens": "TurntideHttpErrors",
    "workers": "TurntideRoleAway",
    "policy": "TurntideRestarting",
    "scorer": "TurntideRestarting",
    "judge": "TurntideJudgeFailing",
    "llm": "TurntideLlmFailing",
    "sinks": "TurntideSinkFailing",
}
"""Check → alert whose runbook (`deploy/runbooks/<alert>.md`) says more about what was found."""
