"""The local vector store is taken away while the index role runs: said, and made good from the log."""

import shutil
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from models.errors import StoreUnavailable
from models.policy import Policy
from models.risk.scorer import RuleScorer
from streams.index.edge import EdgeStore
from streams.roles.index import IndexRole
from streams.settings import Settings
from tests.support.fault_driver import recorded, said, send, until, working
from tests.support.users_indexed import MatterEmbedder

TURNS = 20


async def indexed(store: EdgeStore, turns: int) -> bool:
    """Whether so many turns are there."""
    return await store.count("turns") == turns


async def run_index(settings: Settings, meanwhile: Callable[[IndexRole, EdgeStore], Awaitable[None]]) -> None:
    """The role over a local store, until this is done; raises what the role ended with."""
    store = EdgeStore(settings.data_dir / "vectors", embedder=MatterEmbedder.name)
    role = IndexRole(settings, Policy(), MatterEmbedder(), RuleScorer(), store)
    async with working(role.run) as (task,):
        await meanwhile(role, store)
    task.result()


@pytest.mark.parametrize("lost", ["vectors", "vectors/turns"])
async def test_a_store_that_is_gone_ends_the_role_and_is_made_anew(settings: Settings, lost: str) -> None:
    """Readiness is false at once; started again, the role indexes what the log has, though all of it was committed."""
    await send(settings, [recorded(said(n)) for n in range(TURNS)])

    async def take_away(role: IndexRole, store: EdgeStore) -> None:
        await until(partial(indexed, store, TURNS), "the turns")
        await until(lambda: role.ready()[0], "readiness")
        shutil.rmtree(settings.data_dir / lost)
        assert role.ready() == (False, "the local vector store was removed")
        await until(role._failure.done, "the end of the role")

    async def look(role: IndexRole, store: EdgeStore) -> None:
        await until(partial(indexed, store, TURNS), "the turns again")
        await until(lambda: role.ready()[0], "readiness")

    async def go_on(role: IndexRole, store: EdgeStore) -> None:
        await until(lambda: role.ready()[0], "readiness")
        assert not role.app.transport.from_start
        await send(settings, [recorded(said(TURNS))])
        await until(partial(indexed, store, TURNS + 1), "the next turn")

    with pytest.raises(StoreUnavailable, match="was removed"):
        await run_index(settings, take_away)
    await run_index(settings, look)
    await run_index(settings, go_on)
