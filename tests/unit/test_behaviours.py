"""What the source documents name is shown by a test, or it is said why not; the page cannot go stale."""

from tests.support.behaviours import PAGE, ROOT, behaviours, marked, page

ROWS = {name: row for rows in behaviours().values() for name, row in rows.items()}


def test_every_behaviour_is_shown_or_explained() -> None:
    """None has neither a test nor a reason, and no mark names a row that there is not."""
    shown = marked()

    assert len(ROWS) == 153
    assert shown.keys() - ROWS.keys() == set()
    assert [name for name, row in ROWS.items() if name not in shown and not row.why] == []
    assert [name for name, row in ROWS.items() if row.setting and not (name in shown and row.why)] == []
    assert [row.where for row in ROWS.values() if not (ROOT / row.where).is_file()] == []


def test_the_page_is_what_rows_and_marks_say() -> None:
    """`python -m tests.support.behaviours` writes it."""
    assert PAGE.read_text("utf-8") == page()
