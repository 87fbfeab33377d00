"""Secrets in a text, each replaced by its kind: keys of services, tokens, private keys, passwords in addresses.

What is one is said by `secrets.toml` and by the detectors of the library detect-secrets that it names: their patterns
alone, nothing is asked over a network. The library is imported with the first text that may hold a secret, as it takes
0.3 s. The same text always gives the same result, and what was replaced is found no more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import groupby

from streams.observe.telemetry import metrics

SECRETS = tomllib.loads((files("streams.masking") / "secrets.toml").read_text(encoding="utf-8"))["rows"]
_DETECTOR = re.compile(r"\w+\.\w+")
_HINTS = [hint for *_, hints, _ in SECRETS for hint in hints] + [r"\\u00[2-7]", r"\\/"]


def _sign(hint: str) -> str:
    return hint[: 2 if hint.startswith("\\") else 1]


MAY_HOLD_ONE = re.compile(
    "|".join(
        f"{sign}(?:{'|'.join(hint.removeprefix(sign) for hint in hints)})"
        for sign, hints in groupby(sorted(_HINTS, key=_sign), key=_sign)
    ).encode()
)
"""What the JSON of every record with a secret has, or that it spells letters as escapes: most records have neither.

Each alternative begins with a letter or sign of its own, which is what makes it fast; those of one sign stand together.
"""


def without_secrets(text: str, told: Callable[[str], None] | None = None) -> str:
    """The text with `[api_key]`, `[token]`, `[private_key]`, `[password]` in place of secrets.

    Args:
        text: Any.
        told: Called with the kind of each; default: the metric counts it.

    >>> without_secrets("the URL is redis://:hunter2@cache.example:6379/0, call me Ann", print)
    password
    'the URL is redis://:[password]@cache.example:6379/0, call me Ann'
    """
    told = told or _counted
    for kind, pattern in _patterns():

        def replaced(found: re.Match[str], kind: str = kind) -> str:
            told(kind)
            if (secret := found.groupdict().get("secret")) is None:
                return f"[{kind}]"
            start = found.start("secret") - found.start()
            return f"{found[0][:start]}[{kind}]{found[0][start + len(secret) :]}"

        text = pattern.sub(replaced, text)
    return text


def _counted(kind: str) -> None:
    metrics.counter("secrets_masked_total", kind=kind).inc()


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Kind and pattern, in the order of the table."""
    found: list[tuple[str, re.Pattern[str]]] = []
    for kind, *_, pattern in SECRETS:
        if _DETECTOR.fullmatch(pattern):
            module, _, detector = pattern.partition(".")
            denied = getattr(import_module(f"detect_secrets.plugins.{module}"), detector).denylist
            found += [(kind, each) for each in denied]
        else:
            found.append((kind, re.compile(pattern, re.VERBOSE)))
    return found
