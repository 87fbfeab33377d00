"""One settings tree, from environment variables (`TURNTIDE_…`, `__` between levels) and an optional TOML file.

`TURNTIDE_KAFKA__BOOTSTRAP=host:9092` or, shorter, `TURNTIDE_KAFKA=host:9092` names the cluster;
`TURNTIDE_CONFIG=file.toml` names the file. The environment wins over the file.
"""

import json
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from models.errors import ConfigurationError
from streams.settings.archive import ArchiveSettings, IcebergSettings
from streams.settings.http import GatewaySettings, HttpSettings
from streams.settings.judge import JudgeSettings, ModelServerSettings
from streams.settings.live import LiveSettings
from streams.settings.notify import NotifySettings as NotifySettings
from streams.settings.reading import file_values, render_error, unreadable_json, with_seconds


def default_data_dir() -> Path:
    """Default folder of local state, the local broker and the archive."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "turntide"


def local_bootstrap(data_dir: Path) -> str | None:
    """Address of the broker that `turntide kafka start` started last on a data directory, whether or not it runs."""
    try:
        return f"127.0.0.1:{json.loads((data_dir / 'kafka' / 'broker.json').read_bytes())['port']:d}"
    except (OSError, ValueError, KeyError, TypeError):
        return None


class TelemetrySettings(BaseModel):
    """Metrics, and traces by OpenTelemetry (extra `otel`); traces are off unless a collector is named."""

    otlp_endpoint: str | None = Field(None, description="OTLP over HTTP, e.g. http://127.0.0.1:4318; none: no traces.")
    sample_ratio: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of batches without a sampled `traceparent` that are traced; those with one always are.",
    )
    most_record_spans: int = Field(
        50,
        ge=0,
        le=10_000,
        description="Records of a batch with a sampled `traceparent` that get a span.",
    )
    metrics: bool = Field(
        True,
        description="Whether metrics are counted. Switch it off only to measure their cost: then /metrics shows zeros.",
    )
    watts_per_core: float = Field(
        10.0, ge=0, le=1_000, description="Power of a busy core in watts, for the estimate energy_joules_total."
    )
    price_in_per_million: float = Field(
        0.0, ge=0, description="Price of a million prompt tokens of this process's model, in any currency."
    )
    price_out_per_million: float = Field(0.0, ge=0, description="Price of a million output tokens.")


class EncryptionSettings(BaseModel):
    """Encryption at rest with a key per app (extra `encryption`); off unless a keyring is named.

    The keyring holds the apps' data keys, each wrapped by the master key or by Vault.
    """

    keyring: Path | None = Field(
        None,
        description="File with the wrapped keys, created by `turntide ops keys init` and shared by all roles; "
        "none: no encryption. Keep it and its copies out of backups: erasing a key must erase all copies.",
    )
    master_key: SecretStr | None = Field(
        None, description="Key that wraps the keys: 32 bytes in base64 (openssl rand -base64 32)."
    )
    previous_master_key: SecretStr | None = Field(
        None, description="Previous master key, which still unwraps, until `turntide ops keys rewrap` has run."
    )
    vault_url: str | None = Field(
        None, description="HashiCorp Vault whose transit engine wraps the keys instead, e.g. https://vault:8200."
    )
    vault_token: SecretStr | None = Field(None, description="Token for Vault.")
    vault_key: str = Field("turntide", description="Name of the key in Vault's transit engine.")
    apps: tuple[str, ...] = Field((), description="Encrypt only these apps; empty: all.")


class KafkaSettings(BaseModel):
    """The cluster, and how to speak to it."""

    bootstrap: str = Field(
        "127.0.0.1:9092",
        description="Bootstrap servers, comma-separated host:port. Default: the broker that `turntide kafka "
        "start` last started on this data directory.",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="Security protocol of aiokafka."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="SASL mechanism, for SASL_* protocols."
    )
    sasl_username: str = Field("", description="SASL user name.")
    sasl_password: SecretStr = Field(SecretStr(""), description="SASL password.")
    ssl_cafile: Path | None = Field(None, description="CA bundle for SSL. Default: the system's.")
    ssl_certfile: Path | None = Field(None, description="Client certificate for SSL.")
    ssl_keyfile: Path | None = Field(None, description="Key of the client certificate.")
    session_timeout: timedelta = Field(
        timedelta(seconds=10), description="After this time a dead worker's partitions move to others."
    )
    heartbeat_interval: timedelta = Field(
        timedelta(seconds=3), description="Interval of heartbeats; at most a third of session_timeout."
    )
    compression: Literal["zstd", "none"] = Field(
        "zstd", description="Compression of written records; `none` as long as a consumer cannot read zstd."
    )
    max_poll_records: int = Field(1000, ge=1, description="Largest micro-batch per poll, over all partitions.")
    recovery_silence: timedelta = Field(
        timedelta(seconds=60), description="Recovery fails if a changelog returns no records for this long."
    )
    stall_after: timedelta = Field(
        timedelta(seconds=120),
        description="A worker ends if records wait on a partition without progress for this long; /livez reports "
        "it from half of this time.",
    )
    max_fetch_bytes: int = Field(
        2 * 1024 * 1024,
        ge=1024 * 1024,
        description="Bytes fetched ahead for each partition; bounds the memory while a sink is slow.",
    )
    partitions: int | None = Field(None, ge=1, description="Overrides the partition count of every topic.")
    replication: int = Field(1, ge=1, description="Replication factor of topics that Turntide creates.")


StateStore = Literal["memory", "rocksdb"]


class StateSettings(BaseModel):
    """Store of the state of a worker's partitions; the changelog holds the state in either case."""

    store: StateStore = Field(
        "memory", description="RocksDB (extra `rocksdb`) for state larger than memory and for warm starts."
    )
    cache_bytes: int = Field(8 * 1024 * 1024, ge=64 * 1024, description="RocksDB's block cache, for each partition.")
    write_buffer_bytes: int = Field(
        4 * 1024 * 1024, ge=64 * 1024, description="RocksDB's write buffer, for each partition; there are two."
    )
    max_age: timedelta = Field(
        timedelta(hours=12),
        description="State that was not current for this long is rebuilt. Must be below the topic's "
        "`delete.retention.ms` (24 h): the changelog may have lost older deletions.",
    )


