"""`turntide memory project` and `turntide memory consolidate` against a role in this process."""

import json
from pathlib import Path

import pytest

from models.errors import ConfigurationError
from models.events import Role
from models.project.files import written
from models.project.saved import FILES, SavedMessage, SavedProject
from streams.settings.http import HttpSettings
from tests.support.api_doubles import Served
from tests.support.api_projects import SAID
from tests.support.command_line import InProcess, printed, reached, refused, turntide

WEB = ("a", "web/2 ü")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """A role that knows a project in which the database was chosen."""
    made = Served()
    for role, content in (*SAID, (Role.USER, "Maybe we should use Redis for the cache.")):
        made.projects.say(role, content, project=WEB[1])
    reached(InProcess(made.app), monkeypatch)
    return made


@pytest.mark.usefixtures("served")
def test_what_is_read_for_people_and_for_programs() -> None:
    """Rows that can be read; as JSON everything that the role answers."""
    (memory,) = printed("project", "memories", *WEB)
    table = turntide("project", "memories", *WEB).stdout
    found = printed("project", "memories", *WEB, "--search", "database decision")

    assert (memory["type"], "PostgreSQL" in table, "relationships" in table) == ("decision", True, False)
    assert found[0]["id"] == memory["id"]
    assert printed("project", "memory", *WEB, memory["id"])["valid"] is True
    assert printed("project", "show", *WEB)["memories"] == 1
    assert [each["type"] for each in printed("project", "pending", *WEB)] == ["constraint"]
    assert [each["id"] for each in printed("project", "conversations", *WEB)] == ["s"]
    assert "decision_made" in turntide("project", "arc", *WEB).stdout


@pytest.mark.usefixtures("served")
def test_a_memory_by_hand_from_its_begin_to_its_end() -> None:
    """Added with a time, asked for by time, put right, expired, put away and restored."""
    added = printed("project", "add", *WEB, "The API is in Go.", "--valid-from", "2025-03-01", "--tag", "api")
    name = added["item_id"]
    before, then = ([each["id"] for each in printed("project", "at", *WEB, at)] for at in ("2025-02-01", "2025-04-01"))
    unknown = printed("project", "at", *WEB, "2025-04-01", "--known-at", "2025-04-01")
    edited = printed("project", "edit", *WEB, name, "--content", "The API is in Rust.")
    expired = printed("project", "expire", *WEB, name, "--at", "2025-09-01")
    archived, restored = (printed("project", verb, *WEB, name) for verb in ("archive", "restore"))

    assert (before, then, unknown) == ([], [name], [])
    assert edited["memory"]["content"] == "The API is in Rust."
    assert expired["memory"]["valid_until"] == "2025-09-01T00:00:00Z"
    assert [each["memory"]["archived"] for each in (archived, restored)] == [True, False]


@pytest.mark.usefixtures("served")
def test_promote_relate_and_graph() -> None:
    """A fact becomes a memory, is related to another, and the way there is found; taken back it is none."""
    (waiting,) = printed("project", "pending", *WEB)
    (memory,) = printed("project", "memories", *WEB)
    promoted = printed("project", "promote", *WEB, waiting["id"])["item_id"]
    printed("project", "relate", *WEB, promoted, "depends_on", memory["id"], "--strength", "0.5")
    whole = printed("project", "graph", *WEB)
    near, dependents, way = (
        printed("project", "graph", *WEB, "--of", memory["id"], *more)
        for more in (["--depth", "2"], ["--dependents"], ["--to", promoted])
    )
    table = turntide("project", "graph", *WEB).stdout
    printed("project", "relate", *WEB, promoted, "depends_on", memory["id"], "--off")

    assert [(each["type"], each["strength"]) for each in whole["edges"]] == [("depends_on", 0.5)]
    assert [[each["id"] for each in found if each["kind"] == "memory"] for found in (near, dependents)] == [
        [promoted]
    ] * 2
    assert [each["type"] for each in near if each["kind"] == "episode"] == ["decision_made"]
    assert (len(way), "depends_on" in table) == (1, True)
    assert printed("project", "graph", *WEB)["edges"] == []


def test_export_and_import_give_the_same(served: Served, tmp_path: Path) -> None:
    """Four files; into another project, twice: the same files again."""
    told = printed("project", "export", *WEB, str(tmp_path / "one"))
    imports = [printed("project", "import", "a", "copy", str(tmp_path / "one")) for _ in range(2)]
    printed("project", "export", "a", "copy", str(tmp_path / "two"))
    one, two = (
        {each.name: json.loads(each.read_text()) for each in (tmp_path / name).iterdir()} for name in ("one", "two")
    )
    for files in (one, two):
        for each in files["conversations.json"]:
            del each["projectId"]

    assert (sorted(one), told["memories"]) == (sorted(FILES), 1)
    assert [each["refused"] for each in imports] == [[], []]
    assert one == two
    assert served.projects.of("a", "copy").view.memories == served.projects.of(*WEB).view.memories


