"""Tables of patterns: most of the hand-written English rules, as rows of a package's `data/*.toml`, compiled once.

Tables come first in a file. A row ends with a text that its pattern matches, one that it does not, and the pattern;
the module that reads the table documents the cells before these. Then follow `[pieces]`, parts of patterns, and
`[words]`, lists of alternatives; an underscore in one stands for a blank. `{NAME}` stands for a piece or a list. A
line break in a pattern and the blanks after it are ignored. Other sections contain long patterns of a module.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_NAME = re.compile(r"\{([A-Z][A-Z_]*)\}")
_BREAK = re.compile(r"\n\s*")


class PatternRow(NamedTuple):
    """A row of a table.

    Attributes:
        cells: Cells whose meaning the table's reader defines.
        matches: A text that the pattern matches.
        differs: A text that the pattern does not match.
        pattern: The compiled pattern.
    """

    cells: tuple[Any, ...]
    matches: str
    differs: str
    pattern: re.Pattern[str]


class PatternSection:
    """The compiled patterns of a section, each as an attribute of its name."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        raise AttributeError(f"the section has no pattern {name}")


@cache
def read_table(name: str, room: str = "language") -> dict[str, Any]:
    """The content of a file, by its name without extension and the package of `models` whose `data` has it."""
    return tomllib.loads((files("models") / room / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def any_of(words: Iterable[str]) -> str:
    """A pattern of alternatives, the longest first; a hyphen in one may be a blank.

    >>> any_of(["keep", "stick_with"])
    '(?:stick with|keep)'
    """
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace("_", " ").replace(r"\-", "[ -]") for word in ordered) + ")"


def by_way(forms: str) -> dict[str, str]:
    """Map each spelling to its form; an underscore stands for a blank.

    >>> by_way("you=u I'm=i_am|im")
    {'u': 'you', 'i_am': "I'm", 'im': "I'm"}
    """
    named = (each.partition("=") for each in forms.split())
    return {way: form.replace("_", " ") for form, _, ways in named for way in ways.split("|")}


def by_word(groups: Mapping[str, str]) -> dict[str, str]:
    """Map each word to its group; an underscore stands for a blank. For a word in two groups, the last wins.

    >>> by_word({"phone": "phone cell_number"})
    {'phone': 'phone', 'cell number': 'phone'}
    """
    return {word.replace("_", " "): group for group, words in groups.items() for word in words.split()}


class PatternTables:
    """Tables of one or more files.

    Args:
        names: Names of the files, without extension.
        words: Lists that the files may use besides their own.
        pieces: Parts of patterns, likewise.
        flags: Flags of all patterns.
        room: Package of `models` whose `data` has the files.
    """

    def __init__(
        self,
        *names: str,
        words: Mapping[str, Iterable[str]] | None = None,
        pieces: Mapping[str, str] | None = None,
        flags: int = 0,
        room: str = "language",
    ) -> None:
        self._flags = flags
        self._tables: dict[str, Any] = {}
        self._pieces: dict[str, str] = {**(pieces or {})}
        self._words = {name: list(each) for name, each in (words or {}).items()}
        for name in names:
            content = read_table(name, room)
            self._words |= {word: each.split() for word, each in content.get("words", {}).items()}
            self._pieces |= content.get("pieces", {})
            self._tables |= {table: each for table, each in content.items() if table not in {"words", "pieces"}}

    def rows(self, name: str) -> list[PatternRow]:
        """The rows of a table, in order."""
        return [
            PatternRow(tuple(cells), matches, differs, re.compile(self._spelt_out(pattern), self._flags))
            for *cells, matches, differs, pattern in self._tables[name]
        ]

    def alternatives(self, name: str) -> str:
        """The patterns of a table as one with alternatives."""
        return "|".join(self._spelt_out(pattern) for *_, pattern in self._tables[name])

    def names(self) -> list[str]:
        """Names of the tables."""
        return list(self._tables)

    def piece(self, name: str) -> str:
        """A part of patterns."""
        if name not in self._pieces:
            self._pieces[name] = any_of(self._words[name])
        return self._spelt_out(self._pieces[name])

    def pattern(self, name: str) -> re.Pattern[str]:
        """A piece, compiled as a pattern."""
        return re.compile(self.piece(name), self._flags)

    def section(self, name: str) -> PatternSection:
        """The patterns of a section."""
        section = PatternSection()
        for key, text in self._tables[name].items():
            setattr(section, key, re.compile(self._spelt_out(text), self._flags))
        return section

    def words(self, cell: str) -> list[str]:
        """Words of a cell; `{NAME}` stands for the words of a list."""
        named = _NAME.sub(lambda found: " ".join(self._words[found[1]]), cell)
        return list(dict.fromkeys(named.split()))

    def word_set(self, *names: str) -> frozenset[str]:
        """The words of all given lists."""
        return frozenset(word for name in names for word in self._words[name])

    def _spelt_out(self, pattern: str) -> str:
        return _NAME.sub(lambda found: self.piece(found[1]), _BREAK.sub("", pattern))
