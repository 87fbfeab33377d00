"""`turntide lab bench project`: figures of project memory beside their limits; its fold and view in this process."""

import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import mean
from time import process_time

from jobs.demo.conversations import load_project_conversation
from jobs.lab.bench.folds import CommandLog, about
from jobs.lab.bench.measuring import BenchFailed, Figures, say, times
from models.events import (
    ConsolidationAsked,
    MemoryType,
    Position,
    ProjectChanged,
    ProjectConsolidated,
    ProjectEvent,
    ProjectItemChanged,
    ProjectMemoryAdded,
    ProjectMemoryEdited,
    ProjectOutput,
    ProjectTurnAdded,
    ProjectWorkDue,
    Role,
)
from models.events.topics import TURNS
from models.policy import Policy
from models.project.view import ProjectView
from models.retrieval.relevance import RetrievalQuery
from streams.settings import load_settings
from streams.wiring import policy_of

APP, FILLED = "bench", "filled"
_BEGINS = datetime(2026, 3, 1, 9, tzinfo=UTC)
_BETWEEN = timedelta(seconds=1)
"""Between two commands: a project is filled and spoken into within a day, before its first consolidation is due."""
_AWAY = timedelta(days=40)
"""Before the consolidation: every decay factor has changed, and what is not important may be archived."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FEWEST_CHARS = 24
_TENTH = 10
_WARM_UP_LOT = 1_000_000
QUICK = {"memories": 1_000, "asked": 200, "spoken_turns": ((250, 2),)}


def measure(
    *, memories: int = 10_000, asked: int = 2_000, spoken_turns: Sequence[tuple[int, int]] = ((250, 10), (2_500, 2))
) -> Figures:
    """Measure everything, in this process.

    Args:
        memories: Of the filled project.
        asked: Questions of each kind.
        spoken_turns: Lengths of conversations and how many of each, in projects of their own; the shortest first.
    """
    policy, talks, means = policy_of(load_settings()), list[Figures](), list[float]()
    spoken(Log(policy), "warm-up", spoken_turns[0][0], lot=_WARM_UP_LOT)
    for turns, count in spoken_turns:
        say(f"{count} conversations of {turns:,} turns")
        runs = [spoken(Log(policy), "empty", turns, lot=turns * n) for n in range(count)]
        talks.append(talk_of(f"{turns:,} turns", runs))
        means.append(mean(ms for taken, _ in runs for ms in taken))
    say(f"a project of {memories:,} memories")
    log, view, fill_ms = filled(policy, memories)
    turns, _ = spoken_turns[0]
    run = spoken(log, FILLED, turns, lot=_WARM_UP_LOT + 1)
    read(view, run[1])
    talks.append(talk_of(f"{turns:,} turns into {memories:,} memories", [run]))
    say(f"asking {asked:,} times each")
    retrieved(view, asked // 10, changed_by=log)
    reading = [
        times("retrieval", retrieved(view, asked)),
        times("retrieval after a change", retrieved(view, asked, changed_by=log)),
        times("retrieval by what was known at a time", retrieved(view, asked, known_by=log.now)),
    ]
    say("consolidating")
    return {
        "memories": memories,
        "reading": reading,
        "consolidation": consolidated(log),
        "talks": talks,
        "ratio_full_project": mean(run[0]) / means[0],
        "fill_ms": fill_ms,
    }


def talk_of(what: str, runs: Sequence[tuple[Sequence[float], Sequence[ProjectOutput]]]) -> Figures:
    """Figures of conversations of one length: of each, milliseconds by turn and what came of it."""
    turns = len(runs[0][0])
    tenth = turns // _TENTH
    first = mean(ms for taken, _ in runs for ms in taken[:tenth])
    last = mean(ms for taken, _ in runs for ms in taken[turns - tenth :])
    stats = next(output for output in reversed(runs[-1][1]) if isinstance(output, ProjectChanged))
    return {
        **times(what, [ms for taken, _ in runs for ms in taken]),
        "turns": turns,
        "ratio_last_tenth": last / first,
        "chunks": stats.chunks,
        "memories": stats.memories,
    }


class Log(CommandLog):
    """Commands of projects, one every second."""

    now = _BEGINS

    def add(self, event: ProjectEvent) -> tuple[float, list[ProjectOutput]]:
        """Milliseconds of folding an event, and its outputs."""
        self.now += _BETWEEN
        taken_ms, outputs = self.put(event, self.now)
        return taken_ms, [output for output in outputs if isinstance(output, ProjectOutput)]


def filled(policy: Policy, memories: int) -> tuple[Log, ProjectView, float]:
    """A project with so many memories, added by hand, a reader's view of it, and milliseconds that each took."""
    log, view, taken_ms = Log(policy), ProjectView(APP, FILLED, policy.projects), 0.0
    for n, content in enumerate(_contents(memories)):
        kind = list(MemoryType)[n % len(MemoryType)]
        added = ProjectMemoryAdded(
            app_id=APP, project_id=FILLED, timestamp=log.now, memory_type=kind, content=content, request_id=str(n)
        )
        ms, outputs = log.add(added)
        read(view, outputs)
        taken_ms += ms
    if len(view.memories) != memories:
        raise BenchFailed(f"{len(view.memories)} memories where {memories} were added")
    return log, view, taken_ms / memories


