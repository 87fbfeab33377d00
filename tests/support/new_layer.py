"""A memory layer in one file: how often each user said hello, and where.

Whoever adds a layer writes what stands here: an event, a state, a fold, and its kind.
`python -m tests.support.new_layer` is `turntide` with this layer beside the others.
"""

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Struct, field

from models.entities import REGISTRY
from models.events import Output, Role, UserErased, UserSessionErased, UserTurnAdded
from models.events.base import key_part
from models.events.fields import BEHAVIOUR, SessionIds, about
from models.events.registry import Emits, EntityKind, Index, Listed, last
from models.events.topics import COMMANDS, Cleanup, Topic
from models.policy import Policy
from models.state.entity import Emission, EntityState, Folding, StateLayout
from models.wire.arrival import Command

GREETINGS_TOPIC: Final = Topic(
    name="greetings.v1",
    purpose="How often users said hello.",
    owner="memory",
    key="greetings:<app_id>/<user_id>",
    cleanup=Cleanup.COMPACT,
    retention=None,
)
_HELLO = re.compile(r"(hello|hi|good (morning|evening))\b", re.IGNORECASE)


class GreetingsCounted(Output, frozen=True, kw_only=True, tag="greetings_counted"):
    """How often a user said hello."""

    greetings: Annotated[int, about("Turns that began so.", BEHAVIOUR)]
    sessions: Annotated[SessionIds, about("Conversations with such a turn.")]


class Head(Struct, array_like=True):
    """Greetings of one user by session, and which turns were seen."""

    version: int = 1
    app_id: str = ""
    seen: dict[int, int] = field(default_factory=dict)
    greetings: dict[str, int] = field(default_factory=dict)
    since: int = -1


class Greetings(EntityState[Head]):
    """Working copy of one user's greetings."""

    layout = StateLayout("greetings state", version=1)
    head_type = Head


def fold(state: Greetings, command: Command, _policy: Policy) -> tuple[Sequence[GreetingsCounted], bool]:
    """Count a turn that says hello; forget what was said in an erased session, or all of an erased user."""
    event, head = command.event, state.head
    match event:
        case UserTurnAdded(role=Role.USER) if _HELLO.match(event.content):
            if event.source.offset <= head.seen.get(event.source.partition, -1):
                return [], True
            head.app_id, head.seen[event.source.partition] = event.app_id, event.source.offset
            head.greetings[event.session_id] = head.greetings.get(event.session_id, 0) + 1
        case UserSessionErased() if head.greetings.pop(event.session_id, 0):
            pass
        case UserErased():
            state.erase()
            return [], True
        case _:
            return [], True
    step = Emission[GreetingsCounted](state.key, event.app_id, event.user_id, command.position, event.timestamp)
    told = step.common("greetings_counted")
    return [GreetingsCounted(greetings=sum(head.greetings.values()), sessions=[*head.greetings], **told)], True


def _key(event: Any) -> str:
    return f"greetings:{key_part(event.app_id)}/{key_part(event.user_id)}"


FOLDING: Final = Folding(Greetings, fold)
GREETINGS: Final = EntityKind(
    name="greetings",
    key=_key,
    source=COMMANDS,
    accepts=(UserTurnAdded,),
    erased_by=(UserErased, UserSessionErased),
    emits=(
        Emits(
            GreetingsCounted,
            GREETINGS_TOPIC,
            table="greetings",
            views={"greetings": last("app_id", "user_id")},
            index=Index(
                "greetings",
                erased_by=("app_id", "user_id"),
                listed=Listed("/users/{user_id:path}/greetings", "list_user_greetings", "How often a user said hello."),
            ),
        ),
    ),
    folding=f"{__name__}:FOLDING",
)

if __name__ == "__main__":
    REGISTRY.add(GREETINGS)
    if sys.argv[1] == "roles":
        from tests.support import roles_child

        roles_child.main(*sys.argv[2:])
    else:
        from jobs import cli

        cli.main()
