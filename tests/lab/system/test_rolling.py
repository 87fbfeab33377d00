"""A rolling restart as an upgrade does it: two workers of a role, one after another, under load."""

from jobs.lab.chaos.driver import roll
from streams.settings import Settings


async def test_a_rolling_restart_loses_no_turn(settings: Settings) -> None:
    """Every worker stops in order and comes back; nothing is lost or doubled, and all equals a replay."""
    told: list[str] = []
    result = await roll(settings, roles=["sessions"], turns_per_s=40, seed=3, report=told.append)

    assert (result.restarted, result.not_in_order) == (["sessions-0", "sessions-1"], [])
    assert (result.lost, result.doubled, result.counts, result.examples) == (0, 0, {}, [])
    assert result.checked["log"] == result.turns > 0
    assert [line.partition(" ")[0] for line in told] == ["sessions-0", "sessions-1", "comparing"]
    assert not result.failed
