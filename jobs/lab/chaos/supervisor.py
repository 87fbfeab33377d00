"""The processes of a run: started, started again when they end, killed, frozen and woken."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from jobs.lab.chaos.result import JOINER, Outage
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess, own_command
from streams.settings import KafkaSettings, Settings, VectorSettings, load_settings
from streams.settings.archive import ArchiveSettings

ROLES = ("sessions", "memory", "enrich", "index", "archive")
_PARTITIONS = 4
_LOOK_EVERY_S = 0.1
_READY_WITHIN_S = 120.0


class VectorServerProcess(RoleProcess):
    """`jobs.lab.chaos.vector_server` as a child process."""

    def __init__(self, settings: Settings, *, log: Path) -> None:
        super().__init__("vectors", settings, log=log)
        self._folder = settings.data_dir / "vector-server"
        self._embedder = settings.vectors.embedder

    def _command(self) -> list[str]:
        module = "jobs.lab.chaos.vector_server"
        return [*own_command(module), str(self._folder), str(self.port), self._embedder]


class Supervisor:
    """Roles by place; what is wanted and ends is started again, while it is watched.

    All but the joiner are static members of their groups: killed and started again, they have their partitions back at
    once. The joiner gives its partitions away when it leaves.

    Args:
        settings: Of all roles; logs are in a folder of their data directory.
        places: Names of the processes; up to the dash it is the role.
        vector_server: Whether the index role writes to a vector store of its own process, which can be harmed.

    Attributes:
        roles: Process of each place.
        restarts: How often one was started again.
        kills: How often one that ran was killed.
    """

    def __init__(self, settings: Settings, places: Sequence[str], *, vector_server: bool) -> None:
        logs = settings.data_dir / "logs"
        self._vectors = VectorServerProcess(settings, log=logs / "vectors.log") if vector_server else None
        own = {
            "TURNTIDE_ARCHIVE__CATALOG": "",
            "TURNTIDE_ARCHIVE__DATA_PATH": "",
            "TURNTIDE_VECTORS__URL": self._vectors.url if self._vectors else "",
        }
        self.roles = {
            place: RoleProcess(
                place.partition("-")[0],
                settings,
                log=logs / f"{place}.log",
                worker_id=None if place == JOINER else place,
                extra_environment=own,
            )
            for place in places
        }
        self._wanted = set(places) - {JOINER}
        self._frozen: set[str] = set()
        self.restarts = 0
        self.kills = 0

    @property
    def index_url(self) -> str | None:
        """Where the index role answers; None where it does not run."""
        return next((role.url for role in self.roles.values() if role.role == "index"), None)

    async def start(self) -> None:
        """Start all but the joiner, and wait until they are ready."""
        starting = [self.roles[place] for place in sorted(self._wanted)]
        if self._vectors:
            starting.insert(0, self._vectors)
        for role in starting:
            role.start()
        await asyncio.gather(*(role.ready(_READY_WITHIN_S) for role in starting))

    async def watch(self) -> None:
        """Start again what ends, until cancelled."""
        while True:
            for place in sorted(self._wanted):
                if not self.roles[place].running():
                    self.roles[place].start()
                    self.restarts += 1
            await asyncio.sleep(_LOOK_EVERY_S)

    def kill(self, place: str) -> bool:
        """Kill −9, frozen or not; False if it does not run."""
        self._frozen.discard(place)
        if not self.roles[place].running():
            return False
        self.roles[place].kill()
        self.kills += 1
        return True

    async def stop(self, place: str) -> None:
        """Ask it to stop and wait for that; a frozen one hears nothing."""
        if self.roles[place].running() and place not in self._frozen:
            await asyncio.to_thread(self.roles[place].stop)

    async def restart(self, place: str) -> int:
        """Stop it, start it again, and wait until it is ready; gives the exit code of the first."""
        code = await asyncio.to_thread(self.roles[place].stop)
        self.roles[place].start()
        await self.roles[place].ready(_READY_WITHIN_S)
        return code

    async def freeze(self, place: str, seconds: float) -> None:
        """SIGSTOP, wait, SIGCONT; nothing if it is frozen or not running."""
        role = self.roles[place]
        if place in self._frozen or not role.running():
            return
        pid = role.pid
        os.kill(pid, signal.SIGSTOP)
        self._frozen.add(place)
        await asyncio.sleep(seconds)
        if place in self._frozen and role.running() and role.pid == pid:
            self._frozen.discard(place)
            os.kill(pid, signal.SIGCONT)

    async def join_or_leave(self, place: str) -> None:
        """Start a worker that is not wanted yet; let one that is stop for good."""
        if place not in self._wanted:
            self._wanted.add(place)
            return
        self._wanted.discard(place)
        await self.stop(place)

    async def fail_vectors(self, outage: Outage, seconds: float) -> None:
        """Let the vector store fail and come back; an outage within another one adds nothing."""
        store = self._vectors
        if store is None or not store.running():
            return
        match outage:
            case Outage.KILLED:
                store.kill()
                self.kills += 1
                await asyncio.sleep(seconds)
                store.start()
            case Outage.HANGS:
                os.kill(store.pid, signal.SIGSTOP)
                await asyncio.sleep(seconds)
                if store.running():
                    os.kill(store.pid, signal.SIGCONT)
            case Outage.ERRORS:
                from jobs.lab.chaos.vector_server import ERRORS_PATH

                with suppress(httpx.TransportError):  # it is still starting, or hangs
                    async with httpx.AsyncClient() as client:
                        await client.post(f"{store.url}{ERRORS_PATH}", params={"seconds": seconds}, timeout=1.0)
                await asyncio.sleep(seconds)

    def end_all(self) -> None:
        """Stop everything, at the same time; the frozen are killed, for they would never hear of it."""
        self._wanted.clear()
        for place in sorted(self._frozen):
            self.kill(place)
        running = [role for role in self.roles.values() if role.running()]
        with ThreadPoolExecutor(len(self.roles)) as pool:
            list(pool.map(RoleProcess.stop, running))
        if self._vectors and self._vectors.running():
            os.kill(self._vectors.pid, signal.SIGCONT)
            self._vectors.stop()


@asynccontextmanager
async def own_cluster(folder: Path, prefix: str, **kafka: Any) -> AsyncIterator[tuple[LocalKafka, Settings]]:
    """A broker with its topics, and settings of a run alone; the broker is stopped on the way out.

    Whatever cluster, archive, vector store or policy the environment names is left alone.
    """
    with LocalKafka(folder) as broker:
        mine = {
            "kafka": KafkaSettings(bootstrap=broker.bootstrap, partitions=_PARTITIONS, **kafka),
            "topic_prefix": prefix,
            "data_dir": folder,
            "archive": ArchiveSettings(),
            "vectors": VectorSettings(),
            "policy_file": None,
        }
        settings = load_settings().model_copy(update=mine)
        await apply_topics(settings)
        yield broker, settings


@asynccontextmanager
async def supervised(settings: Settings, places: Sequence[str], *, vector_server: bool) -> AsyncIterator[Supervisor]:
    """A supervisor whose processes are ready; all of them are ended on the way out."""
    supervisor = Supervisor(settings, places, vector_server=vector_server)
    try:
        await supervisor.start()
        yield supervisor
    finally:
        supervisor.end_all()
