"""Modules that texts name exist, module docstrings begin as a search expects, and layers have names, not numbers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from models.policy import Policy
from streams.settings import Settings

ROOT = Path(__file__).parents[2]
TOPS = ("models", "streams", "jobs")
SOURCES = {str(path.relative_to(ROOT)): path.read_text() for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in SOURCES.items()}
MODULES = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in SOURCES}
STEMS = {part for module in MODULES for part in module.split(".")}
PAGES = [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("deploy/*.md"), *ROOT.glob("deploy/decisions/*.md")]
FILE = re.compile(r"`((?:[\w-]+/)*\w+\.py)`")
DOTTED = re.compile(r"`([a-z]\w*(?:\.\w+)+)(?:\(\))?`")
OTHERS = re.compile(
    r"\.(?:v\d|py|json|jsonl|md|toml|html|ya?ml|txt|properties)$"  # events and files
    r"|\.(?:ms|bytes|ratio|factor)$"  # Kafka's settings
    r"|^(?:archive\.x|source\.partition|hh_harmless\.roc_auc|turntide\.marks)$"  # a pattern, a field, keys of others
)


def paths_of(section: Any) -> Iterator[tuple[str, ...]]:
    """Every path of fields below a policy or settings."""
    for name in section.__struct_fields__ if isinstance(section, Struct) else type(section).model_fields:
        yield (name,)
        inner = getattr(section, name)
        if isinstance(inner, Struct) or hasattr(type(inner), "model_fields"):
            yield from ((name, *rest) for rest in paths_of(inner))


SET = {path[n:] for root in (Policy(), Settings()) for path in paths_of(root) for n in range(len(path))}
HEADS = STEMS | {first for first, *_ in SET}


@cache
def names_in(source: str) -> frozenset[str]:
    """What a file's code binds anywhere: classes, functions, fields, variables, imports, arguments."""
    found: set[str] = set()
    for node in ast.walk(TREES[source]):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name)
    return frozenset(found)


def is_stale(name: str, source: str) -> bool:
    """Whether a name looks like a module's, and no module, policy field, setting or expression of its file is meant.

    `memory.facts` is enough for `models.user.facts`; behind it may stand what that module binds.
    """
    parts = name.split(".")
    known = tuple(parts) in SET or (parts[0] not in HEADS and "_" not in parts[0])
    if known or OTHERS.search(name) or (source in SOURCES and parts[0] in names_in(source)):
        return False
    cuts = [("." + ".".join(parts[:n]), set(parts[n:])) for n in range(1, len(parts) + 1)]
    return not any(
        f".{m}".endswith(end) and rest <= names_in(path) for m, path in MODULES.items() for end, rest in cuts
    )


def test_named_modules_exist() -> None:
    """Dotted names and file names in back-ticks, in sources and on pages: a move of modules takes them along."""
    gone = []
    for where, text in (SOURCES | {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}).items():
        files = [name for name in FILE.findall(text) if not any(f"/{path}".endswith(f"/{name}") for path in SOURCES)]
        gone += [f"{where}: {name}" for name in files if not (ROOT / name).exists()]
        gone += [f"{where}: {name}" for name in DOTTED.findall(text) if is_stale(name, where)]

    assert gone == []


def test_module_docstrings_begin_with_a_noun() -> None:
    """A search finds what a module is about by its first words."""
    first = {name: ast.get_docstring(tree) or "" for name, tree in TREES.items()}

    assert [name for name, text in first.items() if re.match(r"(?:What|Who|Whose|Whom|Whether)\b", text)] == []


@pytest.mark.parametrize("top", TOPS)
def test_layers_have_names(top: str) -> None:
    """Risk, topic, user, app and project memory, not the number of a document."""
    assert [name for name, text in SOURCES.items() if name.startswith(top) and "seed 00" in text.lower()] == []


def test_no_two_classes_share_a_name() -> None:
    """A bare name in a text, a log or an error says which class it is; `_Answer` is what models are shown of a form."""
    classes = [each.name for tree in TREES.values() for each in tree.body if isinstance(each, ast.ClassDef)]

    assert [name for name, times in Counter(classes).items() if times > 1] == ["_Answer"]


def test_files_stay_small() -> None:
    """No file of the product has more than 400 lines."""
    assert [name for name, text in SOURCES.items() if len(text.splitlines()) > 400] == []
