"""The dictionary as pages: Markdown for repositories, HTML for a browser without a network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from typing import Any

from jobs.archive.view_meanings import POLARS_BEFORE

_TITLE = "Views of the archive"
_BEFORE = (
    "Each view stands in the schema of its version and, as the present version, without a schema. "
    "`SELECT * FROM archive_version` says which version an archive has. Columns are added to a version, never taken."
)
_PRIVACY = (
    ("content", "words of people, or made of their words"),
    ("identifier", "names a session, a user, or what is tied to one"),
    ("behaviour", "how somebody behaved or was judged, in numbers and fixed words"),
    ("operational", "how the system ran"),
)
_COLUMNS = ("column", "type", "unit", "meaning", "privacy")


def as_markdown(views: Sequence[dict[str, Any]]) -> str:
    """One page, a heading for each view."""
    lines = [f"# {_TITLE}", "", _BEFORE, "", "Privacy classes: " + "; ".join(f"**{n}** {m}" for n, m in _PRIVACY) + "."]
    lines += ["", "Before each example in Polars:", "", "```python", *POLARS_BEFORE.splitlines(), "```", ""]
    for view in views:
        lines += [f"## {view['view']}", "", view["purpose"], ""]
        lines += [f"Key: {', '.join(view['key'])}." if view["key"] else "No key.", ""]
        lines += ["```sql", view["query"], "```", "", "```python", view["polars"], "```", ""]
        lines += [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
        lines += [f"| {' | '.join(_cells(column))} |" for column in view["columns"]]
        lines.append("")
    return "\n".join(lines)


def _cells(column: dict[str, Any]) -> list[str]:
    return [str(column[name]).replace("|", "\\|") for name in ("name", "type", "unit", "meaning", "privacy")]


def as_html(views: Sequence[dict[str, Any]]) -> str:
    """One file that opens without a network, with a search over names and meanings; light and dark, wide and narrow."""
    digest = base64.b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    classes = "".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in _PRIVACY)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{_STYLE}</style></head><body><header><h1>{_TITLE}</h1>"
        f"<p>{escape(_BEFORE).replace('`', '')}</p>"
        '<label for="search">Search views, columns, meanings</label>'
        '<input id="search" type="search" autocomplete="off"><p id="found" role="status"></p></header><main>'
        f"<details><summary>Privacy classes, and what stands before each example in Polars</summary><dl>{classes}</dl>"
        f"<pre>{escape(POLARS_BEFORE)}</pre></details>"
        f"{''.join(_section(view) for view in views)}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _section(view: dict[str, Any]) -> str:
    name = escape(view["view"])
    rows = "".join(
        f"<tr><th scope=row>{escape(c['name'])}</th><td><code>{escape(c['type'])}</code></td>"
        f"<td>{escape(c['unit'])}</td><td>{escape(c['meaning'])}</td><td>{c['privacy']}</td></tr>"
        for c in view["columns"]
    )
    heads = "".join(f"<th scope=col>{column}</th>" for column in _COLUMNS)
    key = ", ".join(view["key"]) or "none"
    return (
        f'<section id="{name}"><h2><a href="#{name}">{name}</a></h2><p>{escape(view["purpose"])}</p>'
        f"<p>Key: <code>{escape(key)}</code></p><pre>{escape(view['query'])}</pre>"
        f"<pre>{escape(view['polars'])}</pre>"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


_STYLE = """
:root{color-scheme:light dark;--line:color-mix(in srgb,currentColor 22%,transparent);
--soft:color-mix(in srgb,currentColor 7%,transparent)}
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:0 auto;padding:1rem;overflow-wrap:break-word}
header{position:sticky;top:0;background:Canvas;padding-bottom:.5rem;border-bottom:1px solid var(--line)}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .3rem;scroll-margin-top:14rem}a{color:inherit}
label{display:block;font-size:.9rem}input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem .6rem}
pre{background:var(--soft);padding:.6rem;overflow-x:auto;white-space:pre-wrap;border-radius:.3rem;font-size:.85rem}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid var(--line)}
td code{overflow-wrap:anywhere}dt{font-weight:600}p{margin:.3rem 0}[hidden]{display:none}
@media(max-width:40rem){header p:first-of-type{display:none}thead{display:none}
tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}th,td{display:block;border:0;padding:.05rem 0}
td:empty{display:none}}
"""
_SCRIPT = """
const search=document.getElementById('search'),found=document.getElementById('found');
const sections=[...document.querySelectorAll('section')];
search.addEventListener('input',()=>{
const wanted=search.value.trim().toLowerCase();let views=0,columns=0;
for(const section of sections){
const named=!wanted||section.querySelector('h2').textContent.toLowerCase().includes(wanted)
||section.querySelector('p').textContent.toLowerCase().includes(wanted);let any=named;
for(const row of section.querySelectorAll('tbody tr')){
const hit=named||row.textContent.toLowerCase().includes(wanted);row.hidden=!hit;any||=hit;columns+=hit;}
section.hidden=!any;views+=any;}
found.textContent=wanted?views+' views, '+columns+' columns':'';});
"""
