"""Project memory, over all conversations of one project: start reading here.

`fold` applies one event of `commands.v1` to a project and returns the outputs. Stream and replay use the same function;
the clock of a project is the broker's time of the record.

- **Short term**: the last messages of each conversation verbatim, older ones as chunks (`project/talk.py`).
- **Long term**: a statement becomes a memory if its confidence is high enough, else a pending fact (`project/work.py`);
  memories strengthen, supersede and contradict each other (`project/long_term.py`).
- **Episodes**: key moments of conversations (`project/narrative.py`).
- **By hand**: people add, edit, relate, delete and import (`project/commands.py`); each command is audited and
  answered, also if it changes nothing.
- **Consolidation**: by the log's clock, one short step with each event (`project/consolidation.py`).
- **Erasure**: data that only the erased sessions stated is removed, one write a step (`project/work.py`).

`project/state.py` defines the state, `project/outputs.py` the outputs.
"""

from collections import Counter
from datetime import datetime
from typing import Final

from models import events
from models.events.ids import named_id
from models.events.topics import COMMANDS
from models.policy import Policy
from models.project.commands import CommandFold
from models.project.outputs import ProjectEmission
from models.project.state import CHUNK, ProjectState
from models.project.view import ProjectView
from models.state.entity import Folding, is_late
from models.state.seen import is_new


def fold(
    state: ProjectState,
    event: events.ProjectEvent | events.ProjectErasure,
    position: events.Position,
    now: datetime,
    policy: Policy,
) -> list[events.ProjectOutput]:
    """Fold one event into a project with all its steps (`fold_step`); returns the outputs in order."""
    outputs, done = [], False
    while not done:
        step, done = fold_step(state, event, position, now, policy)
        outputs += step
    return outputs


def fold_step(
    state: ProjectState,
    event: events.ProjectEvent | events.ProjectErasure,
    position: events.Position,
    now: datetime,
    policy: Policy,
) -> tuple[list[events.ProjectOutput], bool]:
    """Fold one event as far as one write of the changelog allows.

    Most events need one step. Erasures and accesses may need more: each further step gets the same event and the
    current state. So a step can be stored before the next one, and after a crash the repeated event continues.

    Args:
        state: The project, possibly a new one; changed in place.
        event: The event.
        position: Its position in `commands.v1`.
        now: The broker's time of its record.
        policy: The rules.

    Returns:
        The outputs in order; if anything changed, the project's stats are last. And whether the event is finished.
    """
    if isinstance(event, events.ProjectErased):
        return [], not state.known or state.erase_step()
    if not state.known and not _begins(event):
        return _unknown(ProjectEmission(state, event, position, now, policy), event), True
    state.begin_event()
    return _ProjectStep(state, event, position, now, policy).take(event)


FOLDING: Final = Folding(
    ProjectState,
    lambda state, command, policy: fold_step(state, command.event, command.position, command.appended_at, policy),
    lambda due, now: events.ProjectWorkDue(app_id=due.app_id, project_id=due.name, timestamp=now),
)


class FoldedProject:
    """One project folded in this process, without a log; its view is current after each event.

    Attributes:
        view: View for readers; replaced when the project is erased.
        offset: Offset of the last event.
    """

    def __init__(self, app_id: str, project_id: str, policy: Policy) -> None:
        self.view = ProjectView(app_id, project_id, policy.projects)
        self.offset = -1
        self._policy = policy
        self._state = ProjectState(events.project_key(app_id, project_id), lambda _entity: None, policy)

    def take(self, event: events.ProjectEvent | events.ProjectErasure, now: datetime) -> list[events.ProjectOutput]:
        """Fold an event; `now` stands in for the broker's time of its record."""
        self.offset += 1
        self._state.begin_event()
        outputs = fold(self._state, event, events.Position(COMMANDS.name, 0, self.offset), now, self._policy)
        if isinstance(event, events.ProjectErased):
            # A new life's items come before its standing, by which a view would tell it from the one before.
            self.view = ProjectView(self.view.app_id, self.view.project_id, self._policy.projects)
        for output in outputs:
            if isinstance(output, events.ProjectItemChanged | events.ProjectChanged):
                self.view.apply(output)
        return outputs


