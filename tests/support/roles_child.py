"""Several roles in one process, for tests that need processes but not one for each: `python -m … sessions index`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs.operate.worker import run_until_stopped
from jobs.shared.role_process import RoleProcess
from streams.observe.telemetry import configure_logging
from streams.settings import Settings, load_settings
from streams.wiring import ROLES

_STOP_WITHIN_S = 15.0


class RolesProcess(RoleProcess):
    """These roles as one child, ready when its index is.

    Args:
        settings: Cluster, prefix, data directory and policy.
        names: The roles, the index among them.
        log: Where their output goes.
        command: Module that runs them, and arguments before their names.
        environment: Wins over the settings.
    """

    def __init__(
        self,
        settings: Settings,
        *names: str,
        log: Path,
        command: Sequence[str] = (__name__,),
        environment: dict[str, str] | None = None,
    ) -> None:
        unserved = {f"TURNTIDE_HTTP__{name.upper()}_PORT": "0" for name in names if name != "index"}
        super().__init__("index", settings, log=log, extra_environment={**unserved, **(environment or {})})
        self._arguments = [*command, *names]

    def _command(self) -> list[str]:
        return [sys.executable, "-m", *self._arguments]


def main(*names: str) -> None:
    """Run them until the parent is gone or they are told to stop."""
    settings = load_settings()
    configure_logging(settings.log_format, settings.log_level)

    async def together(stop: asyncio.Event) -> None:
        await asyncio.gather(*(ROLES[name](settings, stop) for name in names))

    run_until_stopped(together, exit_with_parent=True, within_s=_STOP_WITHIN_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
