"""Reads what the roles left behind, once they have caught up, and compares it with replays of the logs.

Roles that never ran here are not compared, but for sessions: everything else rests on it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from time import monotonic

from msgspec import Struct

from jobs.replay.alert_rules import ruled_sessions, ruled_users
from jobs.replay.archive_read import read_archive
from jobs.replay.index_read import NobodyToAsk, read_index, read_projects, read_users
from jobs.shared.log_read import Ends, Extent, State, changelog_reader, log_extent, names_since, read_outputs
from jobs.shared.role_groups import role_groups
from models.errors import ConfigurationError, StoreUnavailable
from models.events import SessionName
from models.events.topics import COMMANDS, TURNS, Topic
from models.partition.log_fold import folded_offset
from streams.masking.records import RecordMasker, masker_of
from streams.oracle.comparison import (
    USERS_STATE,
    Comparison,
    DifferenceKind,
    TopicOutputs,
    compare_outputs,
    compare_state,
)
from streams.oracle.followers import (
    ANSWERS,
    INDEX,
    INDEX_PROJECTS,
    INDEX_USERS,
    compare_answers,
    compare_archive,
    compare_index,
    compare_projects_index,
    compare_tiers,
    compare_users_index,
    items_of,
    states_of,
    unanswered,
)
from streams.oracle.replay import SESSIONS, USERS, Folded, Replayed, feed_log
from streams.settings import Settings
from streams.wiring import policy_of, stream_embedder_of

__all__ = ["Settled", "State", "settle"]

_POLL_S = 0.5
_ARCHIVE = "archive"
ENRICH = "enrich"
"""The role that answers what the memory role asks."""
_NOTHING = Replayed({}, {}, 0, set())


class Settled(Struct):
    """The logs' oracles, what the roles left, and how they differ.

    Attributes:
        oracle: Of sessions.
        state: Of the sessions role.
        users: The oracle of users; empty where the memory role never ran.
        outputs: What stands on each output topic.
        comparison: The differences.
    """

    oracle: Replayed
    state: State
    users: Replayed
    outputs: dict[str, TopicOutputs]
    comparison: Comparison


async def settle(
    settings: Settings,
    *,
    within_s: float,
    index_url: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Settled:
    """Wait until the roles have caught up with the logs, or the time is over, and compare.

    Args:
        settings: Which cluster, prefix, policy and archive.
        within_s: How long state, archive and index may take.
        index_url: Where the index role answers; none: the settings' port.
        progress: Told the records of `turns.v1` replayed.

    Raises:
        ConfigurationError: A topic is missing, or retention has removed the head of a log.
        StoreUnavailable: Kafka does not answer.
    """
    groups = await role_groups(settings, [USERS.role, ENRICH])
    changelogs = {each.role: await changelog_reader(settings, each) for each in (SESSIONS, USERS)}
    ran = {role for role, group in groups.items() if group.known}
    settling = _Settling(settings, ran, changelogs, deadline_s=monotonic() + within_s, index_url=index_url)
    while True:
        if (settled := await settling.attempt(progress)) is not None:
            return settled
        await asyncio.sleep(_POLL_S)


class _Settling:
    """Replays that go on where they were, and readers of the changelogs, for one attempt after another."""

    def __init__(
        self,
        settings: Settings,
        ran: Collection[str],
        changelogs: Mapping[str, Callable[[], Awaitable[State]]],
        *,
        deadline_s: float,
        index_url: str | None,
    ) -> None:
        self._settings = settings
        self._policy = policy_of(settings)
        self._ran = ran
        self._changelogs = changelogs
        self._deadline_s = deadline_s
        self._index_url = index_url
        self._sessions = ruled_sessions(settings, stream_embedder_of(settings))
        self._users = ruled_users(settings)

    def too_late(self) -> bool:
        """Whether the time is over."""
        return monotonic() > self._deadline_s

    async def attempt(self, progress: Callable[[int], None]) -> Settled | None:
        """Compare what came of the logs up to offsets that are taken once; None to begin anew with later ones.

        A role may go on meanwhile: what it makes of later input is left out. A state that was caught amid the steps of
        one record, or an index that is further on already, differs; with a later moment, or with none, it does not.
        """
        turns = _ends(await self._whole_log(TURNS))
        oracle = await feed_log(self._settings, self._sessions, before=turns, progress=progress)
        state = await self._caught_up(SESSIONS, oracle)
        turns = _reached(turns, state)
        oracle = await feed_log(self._settings, self._sessions, before=turns, progress=progress)
        users, users_state, commands = await self._users_settled()
        ends = {TURNS: turns, COMMANDS: commands}
        outputs = await read_outputs(self._settings, ends)
        result = compare_state(state, oracle)
        result.include(compare_outputs(outputs, oracle, users))
        result.include(self._users_state_compared(users, users_state))
        followers = await self._followers_compared(oracle, users, ends)
        if result.differences or followers.differences:
            grown: dict[str, int] = {}
            since = await self._gone_on(ends)
            if since and not self.too_late():
                return None
            for topic, places in since.items():
                grown |= await names_since(self._settings, topic, places)
            followers = _unsettled(followers, grown) if grown else followers
        result.include(followers)
        return Settled(oracle, state, users, outputs, result)

    async def _gone_on(self, ends: Mapping[Topic, Ends]) -> dict[Topic, Ends]:
        """Of the logs that went on beyond these offsets the partitions that did, each with its offset."""
        found: dict[Topic, Ends] = {}
        for topic, each in ends.items():
            extent = await log_extent(self._settings, topic)
            if since := {
                number: each.get(number, 0) for number, (_, end) in extent.items() if end > each.get(number, 0)
            }:
                found[topic] = since
        return found

    async def _whole_log(self, topic: Topic) -> Extent:
        extent = await log_extent(self._settings, topic)
        cut = [number for number, (start, _) in extent.items() if start > 0]
        if cut:
            raise ConfigurationError(
                f"{topic.full_name(self._settings.topic_prefix)}: retention or an erasure has removed the beginning of "
                f"partitions {cut}, but a comparison needs the whole log. "
                "`turntide ops replay` without --compare folds the rest."
            )
        return extent

    async def _caught_up(self, folded: Folded, oracle: Replayed) -> State:
        """The role's state, once it has folded what the oracle has; as it is when the time is over."""
        wanted = {number: folded_offset(entities) for number, entities in oracle.entities.items()}
        while True:
            state = await self._changelogs[folded.role]()
            stands = {number: folded_offset(state.get(number, {})) for number in wanted}
            if all(stands[n] >= offset for n, offset in wanted.items()) or self.too_late():
                return state
            await asyncio.sleep(_POLL_S)

    # --- users

    async def _users_settled(self) -> tuple[Replayed, State, Ends]:
        """Oracle and state of users, and of which commands: with the answers to all that was asked."""
        while True:
            commands = _ends(await self._whole_log(COMMANDS))
            if USERS.role not in self._ran:
                return _NOTHING, {}, commands
            oracle = await feed_log(self._settings, self._users, before=commands)
            state = await self._caught_up(USERS, oracle)
            commands = _reached(commands, state)
            oracle = await feed_log(self._settings, self._users, before=commands)
            if ENRICH not in self._ran or not unanswered(oracle, self._policy) or self.too_late():
                return oracle, state, commands
            await asyncio.sleep(_POLL_S)

    def _users_state_compared(self, users: Replayed, state: State) -> Comparison:
        if USERS.role not in self._ran:
            return Comparison(not_checked={USERS_STATE: f"the role {USERS.role} has never run here"})
        return compare_state(state, users, where=USERS_STATE)

    def _users_compared(self, oracle: Replayed, users: Replayed) -> Comparison:
        if USERS.role not in self._ran:
            return Comparison()
        result = compare_tiers(oracle, users, self._policy)
        if ENRICH in self._ran:
            result.include(compare_answers(users, self._policy))
        else:
            result.not_checked[ANSWERS] = f"the role {ENRICH} has never run here"
        return result

    # --- archive and index, which follow in their own time

    async def _followers_compared(self, oracle: Replayed, users: Replayed, ends: Mapping[Topic, Ends]) -> Comparison:
        async def given_up() -> bool:
            return self.too_late() or bool(await self._gone_on(ends))

        compared: dict[str, Callable[[], Awaitable[Comparison]]] = {
            _ARCHIVE: lambda: asyncio.to_thread(_archive_compared, self._settings, ends, oracle, users),
            INDEX: lambda: self._index_compared(oracle),
        }
        if USERS.role in self._ran:
            compared[INDEX_USERS] = lambda: self._users_index_compared(users)
            compared[INDEX_PROJECTS] = lambda: self._projects_index_compared(users)
        result = self._users_compared(oracle, users)
        for where, compare in compared.items():
            result.include(await _until_equal(where, compare, given_up))
        return result

    async def _index_compared(self, oracle: Replayed) -> Comparison:
        sessions = {SessionName(app_id, session_id) for app_id, session_id, _ in oracle.turn_keys}
        found = await read_index(self._settings, sessions, index_url=self._index_url)
        return compare_index(found, oracle, keep_turns=self._policy.memory.stored_vectors)

    async def _users_index_compared(self, users: Replayed) -> Comparison:
        known = {user for user, _ in states_of(users, self._policy)}
        found = await read_users(self._settings, known, index_url=self._index_url)
        return compare_users_index(found, users, self._policy, mask=self._mask())

    async def _projects_index_compared(self, users: Replayed) -> Comparison:
        found = await read_projects(self._settings, items_of(users).keys(), index_url=self._index_url)
        return compare_projects_index(found, users, mask=self._mask())

    def _mask(self) -> RecordMasker | None:
        masking = self._policy.masking
        return masker_of(masking, personal=masking.at_index)


