"""The envelope of every measurement that is kept: the command, the time, and the machine it was made on."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from jobs.operate.broker.jars import KAFKA_VERSION
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from streams.settings import Settings, load_settings

_PLACES = ("--save", "--data-dir", "--pictures", "--picture")
_PACKAGES = ("faust-streaming", "aiokafka", "quixstreams", "bytewax", "rocksdict", "numpy", "msgspec")
"""Whose versions say what was measured; what is not installed is left out."""


def machine() -> dict[str, Any]:
    """This machine, and the versions of Kafka and of the packages that were measured."""
    return {
        "cpus": os.cpu_count() or 1,
        "cpu": _cpu_name(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"kafka": KAFKA_VERSION, **_versions()},
    }


def envelope(report: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """A report as every measuring command prints it: its figures, and beside them what is needed to repeat them."""
    return {
        **msgspec.to_builtins(report),
        "command": command(sys.argv[1:]),
        "measured_at": datetime.now(UTC).replace(microsecond=0),
        "machine": machine(),
    }


def command(arguments: Sequence[str]) -> str:
    """The command line to repeat it, without the places where this machine keeps its files.

    >>> command(["lab", "chaos", "--save", "/home/me/chaos.jsonl", "--runs", "20", "--data-dir=/tmp/x"])
    'turntide lab chaos --runs 20'
    >>> command(["lab", "eval", "topics", "/home/me/chats.jsonl"])
    'turntide lab eval topics chats.jsonl'
    """
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, _, value = argument.partition("=")
        if name not in _PLACES:
            kept.append(Path(argument).name if argument.startswith(os.sep) else argument)
        elif not value:
            next(rest, None)
    return shlex.join(["turntide", *kept])


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()


def _versions() -> dict[str, str]:
    installed = {package.name: package.version for package in metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


class BenchEnvironment(NamedTuple):
    """A place to measure.

    Attributes:
        bootstrap: Address of the broker.
        home: An empty folder.
        broker_pid: The broker's process, where it is ours.
    """

    bootstrap: str
    home: Path
    broker_pid: int | None = None

    async def fresh(
        self, name: str = "bench", *, partitions: int = 4, home: Path | None = None, **kafka: Any
    ) -> Settings:
        """Settings with topics that were just made and a policy as it comes; nothing of the user's but the cluster.

        Args:
            name: Begins the topics' names.
            partitions: Of each topic.
            home: Where local state and logs are kept; none: the ground's folder.
            kafka: Other settings of the cluster.
        """
        settings = load_settings(
            kafka={"bootstrap": self.bootstrap, "partitions": partitions, **kafka},
            topic_prefix=f"{name}-{uuid.uuid4().hex[:8]}",
            data_dir=home or self.home,
        )
        await apply_topics(settings)
        return settings


@contextmanager
def own_environment() -> Iterator[BenchEnvironment]:
    """A Kafka of its own in a temporary folder.

    Raises:
        BrokerError: It does not start.
    """
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        with LocalKafka(home) as broker:
            record = broker.running()
            yield BenchEnvironment(broker.bootstrap, home, record.pid if record else None)
