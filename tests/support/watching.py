"""Prometheus and Alertmanager, run with the project's own files, in seconds instead of minutes."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import httpx
import msgspec

from jobs.shared.role_process import free_port
from tests.support.http_server import Request, answering
from tests.support.tools import tool

DEPLOY = Path(__file__).parents[2] / "deploy"
_LOOK_EVERY_S = 0.05


class Told(NamedTuple):
    """One notification: the receiver's path, and what Alertmanager posted."""

    path: str
    body: dict[str, Any]

    def names(self) -> list[tuple[str, str, str]]:
        """Name, job and instance of each alert in it."""
        return self.of_status("firing", "resolved")

    def of_status(self, *wanted: str) -> list[tuple[str, str, str]]:
        """Name, job and instance of each alert in it that is in such a state."""
        labels = [alert["labels"] for alert in self.body["alerts"] if alert["status"] in wanted]
        return sorted((each["alertname"], each.get("job", ""), each.get("instance", "")) for each in labels)


class Receiver:
    """What Alertmanager notifies.

    Attributes:
        url: Where it listens.
        told: Notifications in the order they came.
    """

    def __init__(self) -> None:
        self.url = ""
        self.told: list[Told] = []

    def answer(self, request: Request) -> None:
        """Note a notification."""
        self.told.append(Told(request.path, json.loads(request.body())))
        request.reply(200)

    def of(self, job: str) -> list[Told]:
        """Notifications of one role, in the order they came."""
        return [each for each in self.told if each.body["groupLabels"].get("job") == job]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    with answering(receiver.answer) as receiver.url:
        yield receiver


@contextmanager
def _running(program: str, *flags: str) -> Iterator[str]:
    """Address of a program that is ready and ends with the context; only this process is ended."""
    address = f"127.0.0.1:{free_port()}"
    command = (str(tool(program)), f"--web.listen-address={address}", "--log.level=warn", *flags)
    url = f"http://{address}"
    with subprocess.Popen(  # noqa: S603 - programs that this file names
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.extend(process.stderr or ()))
        reading.start()
        try:
            until_s = monotonic() + 20
            while not _answers(f"{url}/-/ready"):
                assert process.poll() is None, "".join(said)
                assert monotonic() < until_s, f"{command[0]} is not ready"
                sleep(_LOOK_EVERY_S)
            yield url
        finally:
            process.terminate()
            process.wait(20)
            reading.join()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@contextmanager
def alertmanager(folder: Path, receiver: str) -> Iterator[str]:
    """Alertmanager by deploy/alertmanager, with a receiver of the test's and short waits; yields its address."""
    config = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    config = config.replace("http://alert-receiver.invalid", receiver)
    config = re.sub(r"group_wait: \w+", "group_wait: 3s", config)
    config = re.sub(r"group_interval: \w+", "group_interval: 1s", config)
    (folder / "alertmanager.yml").write_text(config, encoding="utf-8")
    files = (f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'alertmanager'}")
    with _running("prometheus-alertmanager", *files, "--cluster.listen-address=") as url:
        yield url


@contextmanager
def prometheus(folder: Path, alertmanager_url: str, roles: Mapping[int, str], token: str) -> Iterator[str]:
    """Prometheus by deploy/prometheus, with a role at each port; rules wait a second instead of minutes.

    Those that wait two minutes still do: on a busy machine no role answers for a second now and then.
    """
    document = msgspec.yaml.decode((DEPLOY / "prometheus" / "prometheus.yml").read_bytes())
    document["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "200ms"}
    document["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [
        alertmanager_url.removeprefix("http://")
    ]
    (scrape,) = (each for each in document["scrape_configs"] if each["job_name"] == "turntide")
    (folder / "token").write_text(token, encoding="utf-8")
    scrape["authorization"]["credentials_file"] = str(folder / "token")
    del scrape["dns_sd_configs"]
    # What name resolution would say of them; the file's own relabelling makes jobs of the names.
    scrape["static_configs"] = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__meta_dns_name": role}} for port, role in roles.items()
    ]
    document["scrape_configs"] = [scrape]
    (folder / "prometheus.yml").write_bytes(msgspec.yaml.encode(document))
    (folder / "rules").mkdir()
    for path in (DEPLOY / "prometheus" / "rules").glob("*.yml"):
        text = re.sub(r"(\n\s+for): (?!2m\b)\w+", r"\1: 1s", path.read_text(encoding="utf-8"))
        (folder / "rules" / path.name).write_text(text.replace("interval: 30s", "interval: 200ms"), encoding="utf-8")
    files = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'prometheus'}")
    with _running("prometheus", *files) as url:
        yield url
