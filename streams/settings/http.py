"""Settings of HTTP, of every role: where to listen, who may ask, and how much."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, SecretStr

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared, not listened on


class TokenRole(StrEnum):
    """Rights of a token's holder; each includes those before it."""

    READER = "reader"
    WRITER = "writer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def may(self, needed: TokenRole) -> bool:
        """True if this role is at least the needed one.

        >>> TokenRole.ADMIN.may(TokenRole.OPERATOR), TokenRole.READER.may(TokenRole.OPERATOR)
        (True, False)
        """
        ranks = list(TokenRole)
        return ranks.index(self) >= ranks.index(needed)


class ApiToken(BaseModel):
    """One bearer token of the HTTP API, and what it may read."""

    model_config = ConfigDict(extra="forbid")

    token: SecretStr = Field(min_length=16, description="As the caller sends it: letters, digits and `-._~+/=`.")
    apps: list[str] = Field([], description="The apps whose memory it reads; none named: all.")
    role: TokenRole = Field(
        TokenRole.READER,
        description="`reader`: memory of its apps. `writer`: also turns to send. `operator`: also the live page, "
        "alerts to acknowledge and to label. `admin`: also memories to edit and delete, erasures, and /metrics where "
        "the role listens beyond loopback.",
    )
    text: bool = Field(
        True,
        description="Whether it may read what was said. Without, routes that give it answer 403 and the live "
        "page leaves it out.",
    )
    name: str = Field("", max_length=256, description="Who holds it, for the audit of what is read and done.")


class HttpSettings(BaseModel):
    """Health, metrics and reading, one port per role. Loopback by default; anywhere else it needs tokens."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    sessions_port: int = Field(8701, ge=0, description="Port of the sessions role; 0 picks a free one.")
    index_port: int = Field(8702, ge=0, description="Port of the index role.")
    archive_port: int = Field(8703, ge=0, description="Port of the archive role.")
    notify_port: int = Field(8704, ge=0, description="Port of the notify role.")
    memory_port: int = Field(8705, ge=0, description="Port of the memory role.")
    enrich_port: int = Field(8706, ge=0, description="Port of the enrich role.")
    api_port: int = Field(8707, ge=0, description="Port of the api role.")
    judge_port: int = Field(8708, ge=0, description="Port of the judge role.")
    gateway_port: int = Field(8709, ge=0, description="Port of the gateway role.")
    public_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="Where people reach the live page's server, https://…: alerts link to sessions there; empty: none.",
    )
    tokens: list[ApiToken] = Field(
        [],
        description="Who may read, as JSON in the environment; none: everybody on this machine, and a role that "
        "listens elsewhere does not start.",
    )
    max_concurrent_requests: int = Field(64, ge=1, description="Requests under way at once; further ones get 503.")
    request_timeout: timedelta = Field(
        timedelta(seconds=10), description="A request that takes longer gets 504; waiting for a turn comes on top."
    )
    max_body_bytes: int = Field(64 * 1024, ge=1024, description="A larger request body gets 413 unread.")
    requests_per_second: float = Field(
        1_000.0,
        gt=0,
        description="Of one token, and of one client address without tokens; more get 429. Probes and metrics do not "
        "count.",
    )
    burst: int = Field(2_000, ge=1, description="Requests that may come at once on top of that rate.")
    failed_tokens_per_minute: float = Field(
        60.0,
        gt=0,
        description="Wrong tokens of one client address; more get 429 unlooked at. Behind a proxy all share its "
        "address.",
    )
    head_timeout: timedelta = Field(
        timedelta(seconds=10),
        gt=timedelta(0),
        description="A connection whose request is not complete to the end of its headers by then is closed.",
    )
    max_connections: int = Field(1_000, ge=8, description="Open at once; further ones are closed with 503.")
    audit_required: bool = Field(
        False,
        description="Whether text is given only when its reading is on `audit.v1`; else 503. Without, a record that "
        "Kafka does not take is counted as lost.",
    )
    token_counter: str = Field(
        "estimate",
        description="What counts the tokens of projects' contexts: `estimate` (four characters each), or `tiktoken:` "
        "and an encoding, e.g. tiktoken:o200k_base (extra `tokens`; its vocabulary is downloaded once, or stands in "
        "TIKTOKEN_CACHE_DIR).",
    )
    mcp: bool = Field(True, description="Whether the index role serves its tools at /mcp (extra `mcp`).")

    @property
    def index_url(self) -> str:
        """Base address of the index role on this machine."""
        return f"http://{self.host}:{self.index_port}"

    def port_of(self, role: str) -> int:
        """Port of a role; 0: another one at each start."""
        port: int = getattr(self, f"{role}_port")
        return port

    def url_of(self, role: str) -> str | None:
        """Base address of a role for those on this machine; None where its port changes at each start.

        >>> HttpSettings(host="0.0.0.0").url_of("index"), HttpSettings(index_port=0).url_of("index")
        ('http://127.0.0.1:8702', None)
        """
        host, port = _ANYWHERE.get(self.host, self.host), self.port_of(role)
        return f"http://{f'[{host}]' if ':' in host else host}:{port}" if port else None


class GatewaySettings(BaseModel):
    """Turns over HTTP."""

    max_body_bytes: int = Field(
        16 * 1024 * 1024,
        ge=1024,
        description="A larger request body gets 413 unread, and so does OTLP that is larger unpacked. A batch "
        "of 512 spans, which SDKs send at once, is several MiB where each repeats a history.",
    )
    max_bytes_in_flight: int = Field(
        32 * 1024 * 1024,
        ge=1024 * 1024,
        description="Records on their way to Kafka; what comes on top gets 429 until the broker has some of them.",
    )
    memory_url: str = Field(
        "",
        description="Base address of a role that serves memory, `index` or `api`, for requests that wait until readers "
        "see their turns; none: the index role on this machine.",
    )