def _begins(event: events.ProjectEvent | events.ProjectErasure) -> bool:
    """Whether an event creates a project; else an erased name could come back."""
    if isinstance(event, events.ConversationStatusSet):
        return event.status == "active"
    return isinstance(event, events.ProjectTurnAdded | events.ProjectMemoryAdded | events.ProjectImported)


def _unknown(
    emission: ProjectEmission, event: events.ProjectEvent | events.ProjectErasure
) -> list[events.ProjectOutput]:
    """Audit a command to an unknown project; nothing else is written."""
    if isinstance(event, events.ManualProjectCommand):
        result = events.DeedResult(request_id=event.request_id, outcome="not_found")
        emission.audited(str(event.__struct_config__.tag), event.by, result)
    return emission.finish()


class _ProjectStep(CommandFold):
    """Application of one event to a project."""

    def take(self, event: events.ProjectEvent | events.ProjectSessionErased) -> tuple[list[events.ProjectOutput], bool]:
        """Apply the event, then a step of a due consolidation; returns outputs, and whether the event is finished."""
        done = True
        of_session = events.ProjectTurnAdded | events.ProjectConversationEnded
        if isinstance(event, of_session) and not is_new(self._head.seen, event.source, event.id):
            return [], True
        match event:
            case events.ProjectTurnAdded():
                self._turn(event)
            case events.ProjectConversationEnded():
                self._ended(event)
            case events.StatementsRead() | events.ProjectSummarised():
                self._answered(event)
            case events.MemoriesAccessed():
                done = self._accessed(event)
            case events.ProjectSessionErased():
                self._head.erased_offset = self._position.offset
                done = self.erase_step(frozenset(event.session_ids))
            case events.ConsolidationAsked():
                self.consolidation_asked(event)
            case events.ManualProjectCommand():
                self.take_command(event)
        self.unlink_dropped()
        self._begin_life(event)
        if done:
            self.consolidate()
        return self.finish(), done

    def _begin_life(self, event: events.ProjectEvent | events.ProjectSessionErased) -> None:
        """Create the project at its first stored item; a name under which everything was refused stays unknown."""
        if self._state.known or not self._head.items:
            return
        head, place = self._state.head, self._position
        head.app_id, head.project_id, head.born_at = event.app_id, event.project_id, self.now
        head.born = named_id("project", self._state.key, place.topic, str(place.partition), str(place.offset))

    def _turn(self, turn: events.ProjectTurnAdded) -> None:
        known = self._state.conversation(turn.session_id)
        if known is not None and turn.turn in known.head.conversation.recent:
            self._changed = True  # its session was forgotten, began anew and counts from 0 again
            return
        self._head.turn_count += 1
        conversation, message, context = self.add_turn(turn)
        said = self.learn(turn, message.content, context)
        milestones = self.read_episodes(turn, message, conversation, said)
        self.name_in(conversation, said, milestones)
        self.release()

    def _answered(self, answer: events.StatementsRead | events.ProjectSummarised) -> None:
        """Apply the answer of a slower stage, if its conversation exists and no session was erased since."""
        conversation = self._state.conversation(answer.session_id)
        if conversation is None or is_late(answer, self._head.erased_offset):
            return
        if isinstance(answer, events.StatementsRead):
            self.name_in(conversation, self.learn_second(answer), [])
        elif answer.kind == CHUNK:
            self.chunk_summarised(conversation, answer)
        else:
            self.episode_summarised(answer)

    def _ended(self, ended: events.ProjectConversationEnded) -> None:
        self._changed = True
        conversation = self._state.conversation(ended.session_id)
        if conversation is None:
            return
        # What somebody ended by hand is not paused by its session's time-out.
        if not (ended.status == "paused" and conversation.head.conversation.status == "ended"):
            self.set_status(conversation, ended.status, ended.timestamp)

    def _accessed(self, accessed: events.MemoriesAccessed) -> bool:
        counts = Counter(accessed.ids)
        if not self._head.accessed:
            self.episodes_accessed(counts, accessed.timestamp)
        return self.memories_accessed(counts, accessed.timestamp)
