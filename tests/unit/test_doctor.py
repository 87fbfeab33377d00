"""`turntide doctor`: nothing secret is printed, and each check says what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from jobs.doctor import CHECKS, Status, doctor, redacted, setting_rows
from streams.settings import load_settings

_app = typer.Typer()
_app.command()(doctor)


def test_no_secret_is_printed() -> None:
    """Not the SASL password, nor a key, nor what an address may carry."""
    settings = load_settings(
        kafka={"sasl_password": "pass-1"},
        vectors={"api_key": "pass-2", "url": "https://me:pass-3@example.org"},
        notify={"webhook_url": "https://example.org/hooks/pass-4", "webhook_secret": "pass-5"},
    )
    printed = json.dumps(list(setting_rows(settings)))

    assert [secret for secret in (f"pass-{n}" for n in range(1, 6)) if secret in printed] == []


def test_every_setting_is_described() -> None:
    """Each row has a name and a description."""
    rows = list(setting_rows(load_settings()))

    assert [row["setting"] for row in rows if not row["description"]] == []
    assert {"kafka.bootstrap", "topic_prefix", "archive.flush_rows"} <= {row["setting"] for row in rows}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("url", "http://example.org:6333/x", "http://example.org:6333/x"),
        ("catalog", "postgres://u:p@example.org/db", "postgres://…@example.org/db"),
        ("webhook_url", "https://u:p@example.org/hook/secret?key=1", "https://…@example.org/…"),
    ],
)
def test_redaction_of_addresses(name: str, value: str, expected: str) -> None:
    """User, password and a webhook's path are left out, the host stays."""
    assert expected == redacted(name, value)


def test_wrong_settings_are_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever mistypes a setting still gets the list of all of them, and exit code 1."""
    monkeypatch.setenv("TURNTIDE_HTTP__SESSIONS_PORT", "many")
    result = CliRunner().invoke(_app, ["--output", "json"])
    report = json.loads(result.stdout)

    assert (result.exit_code, report["ok"], [c["check"] for c in report["checks"]]) == (1, False, ["settings"])
    assert "http.sessions_port" in report["checks"][0]["detail"]
    assert report["settings"]


def test_disk_that_cannot_be_written(tmp_path: Path) -> None:
    """A data directory below a file can never be made."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    verdict = CHECKS["disk"](load_settings(data_dir=tmp_path / "file" / "data"))

    assert Status.FAIL is verdict.status


def test_missing_data_directory_is_fine(tmp_path: Path) -> None:
    """It is made when it is needed, and the check makes nothing."""
    verdict = CHECKS["disk"](load_settings(data_dir=tmp_path / "data"))

    assert verdict.status in {Status.OK, Status.WARN}
    assert list(tmp_path.iterdir()) == []


def test_missing_archive_is_a_warning(tmp_path: Path) -> None:
    """Before the first worker there is none."""
    assert Status.WARN is CHECKS["archive"](load_settings(data_dir=tmp_path)).status


# urllib3, which wordllama imports, probes for IPv6 when it is loaded.
@pytest.mark.filterwarnings("ignore:A test tried to use socket.socket")
def test_default_embedder_and_policy_work() -> None:
    """Both come with the package."""
    settings = load_settings()

    assert [CHECKS[name](settings).status for name in ("embedder", "policy")] == [Status.OK, Status.OK]


def test_unsigned_webhook_is_a_warning() -> None:
    """A receiver could not tell our alerts from anybody's."""
    settings = load_settings(notify={"webhook_url": "https://example.org/hook"})

    assert Status.WARN is CHECKS["sinks"](settings).status
