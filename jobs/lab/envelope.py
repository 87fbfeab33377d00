"""The envelope of every measurement: the command line, when it was made, of which code, and on which machine."""

import ast
import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from jobs.operate.broker.jars import KAFKA_VERSION

_PLACES = ("--save", "--data-dir", "--pictures", "--picture")
_PACKAGES = ("faust-streaming", "aiokafka", "quixstreams", "bytewax", "rocksdict", "numpy", "msgspec")
"""Whose versions say what was measured; what is not installed is left out."""


def machine() -> dict[str, Any]:
    """This machine, and the versions of Kafka and of the packages that were measured."""
    return {
        "cpus": os.cpu_count() or 1,
        "cpu": _cpu_name(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"kafka": KAFKA_VERSION, **_versions()},
    }


def envelope(report: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """A report as every measuring command prints it: its figures, and beside them what is needed to repeat them."""
    return {
        **msgspec.to_builtins(report),
        "command": command(sys.argv[1:]),
        "measured_at": datetime.now(UTC).replace(microsecond=0),
        "code": code_digest(),
        "machine": machine(),
    }


def code_digest() -> str:
    """Eight hex digits that name the product's code: every module of `models` and `streams`, without docstrings."""
    digest = sha256()
    for root in (Path(str(files(name))) for name in ("models", "streams")):
        for path in sorted(root.rglob("*.py")):
            digest.update(
                b"%s\0%s\0" % (path.relative_to(root.parent).as_posix().encode(), without_words(path.read_text()))
            )
    return digest.hexdigest()[:8]


def without_words(source: str) -> bytes:
    r"""The lines of a module that are neither empty, nor comments, nor part of a docstring.

    >>> without_words("x = 1  # one\n'What it is.'\n\n# then\ny = 2")
    b'x = 1  # one\ny = 2'
    """
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#")).encode()


def command(arguments: Sequence[str]) -> str:
    """The command line to repeat it, without the places where this machine keeps its files.

    >>> command(["lab", "chaos", "--save", "/home/me/chaos.jsonl", "--runs", "20", "--data-dir=/tmp/x"])
    'turntide lab chaos --runs 20'
    >>> command(["lab", "eval", "topics", "/home/me/chats.jsonl"])
    'turntide lab eval topics chats.jsonl'
    """
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, _, value = argument.partition("=")
        if name not in _PLACES:
            kept.append(Path(argument).name if argument.startswith(os.sep) else argument)
        elif not value:
            next(rest, None)
    return shlex.join(["turntide", *kept])


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    known = info.read_text(errors="replace") if info.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)", known, re.MULTILINE)
    return found[1] if found else platform.processor()


def _versions() -> dict[str, str]:
    installed = {package.name: package.version for package in metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}
