"""A broker and all roles for the tests of the clients, which have environments of their own: `python -m … COMMAND …`.

The command finds the API at `TURNTIDE_URL`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import uuid
from datetime import timedelta
from pathlib import Path

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from streams.settings import load_settings
from tests.support.roles_child import RolesProcess


def main(*command: str) -> int:
    """Run a command beside them; its exit code."""
    with tempfile.TemporaryDirectory() as made, LocalKafka(Path(made, "broker")) as broker:
        settings = load_settings(
            kafka={"bootstrap": broker.bootstrap, "partitions": 2, "session_timeout": timedelta(seconds=6)},
            topic_prefix=f"clients-{uuid.uuid4().hex[:8]}",
            data_dir=Path(made, "data"),
        )
        asyncio.run(apply_topics(settings))
        log = Path(made, "roles.log")
        roles = RolesProcess(settings, "sessions", "memory", "enrich", "index", "archive", log=log)
        roles.start()
        try:
            asyncio.run(roles.ready(within_s=120.0))
            code = subprocess.run(command, env={**os.environ, "TURNTIDE_URL": roles.url}, check=False).returncode  # noqa: S603 - as it was given
        finally:
            roles.stop()
        if code:
            sys.stderr.write(roles.log_tail())
        return code


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
