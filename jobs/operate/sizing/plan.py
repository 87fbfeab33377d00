"""Plan of partitions, workers, memory, disk and money for turns a day. Pure: costs and prices are arguments.

A worker is one process on one core. What `turntide lab bench roles` measures on one machine is taken to scale with the
number of workers, which partitions allow: no two of them share state. This is an assumption, not a measurement.
"""

from datetime import timedelta
from math import ceil

from msgspec import Struct, field

from models.entities import REGISTRY
from models.events.topics import TURNS, Topic

KAFKA = "kafka"
_INDEX_OF_ONE_MACHINE_GB = 50
_DAY = timedelta(days=1)
_DAY_S = 86_400
_DAY_MINUTES = 1_440
_HOURS_A_MONTH = 730
_GB = 1e9
_LEAST_PARTITIONS = 12
_LEAST_BROKERS = 3
_CORES_A_BROKER = 8
_COMPACTED_DAYS = 7.0
"""How long a compacted topic may hold what was replaced (`Topic.compacted_within`)."""


class Cost(Struct, frozen=True, kw_only=True):
    """Measured cost of one turn, and of one open session.

    Attributes:
        turn_bytes: Size of the turns that were measured.
        cpu_us: Processor time by role, with the brokers' under `kafka`.
        topic_bytes: Keys and values by topic.
        text_copies: How often a turn's own text is written to Kafka: longer turns add so many times their length.
        archive_bytes: Parquet as landed.
        index_bytes: Payloads, vectors and their index.
        state_bytes: Memory of a worker for each open session.
        base_mb: Memory of a worker with nothing to do.
    """

    turn_bytes: float
    cpu_us: dict[str, float]
    topic_bytes: dict[str, float]
    text_copies: float
    archive_bytes: float
    index_bytes: float
    state_bytes: float
    base_mb: float


class ExpectedLoad(Struct, frozen=True, kw_only=True):
    """Load that is planned for.

    Attributes:
        peak: The busiest hour to the mean.
        turn_bytes: Of a turn as JSON; None: as measured.
        open_minutes: From a session's first turn to its end, the time-out included.
        used: Share of a core that is planned to be used at the peak: the rest is for catching up.
        archive_days, index_days: How long is kept.
    """

    turns_per_day: float
    peak: float = 3.0
    turn_bytes: float | None = None
    turns_per_session: float = 20.0
    open_minutes: float = 45.0
    replication: int = 3
    used: float = 0.6
    archive_days: float = 365.0
    index_days: float = 30.0


class Prices(Struct, frozen=True, kw_only=True):
    """In one currency; the defaults are round figures of public clouds in 2026, in US dollars, without discounts."""

    core_hour: float = 0.04
    memory_gb_month: float = 3.0
    disk_gb_month: float = 0.10
    object_gb_month: float = 0.023


class Plan(Struct, frozen=True, kw_only=True):
    """Resources of a load. Sizes in GB of 10⁹ bytes; `cores` and `workers` at the peak."""

    turns_per_day: float
    turns_per_s: float
    peak_turns_per_s: float
    partitions: int
    workers: dict[str, int]
    brokers: int
    broker_cores: int
    open_sessions: int
    state_gb: float
    workers_memory_gb: float
    kafka_disk_gb: float
    index_points: float
    index_gb: float
    archive_gb_per_day: float
    archive_gb: float
    money_per_month: float
    money_per_million_turns: float
    limits: list[str] = field(default_factory=list)


def plan(load: ExpectedLoad, cost: Cost, prices: Prices) -> Plan:
    """Workers, storage and money a month of a load; `limits` names what one machine or process cannot do."""
    per_s = load.turns_per_day / _DAY_S
    peak_per_s = per_s * load.peak
    cores = {role: peak_per_s * us / 1e6 / load.used for role, us in cost.cpu_us.items()}
    workers = {role: max(1, ceil(share)) for role, share in cores.items() if role != KAFKA}
    partitions = _partitions(max(workers.values()))
    broker_cores = max(1, ceil(cores.get(KAFKA, 0.0) * load.replication))
    kafka_gb, index_gb, archive_day_gb = _storage(load, cost)
    sessions = load.turns_per_day / load.turns_per_session * load.open_minutes / _DAY_MINUTES * load.peak
    state_gb = sessions * cost.state_bytes / _GB
    memory_gb = state_gb + sum(workers.values()) * cost.base_mb / 1e3
    money = (
        (sum(workers.values()) + broker_cores) * prices.core_hour * _HOURS_A_MONTH
        + (memory_gb + index_gb) * prices.memory_gb_month
        + (kafka_gb + index_gb) * prices.disk_gb_month
        + archive_day_gb * load.archive_days * prices.object_gb_month
    )
    return Plan(
        turns_per_day=load.turns_per_day,
        turns_per_s=per_s,
        peak_turns_per_s=peak_per_s,
        partitions=partitions,
        workers=workers,
        brokers=max(_LEAST_BROKERS, ceil(broker_cores / _CORES_A_BROKER)),
        broker_cores=broker_cores,
        open_sessions=ceil(sessions),
        state_gb=state_gb,
        workers_memory_gb=memory_gb,
        kafka_disk_gb=kafka_gb,
        index_points=load.turns_per_day * load.index_days,
        index_gb=index_gb,
        archive_gb_per_day=archive_day_gb,
        archive_gb=archive_day_gb * load.archive_days,
        money_per_month=money,
        money_per_million_turns=money / (load.turns_per_day * _HOURS_A_MONTH / 24 / 1e6),
        limits=_limits(workers, index_gb),
    )


def _partitions(workers: int) -> int:
    """Two for every worker, so that one that is lost is made up for; 12 and its doubles, which divide well.

    >>> _partitions(1), _partitions(13)
    (12, 48)
    """
    count = _LEAST_PARTITIONS
    while count < 2 * workers:
        count *= 2
    return count


def _storage(load: ExpectedLoad, cost: Cost) -> tuple[float, float, float]:
    """GB in Kafka with all copies, in the index, and of the archive per day."""
    longer = max(0.0, (load.turn_bytes or cost.turn_bytes) - cost.turn_bytes)
    kept = sum(cost.topic_bytes.get(topic.name, 0.0) * _kept_days(topic) for topic in REGISTRY.topics)
    kept += longer * cost.text_copies * _kept_days(TURNS)
    stretch = (cost.turn_bytes + longer) / cost.turn_bytes
    index = (cost.index_bytes + longer) * load.index_days
    archive = cost.archive_bytes * stretch
    a_day = load.turns_per_day / _GB
    return kept * a_day * load.replication, index * a_day, archive * a_day


def _kept_days(topic: Topic) -> float:
    return _COMPACTED_DAYS if topic.retention is None else topic.retention / _DAY


def _limits(workers: dict[str, int], index_gb: float) -> list[str]:
    """What breaks first, and what carries it."""
    said = []
    if index_gb > _INDEX_OF_ONE_MACHINE_GB or workers.get("index", 1) > 1:
        said.append("index: Qdrant Edge is one process on one machine; a Qdrant server, sharded, and the api role")
    if workers.get("archive", 1) > 1:
        said.append("archive: a catalog in SQLite has one writer; Postgres, and the files on S3")
    if max(workers.values()) > 1:
        said.append("workers: more than one machine; a cluster, see deploy/kubernetes")
    return said
