"""`turntide memory apps` and `turntide memory export` against a role in this process."""

import json
from pathlib import Path

import httpx
import pytest

from models.errors import StoreUnavailable
from streams.api import commands
from tests.support.api_apps import memory, space
from tests.support.api_doubles import Served, settings_of, token_of
from tests.support.command_line import InProcess, printed, reached, refused, turntide

ODD = "shop/eu ü"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """A role with the memories of two apps."""
    made = Served()
    made.apps.known += [
        memory(1, "User prefers calls after 2pm.", app=ODD, pinned=True, conflicts_with=[2]),
        memory(2, "User prefers calls before noon.", app=ODD),
        memory(1, "Orders have eight digits.", app="."),
    ]
    made.apps.all_stats += [space(ODD, memories=2, spent_units=260.0), space(".", memories=1)]
    reached(InProcess(made.app), monkeypatch)
    return made


@pytest.mark.usefixtures("served")
def test_list_for_people_and_for_programs() -> None:
    """A row that can be read; as JSON everything that the role answers. `.` is somebody's app, not the folder."""
    table = turntide("memories", "list", ODD).stdout

    assert [word in table for word in ("pinned conflict", "calls after 2pm", "7.5", "madeBy")] == [True] * 3 + [False]
    assert [(each["id"], each["conflictsWith"]) for each in printed("memories", "list", ODD)] == [(1, [2]), (2, [])]
    assert [each["content"] for each in printed("memories", "list", ".")] == ["Orders have eight digits."]


@pytest.mark.usefixtures("served")
def test_show_search_and_stats() -> None:
    """One memory with all of it; found ones with scores; figures of one app or of all."""
    assert printed("memories", "show", ODD, "2")["metadata"]["importance"] == 7.5
    assert [each["id"] for each in printed("memories", "search", ODD, "noon", "--mode", "keyword")] == [2]
    assert printed("memories", "stats", ODD, "--since-units", "250")["energy"]["spentSinceUnits"] == 10.0
    assert [each["appId"] for each in printed("memories", "stats")] == [ODD, "."]
    assert "spentUnits" in turntide("memories", "stats", ODD).stdout


def test_edit_and_pin_change_what_they_name(served: Served) -> None:
    """Nothing else; sharing is taken back by a word of its own."""
    edited = printed("memories", "edit", ODD, "2", "--content", "By mail.", "--tag", "mail", "--share-with", "b")
    pinned = printed("memories", "pin", ODD, "2")["memory"]
    printed("memories", "pin", ODD, "2", "--off")
    alone = printed("memories", "edit", ODD, "2", "--share-with-nobody")["memory"]

    assert (edited["memory"]["content"], edited["memory"]["metadata"]["tags"]) == ("By mail.", ["mail"])
    assert (edited["memory"]["sharedWith"], pinned["sharedWith"], alone["sharedWith"]) == (["b"], ["b"], [])
    assert (pinned["pinned"], alone["pinned"], alone["content"]) == (True, False, "By mail.")
    assert len(served.apps.sent) == 4


def test_delete_says_what_was_gone(served: Served) -> None:
    """Twice is no error."""
    first, second = (printed("memories", "delete", ODD, "1") for _ in range(2))

    assert (first, second["alreadyGone"]) == ({"success": True}, True)
    assert [each.memory_id for each in served.apps.known if each.app_id == ODD] == [2]


def test_what_cannot_be_undone_is_asked_for(served: Served) -> None:
    """Purging, alone or with the app; a no leaves everything, and `--yes` asks nothing."""
    refused = [
        turntide("memories", *each, said="n\n") for each in (["purge", ODD], ["uninstall", ODD, "--purge-memories"])
    ]
    kept = printed("memories", "uninstall", ODD)
    purged = printed("memories", "purge", ODD, "--yes")

    assert [each.exit_code for each in refused] == [1, 1]
    assert (kept["deletedCount"], purged) == (0, {"success": True, "deletedCount": 2})
    assert len(served.apps.sent) == 2


def test_a_command_that_nobody_carries_out_yet(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1 and a hint: it is written, but not seen."""
    monkeypatch.setattr(commands, "WAIT_S", 0.0)
    served.apps.away = True
    result = turntide("memories", "delete", ODD, "1", "--output", "json")

    assert (result.exit_code, json.loads(result.stdout)["pending"]) == (1, True)


@pytest.mark.parametrize(
    ("token", "said"),
    [(None, "put an admin token"), ("wrong-token-0000", "put an admin token"), (token_of("a"), "role `admin`")],
)
def test_refusals_say_what_to_do(token: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No token, a wrong one, one that is no admin's; the token itself is not said."""
    reached(InProcess(Served(settings=settings_of("a")).app), monkeypatch)
    if token is not None:
        monkeypatch.setenv("TURNTIDE_TOKEN", token)
    told = refused("memories", "list", "a")

    assert said in told
    assert token is None or token not in told


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("memories", "show", ODD, "9"), "GET /apps/{app_id}/memories"),
        (("memories", "edit", ODD, "1"), "has no change"),
        (("memories", "edit", ODD, "1", "--content", "x" * 401), "400 characters"),
        (("export",), "or --all"),
        (("export", ODD, "--all"), "or --all"),
        (("export", ODD, "-o", "/no/such/folder/x.json"), "Give another file"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    """Of the role's, and of what never reaches it."""
    assert said in refused(*arguments)


def test_a_role_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one, and what to start; or that whoever answers there is no role."""

    def refuse(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    told = []
    for answers in (refuse, lambda _request: httpx.Response(200, text="<html>")):
        reached(httpx.MockTransport(answers), monkeypatch)
        result = turntide("memories", "list", "a", "--url", "http://elsewhere:9")
        assert isinstance(result.exception, StoreUnavailable)
        told.append(str(result.exception))

    assert ["turntide worker index" in told[0], "check --url" in told[1]] == [True, True]


def test_export_of_one_app_and_of_all(served: Served, tmp_path: Path) -> None:
    """A file that only its owner reads, whatever apps are called, or standard output; all of it, conflicts too."""
    served.apps.known.append(memory(1, "An app names itself as it likes.", app="../../up"))
    served.apps.all_stats.append(space("../../up", memories=1))
    file = tmp_path / "all.json"
    told = printed("export", "--all", "-o", str(file))
    written = json.loads(file.read_bytes())
    one = json.loads(turntide("export", ODD).stdout)

    assert (told["spaces"], told["memories"], file.stat().st_mode & 0o777) == (3, 4, 0o600)
    assert [each["appId"] for each in written["spaces"]] == [".", "../../up", ODD]
    assert {**written["spaces"][2], "exportedAt": ""} == {**one, "exportedAt": ""}
    assert [(each["id"], each["conflictsWith"]) for each in one["memories"]] == [(1, [2]), (2, [])]
    assert list(tmp_path.iterdir()) == [file]
