"""Whose records of a project are, in which several people say the same: by sources, and by items that came of them."""

from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.erasure import ErasureSubject
from models.wire.envelope import tag_of
from tests.support.lake_records import example
from tests.unit.test_erasure import OTHERS, SESSION, SUBJECTS, USER

ITEM: Any = example(events.ProjectItemChanged)
HERS = ITEM.memory.sources[-1]
"""Said in the session that is erased."""
THEIRS = ITEM.memory.sources[0]
STRANGER = {"session_id": "a stranger's", "user_id": "a stranger"}


def memory(*sources: events.MemorySource, **fields: object) -> events.ProjectItemChanged:
    """The example's memory, as said in these conversations."""
    first = {"session_id": sources[0].conversation_id, "user_id": sources[0].user_id} if sources else STRANGER
    item: events.ProjectItemChanged = replace(
        ITEM, **first, memory=replace(ITEM.memory, sources=[*sources], **{"relationships": [], **fields})
    )
    return item


MINE, SHARED, OTHERS_OWN = memory(HERS), memory(HERS, THEIRS), memory(THEIRS)
BY_HAND = replace(HERS, conversation_id="", user_id="", by="hand")
GONE = replace(MINE, active=False, memory=None, cause="erased", session_id="", user_id="")


def of_kind(kind: str, item: Any) -> events.ProjectItemChanged:
    """An item of another kind of which only itself says whose it is."""
    there: events.ProjectItemChanged = replace(
        ITEM, **STRANGER, memory=None, kind=kind, item_id=item.id, **{kind: item}
    )
    return there


IMPORT: Any = example(events.ProjectImported)


@pytest.mark.parametrize(
    "event",
    [
        memory(THEIRS, HERS),
        of_kind("episode", IMPORT.episodes[0]),
        of_kind("chunk", IMPORT.chunks[0]),
        of_kind("conversation", IMPORT.conversations[0]),
        of_kind("pending", IMPORT.pending[0]),
        replace(IMPORT, memories=[], episodes=[], chunks=[], conversations=[], messages=[]),
        replace(IMPORT, memories=[], episodes=[], chunks=[], conversations=[], pending=[]),
        replace(example(events.ProjectAudited), action=tag_of(events.ConversationStatusSet), item_id=SESSION),
    ],
    ids=lambda event: event.kind if isinstance(event, events.ProjectItemChanged) else type(event).__name__,
)
def test_sessions_that_an_item_names(event: Struct) -> None:
    """Beside the one in which it was said first."""
    assert SUBJECTS["session"].concerns(event)
    assert not OTHERS["session"].concerns(event)


@pytest.mark.parametrize(
    "event",
    [
        memory(THEIRS, replace(HERS, conversation_id="unknown")),
        of_kind("episode", replace(IMPORT.episodes[0], conversation_id="unknown")),
        of_kind("pending", replace(IMPORT.pending[0], source=replace(HERS, conversation_id="unknown"))),
    ],
    ids=["memory", "episode", "pending"],
)
def test_users_that_an_item_names(event: Struct) -> None:
    """An import brings what was said in conversations that nothing else tells of."""
    assert SUBJECTS["user"].concerns(event)
    assert [] == [name for name, subject in OTHERS.items() if subject.concerns(event)]


def test_a_role_is_nobody() -> None:
    """Episodes say that an assistant took part, which is not the user who calls himself so."""
    episode = of_kind("episode", replace(IMPORT.episodes[0], participants=[USER, "assistant"]))

    assert not ErasureSubject("user", ITEM.app_id, "assistant").concerns(episode)


ID = MINE.item_id
TIED = [
    GONE,
    memory(THEIRS, relationships=ITEM.memory.relationships[:1], closed_by=""),
    memory(THEIRS, closed_by=ID),
    example(events.MemoriesAccessed),
    replace(example(events.ProjectMemoryEdited), memory_id=ID),
    replace(example(events.ProjectMemoryDeleted), memory_id=ID),
    replace(example(events.PendingFactDecided), pending_id=ID),
    replace(example(events.RelationshipSet), source_id="a-0"),
    replace(example(events.RelationshipSet), target_id="a-0"),
    replace(example(events.ProjectAudited), item_id=ID),
    replace(example(events.ProjectConsolidated), archived_ids=["a-0", ID]),
    replace(example(events.ProjectConsolidated), merged=[["a-0", ID]]),
]


@pytest.mark.parametrize("tied", TIED, ids=lambda event: type(event).__name__)
def test_what_is_tied_to_an_item(tied: Any) -> None:
    """It tells of what only the subject said, by its id; in another project the id is another's."""
    cause = MINE
    if isinstance(tied, events.RelationshipSet):
        cause = replace(MINE, item_id=tied.source_id if tied.target_id == "a-0" else tied.target_id)
    if isinstance(tied, events.ProjectItemChanged) and tied.memory is not None and tied.memory.relationships:
        cause = replace(MINE, item_id=tied.memory.relationships[0].target_id)
    subject = SUBJECTS["session"]

    assert not subject.concerns(tied)
    assert subject.follow([cause]).concerns(tied)
    assert not subject.follow([cause]).concerns(replace(tied, project_id="another"))
    assert not OTHERS["session"].follow([cause]).concerns(tied)


@pytest.mark.parametrize(
    "said",
    [[SHARED], [MINE, SHARED], [SHARED, replace(MINE, active=False, memory=None)], [memory(BY_HAND, HERS)]],
    ids=["others too", "others later", "gone", "by hand"],
)
def test_what_others_said_too_ties_nothing(said: list[Struct]) -> None:
    """An edit of it is theirs; the records that name the session go all the same, and are told anew without it."""
    subject = SUBJECTS["session"].follow(said)

    assert [True] * len(said) == [subject.concerns(event) for event in said]
    assert not subject.concerns(replace(example(events.ProjectMemoryEdited), memory_id=ID))
    assert not subject.concerns(OTHERS_OWN)


def test_an_item_of_others_is_not_tied_by_its_own_id() -> None:
    """Who looks between the fold and the sweep knows the id from before; what stands there now is others'."""
    assert not SUBJECTS["session"].follow([MINE]).concerns(OTHERS_OWN)
