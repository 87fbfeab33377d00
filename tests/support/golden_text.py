"""Printed text compared as a whole with a file of `tests/texts`.

`TURNTIDE_UPDATE_TEXTS=1 pytest …` writes the files anew; look at the difference before it is committed.
"""

import os
import re
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "texts"
_UPDATE = "TURNTIDE_UPDATE_TEXTS"


def assert_text(name: str, text: str, *, volatile: dict[str, str] | None = None) -> None:
    """Fail unless the text is that of the file.

    Args:
        name: Of the file, without `.txt`.
        text: As it was printed; spaces at the ends of lines do not count.
        volatile: Regular expression → what stands in the file for each match: paths, times, durations.
    """
    for pattern, instead in (volatile or {}).items():
        text = re.sub(pattern, instead, text)
    text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
    file = _FOLDER / f"{name}.txt"
    if os.environ.get(_UPDATE):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert file.exists(), f"{file} is missing: {_UPDATE}=1 writes it"
    assert file.read_text("utf-8") == text
