"""The processes of a run: started, started again when they end, killed, frozen and woken."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jobs.chaos.actions import JOINER, PLACES
from jobs.role_process import RoleProcess
from streams.settings import Settings

_LOOK_EVERY_S = 0.2
_READY_WITHIN_S = 120.0


class Supervisor:
    """Roles by place (`jobs.chaos.actions.PLACES`); what is wanted and ends is started again.

    Attributes:
        restarts: How often that happened.
        kills: How often one that ran was killed.
    """

    def __init__(self, settings: Settings, logs: Path) -> None:
        own = {"TURNTIDE_ARCHIVE__CATALOG": "", "TURNTIDE_ARCHIVE__DATA_PATH": "", "TURNTIDE_VECTORS__URL": ""}
        self._roles = {
            place: RoleProcess(place.partition("-")[0], settings, log=logs / f"{place}.log", extra_environment=own)
            for place in PLACES
        }
        self._wanted = set(PLACES) - {JOINER}
        self._frozen: set[str] = set()
        self.restarts = 0
        self.kills = 0

    @property
    def index_url(self) -> str:
        """Where the index role answers."""
        return self._roles["index"].url

    async def start(self) -> None:
        """Start all but the joiner, and wait until they are ready."""
        for place in sorted(self._wanted):
            self._roles[place].start()
        await asyncio.gather(*(self._roles[place].ready(_READY_WITHIN_S) for place in self._wanted))

    async def watch(self) -> None:
        """Start again what ends, until cancelled."""
        while True:
            for place in sorted(self._wanted):
                if not self._roles[place].running():
                    self._roles[place].start()
                    self.restarts += 1
            await asyncio.sleep(_LOOK_EVERY_S)

    def kill(self, place: str) -> None:
        """Kill −9, frozen or not."""
        self._frozen.discard(place)
        if self._roles[place].running():
            self._roles[place].kill()
            self.kills += 1

    async def stop(self, place: str) -> None:
        """Ask it to stop and wait for that; a frozen one hears nothing."""
        if self._roles[place].running() and place not in self._frozen:
            await asyncio.to_thread(self._roles[place].stop)

    async def freeze(self, place: str, seconds: float) -> None:
        """SIGSTOP, wait, SIGCONT; nothing if it is frozen or not running."""
        role = self._roles[place]
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

    def end_all(self) -> None:
        """Stop everything, at the same time; the frozen are killed, for they would never hear of it."""
        self._wanted.clear()
        for place in sorted(self._frozen):
            self.kill(place)
        running = [role for role in self._roles.values() if role.running()]
        with ThreadPoolExecutor(len(self._roles)) as pool:
            list(pool.map(RoleProcess.stop, running))
