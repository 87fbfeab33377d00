"""The manifests: checked by kubeconform and kube-score as kustomize builds them, and by what Turntide knows itself."""

import json
import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from models.entities import REGISTRY
from streams.settings import Settings, load_settings
from streams.wiring import ROLES
from tests.support.custom_resources import SHAPES, write_schemas
from tests.support.manifests import Document, built, documents, of_kind, pod, told, variables
from tests.support.tools import FOLDER, kept, tool

OVERLAYS = ("small", "production")
WORKLOADS = ("Deployment", "StatefulSet")
OPS = "turntide-ops"
"""Where people run commands: no role."""
BEYOND = 443
"""HTTPS beyond the cluster."""
REACHES: dict[str, set[int | str]] = {
    "sessions": set(),
    "memory": set(),
    "enrich": {BEYOND},
    "judge": {BEYOND},
    "index": {6333, "http", BEYOND},
    "archive": {5432, BEYOND},
    "notify": {9093, BEYOND},
    "api": {6333, "http", BEYOND},
    "gateway": {"http"},
    "ops": {6333, 5432, "http", BEYOND},
}
"""Role → ports that it reaches, beside those of every role."""
EVERY_ROLE_REACHES: set[int | str] = {53, 9093, 4318}


@cache
def _found(overlay: str) -> list[Document]:
    return documents(built(overlay))


def _workloads(overlay: str) -> dict[str, Document]:
    found = of_kind(_found(overlay), *WORKLOADS)
    return {name.removeprefix("turntide-"): each for name, each in found.items() if name != OPS}


def _worker(workload: Document) -> Document:
    (container,) = pod(workload)["containers"]
    return dict(container)


