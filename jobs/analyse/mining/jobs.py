"""Registry of the mining jobs. A new one is a module with a `JOB`, and a line here."""

from __future__ import annotations

from importlib import import_module

from jobs.analyse.mining.job import Job

_MODULES = {
    "overview": "jobs.analyse.mining.overview",
    "escalation": "jobs.analyse.mining.escalation",
    "sequences": "jobs.analyse.mining.sequences",
    "topics": "jobs.analyse.mining.topics",
    "campaigns": "jobs.analyse.mining.campaigns",
    "memory": "jobs.analyse.mining.memory_health",
    "drift": "jobs.analyse.mining.drift",
}
"""Name to module, in the order of the report."""


def job_names() -> tuple[str, ...]:
    """Every job's name, in the order of the report."""
    return tuple(_MODULES)


def job_of(name: str) -> Job:
    """The job of this name; imports what it needs."""
    job: Job = import_module(_MODULES[name]).JOB
    return job
