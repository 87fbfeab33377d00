"""Drives one project through the fold, with places in both logs and clocks that the test moves."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from models import events
from models.entities import PROJECT
from models.policy import Policy
from models.policy.project import ProjectPolicy
from models.project.mentions import item_of
from models.project.state import ProjectState
from tests.support.entity_driver import Entities, MemoryDriver, keep_entities


class Project(MemoryDriver):
    """One project: commands get the next offset and a second each, turns the next place of `turns.v1`.

    Attributes:
        told: Kind and slot → the latest item event, as a reader of the compacted topic has them.
    """

    stored: Entities  # type: ignore[assignment] # a project is stored in several entities

    def __init__(self, policy: Policy | None = None, *, stores: bool = False, **projects: object) -> None:
        policy = policy or Policy(projects=msgspec.convert(projects, ProjectPolicy))
        key = events.project_key("shop", "web")
        super().__init__(PROJECT, events.ProjectChanged, policy, key, app_id="shop", project_id="web")
        self.stores = stores
        self.told: dict[tuple[str, int], events.ProjectItemChanged] = {}
        self._turns: dict[str, int] = {}
        self._place = 0

    def put(self, event: events.ProjectEvent | events.ProjectErasure) -> list[events.ProjectOutput]:
        """Fold one event; gives its outputs."""
        self.now += timedelta(seconds=1)
        outputs = super().put(event)
        if isinstance(event, events.ProjectErased):
            self.told.clear()  # whoever erases takes them from the topic
        for output in outputs:
            if isinstance(output, events.ProjectItemChanged):
                self.told[output.kind, output.slot] = output
        if self.stores:
            self.store()
        return outputs

    def say(self, content: str, session: str = "s0", **more: Any) -> list[events.ProjectOutput]:
        """The next turn of a session; users and assistants take turns unless `role` is given."""
        return self.put(self.turn(content, session, **more))

    def turn(self, content: str, session: str = "s0", **more: Any) -> events.ProjectTurnAdded:
        """The same, not folded."""
        number = self._turns.get(session, 0)
        self._turns[session] = number + 1
        fields: dict[str, Any] = {
            "turn": number,
            "role": events.Role.USER if number % 2 == 0 else events.Role.ASSISTANT,
            "user_id": "anna",
            "timestamp": self.now,
        }
        return events.ProjectTurnAdded(**self._sent("turn", session), content=content, **(fields | more))

    def end(self, session: str = "s0", status: str = "ended") -> list[events.ProjectOutput]:
        """A session ends, or falls silent."""
        return self.put(self.ending(session, status))

    def ending(self, session: str, status: str) -> events.ProjectConversationEnded:
        """The same, not folded."""
        fields: dict[str, Any] = {"user_id": "anna", "timestamp": self.now, "reason": "done", "last_turn": 9}
        return msgspec.convert(
            self._sent("end", session) | fields | {"status": status}, events.ProjectConversationEnded
        )

    def _sent(self, name: str, session: str) -> dict[str, Any]:
        self._place += 1
        source = events.Position("turns", 0, self._place)
        return {"id": f"{name}-{self._place}", "session_id": session, "source": source, **self.ids}

    def do(self, kind: type[Any], **fields: Any) -> list[events.ProjectOutput]:
        """A command by hand, or another event of the project."""
        more: dict[str, Any] = {"timestamp": self.now} | self.ids
        if "request_id" in kind.__struct_fields__:
            more |= {"request_id": f"r{self.offset}"}
        return self.put(msgspec.convert(more | fields, kind))

    def store(self) -> None:
        """Write changed parts, forget the working copy and read it back."""
        keep_entities(self.stored, self.state.changed())
        self.state = self.load()

    def load(self) -> ProjectState:
        """The state as it is stored."""
        return ProjectState(self.key, self.stored.get, self.policy)

    def items(self, kind: str) -> dict[str, Any]:
        """Id → item, as a reader of the compacted topic has them."""
        found: dict[str, events.ProjectItem | None] = {
            event.item_id: item_of(event) for event in self.told.values() if event.kind == kind and event.active
        }
        return found

    def memory(self, content: str) -> events.ProjectMemory:
        """The memory that says so."""
        (found,) = [memory for memory in self.items("memory").values() if memory.content == content]
        assert isinstance(found, events.ProjectMemory)
        return found

    @property
    def result(self) -> tuple[str, str, int]:
        """Outcome, item and count of the last command by hand."""
        last = self.stats.results[-1]
        return last.outcome, last.item_id, last.count

    @property
    def consolidations(self) -> list[events.ProjectConsolidated]:
        """Every one that ended."""
        return self.of(events.ProjectConsolidated)


def causes(outputs: Sequence[events.ProjectOutput], kind: str = "memory") -> list[tuple[str, str]]:
    """What became of which item, in order."""
    return [
        (output.item_id, output.cause)
        for output in outputs
        if isinstance(output, events.ProjectItemChanged) and output.kind == kind
    ]
