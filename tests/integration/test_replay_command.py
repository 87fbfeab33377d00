"""`turntide replay` on the real broker: digests of the log, and differences where no role has run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.role_process import environment_of
from jobs.sending import send_to_turns
from jobs.topics import apply_topics
from models.codec import encode
from models.events import Role, Turn
from streams.kafka.producer import Record
from streams.settings import Settings, load_settings

pytestmark = [pytest.mark.kafka]


def replay(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as its users do, where no index role answers."""
    environment = {**os.environ, **environment_of(settings), "TURNTIDE_HTTP__INDEX_PORT": "0"}
    return subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "jobs.cli", "replay", *arguments, "--output", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


async def test_digests_and_differences(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Three turns and a broken record: a digest of their session, and all of it missing where nothing folded them."""
    settings = load_settings(kafka={"bootstrap": kafka, "partitions": 2}, topic_prefix=topic_prefix, data_dir=tmp_path)
    await apply_topics(settings)
    turns = [
        Turn(session_id="s-1", user_id="u", app_id="a", turn=n, role=Role.USER, content="Good day.",
             timestamp=datetime.now(UTC))
        for n in range(3)
    ]  # fmt: skip
    records = [Record(b"s-1", encode(turn)) for turn in turns]
    await send_to_turns(settings, [*records, Record(b"s-1", b"{broken")])
    whole, again, first = (replay(settings, "--session", "s-1", *limit) for limit in ((), (), ("--limit", "1")))
    compared = replay(settings, "--compare", "--wait-s", "0")

    assert (whole.returncode, whole.stdout) == (0, again.stdout)
    (digest,), (digest_of_first,) = json.loads(whole.stdout), json.loads(first.stdout)
    assert (digest["session_id"], digest["sha256"] == digest_of_first["sha256"]) == ("s-1", False)
    found = json.loads(compared.stdout)
    assert (compared.returncode, found["counts"]["dead-letters.v1 missing"]) == (1, 1)
    assert found["counts"]["state missing"] == found["checked"]["state"] > 3
    assert {"archive", "index"} == found["not_checked"].keys()


def test_compare_refuses_a_part(tmp_path: Path) -> None:
    """A comparison of one session would hide the others' differences."""
    settings = load_settings(kafka={"bootstrap": "127.0.0.1:9"}, data_dir=tmp_path)
    refused = replay(settings, "--compare", "--session", "s-1")

    assert (refused.returncode, "--compare looks at everything" in refused.stderr) == (2, True)
