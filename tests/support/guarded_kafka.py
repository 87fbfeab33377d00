"""A broker that asks who somebody is, and lets each user do what `deploy/kubernetes/topics/users.yaml` gives it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

from aiokafka.protocol.admin import CreateAclsRequest, CreateAclsRequestStruct, DescribeAclsRequest

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.strimzi import ACCESS, user_resources
from jobs.shared.role_process import HOST, environment_of
from streams.kafka.client import admin
from streams.settings import KafkaSettings, Settings
from tests.support.broker_listeners import Listeners, scram
from tests.support.fault_driver import until

_SECRET = token_hex()
_DENIED = re.compile(r"Principal = User:(\S+) is Denied operation = (\w+) .* on resource = (\S+)")
_RESOURCES = {"topic": 2, "group": 3, "cluster": 4}
_PATTERNS = {"literal": 3, "prefix": 4}
_OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Describe": 8,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
}
"""Codes of Kafka's protocol (KIP-140)."""
_ALLOW = 3
_ANY = 1


class GuardedKafka(LocalKafka):
    """One broker with a plain listener for tests, who may do everything, and one for `strimzi.ACCESS`.

    Args:
        folder: Where its files are.
        properties: Further properties of the broker.
    """

    def __init__(self, folder: Path, properties: Mapping[str, str | int] | None = None) -> None:
        listeners = Listeners({"GUARDED": "SASL_PLAINTEXT"})
        self._guarded = listeners.ports["GUARDED"]
        guarded: dict[str, str | int] = {
            **listeners.properties,
            **scram("GUARDED"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        super().__init__(
            folder,
            port=listeners.plain,
            properties={**(properties or {}), **guarded},
            format_options=tuple(f"--add-scram=SCRAM-SHA-512=[name={name},password={_SECRET}]" for name in ACCESS),
        )

    def login(self, user: str) -> dict[str, str]:
        """Environment with which a process is this user."""
        return {f"TURNTIDE_KAFKA__{name.upper()}": value for name, value in self._way(user).items()}

    def user(self, user: str, settings: Settings) -> Settings:
        """The same settings, as this user."""
        kafka = KafkaSettings.model_validate({**settings.kafka.model_dump(), **self._way(user)})
        return settings.model_copy(update={"kafka": kafka})

    def _way(self, user: str) -> dict[str, str]:
        return {
            "bootstrap": f"{HOST}:{self._guarded}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password": _SECRET,
        }

    async def allow(self, settings: Settings) -> None:
        """Give every user its rights on the topics and groups of these settings, as Strimzi's operator would.

        The broker learns of them from the controller: it has them when it lists them.
        """
        given = list(_rights(settings))
        async with admin(settings.kafka) as client:
            answer = await client._send_request(_CreateAcls(given))
            assert {error for error, _ in answer.creation_responses} == {0}, answer

            async def known() -> bool:
                listed = await client._send_request(DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY))
                rights = {(*of, *each) for *of, acls in listed.resources for each in acls}
                return rights >= set(given)

            await until(known, "the broker has the rights")

    def operator(self, settings: Settings, *command: str) -> bytes:
        """What a command of `turntide` prints as JSON for the operator."""
        environment = {**os.environ, **environment_of(settings), **self.login("operator")}
        environment.pop("TURNTIDE_KAFKA", None)
        line = [sys.executable, "-m", "jobs.cli", *command, "--output", "json"]
        done = subprocess.run(line, env=environment, capture_output=True, check=False, timeout=120)  # noqa: S603
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return done.stdout

    def denied(self) -> set[tuple[str, str, str]]:
        """User, operation and resource of everything that was refused."""
        return set(_DENIED.findall(self.log.read_text(errors="replace")))


class _CreateAcls(CreateAclsRequest):  # type: ignore[misc]
    """Many at once; the client's own takes one."""

    def __init__(self, creations: Iterable[tuple[int, str, int, str, str, int, int]]) -> None:
        self._creations = list(creations)

    def build(self, request_struct_class: type[CreateAclsRequestStruct]) -> CreateAclsRequestStruct:
        """In the version that the broker speaks."""
        return request_struct_class(self._creations)


def _rights(settings: Settings) -> Iterator[tuple[int, str, int, str, str, int, int]]:
    for name, resource in zip(ACCESS, user_resources(settings, "turntide"), strict=True):
        rules: list[dict[str, Any]] = resource["spec"]["authorization"]["acls"]
        for rule in rules:
            what = rule["resource"]
            kind, pattern = _RESOURCES[what["type"]], _PATTERNS[what.get("patternType", "literal")]
            for operation in rule["operations"]:
                yield (
                    kind,
                    what.get("name", "kafka-cluster"),
                    pattern,
                    f"User:{name}",
                    "*",
                    _OPERATIONS[operation],
                    _ALLOW,
                )