class EmbeddingServerSettings(ModelServerSettings):
    """A server that embeds, where `vectors.embedder` is `openai`: Ollama, vLLM, hosted. Text of turns goes there."""

    dim: int | None = Field(None, ge=1, le=4_096, description="Dimension of its vectors. Default: the server's.")
    timeout: timedelta = Field(timedelta(seconds=30), description="Time-out of one try.")
    episode_distance: float = Field(0.6, ge=0, le=2, description="Cosine distance of relevant episodes, at most.")


class LlmSettings(ModelServerSettings):
    """A language model behind OpenAI's API, for summaries, facts and memories of apps; off unless one is named.

    Nothing waits for it but these: where it fails, the extractive summary and the rules' facts stand, a memory is
    skipped or made extractively (policy), and of eleven memories the oldest goes. Text of turns goes to that server.
    """

    timeout: timedelta = Field(timedelta(seconds=30), description="Time-out of one try; after the last: the fallback.")
    json_mode: Literal["json_schema", "json_object", "text"] = Field(
        "json_schema", description="How JSON is requested from the server."
    )
    extract_facts: bool = Field(True, description="Also extract facts from each user message; a call each.")
    summarise_sessions: bool = Field(True, description="Also summarise open sessions every five turns; a call each.")
    summarise_projects: bool = Field(
        True, description="Also summarise projects' chunks, every ten turns, and episodes; a call each."
    )
    make_memories: bool = Field(
        True,
        description="Also make apps' memories of ended conversations, and decide which of eleven to remove.",
    )
    memory_timeout: timedelta = Field(
        timedelta(seconds=30),
        gt=timedelta(0),
        description="Time limit of these, all tries together. Must be below the policy's apps.answer_within.",
    )


class ScorerSettings(BaseModel):
    """Scorer of single turns, which also judges sessions."""

    kind: Literal["trained", "rules"] = Field(
        "trained",
        description="`trained`: a model that also judges sessions. `rules`: word rules, and the formulas of "
        "deploy/risk-memory.md.",
    )
    file: Path | None = Field(None, description="File of `turntide lab train scorer`. Empty: the shipped one.")
    reader: Literal["off", "distilled", "e5"] = Field(
        "distilled",
        description="Second reader of user turns, beside a trained scorer: it raises the risk of sessions whose turns "
        "show harmful intent. `distilled` costs microseconds a turn; `e5` (extra `e5`), which it imitates, finds more "
        "and costs about 4 ms of CPU a user turn in role `sessions`.",
    )

    def named(self, scorer: str) -> Self:
        """Another scorer with the same second reader: `rules`, `shipped`, or a file of `turntide lab train scorer`."""
        if scorer == "rules":
            return self.model_copy(update={"kind": "rules"})
        return self.model_copy(update={"kind": "trained", "file": None if scorer == "shipped" else Path(scorer)})


class StatementSettings(BaseModel):
    """Reading of what a project's conversations state."""

    second_reader: bool = Field(
        False,
        description="Whether a trained reader reads sentences in which the rules find nothing (extra `e5`). It "
        "runs in role `enrich` and takes some milliseconds a sentence; no turn waits for it.",
    )


