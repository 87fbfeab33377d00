"""Everything that must not change, in full as readable files, and as digests.

    python -m tests.golden.record --to DIR           all of it, below DIR; or only --only demo chaos …
    python -m tests.golden.record --write            digests.json anew, once it is certain that a change is wanted

Two versions that differ are compared by `diff -r` of two such folders.
"""

import argparse
import asyncio
import inspect
import json
import lzma
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import msgspec

from tests.golden.contracts import contracts, openapi_lines
from tests.golden.logs import chaos, demo, folded, forget_project
from tests.golden.questions import ask_everything
from tests.golden.world import TURNS, Lines
from tests.support import behaviours
from tests.upgrades.make import Log

DIGESTS = Path(__file__).with_name("digests.json")
_UPGRADES = Path(__file__).parents[1] / "upgrades"
_FAST = Path("/dev/shm")  # noqa: S108 - a folder of its own is made below it
_PROJECTS = frozenset({"models", "streams", "jobs"})
Digests = dict[str, str]


async def _demo(folder: Path) -> Lines:
    world = await demo(folder)
    found = world.written(TURNS.name) | world.archived(erase_scope="app")
    async with world.served() as app:
        found |= await world.points()
        found["contracts/openapi"] = openapi_lines(app.openapi())
        with frozen(world.now):
            found |= await ask_everything(world, app)
            forget_project(world)
            await world.fold()
            await world.index()
        afterwards = await world.points()
    afterwards |= world.written()
    return found | {f"afterwards/{name}": lines for name, lines in afterwards.items()}


async def _chaos(folder: Path) -> Lines:
    world = await chaos(folder)
    found = world.written(TURNS.name) | world.archived(erase_scope="user")
    async with world.served():
        return found | await world.points()


async def _release(name: str, folder: Path) -> Lines:
    packed = lzma.decompress((_UPGRADES / name / "log.xz").read_bytes())
    return await folded(folder, msgspec.msgpack.decode(packed, type=Log, strict=False))


async def _contracts(_folder: Path) -> Lines:
    return await contracts()


RECORDINGS: Mapping[str, Callable[[Path], Awaitable[Lines]]] = {
    "demo": _demo,
    "chaos": _chaos,
    **{folder.name: partial(_release, folder.name) for folder in sorted(_UPGRADES.glob("v*"))},
    "contracts": _contracts,
}


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Let the product's clock stand still, and its random names be counted."""

    class _Likewise(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, datetime)

    class _Still(datetime, metaclass=_Likewise):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return at.astimezone(tz)

    numbers = count(1)

    class _Named:
        def __init__(self) -> None:
            self.hex = f"{next(numbers):032x}"

    with ExitStack() as patched:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in _PROJECTS or module is None:
                continue
            if vars(module).get("uuid4") is uuid4:
                patched.enter_context(patch.object(module, "uuid4", _Named))
            if vars(module).get("datetime") is datetime and "datetime.now(" in inspect.getsource(module):
                patched.enter_context(patch.object(module, "datetime", _Still))
        yield


def recorded(name: str, folder: Path) -> Lines:
    """What must not change of one recording.

    Args:
        name: Of `RECORDINGS`.
        folder: An empty one, for archive and index.
    """
    return asyncio.run(_made(name, folder))


async def _made(name: str, folder: Path) -> Lines:
    return dict(await RECORDINGS[name](folder))


def digests(lines: Lines) -> Digests:
    """Number of lines and digest of each section."""
    return {
        section: f"{len(of)} {sha256(chr(10).join(of).encode()).hexdigest()[:10]}"
        for section, of in sorted(lines.items())
        if of
    }


def _main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--to", type=Path, help="Folder for the files.")
    asked.add_argument("--write", action="store_true", help="Write digests.json, and deploy/behaviours.md.")
    asked.add_argument("--only", nargs="+", choices=RECORDINGS, default=list(RECORDINGS), help="Which recordings.")
    options = asked.parse_args()
    known: dict[str, Digests] = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    for name in options.only:
        with tempfile.TemporaryDirectory(prefix="golden-", dir=_FAST if _FAST.is_dir() else None) as scratch:
            lines = recorded(name, Path(scratch))
        known[name] = digests(lines)
        for section, of in lines.items() if options.to else ():
            file = options.to / name / (section.replace("/", "~").replace("~", "/", 1) + ".txt")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(of) + "\n")
        print(f"{name}: {len(lines)} sections, {sum(map(len, lines.values()))} lines")  # noqa: T201 - a command
    if options.write:
        DIGESTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        behaviours.write()


if __name__ == "__main__":
    _main()
