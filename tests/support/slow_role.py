"""A worker in a slow call (`tests/support/slow_role_child.py`), for tests that stop, kill or freeze it there."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jobs.shared.role_process import RoleProcess
from streams.settings import Settings
from tests.support import slow_role_child
from tests.support.fault_driver import until


class SlowRole(RoleProcess):
    """The role as a child, one call of which is slow."""

    def __init__(self, role: str, settings: Settings, slow: str, *, log: Path) -> None:
        super().__init__(role, settings, log=log)
        self._slow = slow

    def _command(self) -> list[str]:
        return [sys.executable, "-m", slow_role_child.__name__, self.role, self._slow]

    def in_slow_call(self) -> bool:
        """Whether it has entered the slow call."""
        assert self.running(), self.log_tail()
        return slow_role_child.ENTERED in self.log.read_text()


@asynccontextmanager
async def in_slow_call(settings: Settings, folder: Path, role: str, slow: str) -> AsyncIterator[SlowRole]:
    """The role's process, which has just entered the slow call; killed at the end if it still runs."""
    child = SlowRole(role, settings, slow, log=folder / "slow.log")
    child.start()
    try:
        await until(child.in_slow_call, "the slow call")
        yield child
    finally:
        if child.running():
            child.kill()
