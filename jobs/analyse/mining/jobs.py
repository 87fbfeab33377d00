"""Registry of the mining jobs. A new one is a module with a `JOB`, and its name here."""

from __future__ import annotations

from importlib import import_module

from jobs.analyse.mining.job import Job

_NAMES = ("overview", "escalation", "sequences", "topics", "campaigns", "memory", "drift")


def job_names() -> tuple[str, ...]:
    """Every job's name, in the order of the report."""
    return _NAMES


def job_of(name: str) -> Job:
    """The job of this name; imports what it needs."""
    job: Job = import_module(f"jobs.analyse.mining.{name}").JOB
    return job
