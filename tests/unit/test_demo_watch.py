"""What the demo waits for at its end."""

from __future__ import annotations

from jobs.demo.run import ROLES
from jobs.demo.watch import SOURCES
from streams.roles.enrich import EnrichRole
from streams.roles.index import IndexRole
from streams.roles.memory import MemoryRole
from streams.roles.sessions import SessionsRole


def test_every_role_is_waited_for_on_what_it_reads() -> None:
    """A topic left out would let the demo end before it is read; the archive tells its offsets itself."""
    roles = (SessionsRole, MemoryRole, EnrichRole, IndexRole)

    assert {role.name: role.sources for role in roles} == SOURCES
    assert set(ROLES) == {*SOURCES, "archive"}
