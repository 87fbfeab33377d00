"""Commands of admins to memories of apps and projects: written to `commands.v1`, awaited until readers see them.

The memory role folds the command with everything else of the space or project, in one order; the index role shows what
came of it. Who writes here therefore reads its own writes, or is told that it will take longer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import structlog

from models.entities import entity_key
from models.errors import DeliveryFailed
from models.events.app import AdminCommand, MemoriesRead
from models.events.base import CommandResult, Position
from models.events.project import DeedResult, ManualProjectCommand, ProjectCommand
from models.events.topics import COMMANDS
from models.events.user import UserDeed
from models.wire.codec import encode
from models.wire.envelope import headers_for, tag_of
from streams.http.problems import unavailable
from streams.index.app_memory import AppMemoryIndex
from streams.index.project_memory import ProjectMemories
from streams.index.user_memory import UserMemory
from streams.kafka.producer import ProducerOnDemand, Record
from streams.settings import Settings

log = structlog.get_logger(__name__)

POLL_S = 0.02
WAIT_S = 5.0
"""How long an answer waits until readers see what was done; half of what a request may take."""
AUDIT = "audit"
"""Name of the tasks that write what is audited of reads."""
MAX_WAITING = 16
"""Commands that wait at once: waiters never shut out those who read."""


class EventWriter(Protocol):
    """Writes to any topic (`KafkaCommands`)."""

    async def write(self, topic: str, record: Record) -> Position:
        """Write a record, as `KafkaCommands` does."""
        ...


class CommandSender(Protocol):
    """Writes to `commands.v1`."""

    async def send(self, command: AdminCommand | ProjectCommand | UserDeed) -> Position:
        """Write a command under the key of whose memory it is; on return the log has it, and where.

        Raises:
            DeliveryFailed: The log did not confirm it. It may still be there: ask again.
        """
        ...


class KafkaCommands:
    """A `CommandSender` that connects when the first command comes: reading needs no Kafka.

    Args:
        settings: The cluster and the topics' prefix.
    """

    def __init__(self, settings: Settings) -> None:
        self._prefix = settings.topic_prefix
        self._producer = ProducerOnDemand(settings)

    async def send(self, command: AdminCommand | ProjectCommand | UserDeed) -> Position:
        """As of `CommandSender`."""
        key = entity_key(command).encode()
        return await self.write(COMMANDS.name, Record(key, encode(command), headers_for(command)))

    async def write(self, topic: str, record: Record) -> Position:
        """Write a record where it or its key belongs; on return the log has it, and where.

        Args:
            topic: Without the prefix.
            record: Has a key.

        Raises:
            DeliveryFailed: The log did not confirm it. It may still be there: ask again.
        """
        (written,) = await self._producer.write(f"{self._prefix}.{topic}", record.key or b"", [record])
        return Position(topic, written.partition, written.offset)

    async def close(self) -> None:
        """Disconnect; a later command connects again."""
        await self._producer.close()


_Command = TypeVar("_Command", bound=AdminCommand | ManualProjectCommand | UserDeed)
_Result = TypeVar("_Result", bound=CommandResult | DeedResult)
_Result_co = TypeVar("_Result_co", covariant=True)


class _Stats(Protocol[_Result_co]):
    """How far what a command changes is, as readers see it."""

    @property
    def source(self) -> Position:
        """Of the last command that it knows."""
        ...

    @property
    def results(self) -> Sequence[_Result_co]:
        """Of the last commands."""
        ...


@dataclass
class Commands(Generic[_Command, _Result]):
    """Sends commands and waits for what comes of them.

    Args:
        sender: Writes to the log; None: this role takes no commands.
        stats: Where the result of a command shows; None for what is not known yet.
        clock: Seconds, never going back.
        sleep: Waits so many seconds.
    """

    sender: CommandSender | None
    stats: Callable[[_Command], Awaitable[_Stats[_Result] | None]]
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _waiting: int = field(default=0, init=False)

    async def carry_out(self, command: _Command) -> _Result | None:
        """Send a command, and look until readers see what came of it; on return they do.

        Returns:
            None if that takes longer than `WAIT_S`. The command is in the log and will be carried out.

        Raises:
            Problem: 503, this role takes no commands, or too many wait already; then nothing was written.
            DeliveryFailed: The log did not confirm it.
        """
        if self.sender is None:
            raise read_only()
        if self._waiting >= MAX_WAITING:
            raise unavailable(f"{MAX_WAITING} commands are waiting: repeat this one", code="too_many_waiting")
        self._waiting += 1
        try:
            written = await self.sender.send(command)
            result = await self._result(command, written)
        finally:
            self._waiting -= 1
        outcome = "pending" if result is None else result.outcome
        action = tag_of(type(command))
        log.info("admin_command", action=action, by=command.by, request_id=command.request_id, outcome=outcome)
        return result

    async def _result(self, command: _Command, written: Position) -> _Result | None:
        end_s = self.clock() + WAIT_S
        while True:
            stats = await self.stats(command)
            if stats is not None:
                for result in stats.results:
                    if result.request_id == command.request_id:
                        return result
                if stats.source.partition == written.partition and stats.source.offset >= written.offset:
                    return None  # others came so quickly that its result is told no more
            left_s = end_s - self.clock()
            if left_s <= 0:
                return None
            await self.sleep(min(POLL_S, left_s))


class SpaceCommands(Commands[AdminCommand, CommandResult]):
    """Commands to memories of apps, and a note of who read them.

    Args:
        sender: As of `Commands`.
        memories: Where their results show.
        **waits: `clock` and `sleep` of `Commands`.
    """

    def __init__(self, sender: CommandSender | None, memories: AppMemoryIndex, **waits: Any) -> None:
        super().__init__(sender, lambda command: memories.stats(command.app_id, command.user_id), **waits)
        self._noting: set[asyncio.Task[None]] = set()

    async def note(self, read: MemoriesRead) -> None:
        """Have it audited that an admin read memories; nobody waits for it, but while many are on their way.

        A role that takes no commands has nowhere to note it: it is logged, as it is when the log does not confirm it.
        """
        if self.sender is None:
            log.info("admin_read_not_audited", by=read.by, how=read.how, reason="this role takes no commands")
            return
        task = asyncio.create_task(self._note(self.sender, read), name=AUDIT)
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)
        if len(self._noting) > MAX_WAITING:
            await task

    async def _note(self, sender: CommandSender, read: MemoriesRead) -> None:
        try:
            await sender.send(read)
        except DeliveryFailed as error:
            log.warning("admin_read_not_audited", by=read.by, how=read.how, reason=str(error))


def user_commands(sender: CommandSender | None, users: UserMemory) -> Commands[UserDeed, CommandResult]:
    """Commands to users' memory.

    Args:
        sender: As of `Commands`.
        users: Where their results show.
    """
    return Commands(sender, lambda command: users.stats(command.app_id, command.user_id))


def project_commands(
    sender: CommandSender | None, projects: ProjectMemories
) -> Commands[ManualProjectCommand, DeedResult]:
    """Commands to memories of projects.

    Args:
        sender: As of `Commands`.
        projects: Where their results show.
    """
    return Commands(sender, lambda command: projects.stats(command.app_id, command.project_id))


def read_only() -> Exception:
    """503 of a role that was given nothing to write with."""
    return unavailable(
        "this process only reads: send the request to the role index or api of `turntide worker`", code="read_only"
    )
