"""Turns that were put right, in the archive: the views, a whole conversation, and nothing of it after an erasure."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

from models.events import SessionName, TurnCorrected
from streams.archive.erasing import erase
from streams.archive.history import ArchivedTurns
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.lake_records import NOW, buffer_of, paths, turn
from tests.support.subjects import of_session


def right(number: int, content: str, app: str, at: timedelta) -> TurnCorrected:
    """A turn of session s-1 is put right."""
    ids = {"session_id": "s-1", "app_id": app, "user_id": "u-1"}
    return TurnCorrected(turn=number, content=content, by="ops", reason="typo", timestamp=NOW + at, **ids)


async def test_the_newest_text_is_read_and_every_text_is_kept_until_it_is_erased(tmp_path: Path) -> None:
    """Of two apps with the same ids each has its own; a turn without a correction is as it was said."""
    later = timedelta(minutes=5)
    said = [turn(n, session_id="s-1", app_id=app) for app in ("a", "b") for n in range(3)]
    archive = ArchivedTurns(load_settings(data_dir=tmp_path))
    none_yet = await archive.turns(SessionName("a", "s-1"), 0, 9)
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        writer.land(buffer_of([*said, right(1, "once", "a", later), right(1, "twice", "a", 2 * later)]), now=NOW)
    found = {app: await archive.turns(SessionName(app, "s-1"), 1, 2) or [] for app in ("a", "b")}
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        sql = 'SELECT app_id, content, "by" FROM turn_texts WHERE turn = 1 ORDER BY app_id, written_at'
        texts = writer.con.execute(sql).fetchall()
        erase(writer, of_session("s-1", app_id="a"), now=NOW)
        left = writer.con.execute("SELECT DISTINCT app_id FROM turn_texts").fetchall()

    assert none_yet is None
    assert [(t.turn, t.content, t.corrected_at) for t in found["a"]] == [
        (1, "twice", NOW + 2 * later),
        (2, "what about 2?", None),
    ]
    assert [t.content for t in found["b"]] == ["what about 1?", "what about 2?"]
    assert texts == [
        ("a", "what about 1?", None),
        ("a", "once", "ops"),
        ("a", "twice", "ops"),
        ("b", "what about 1?", None),
    ]
    assert left == [("b",)]