def read(view: ProjectView, outputs: Sequence[ProjectOutput]) -> None:
    """Let a reader hear of it."""
    for output in outputs:
        if isinstance(output, ProjectItemChanged):
            view.apply(output)


def consolidated(log: Log) -> Figures:
    """Ask the filled project for a consolidation after a long time, and go on until it is done."""
    log.now += _AWAY
    event: ProjectEvent = ConsolidationAsked(app_id=APP, project_id=FILLED, timestamp=log.now, request_id="go")
    taken_ms, done = list[float](), list[ProjectConsolidated]()
    while not done:
        ms, outputs = log.add(event)
        taken_ms.append(ms)
        done = [output for output in outputs if isinstance(output, ProjectConsolidated)]
        event = ProjectWorkDue(app_id=APP, project_id=FILLED, timestamp=log.now)
    return {
        "looked_at": done[0].memories_looked_at,
        "archived": done[0].memories_archived,
        "events": len(taken_ms),
        "ms_per_100": 100 * sum(taken_ms) / done[0].memories_looked_at,
        "longest_ms": max(taken_ms),
    }


def spoken(log: Log, project_id: str, turns: int, *, lot: int = 0) -> tuple[list[float], list[ProjectOutput]]:
    """Milliseconds of each turn of a conversation into a project, and all that came of it.

    The demo's conversation of a project, over and over, each time about something else, from a lot on.
    """
    taken_ms, outputs = list[float](), list[ProjectOutput]()
    for n, (role, content) in enumerate(_turns(turns, lot)):
        turn = ProjectTurnAdded(
            id=f"{project_id}/{n}",
            session_id=f"{project_id}-talk",
            user_id="bench",
            app_id=APP,
            project_id=project_id,
            timestamp=log.now,
            source=Position(TURNS.name, 0, n),
            turn=n,
            role=role,
            content=content,
        )
        ms, made = log.add(turn)
        taken_ms.append(ms)
        outputs += made
    return taken_ms, outputs


def retrieved(
    view: ProjectView, asked: int, *, changed_by: Log | None = None, known_by: datetime | None = None
) -> list[float]:
    """CPU milliseconds of each question to the view: a few words of something that is known.

    With `changed_by`, a memory is edited before each question, so that the index has to follow; with `known_by` each
    asks by what was known at some time before it.
    """
    rng, taken_ms = random.Random(0), list[float]()  # noqa: S311 - repeatable, not secret
    kept, texts = list(view.memories), _contents(len(view.memories))
    for n in range(asked):
        if changed_by is not None:
            edited = ProjectMemoryEdited(
                app_id=APP,
                project_id=FILLED,
                timestamp=changed_by.now,
                memory_id=rng.choice(kept),
                content=f"{rng.choice(texts)} {n}",
                request_id=f"edit-{view.revision}",
            )
            read(view, changed_by.add(edited)[1])
        words = rng.choice(texts).split()
        then = None if known_by is None else _BEGINS + rng.random() * (known_by - _BEGINS)
        query = RetrievalQuery(text=" ".join(rng.sample(words, min(6, len(words)))), known_at=then)
        began_s = process_time()
        view.retrieve(query, _BEGINS + _AWAY)
        taken_ms.append((process_time() - began_s) * 1000)
    return taken_ms


def _contents(count: int) -> list[str]:
    """Sentences of the demo's conversation of a project, two halves of different ones together, none twice."""
    said = [part for _, text in _turns(250) for part in _SENTENCE.split(text) if len(part) >= _FEWEST_CHARS]
    halves = [sentence.rstrip(".!?").split() for sentence in said]
    return [
        " ".join([*halves[n % len(halves)], "as", *halves[(7 * n + n // len(halves)) % len(halves)], f"lot {n}."])
        for n in range(count)
    ]


def _turns(count: int, lot: int = 0) -> Iterator[tuple[Role, str]]:
    """Roles and texts; each time round the conversation is about another lot, the first as it is written."""
    turns = load_project_conversation().turns
    for n in range(count):
        ((role, content),) = turns[n % len(turns)].items()
        number = lot + n // len(turns)
        yield Role(role), about(content, f"of lot {number}") if number else content
