"""The local broker: answers, keeps its data and port, and leaves no process behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import NewTopic

from jobs.operate.broker.local_kafka import BrokerError, BrokerRecord, LocalKafka, answers
from jobs.shared import role_process as config
from streams.kafka.client import admin
from streams.settings import KafkaSettings, load_settings
from tests.support.command_line import printed, turntide

_LOG_APPEND_TIME = 1
_ENDS_WITHIN_S = 90
"""Longer than the keeper and `stop` wait before they kill a broker (20 and 30 s), on a machine where all is slow."""
_ROOT = Path(__file__).parents[2]

_PARENT = """
import sys
from pathlib import Path
from jobs.operate.broker.local_kafka import LocalKafka

LocalKafka(Path(sys.argv[1])).start(); sys.stdout.write("up\\n"); sys.stdout.flush(); sys.stdin.read()
"""


async def create_topic(bootstrap: str, topic: str) -> None:
    """Create a topic of one partition."""
    async with admin(KafkaSettings(bootstrap=bootstrap)) as client:
        await client.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])


async def produce(bootstrap: str, topic: str, value: bytes) -> int:
    """Send one acknowledged record; return its timestamp type."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_request_size=8_000_000) as producer:
        return int((await producer.send_and_wait(topic, value)).timestamp_type)


async def consume(bootstrap: str, topic: str, group: str) -> bytes:
    """Return the first record's value, through a group."""
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=1000,
        heartbeat_interval_ms=300,
    ) as consumer:
        value: bytes = (await consumer.getone()).value
        await consumer.commit()
        return value


