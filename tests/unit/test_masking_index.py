"""What is masked does not come back from the index: not in payloads, not by words, not by likeness."""

from pathlib import Path

import pytest

from models.policy import Policy
from models.policy.archive import MaskingPolicy
from tests.support.apps_indexed import memory
from tests.support.projects_indexed import changed as project_changed
from tests.support.projects_indexed import remembered
from tests.support.session_driver import said
from tests.unit.test_index_role import Noting, Quiet
from tests.unit.test_masking import MASKED, PII, SECRETS


@pytest.mark.parametrize("at_index", [True, False])
async def test_the_index_holds_no_secret(tmp_path: Path, at_index: bool) -> None:
    """Turns, memories of apps, items of projects; unmasked where the policy does not ask for it."""
    store = Noting()
    role = Quiet(store, tmp_path, Policy(masking=MaskingPolicy(at_index=at_index)))
    await role.take(said(1, PII), memory(1, PII), project_changed(remembered(1, PII)))
    collections = (await store._client.get_collections()).collections
    held = ""
    for each in collections:
        points, _ = await store._client.scroll(each.name, limit=100, with_payload=True, with_vectors=True)
        held += "".join(f"{point.payload}{point.vector}" for point in points)
    await store.close()

    assert len(collections) >= 3
    assert [each for each in SECRETS if each in held] == ([] if at_index else list(SECRETS))
    assert (MASKED in held) is at_index
