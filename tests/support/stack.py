"""The system that the scenarios of `tests/system/stack` share: each has apps, users and projects of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx

from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.events import InputEvent
from streams.settings import Settings
from tests.support.fault_driver import recorded
from tests.support.roles_child import RolesProcess

_WITHIN_S = 60.0


class Stack(NamedTuple):
    """Roles that are ready: those that make and serve memories, and the memory role, which may be killed."""

    settings: Settings
    roles: RolesProcess
    memory: RoleProcess

    @property
    def url(self) -> str:
        """Where the index role answers."""
        return self.roles.url

    async def send(self, events: Iterable[InputEvent]) -> None:
        """Write these to `turns.v1`."""
        await send_to_turns(self.settings, map(recorded, events))

    async def kill_memory(self) -> None:
        """Kill −9 the memory role, and start it anew."""
        self.memory.kill()
        self.memory.start()
        await self.memory.ready()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """To the API, for so long as a scenario may take."""
        async with httpx.AsyncClient(base_url=self.url, timeout=30) as http, asyncio.timeout(_WITHIN_S):
            yield http