def turntide_kafka(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process that a broker outlives; a port is named where others run, too."""
    command = [sys.executable, "-m", "jobs.cli", "kafka", *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)  # noqa: S603


def process_of(broker: LocalKafka) -> psutil.Process:
    """Return the process of a broker that runs."""
    record = broker.running()
    assert record
    process = record.process()
    assert process
    return process


async def test_a_brokers_life(tmp_path: Path) -> None:
    """A second start on its data is refused; a record outlives a kill -9; stopped, nothing runs, and that is seen.

    The record has several MB, is stamped by the broker, and passes through a group with a short session.
    """
    value = os.urandom(4 * 1024 * 1024)
    children = set(psutil.Process().children(recursive=True))
    with LocalKafka(tmp_path) as broker:
        bootstrap, killed = broker.bootstrap, process_of(broker)
        await create_topic(bootstrap, "kept")
        assert await produce(bootstrap, "kept", value) == _LOG_APPEND_TIME
        with pytest.raises(BrokerError, match=rf"{bootstrap}.*turntide kafka stop"):
            LocalKafka(tmp_path).start()

        broker.kill()
        assert not killed.is_running()
        assert not answers(bootstrap)
        broker.restart()

        assert broker.bootstrap == bootstrap
        assert await consume(bootstrap, "kept", group="kept") == value
        started = set(psutil.Process().children(recursive=True)) - children
        assert process_of(broker) in started

    assert not any(process.is_running() for process in started)
    assert broker.record()
    assert broker.running() is None
    assert turntide("kafka", "status", "--data-dir", str(tmp_path)).exit_code == 3


def test_broker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """Kill -9 of the parent gives it no chance to stop the broker; the keeper does."""
    parent = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _PARENT, str(tmp_path)], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"up\n"
        broker = process_of(LocalKafka(tmp_path))
        keeper = broker.parent()
        assert keeper

        parent.kill()

        _, alive = psutil.wait_procs([broker, keeper], timeout=_ENDS_WITHIN_S)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_strangers_port_is_never_exchanged_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command would look there and talk to the stranger: nothing starts, and what to do is said.

    So with a port that is named, one of the settings, and the one that the data had before; started on another port,
    the next commands know it, also after it has stopped.
    """
    monkeypatch.delenv("TURNTIDE_KAFKA", raising=False)
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        with pytest.raises(BrokerError, match=rf"port {taken} .*--port"):
            LocalKafka(tmp_path / "named", port=taken).start()
        monkeypatch.setenv("TURNTIDE_KAFKA__BOOTSTRAP", f"127.0.0.1:{taken}")
        by_settings = str(turntide("kafka", "start").exception)
        monkeypatch.delenv("TURNTIDE_KAFKA__BOOTSTRAP")
        (tmp_path / "kafka").mkdir(exist_ok=True)
        before = BrokerRecord(1, 0.0, taken, taken)
        (tmp_path / "kafka" / "broker.json").write_bytes(msgspec.json.encode(before))
        by_record = str(turntide("kafka", "start").exception)

        for said in (by_settings, by_record):
            assert f"port {taken} on 127.0.0.1 is in use by another program" in said
            assert "turntide kafka start --port " in said
            assert f"TURNTIDE_KAFKA=127.0.0.1:{taken}" in said

        port = config.free_port()
        started = turntide_kafka("start", "--port", str(port))
        known = load_settings().kafka
        turntide("kafka", "stop")

    assert (started.returncode, "export" in started.stdout) == (0, False)
    assert (known.bootstrap, "bootstrap" in known.model_fields_set) == (f"127.0.0.1:{port}", False)
    assert load_settings().kafka.bootstrap == known.bootstrap


def test_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    """The reason is in the message."""
    with pytest.raises(BrokerError, match=r"(?s)broker\.log.*Too small maximum heap"):
        LocalKafka(tmp_path, heap="1k").start()


def test_another_process_with_the_recorded_id_is_never_touched(tmp_path: Path) -> None:
    """A process id used again by the system is told from the broker by when the process began."""
    broker = LocalKafka(tmp_path)
    broker.home.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        began = psutil.Process(stranger.pid).create_time()
        record = BrokerRecord(stranger.pid, began - 3600, port=21_001, controller_port=21_002)
        (broker.home / "broker.json").write_bytes(msgspec.json.encode(record))

        broker.stop()
        broker.kill()

        assert (broker.record(), broker.running()) == (record, None)
        stranger.communicate(b"\n")
        assert stranger.returncode == 0


def test_started_on_the_command_line_it_stays_until_stopped(tmp_path: Path) -> None:
    """Start returns once the broker answers, status finds it, stop ends it."""
    here = ("--data-dir", str(tmp_path))
    try:
        started = turntide_kafka("start", "--output", "json", "--port", str(config.free_port()), *here)
        assert (started.returncode, started.stderr) == (0, "")
        assert answers(json.loads(started.stdout)["bootstrap"])
        assert printed("kafka", "status", *here) == json.loads(started.stdout)
        assert str(turntide("kafka", "start", *here).exception).startswith("a broker (pid ")
    finally:
        stopped = turntide("kafka", "stop", *here)

    assert stopped.exit_code == 0
    gone = turntide("kafka", "status", "--output", "json", *here)
    assert (gone.exit_code, json.loads(gone.stdout)["running"]) == (3, False)


def test_foreground_ends_with_its_signal(tmp_path: Path) -> None:
    """A supervisor's SIGTERM stops broker and command, with exit code 0."""
    options = ["--foreground", "--data-dir", str(tmp_path), "--port", str(config.free_port())]
    command = [sys.executable, "-m", "jobs.cli", "kafka", "start", *options]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE) as foreground:  # noqa: S603
        assert foreground.stdout
        assert foreground.stdout.readline().startswith(b"running at ")
        broker = process_of(LocalKafka(tmp_path))

        foreground.send_signal(signal.SIGTERM)

        assert foreground.wait(_ENDS_WITHIN_S) == 0
        assert not broker.is_running()


def test_no_port_is_given_twice_before_it_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several are drawn before the first child listens; one that is asked for by number is given again."""
    monkeypatch.setattr(config, "PORTS", config.PORTS[:400])
    given = [config.free_port() for _ in range(80)]

    assert len(set(given)) == len(given)
    assert config.free_port(given[0]) == given[0]
