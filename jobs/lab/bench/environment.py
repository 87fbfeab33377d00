"""Environment of a benchmark: a broker and a folder of its own, gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from jobs.operate.broker.local_kafka import LocalKafka


class Ground(NamedTuple):
    """A place to measure.

    Attributes:
        bootstrap: Address of the broker.
        home: An empty folder.
        load_average: Of the last minute, before the broker was started.
        broker_pid: The broker's process, where it is ours.
    """

    bootstrap: str
    home: Path
    load_average: float
    broker_pid: int | None = None


@contextmanager
def own_ground() -> Iterator[Ground]:
    """A Kafka of its own in a temporary folder.

    Raises:
        BrokerError: It does not start.
    """
    load_average = os.getloadavg()[0]
    with TemporaryDirectory(prefix="turntide-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        with LocalKafka(home) as broker:
            record = broker.running()
            yield Ground(broker.bootstrap, home, load_average, record.pid if record else None)
