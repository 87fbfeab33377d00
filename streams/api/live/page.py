"""The page's files at `/live/`: they hold no data, so everybody may have them; nothing from elsewhere runs in them.

Names are looked up among the files that were there at the start: no path of a request ever reaches the file system.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streams.http.answering import ServedRoute
from streams.http.problems import Problem
from streams.settings.live import LIVE_PAGE, LIVE_PATH

STATIC = Path(__file__).with_name("static")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""By the ending of a name; files that end otherwise are not served."""


class StaticFile(NamedTuple):
    """One file of the page, as it is answered."""

    content: bytes
    media_type: str
    etag: str


def page_routes(folder: Path = STATIC) -> list[ServedRoute]:
    """Routes of the page's files; not part of the contract, which is about data."""
    files = {}
    for path in folder.rglob("*"):
        if (media_type := _MEDIA_TYPES.get(path.suffix)) is not None:
            content = path.read_bytes()
            etag = f'"{sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = StaticFile(content, media_type, etag)

    async def moved(_request: Request) -> Response:
        return RedirectResponse(LIVE_PAGE, HTTPStatus.PERMANENT_REDIRECT, headers=dict(HEADERS))

    async def file(request: Request) -> Response:
        found = files.get(request.path_params["name"] or _INDEX)
        if found is None:
            raise Problem(HTTPStatus.NOT_FOUND, "not_found", f"the page has no such file: open {LIVE_PAGE}")
        headers = {**HEADERS, "ETag": found.etag}
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(found.content, headers=headers, media_type=found.media_type)

    methods = ["GET", "HEAD"]
    return [
        ServedRoute(LIVE_PATH, moved, methods, reach="open"),
        ServedRoute(LIVE_PAGE + "{name:path}", file, methods, reach="open"),
    ]
