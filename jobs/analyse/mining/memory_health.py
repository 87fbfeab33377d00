"""Memory health: what compaction loses, which facts are doubled, stale or contradict, how full memories are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from jobs.analyse.mining import memory_compaction, memory_facts, memory_spaces
from jobs.analyse.mining.job import Asked, Found, Frames, Job
from jobs.analyse.mining.memory_health_pictures import pictures
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from jobs.analyse.mining.tables import Tables


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    return {"compactions": memory_compaction.compactions(tables)}


def _find(frames: Frames, asked: Asked) -> Found:
    compactions = frames["compactions"]
    facts, changes = memory_facts.standing(asked), memory_facts.flips(asked)
    of_apps, apps = memory_spaces.apps(asked)
    of_projects, projects = memory_spaces.projects(asked)
    return Found(
        figures=[
            *memory_compaction.figures_of(compactions),
            *memory_facts.figures_of(facts, changes),
            *of_apps,
            *of_projects,
        ],
        findings=[
            *memory_compaction.findings_of(compactions, asked.period, asked.policy.memory),
            *memory_facts.findings_of(facts, changes, asked),
        ],
        tables={
            **memory_compaction.tables_of(compactions),
            **memory_facts.tables_of(facts, changes),
            "apps": apps,
            "projects": projects,
        },
        notes=_notes(compactions, facts),
    )


def _notes(compactions: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    notes = []
    if not compactions.filter(pl.col("probes") > 0).height:
        notes.append("No topic was compacted with anything to search for: loss cannot be told.")
    if not facts.height:
        notes.append("No user has an active fact.")
    return notes


JOB = Job(
    name="memory",
    title="Memory health",
    question="Is what is remembered short, true, of use, and still what was said?",
    grouped="date",
    reads=(
        *("compactions", "topics", "user_episodes", "facts", "turns"),
        *("memories", "memory_spaces", "project_items"),
    ),
    version=1,
    heavy=_heavy,
    find=_find,
    pictures=pictures,
)