class VectorSettings(BaseModel):
    """Vector store, and the embedder that fills it."""

    url: str | None = Field(None, description="Qdrant server; none: Qdrant Edge under the data directory.")
    api_key: SecretStr | None = Field(None, description="Qdrant API key.")
    embedder: Literal["wordllama", "e5", "minilm", "openai"] = Field(
        "wordllama",
        description="Embedder for retrieval. `e5` (extra `e5`) finds most and takes some milliseconds a text; "
        "`openai` is a server with OpenAI's API (extra `llm`). With these two, sessions are still folded with "
        "wordllama, so no turn waits for them. `minilm` (extra `minilm`) is deprecated: move to e5 with `turntide "
        "ops reindex --embedder e5`.",
    )
    embedding: EmbeddingServerSettings = EmbeddingServerSettings()
    generation: str = Field(
        "",
        pattern=r"^[A-Za-z0-9_-]{0,32}$",
        description="Generation of the collections that serves; `turntide ops reindex` creates generations. "
        "Empty: the first.",
    )


class _Environment(EnvSettingsSource):
    """Environment in which `TURNTIDE_KAFKA=host:port` is short for `TURNTIDE_KAFKA__BOOTSTRAP=host:port`."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        super().__init__(settings_cls)
        variables = dict(self.env_vars)
        short = variables.pop("turntide_kafka", None)
        if short is not None:
            variables.setdefault("turntide_kafka__bootstrap", short)
        self.env_vars = variables

    def __call__(self) -> dict[str, Any]:
        """Settings of the environment."""
        return with_seconds(self.settings_cls, super().__call__())


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="TURNTIDE_", env_nested_delimiter="__", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    kafka: KafkaSettings = KafkaSettings()
    state: StateSettings = StateSettings()
    http: HttpSettings = HttpSettings()
    gateway: GatewaySettings = GatewaySettings()
    live: LiveSettings = LiveSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    vectors: VectorSettings = VectorSettings()
    archive: ArchiveSettings = ArchiveSettings()
    iceberg: IcebergSettings = IcebergSettings()
    encryption: EncryptionSettings = EncryptionSettings()
    notify: NotifySettings = NotifySettings()
    llm: LlmSettings = LlmSettings()
    judge: JudgeSettings = JudgeSettings()
    scorer: ScorerSettings = ScorerSettings()
    statements: StatementSettings = StatementSettings()
    topic_prefix: str = Field("turntide", pattern=r"^[A-Za-z0-9._-]+$", description="Prefix of every topic and group.")
    data_dir: Path = Field(default_factory=default_data_dir, description="Folder of local state, broker and archive.")
    policy_file: Path | None = Field(None, description="Policy file (TOML or JSON). Default: the built-in policy.")
    max_clock_skew: timedelta = Field(
        timedelta(seconds=30),
        gt=timedelta(0),
        description="`turntide doctor` fails if the clock of the broker or a role differs by more.",
    )
    worker_id: str | None = Field(None, description="Static membership id of this worker, e.g. the pod's name.")
    log_format: Literal["console", "json"] = Field("console", description="Format of log lines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")

    @property
    def roles(self) -> list[str]:
        """Roles that one machine runs: `notify` where a sink is configured, `judge` where a judge is."""
        wanted = {"notify": self.notify.has_sinks, "judge": self.judge.kind != "off"}
        always = ("sessions", "memory", "enrich", "index", "archive", "gateway")
        return [*always, *(role for role in wanted if wanted[role])]

    def __repr__(self) -> str:
        """Without user and password of addresses; other secrets are hidden by their type."""
        return re.sub(r"//[^/@\s]*@", "//…@", super().__repr__())

    __str__ = __repr__

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, the environment over the file."""
        _ = env_settings, dotenv_settings, file_secret_settings
        path = os.environ.get("TURNTIDE_CONFIG")
        file = (InitSettingsSource(settings_cls, file_values(Path(path), settings_cls)),) if path else ()
        return (init_settings, _Environment(settings_cls), *file)


def _with_local_broker(settings: Settings) -> Settings:
    """Where no cluster is named: `bootstrap` still counts as not set, so that `turntide demo` starts its own."""
    named = settings.kafka.model_fields_set
    found = None if "bootstrap" in named else local_bootstrap(settings.data_dir)
    if found is None:
        return settings
    kafka = KafkaSettings.model_construct(named, **{**dict(settings.kafka), "bootstrap": found})
    return settings.model_copy(update={"kafka": kafka})


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. Where none names the cluster, it is the local broker of the data directory.

    A broker that is known and does not run is not exchanged for the usual port: a stranger's may be there.

    Raises:
        ConfigurationError: A value is wrong, or the file cannot be read; the message names the field, and no value.
    """
    try:
        return _with_local_broker(Settings(**overrides))
    except ValidationError as error:
        wrong = render_error(error, Settings)
    except SettingsError as error:
        wrong = unreadable_json(Settings) or str(error)
    # Not from the error: its own text may quote a secret.
    raise ConfigurationError(f"settings are wrong: {wrong}. `turntide doctor` lists all settings.")