def test_manifests_are_valid(tmp_path: Path) -> None:
    """Kubernetes' own schemas, KEDA's and the Prometheus operator's; Strimzi's resources by their shape alone."""
    own = tmp_path / "schemas"
    own.mkdir()
    others = ("keda.sh_scaledobjects", "keda.sh_triggerauthentications", "monitoring.coreos.com_podmonitors")
    for crd in (*SHAPES, *(kept(f"crds/{name}.yaml") for name in others)):
        write_schemas(crd, own)
    files = [tmp_path / f"{overlay}.yaml" for overlay in OVERLAYS]
    for overlay, file in zip(OVERLAYS, files, strict=True):
        file.write_text(built(overlay))
    kept("kubernetes")
    places = [f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json" for folder in (FOLDER / "kubernetes", own)]
    options = [option for place in places for option in ("-schema-location", place)]
    run = subprocess.run(  # noqa: S603 - a program that .ci/tools put there
        [tool("kubeconform"), "-strict", "-output", "json", "-summary", *options, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    told_of = json.loads(run.stdout)

    assert [f"{each['kind']} {each['name']}: {each['msg']}" for each in told_of["resources"]] == []
    assert told_of["summary"]["valid"] == sum(len(_found(overlay)) for overlay in OVERLAYS)
    assert told_of["summary"]["skipped"] == 0


def test_manifests_are_sound() -> None:
    """Nothing critical by kube-score: rights, probes, limits, budgets, who may talk to whom.

    No limit of processors: it would halt a fold in the middle of a burst. No image is pulled anew: tags do not move.
    """
    run = subprocess.run(  # noqa: S603 - a program that .ci/tools put there
        [
            tool("kube-score"), "score", "--output-format", "ci", "--ignore-container-cpu-limit",
            "--ignore-test", "container-image-pull-policy", "-",
        ],
        input=built("production"),
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    assert [line for line in run.stdout.splitlines() if line.startswith("[CRITICAL]")] == []
    assert run.returncode == 0
    assert run.stdout.count("[OK]") > len(ROLES)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_role_has_what_it_needs(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload, a port, a user of Kafka, settings that load, a budget; fixed names for whoever folds."""
    found, workloads = _found(overlay), _workloads(overlay)
    users = of_kind(found, "KafkaUser")
    configured = next(
        each["data"] for each in found if each["kind"] == "ConfigMap" and "TURNTIDE_CONFIG" in each["data"]
    )
    for name, value in configured.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TURNTIDE_CONFIG")
    settings = load_settings()

    assert set(workloads) == set(ROLES)
    assert set(configured) <= variables()
    for role, url in settings.live.roles.items():
        assert url == f"http://turntide-{role}:{getattr(settings.http, f'{role}_port')}"
    assert settings.state.store == ("rocksdb" if overlay == "production" else "memory")
    for role, workload in workloads.items():
        container = _worker(workload)
        own = {each["name"]: each for each in container["env"]}
        assert container["args"] == ["worker", role]
        assert [port["containerPort"] for port in container["ports"]] == [getattr(settings.http, f"{role}_port")]
        assert set(told(own)) <= variables()
        assert own["TURNTIDE_KAFKA__SASL_USERNAME"]["value"] in users
        secret = own["TURNTIDE_KAFKA__SASL_PASSWORD"]["valueFrom"]["secretKeyRef"]
        assert secret == {"name": f"turntide-{role}", "key": "password"}
        assert ("TURNTIDE_WORKER_ID" in own) is (workload["kind"] == "StatefulSet") is (role in {"sessions", "memory"})
        assert f"turntide-{role}" in of_kind(found, "Service")
    assert not of_kind(found, "Secret")
    ops = of_kind(found, "Deployment")[OPS]
    assert (ops["spec"]["replicas"], [name for name in _worker(ops) if name.endswith("Probe")]) == (0, [])
    assert {each["name"]: each for each in _worker(ops)["env"]}["TURNTIDE_KAFKA__SASL_USERNAME"]["value"] in users
    budgets = of_kind(found, "PodDisruptionBudget")
    selected = [each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] for each in budgets.values()]
    assert sorted(selected) == sorted(f"turntide-{role}" for role in ROLES)


def test_probes_leave_time_for_what_ends_by_itself() -> None:
    """The kubelet kills after the watchdog has had its time; nothing is killed while it starts; readiness is quick."""
    stall_after = Settings().kafka.stall_after
    for role, workload in _workloads("production").items():
        container = _worker(workload)
        start, live, ready = (container[f"{name}Probe"] for name in ("startup", "liveness", "readiness"))
        patience = timedelta(seconds=live["periodSeconds"] * live["failureThreshold"])
        assert live["httpGet"] == start["httpGet"] == {"path": "/livez", "port": "http"}, role
        assert ready["httpGet"] == {"path": "/readyz", "port": "http"}
        assert stall_after < stall_after / 2 + patience < 2 * stall_after
        assert start["periodSeconds"] * start["failureThreshold"] >= stall_after.total_seconds()
        assert pod(workload)["terminationGracePeriodSeconds"] > 15


def test_scaling_is_capped_by_partitions_and_slow_to_shrink() -> None:
    """No worker without a partition, never none, and whoever is scaled has no number of its own."""
    topics = {topic.full_name("turntide"): topic for topic in REGISTRY.topics}
    workloads = _workloads("production")
    scaled = of_kind(_found("production"), "ScaledObject")

    assert set(scaled) == {"turntide-sessions", "turntide-memory", "turntide-enrich", "turntide-index"}
    for name, each in scaled.items():
        role, spec = name.removeprefix("turntide-"), each["spec"]
        (trigger,) = spec["triggers"]
        down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        assert (
            1 <= spec["minReplicaCount"] <= spec["maxReplicaCount"] <= topics[trigger["metadata"]["topic"]].partitions
        )
        assert trigger["metadata"]["consumerGroup"] == f"turntide.{role}"
        assert trigger["metadata"]["allowIdleConsumers"] == "false"
        assert down["stabilizationWindowSeconds"] >= 600
        assert spec["scaleTargetRef"]["kind"] == workloads[role]["kind"]
        assert "replicas" not in workloads[role]["spec"]
    assert workloads["archive"]["spec"]["replicas"] == 1
    assert workloads["archive"]["spec"]["strategy"] == {"type": "Recreate"}


def test_network_lets_each_role_reach_what_it_needs_and_nothing_else() -> None:
    """Denied by default; ports beyond those of every role are a role's own."""
    policies = of_kind(_found("production"), "NetworkPolicy")
    denied = policies.pop("turntide-deny")["spec"]
    for role, workload in _workloads("production").items():
        labels = workload["spec"]["template"]["metadata"]["labels"]
        mine = [policy["spec"] for policy in policies.values() if _selects(policy["spec"]["podSelector"], labels)]
        rules = [rule for spec in mine for rule in spec.get("egress", [])]
        assert _selects(denied["podSelector"], labels)
        assert {port["port"] for rule in rules for port in rule["ports"]} == EVERY_ROLE_REACHES | REACHES[role], role
        assert all(rule["to"] for rule in rules)
        incoming = [source for spec in mine for rule in spec.get("ingress", []) for source in rule["from"]]
        assert len(incoming) == (3 if role in {"api", "gateway"} else 2), role
    assert sorted(denied["policyTypes"]) == ["Egress", "Ingress"]
    assert set(denied) == {"podSelector", "policyTypes"}


def _selects(selector: Document, labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {})
    among = selector.get("matchExpressions", [])
    return wanted.items() <= labels.items() and all(labels.get(each["key"]) in each["values"] for each in among)
