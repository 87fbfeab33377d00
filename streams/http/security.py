"""Bearer tokens, each bound to apps (the tenants): identification of callers and their permissions.

| http.tokens | http.host | access |
|---|---|---|
| none | loopback | everybody on this machine reads everything; requests must name this machine as their host |
| none | any other | the role does not start |
| some | any | a token gives access to its apps; without a token 401, another app 403 |

Each token has a role (`TokenRole`): memories of apps and erasures need an admin, the live page an operator, each for
the token's apps; a token without `text` gets no text of conversations. Without tokens everybody on this machine is an
admin, but not a page of another site in a browser here. Routes without memory need no token (`reach` of
`streams.http.route`): probes, the contract and its page, the live page's files. `/metrics` needs none on loopback and
an `admin` token elsewhere, since its counts cover all tenants.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from models.errors import ConfigurationError
from models.events import DEFAULT_APP
from streams.http.problems import Problem, forbidden
from streams.settings.http import HttpSettings, TokenRole

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, section 2.1
_REALM = 'Bearer realm="turntide"'
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request, with its permissions.

    Attributes:
        apps: Apps whose memory it may read; None for all.
        role: Its role within these apps.
        text: Whether it may read text of conversations.
        name: Its name in the audit; never the token.
    """

    apps: frozenset[str] | None = None
    role: TokenRole = TokenRole.READER
    text: bool = True
    name: str = field(default="local", compare=False)

    @property
    def admin(self) -> bool:
        """Whether it has the role `admin`."""
        return self.role is TokenRole.ADMIN

    def may_read(self, app_id: str) -> bool:
        """Whether it may read records of this app."""
        return self.apps is None or app_id in self.apps

    def app_of(self, wanted: str | None) -> str | None:
        """The app of a request: the named one, or the caller's only one.

        Returns:
            None for all that the caller may read.

        Raises:
            Problem: 403, another tenant's app.
        """
        if wanted is not None and not self.may_read(wanted):
            raise forbidden("this token is not valid for the app of the request", "forbidden_app")
        if wanted is None and self.apps is not None and len(self.apps) == 1:
            return next(iter(self.apps))
        return wanted

    def app_meant(self, wanted: str | None) -> str:
        """The app of a request: the named one, the caller's only one, else the default app.

        Raises:
            Problem: 403, another tenant's app.
        """
        return self.app_of(wanted) or self.app_of(DEFAULT_APP) or DEFAULT_APP

    def apps_of(self, wanted: str | None) -> tuple[str, ...] | None:
        """The apps that a request may search; None for all.

        Raises:
            Problem: 403, another tenant's app.
        """
        app_id = self.app_of(wanted)
        if app_id is not None:
            return (app_id,)
        return None if self.apps is None else tuple(sorted(self.apps))


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def asking() -> Caller | None:
    """The caller of the current request; None outside of requests, where the role itself reads."""
    return _caller.get()


def caller() -> Caller:
    """The caller of the current request.

    Raises:
        Problem: 401 without a caller: the route has no `RequestGuard`.
    """
    found = _caller.get()
    if found is None:
        raise unauthorized("the request has no caller")
    return found


def require_role(role: TokenRole) -> Caller:
    """The caller of the current request, if its role is high enough. Checked before all other parts of the request.

    Raises:
        Problem: 401 without a caller; 403 its role is lower.
    """
    found = caller()
    if not found.role.may(role):
        raise forbidden(f"this request needs a token of role {role}")
    return found


@contextmanager
def reading_for(reader: Caller) -> Iterator[None]:
    """Set the caller outside of a request, for programs with their own store.

    Args:
        reader: The caller; `Caller(None)` for all apps.
    """
    token = _caller.set(reader)
    try:
        yield
    finally:
        _caller.reset(token)


def digest_of(token: str) -> bytes:
    """SHA-256 of a token, which is stored instead of it."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class ReadAccess:
    """Tokens and their callers.

    Attributes:
        callers: SHA-256 of each token, and its caller. Empty: everybody reads everything.
        loopback: Whether only this machine can connect.
    """

    callers: tuple[tuple[bytes, Caller], ...] = ()
    loopback: bool = True

    def holder_of(self, digest: bytes) -> Caller | None:
        """The caller of a token with this digest. All tokens are compared, each in constant time."""
        found = None
        for known, holder in self.callers:
            if compare_digest(known, digest):
                found = holder
        return found


def access_of(settings: HttpSettings) -> ReadAccess:
    """Tokens and callers of the settings.

    Raises:
        ConfigurationError: Other machines could read without a token, or a token is invalid.
    """
    loopback = is_loopback(settings.host)
    if not settings.tokens and not loopback:
        raise ConfigurationError(
            f"http.host is {settings.host} and http.tokens is empty: everybody who reaches this machine could read all "
            'memory. Set TURNTIDE_HTTP__TOKENS=\'[{"token": …, "apps": […]}]\', or listen on 127.0.0.1'
        )
    callers: dict[bytes, Caller] = {}
    for number, entry in enumerate(settings.tokens):
        token = entry.token.get_secret_value()
        if not _TOKEN.fullmatch(token):
            raise ConfigurationError(f"http.tokens.{number}: use only letters, digits and -._~+/ (RFC 6750)")
        digest = digest_of(token)
        if digest in callers:
            raise ConfigurationError(f"http.tokens.{number}: repeats an earlier token; list all its apps in one entry")
        callers[digest] = Caller(
            frozenset(entry.apps) or None, entry.role, entry.text, entry.name or f"http.tokens.{number}"
        )
    return ReadAccess(tuple(callers.items()), loopback)


def unauthorized(detail: str, *, error: str = "") -> Problem:
    """401 with the challenge of RFC 6750."""
    challenge = f'{_REALM}, error="{error}"' if error else _REALM
    return Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": challenge})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def require_this_machine(host: str) -> None:
    """Refuse a page of another site whose name resolves to this machine (DNS rebinding).

    Raises:
        Problem: 421, the request names another host.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if not is_loopback(name.removeprefix("[").removesuffix("]")):
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST, "misdirected", "without tokens only this machine is served: use 127.0.0.1"
        )


def require_own_page(host: str, origins: Iterable[str], sites: Iterable[str]) -> None:
    """Refuse a write that a page of another site sends through the user's browser (CSRF).

    Args:
        host: `Host` of the request.
        origins: Its `Origin`, which must have this host and port.
        sites: Its `Sec-Fetch-Site`, which no page can set. `same-origin` also counts if a proxy renames the host.

    Raises:
        Problem: 403, the request comes from a page of another site.
    """
    told = {site.strip().lower() for site in sites}
    own = told == {"same-origin"} or all(_is_of(origin, host) for origin in origins)
    if "cross-site" in told or not own:
        detail = "pages of other sites, hosts and ports may not write; a proxy must forward `Host` unchanged"
        raise forbidden(detail, "foreign_origin")


def _is_of(origin: str, host: str) -> bool:
    try:
        scheme = urlsplit(origin).scheme
        page, own = (
            (each.hostname, each.port or _PORTS[scheme]) for each in map(urlsplit, (origin, f"{scheme}://{host}"))
        )
    except (KeyError, ValueError):
        return False
    return page == own and page[0] is not None
