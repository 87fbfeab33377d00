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
        description="Public address of the live page's server, https://…, for links in alerts; empty: no links.",
    )
    tokens: list[ApiToken] = Field(
        [],
        description="Tokens, as JSON in the environment; none: everybody on this machine may read, and a role on "
        "another address does not start.",
    )
    max_concurrent_requests: int = Field(64, ge=1, description="Concurrent requests; further ones get 503.")
    request_timeout: timedelta = Field(
        timedelta(seconds=10), description="A request that takes longer gets 504; the wait for a turn is not counted."
    )
    max_body_bytes: int = Field(64 * 1024, ge=1024, description="Limit of a request body; a larger one gets 413.")
    requests_per_second: float = Field(
        1_000.0,
        gt=0,
        description="Maximum rate of one token, or of one client address without tokens; more get 429. Probes "
        "and metrics do not count.",
    )
    burst: int = Field(2_000, ge=1, description="Requests that may exceed that rate in a burst.")
    failed_tokens_per_minute: float = Field(
        60.0,
        gt=0,
        description="Maximum number of wrong tokens from one client address; further ones get 429 unchecked. All "
        "clients of a proxy share its address.",
    )
    head_timeout: timedelta = Field(
        timedelta(seconds=10),
        gt=timedelta(0),
        description="A connection is closed if the headers of its request are not complete after this time.",
    )
    max_connections: int = Field(1_000, ge=8, description="Open connections; further ones get 503.")
    audit_required: bool = Field(
        False,
        description="Whether text is returned only after its audit record is on `audit.v1`, else 503. If false, "
        "a record that Kafka does not accept is counted as lost.",
    )
    token_counter: str = Field(
        "estimate",
        description="Token counter of projects' contexts: `estimate` (four characters a token), or `tiktoken:` "
        "and an encoding, e.g. tiktoken:o200k_base (extra `tokens`; its vocabulary is downloaded once, or is in "
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
        description="Maximum size of a request body, and of decompressed OTLP; larger ones get 413. SDKs send "
        "batches of 512 spans, which have several MiB if each repeats a history.",
    )
    max_bytes_in_flight: int = Field(
        32 * 1024 * 1024,
        ge=1024 * 1024,
        description="Maximum bytes of records that Kafka has not confirmed yet; further requests get 429.",
    )
    memory_url: str = Field(
        "",
        description="Base address of a role `index` or `api`, for requests that wait until their turns are "
        "visible. Default: the index role on this machine.",
    )
