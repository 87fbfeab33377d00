"""HTML pages, by Jinja2: self-contained, light and dark, for screens from 390 pixels on.

A template stands beside the code that fills it and is named by its path, `streams/api/apps/page.html.j2`.
All extend `streams/http/page.html.j2`, which has the layout, the palettes and a policy that forbids the network.
Values are escaped, except in Markdown (`.md.j2`).
"""

from __future__ import annotations

import json
import tomllib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Of pages that a server answers with."""


def source(path: str) -> str:
    """The text of a file that stands beside code: a template, a style sheet or a script."""
    package, _, name = path.rpartition("/")
    return (files(package.replace("/", ".")) / name).read_text("utf-8")


@cache
def palettes() -> dict[str, dict[str, str]]:
    """`light` and `dark`: colours by their names in the style sheet."""
    return tomllib.loads(source("streams/http/palettes.toml"))


def render(template: str, *, scripts: Sequence[str] = (), **values: Any) -> str:
    """A document.

    Args:
        template: Its path.
        scripts: Stand at its end; no other script runs in it.
        values: What the template names. A name without a value is an error.
    """
    return _environment().get_template(template).render(scripts=scripts, **values)


def macros(template: str, **values: Any) -> Any:
    """A template's macros, as functions that give text; `values` are known in all of them."""
    return _environment().get_template(template).make_module(values)


@cache
def _environment() -> Environment:
    # Each role serves HTTP, and most never render a page: the import takes about 100 ms of their start.
    from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    made = Environment(
        loader=FunctionLoader(source),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["palettes"] = palettes()
    made.filters["digest"] = lambda text: b64encode(sha256(text.encode()).digest()).decode()
    made.filters["json"] = partial(json.dumps, indent=2, ensure_ascii=False)
    return made
