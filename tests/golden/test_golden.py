"""What comes of fixed logs is what came of them before: state, outputs, archive, index, answers, contracts."""

import json
from pathlib import Path

import pytest

from tests.golden.record import DIGESTS, RECORDINGS, digests, recorded


@pytest.mark.parametrize("name", RECORDINGS)
def test_nothing_else_comes_of_the_same_log(name: str, tmp_path: Path) -> None:
    """Whoever changes it on purpose writes the digests anew, and says in the changelog what is different."""
    before = json.loads(DIGESTS.read_text()).get(name, {})
    now = digests(recorded(name, tmp_path))
    different = sorted(section for section in before.keys() | now.keys() if before.get(section) != now.get(section))

    assert different == [], (
        f"of {name} differ: {', '.join(different)}. To see how, run in both versions `python -m tests.golden.record "
        f"--only {name} --to DIR`, and `diff -r` the folders; if it is wanted, `--write`"
    )
