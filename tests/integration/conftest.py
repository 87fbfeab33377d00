"""What tests of one role or client on the real broker share."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from streams.settings import Settings, load_settings


@pytest.fixture
async def settings(request: pytest.FixtureRequest, kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Own topics as the module says (`PARTITIONS`, by default two, and `KAFKA`), HTTP on free ports."""
    settings = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": getattr(request.module, "PARTITIONS", 2),
            **getattr(request.module, "KAFKA", {}),
        },
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
        http={f"{role}_port": 0 for role in ("sessions", "memory", "enrich", "judge", "index", "archive", "notify")},
    )
    await apply_topics(settings)
    return settings
