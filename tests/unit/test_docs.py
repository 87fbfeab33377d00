"""What documents and texts name exists: files, commands, metrics, tests, modules; the fault matrix is proven."""

import ast
import doctest
import importlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from jobs.cli import COMMANDS
from models.metrics import METRICS
from models.policy import Policy
from streams.settings import Settings

ROOT = Path(__file__).parents[2]
NAMES = {entry.alias for entry in COMMANDS}
"""Whatever may follow `turntide`, names of earlier releases included."""
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("deploy/*.md"),
        *ROOT.glob("deploy/*/README.md"),
        *ROOT.glob("deploy/models/*.md"),
        *ROOT.glob("deploy/decisions/*.md"),
    ]
)
PATH_IN_BACKTICKS = re.compile(r"`((?:models|streams|jobs|tests|deploy|\.ci)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"(?<!from )turntide ([a-z]+)")
GROUPED = re.compile(r"turntide ((?:analyse|ops|lab) [a-z]+)")


@pytest.mark.behaviour("card-10")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_and_commands_exist(document: Path) -> None:
    """Each path in backticks, each relative link and each command is there."""
    text = document.read_text()
    paths = [ROOT / name for name in PATH_IN_BACKTICKS.findall(text)]
    links = [document.parent / name for name in LINK.findall(text)]

    assert [str(path) for path in [*paths, *links] if not path.exists()] == []
    assert set(COMMAND.findall(text)) - NAMES == set()
    assert set(GROUPED.findall(text)) - {entry.path for entry in COMMANDS} == set()


def test_every_metric_is_exported_by_some_role() -> None:
    """A metric of the catalogue that nothing sets is a promise that nobody keeps."""
    catalogue = ROOT / "models" / "metrics"
    exporting = [
        path for room in ("models", "streams") for path in (ROOT / room).rglob("*.py") if catalogue not in path.parents
    ]
    code = "".join(path.read_text() for path in exporting)

    assert [metric.name for metric in METRICS if f'"{metric.name}"' not in code] == []


PAGE = ROOT / "deploy" / "fault-matrix.md"
IDS = [f"F{n}" for n in range(1, 16)]
FAULT_MARK = re.compile(r"""pytest\.mark\.fault\("(F\d+)"\)""")
ROW = re.compile(r"^\| (F\d+) \|(.+)\|$", re.MULTILINE)
TEST_PATH = re.compile(r"`(tests/[\w/]+\.py)`")
COMMAND_SHOWN = re.compile(r"`turntide ([a-z]+)[^`]*`")


def marked() -> dict[str, set[str]]:
    """Fault → files with a test that is marked with it."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if file != Path(__file__):
            for fault in FAULT_MARK.findall(file.read_text()):
                found[fault].add(str(file.relative_to(ROOT)))
    return found


def rows() -> dict[str, list[str]]:
    """Fault → cells of its row on the page: what happens, promise, tests, command."""
    return {fault: [cell.strip() for cell in cells.split(" | ")] for fault, cells in ROW.findall(PAGE.read_text())}


def test_no_other_faults_are_known() -> None:
    """Neither in the marks nor on the page."""
    assert set(IDS) == set(marked()) == set(rows())


@pytest.mark.parametrize("fault", IDS)
def test_each_fault_is_proven(fault: str) -> None:
    """Its row is whole, and names exactly the files whose tests are marked with it."""
    happens, promise, tests, command = rows()[fault]

    assert happens
    assert promise
    assert set(TEST_PATH.findall(tests)) == marked()[fault]
    assert COMMAND_SHOWN.findall(command)


WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for top in ("models", "streams", "jobs")
    for path in sorted((ROOT / top).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_hold(module: str) -> None:
    """Every example of a module that has one."""
    actual = doctest.testmod(importlib.import_module(module))

    assert (0, True) == (actual.failed, actual.attempted > 0)


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
    r"|^(?:gen_ai|llm|session|user|enduser|service|traceloop|openinference)\.(?!.*\()"  # OpenTelemetry's attributes
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