async def _until_equal(
    where: str, compared: Callable[[], Awaitable[Comparison]], given_up: Callable[[], Awaitable[bool]]
) -> Comparison:
    """Compare until nothing differs or it is given up; a store that does not answer counts as a difference."""
    while True:
        asked_s = monotonic()
        try:
            result = await compared()
        except NobodyToAsk as error:
            return Comparison(not_checked={where: str(error)})
        except StoreUnavailable as error:
            result = Comparison()
            result.add(where, DifferenceKind.MISSING, [str(error)])
        if not result.differences or await given_up():
            return result
        await asyncio.sleep(max(_POLL_S, monotonic() - asked_s))  # a large archive is read half of the time at most


def _archive_compared(settings: Settings, ends: Mapping[Topic, Ends], oracle: Replayed, users: Replayed) -> Comparison:
    try:
        return compare_archive(read_archive(settings, ends), oracle, users)
    except ConfigurationError as nothing_there:
        return Comparison(not_checked={_ARCHIVE: str(nothing_there)})


def _ends(extent: Extent) -> Ends:
    return {number: end for number, (_, end) in extent.items()}


def _reached(ends: Ends, state: State) -> Ends:
    """The ends, or where a state stands that went on beyond them."""
    return {number: max(end, folded_offset(state.get(number, {})) + 1) for number, end in ends.items()}


def _unsettled(followers: Comparison, grown: Mapping[str, int]) -> Comparison:
    """Followers that differ while the logs go on are of another moment: neither right nor wrong."""
    came = ", ".join(f"{records} {name}" for name, records in sorted(grown.items()))
    why = f"it was read later than the logs, which grew by {came}: repeat while they do not grow"
    differing = {name.rpartition(" ")[0] for name in followers.counts}
    return Comparison(checked=followers.checked, not_checked=followers.not_checked | dict.fromkeys(differing, why))
