"""Topics of their own on the shared broker for tests of whole roles."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from streams.settings import Settings, load_settings


@pytest.fixture
async def settings(request: pytest.FixtureRequest, kafka: str, topic_prefix: str, tmp_path: Path) -> Settings:
    """Fresh topics with as many partitions as the module says (by default four), and a short session time-out."""
    settings = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": getattr(request.module, "PARTITIONS", 4),
            "session_timeout": timedelta(seconds=6),
            "heartbeat_interval": timedelta(seconds=1),
        },
        topic_prefix=topic_prefix,
        data_dir=tmp_path / "data",
    )
    await apply_topics(settings)
    return settings