@pytest.mark.usefixtures("served")
def test_more_pending_facts_than_are_kept_are_told(tmp_path: Path) -> None:
    """All that there is room for is taken, and said is what is not; it is still in the files."""
    printed("project", "export", *WEB, str(tmp_path))
    place = tmp_path / "conversations.json"
    conversations = json.loads(place.read_text())
    (fact,) = conversations[0]["pendingFacts"]
    conversations[0]["pendingFacts"] = [{**fact, "id": f"p{n:05}-0"} for n in range(600)]
    place.write_text(json.dumps(conversations))
    result = turntide("project", "import", "a", "copy", str(tmp_path))

    assert result.exit_code == 0
    assert "600 pending are in the files and the policy keeps 500" in result.stderr
    assert printed("project", "show", "a", "copy")["pending"] == 500


def test_of_a_damaged_folder_nothing_is_imported(served: Served, tmp_path: Path) -> None:
    """One bad file of four, or none at all: said where, and the role is not asked."""
    printed("project", "export", *WEB, str(tmp_path))
    (tmp_path / "episodic-memory.json").write_text("[{]")
    refused = [
        turntide("project", "import", "a", "copy", str(each)).exception for each in (tmp_path, tmp_path / "none")
    ]

    assert [isinstance(each, ConfigurationError) for each in refused] == [True, True]
    assert "episodic-memory.json, line 1, column 3" in str(refused[0])
    assert served.projects.sent == []


@pytest.mark.usefixtures("served")
def test_a_report_is_one_page(tmp_path: Path) -> None:
    """Pictures and texts in it, nothing from elsewhere, and what was said is no markup."""
    printed("project", "add", *WEB, "Titles like <script>alert(1)</script> are escaped.")
    page = tmp_path / "web.html"
    printed("project", "report", *WEB, "-o", str(page))
    html = page.read_text()

    assert ("<svg" in html, "PostgreSQL" in html, "<script" in html) == (True, True, False)
    assert [word for word in ("src=", "@import", 'href="http') if word in html] == []


def test_consolidate_says_what_it_saved(served: Served, tmp_path: Path) -> None:
    """On a role, and on a folder; where the role is away, exit code 1 after the wait."""
    done = printed("consolidate", *WEB)
    printed("project", "export", *WEB, str(tmp_path))
    folder = printed("consolidate", "--dir", str(tmp_path))

    assert (done["done"], done["memories_archived"], done["memories_looked_at"]) == (True, 0, 1)
    assert folder["memories_looked_at"] == 1
    assert isinstance(turntide("consolidate", "a").exception, ConfigurationError)
    assert served.projects.of(*WEB).view.stats is not None


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("memory", *WEB, "m-1"), "memories lists them"),
        (("edit", *WEB, "m-1"), "has no change"),
        (("at", *WEB, "yesterday"), "at: "),
        (("add", "a", "x", "y", "--valid-until", "2020-01-01"), "valid_until"),
        (("restore", "a", "unknown", "m-1"), "the project is unknown"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    """As the role says it."""
    assert said in refused("project", *arguments)


@pytest.mark.behaviour("project-04")
def test_an_import_brings_the_messages_at_hand(served: Served, tmp_path: Path) -> None:
    """They become a chunk as the others do; of the policy's twenty none is in no chunk."""
    for n in range(14):
        served.projects.say(Role.USER, f"Message {n} speaks of harbour {n}.", project=WEB[1])
    conversation = served.projects.of(*WEB).view.conversations["s"]
    saved = SavedProject(
        conversations=[conversation],
        messages={
            "s": [
                SavedMessage(turn=turn, role=Role.USER, content=f"Of harbour {turn}.", timestamp=conversation.last_at)
                for turn in conversation.recent
            ]
        },
    )
    for name, text in written(saved, "copy").items():
        (tmp_path / name).write_text(text)
    printed("project", "import", "a", "copy", str(tmp_path))
    for n in range(3):
        served.projects.say(Role.USER, f"Later {n}.", project="copy")
    (chunk,) = served.projects.of("a", "copy").view.chunks.values()

    assert (chunk.first_turn, chunk.messages) == (0, 10)


def test_pieces_are_as_large_as_the_role_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A role with a smaller limit gets smaller pieces; of an item that is larger by itself is said what to do."""
    made = Served(settings=HttpSettings(max_body_bytes=2_048))
    reached(InProcess(made.app), monkeypatch)
    for n in range(12):
        made.projects.say(Role.USER, f"We decided to use tool{n} for task{n}.", project=WEB[1])
    printed("project", "export", *WEB, str(tmp_path))
    printed("project", "import", "a", "copy", str(tmp_path))
    place = tmp_path / "long-term-memory.json"
    memories = json.loads(place.read_text())
    memories[0]["content"] = "x" * 3_000
    place.write_text(json.dumps(memories))
    refused = turntide("project", "import", "a", "copy", str(tmp_path)).exception

    assert made.projects.of("a", "copy").view.memories.keys() == made.projects.of(*WEB).view.memories.keys()
    assert isinstance(refused, ConfigurationError)
    assert "http.max_body_bytes" in str(refused)
