"""The contract as a page at `/docs`: one HTML document, drawn here, with nothing loaded from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_STYLE = """
:root{color-scheme:light dark}body{margin:0 auto;padding:16px;max-width:1000px;font:15px/1.5 system-ui,sans-serif}
details{border:1px solid #8886;border-radius:6px;margin:6px 0;padding:6px 10px}summary{cursor:pointer}
code,pre{font:13px ui-monospace,monospace}pre{overflow:auto;max-height:24em}table{border-collapse:collapse}
td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}
"""


def page(contract: Mapping[str, Any]) -> str:
    """The whole document: operations by tag, each with its parameters, body and answers as examples."""
    parts = ["<h1>Turntide</h1>", '<p><a href="/openapi.json">OpenAPI</a></p>']
    for tag in contract["tags"]:
        parts += [f"<h2>{escape(tag['name'])}</h2>", f"<p>{escape(tag['description'])}</p>"]
        parts += [
            "".join(_operation(method, path, operation))
            for path, methods in contract["paths"].items()
            for method, operation in methods.items()
            if tag["name"] in operation["tags"]
        ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>Turntide API</title></head><body>{body}</body></html>\n'
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    asked = f"<code>{method.upper()} {escape(path)}</code>"
    yield f"<details><summary><b>{escape(operation['summary'])}</b> {asked}</summary>"
    yield f"<p>{escape(operation['description'])}</p><table>"
    for each in operation.get("parameters", ()):
        needed = " (required)" if each["required"] else ""
        yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}{needed}</td>"
        yield f"<td>{escape(each.get('description', ''))}</td></tr>"
    yield "</table>"
    if "requestBody" in operation:
        yield _content("Body", operation["requestBody"]["content"])
    for status, answer in operation["responses"].items():
        if status < "300":
            yield _content(f"{status} {answer['description']}", answer["content"])
    yield "</details>"


def _content(title: str, content: Mapping[str, Any]) -> str:
    shown = [each["example"] for each in content.values()]
    texts = [each if isinstance(each, str) else json.dumps(each, indent=2, ensure_ascii=False) for each in shown]
    return f"<h3>{escape(title)}</h3>" + "".join(f"<pre>{escape(each)}</pre>" for each in texts)
