"""`turntide migrate`: what it makes of versions; and what a release says of those that are later than its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from jobs.migrate import Does, Step, apply, state_steps
from jobs.state_versions import READ
from models import app_state, session_state, user_state
from models.errors import ConfigurationError, RecoveryFailed
from models.policy import Policy
from models.projects import head as project_head
from streams.lake import writer
from streams.lake.place import LakePaths
from streams.lake.views import published
from streams.lake.writer import LakeWriter
from streams.settings import load_settings


def test_versions_of_state_say_what_to_do() -> None:
    """This release's need nothing, earlier ones a reset by hand, later ones are refused."""
    mine = READ["session"]
    found = state_steps({("sessions", "session", mine + n): 3 for n in (-1, 0, 1)})

    assert [step.does for step in found] == [Does.BY_HAND, Does.NOTHING, Does.REFUSED]
    assert "turntide reset sessions --from-beginning" in found[0].action
    assert "a later release" in found[2].action


def test_nothing_is_applied_beside_what_a_later_release_wrote() -> None:
    """Not even what could be: topics of the one and state of the other would belong to no release."""
    later = Step(what="state", standing="version 9", wanted="version 1", does=Does.REFUSED, action="run that one")
    topics = Step(what="topics x", standing="", wanted="", does=Does.APPLY, action="create")

    with pytest.raises(ConfigurationError, match=r"nothing was changed\. state: run that one"):
        apply(load_settings(), [topics, later])


@pytest.mark.parametrize("module", [session_state, user_state, app_state, project_head])
def test_state_of_a_later_release_is_refused(module: object) -> None:
    """With both versions in the message: an older worker never misreads a newer one's state."""
    later = msgspec.msgpack.encode([module.STATE_VERSION + 1])  # type: ignore[attr-defined]
    read: dict[object, Callable[[], object]] = {
        session_state: lambda: session_state._read_kind(
            msgspec.msgpack.encode([session_state.STATE_VERSION + 1, False, None])
        ),
        user_state: lambda: user_state.read_head({"head": later}),
        app_state: lambda: app_state._read_head({"head": later}),
        project_head: lambda: project_head.read_head(later),
    }

    version = module.STATE_VERSION  # type: ignore[attr-defined]
    with pytest.raises(RecoveryFailed, match=f"version {version + 1}, this release reads {version}"):
        read[module]()


def test_views_of_a_later_release_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older writer refuses, and the archive's views are as they were."""
    paths = LakePaths(catalog=tmp_path / "catalog.sqlite", data=f"{tmp_path}/data/")
    later = published.VIEWS_VERSION + 1
    with monkeypatch.context() as newer:
        newer.setattr(published, "VIEWS_VERSION", later)
        newer.setattr(writer, "digest", lambda: "of a later release")
        LakeWriter(paths).close()

    with pytest.raises(ConfigurationError, match=f"views of version {later}, this release writes {later - 1}"):
        LakeWriter(paths)


def test_the_default_policy_is_of_this_release() -> None:
    """Whoever has none of their own needs nothing."""
    assert Policy().version
