"""`turntide ops migrate`, what a release says of later versions, and sessions that were kept by id alone."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from jobs.operate import migrate as migrating
from jobs.operate.doctor.verdict import Status, Verdict
from jobs.operate.migrate import READ, Does, Step, apply, state_steps
from jobs.shared.topic_drift import DriftKind, TopicDrift
from models.errors import ConfigurationError, RecoveryFailed
from models.events import DEFAULT_APP, SessionEnded, session_key
from models.partition.commands import FOLDS
from models.partition.log_fold import PARTITION_ENTITY
from models.partition.sessions_v1 import bound, unbound
from models.session.state import SessionState
from streams.archive import writer
from streams.archive.place import LakePaths, paths_of
from streams.archive.views import published
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.entity_driver import Entities
from tests.unit.test_partition import START, Kept, log, turn


def test_versions_of_state_say_what_to_do() -> None:
    """This release's need nothing, nor what a role migrates; others a reset by hand, later ones are refused."""
    mine = READ["session"]
    found = state_steps({("sessions", "session", mine + n): 3 for n in (-2, -1, 0, 1)})

    assert [step.does for step in found] == [Does.BY_HAND, Does.NOTHING, Does.NOTHING, Does.REFUSED]
    assert "turntide ops reset sessions --from-beginning" in found[0].action
    assert "a later release" in found[3].action


def test_nothing_is_applied_beside_what_a_later_release_wrote() -> None:
    """Not even what could be: topics of the one and state of the other would belong to no release."""
    later = Step(what="state", standing="version 9", wanted="version 1", does=Does.REFUSED, action="run that one")
    topics = Step(what="topics x", standing="", wanted="", does=Does.APPLY, action="create")

    with pytest.raises(ConfigurationError, match=r"nothing was changed\. state: run that one"):
        apply(load_settings(), [topics, later])


def test_what_takes_a_decision_is_left_to_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and partitions of topics, an index or a scorer that is only warned of; `--apply` does the rest."""
    kinds = (DriftKind.MISSING, DriftKind.CONFIG, DriftKind.REPLICATION, DriftKind.CO_PARTITIONING)
    found = [TopicDrift("t", kind, "f", "1", "2", "do") for kind in kinds]
    fewer = [*found, TopicDrift("t", DriftKind.TOO_FEW_PARTITIONS, "partitions", "1", "2", "add")]
    warned = Verdict(Status.WARN, "of another model", "turntide ops reindex")
    monkeypatch.setattr(migrating, "check_vectors", lambda _settings: warned)
    monkeypatch.setattr(migrating, "check_scorer", lambda _settings: warned)

    assert [step.does for step in migrating._topics(found)] == [Does.APPLY] * 2 + [Does.BY_HAND] * 2
    assert [step.does for step in migrating._topics(fewer)] == [Does.BY_HAND], "nothing is applied beside it"
    assert [step.does for step in migrating._by_doctor(load_settings())] == [Does.BY_HAND] * 2


@pytest.mark.parametrize(
    ("option", "left", "code"), [("--check", Does.APPLY, 1), ("--apply", Does.NOTHING, 0), ("--apply", Does.BY_HAND, 1)]
)
def test_the_exit_code_says_what_is_left(monkeypatch: pytest.MonkeyPatch, option: str, left: Does, code: int) -> None:
    """Looked at anew after it was applied; what is left to people is left."""
    first = [Step(what="topics x", standing="", wanted="", does=Does.APPLY)]
    looks = iter([first, [Step(what="topics x", standing="", wanted="", does=left)]])
    applied: list[list[Step]] = []
    monkeypatch.setattr(migrating, "steps", lambda _settings: next(looks))
    monkeypatch.setattr(migrating, "apply", lambda _settings, found: applied.append(found))
    app = typer.Typer()
    app.command()(migrating.migrate)

    assert CliRunner().invoke(app, [option]).exit_code == code
    assert applied == ([first] if option == "--apply" else [])


def test_an_archive_is_refused_completed_or_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None yet, one of this release, one that lacks something, one of a later release."""
    settings = load_settings(data_dir=tmp_path)
    does = [migrating._archive(settings).does]
    LakeWriter(paths_of(settings)).close()
    does.append(migrating._archive(settings).does)
    monkeypatch.setattr(published, "lacking", lambda _con: ["a_view"])
    does.append(migrating._archive(settings).does)
    monkeypatch.setattr(published, "VIEWS_VERSION", published.VIEWS_VERSION - 1)
    does.append(migrating._archive(settings).does)

    assert does == [Does.NOTHING, Does.NOTHING, Does.APPLY, Does.REFUSED]


@pytest.mark.parametrize("kind", READ)
def test_state_of_a_later_release_is_refused(kind: str) -> None:
    """With both versions in the message: an older worker never misreads a newer one's state."""
    version = READ[kind]
    later = {"head": msgspec.msgpack.encode([version + 1, *([False, None] if kind == "session" else [])])}
    read = SessionState.load if kind == "session" else FOLDS[kind].state.read_head

    with pytest.raises(RecoveryFailed, match=f"version {version + 1}, this release reads {version}"):
        read(later)


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


_OTHER_APP = 36
"""Place of a field that an open session had."""


def state(*, ended: bool) -> Entities:
    """A session of app `shop`, open or ended."""
    kept = Kept()
    turns = [turn("chat", n, START + timedelta(seconds=n), f"About boats, {n}?", "shop") for n in range(7)]
    end = SessionEnded(session_id="chat", app_id="shop", timestamp=START + timedelta(minutes=1))
    kept.take(log(*turns, *([end] if ended else [])))
    return kept.entities


def as_before(entities: Entities) -> Entities:
    """The same state as 0.2 kept it."""
    parts = dict(entities[session_key("shop", "chat")])
    head: list[Any] = msgspec.msgpack.decode(parts["head"])
    head[0] = 1
    if not head[1]:
        head.insert(_OTHER_APP, False)
    parts["head"] = msgspec.msgpack.encode(head)
    return {PARTITION_ENTITY: entities[PARTITION_ENTITY], "chat": parts}


@pytest.mark.parametrize("ended", [False, True])
def test_a_session_is_kept_as_this_release_keeps_it(ended: bool) -> None:
    """An open one by its head's app, a closed one by that of its last profile; nothing is left under the id."""
    now = state(ended=ended)
    before = as_before(now)

    assert unbound(before) == ["chat"]

    changes = bound(before, ["chat"], {"chat": "shop"} if ended else {})

    assert changes[session_key("shop", "chat")] == now[session_key("shop", "chat")]
    assert changes["chat"] == dict.fromkeys(before["chat"])
    assert unbound(now) == []


def test_words_of_nobodys_session_come_to_no_tenant() -> None:
    """Of a closed session without a profile the numbers stay, for the default app, and nothing that was said."""
    before = as_before(state(ended=True))
    changes = bound(before, ["chat"], {})

    assert len(before["chat"]) > 1
    assert changes[session_key(DEFAULT_APP, "chat")].keys() == {"head"}


def test_a_session_of_this_release_is_not_replaced() -> None:
    """After a crash in between, or with a worker of the earlier release beside it, the newer state counts."""
    now = state(ended=False)
    both = now | {"chat": as_before(now)["chat"]}

    assert unbound(both) == ["chat"]
    assert bound(both, ["chat"], {}).keys() == {"chat"}
