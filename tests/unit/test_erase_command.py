"""`turntide memory erase`: what it asks for, what it prints, and how it ends."""

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import typer
from msgspec.structs import replace
from typer.testing import CliRunner

from jobs.memory import erase as command
from jobs.shared.role_groups import RoleGroup
from models.errors import ConfigurationError
from models.events import ErasedStore, EraseRequested, ErasureProved
from streams.erase.record import ErasureRecords
from streams.settings import Settings
from tests.support.fields import assert_fields
from tests.support.lake_records import example

NOW = datetime(2026, 5, 1, tzinfo=UTC)
GONE = ErasedStore(store="archive turns", looked_at=9, removed=3, remaining=0)
GOING = ErasedStore(store="topic turns.v1", looked_at=9, removed=0, remaining=3, expires_at=NOW)
STAYING = ErasedStore(store="log facts.v1", looked_at=9, removed=0, remaining=1)
ASKED: list[EraseRequested] = []
STORES: list[ErasedStore] = []


SESSIONS = [("shop", "s-1"), ("shop", "s-2"), ("bank", "s-2")]
"""Apps and ids of the sessions that are there."""


class Requests:
    """Proves whatever was asked for at the second look; interrupts the wait where there is nothing to prove."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def apps_of(self, session_id: str) -> set[str]:
        """Of those that are there."""
        return {app_id for app_id, known in SESSIONS if known == session_id}

    async def request(self, wanted: EraseRequested) -> None:
        """Note it."""
        ASKED.append(wanted)

    async def watched(self, every_s: float) -> AsyncGenerator[ErasureRecords, None]:  # noqa: ARG002 - the port's
        """Pending, then proved."""
        records = ErasureRecords()
        records.requested = {each.request_id: each for each in ASKED}
        yield records
        if not STORES:
            raise KeyboardInterrupt
        for each in ASKED:
            records.proved[each.request_id] = replace(
                example(ErasureProved),
                request_id=each.request_id,
                by=each.by,
                stores=STORES,
                complete=not any(store.remaining for store in STORES),
            )
        yield records


async def _groups(_settings: Settings, roles: Any) -> dict[str, RoleGroup]:
    return {role: RoleGroup("Stable", 1) for role in roles}


@pytest.fixture(autouse=True)
def _doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    STORES[:] = [GONE]
    monkeypatch.setattr(command, "KafkaEraseRequests", Requests)
    monkeypatch.setattr(command, "role_groups", _groups)


def run(*arguments: str, said: str = "") -> Any:
    """The command with these arguments and answers."""
    app = typer.Typer()
    app.command()(command.erase)
    return CliRunner().invoke(app, arguments, input=said)


def test_a_user_is_asked_for_and_the_proof_printed() -> None:
    """JSON has the whole proof."""
    result = run("--user", "anna", "--app", "shop", "--by", "me", "--purge-logs", "--yes", "--output", "json")
    (asked,) = ASKED

    assert_fields(asked, scope="user", user_id="anna", app_id="shop", by="me", purge_logs=True)
    assert msgspec.json.decode(result.stdout, type=ErasureProved).stores == [GONE]
    assert result.exit_code == 0


@pytest.mark.parametrize(("stores", "code"), [([GONE], 0), ([GONE, GOING], 0), ([GOING, STAYING], 1)])
def test_the_exit_code_says_whether_something_stays(stores: list[ErasedStore], code: int) -> None:
    """What retention will remove is no failure; what nothing will remove is one."""
    STORES[:] = stores

    assert run("--session", "s-1", "--yes").exit_code == code


@pytest.mark.parametrize(("arguments", "app_id"), [(["s-2", "--app", "bank"], "bank"), (["s-1"], "shop")])
def test_a_session_is_one_app_s(arguments: list[str], app_id: str) -> None:
    """The app that is named, else the only one that has such a session: never all of them."""
    run("--session", *arguments, "--yes")

    assert [app_id] == [asked.app_id for asked in ASKED]


def test_nothing_is_asked_for_without_a_yes() -> None:
    """The question names whom."""
    result = run("--app", "shop", said="n\n")

    assert (result.exit_code, ASKED) == (1, [])
    assert "app shop with all its users" in result.output


def test_an_interrupted_wait_says_how_to_look_again() -> None:
    """The erasure goes on; its id must not be lost."""
    STORES.clear()
    result = run("--user", "anna", "--yes")

    assert result.exit_code == 130
    assert f"turntide memory erase --status {ASKED[0].request_id}" in result.output


def test_a_pending_erasure_says_what_it_waits_for() -> None:
    """By its id, later."""
    run("--user", "anna", "--yes", "--no-wait")
    result = run("--status", ASKED[0].request_id, "--output", "json")

    assert msgspec.json.decode(result.stdout)["waits_for"] == "sessions, users and topics"
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "trouble"),
    [
        ((), "nothing is selected"),
        (("--user", "a", "--session", "s"), "leave out user"),
        (("--status", "r"), "no erasure has"),
        (("--session", "s-2"), "apps bank, shop each have a session s-2: .*--app"),
    ],
)
def test_what_cannot_be_asked_for_is_said(arguments: tuple[str, ...], trouble: str) -> None:
    """Before anything is written."""
    result = run(*arguments, "--yes")

    assert isinstance(result.exception, ConfigurationError)
    assert re.search(trouble, str(result.exception))
    assert ASKED == []
