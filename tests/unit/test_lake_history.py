"""Turns that were put right, in the archive: a whole conversation of one app, and nothing of it after an erasure."""

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


async def test_the_newest_text_is_read_and_every_text_is_kept_until_it_is_erased(tmp_path: Path) -> None:
    """Of two apps with the same ids each has its own."""
    said = [turn(n, session_id="s-1", app_id=app) for app in ("a", "b") for n in range(3)]
    ids = {"session_id": "s-1", "app_id": "a", "user_id": "u-1"}
    right = [
        TurnCorrected(turn=1, content=text, by="ops", timestamp=NOW + timedelta(minutes=n), **ids)
        for n, text in enumerate(("once", "twice"), 1)
    ]
    archive = ArchivedTurns(load_settings(data_dir=tmp_path))
    none_yet = await archive.turns(SessionName("a", "s-1"), 0, 9)
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        writer.land(buffer_of([*said, *right]), now=NOW)
    found = [await archive.turns(SessionName(app, "s-1"), 1, 1) or [] for app in ("a", "b")]
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        texts = writer.con.execute("SELECT content FROM turn_texts WHERE app_id = 'a' AND turn = 1").fetchall()
        erase(writer, of_session("s-1", app_id="a"), now=NOW)
        left = writer.con.execute("SELECT DISTINCT app_id FROM turn_texts").fetchall()

    assert none_yet is None
    assert [[(each.turn, each.content) for each in turns] for turns in found] == [
        [(1, "twice")],
        [(1, "what about 1?")],
    ]
    assert sorted(texts) == [("once",), ("twice",), ("what about 1?",)]
    assert left == [("b",)]
