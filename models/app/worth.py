"""Worth of a memory: what is still of use counts before what is only recent (app memory, Memory Compaction).

| a memory that | ages |
|---|---|
| names a day that is ahead: a deadline, an appointment | not at all until that day is over |
| names a day that was ahead, and is over | from that day on, and is worth `over_worth` of what it was |
| says what lasts (`lasting_use`): a preference, ongoing work, a plan | by `lasting_half_life` |
| says what was decided or done | by `half_life` |

What a sentence is of use for stands in the table `notable`, the days that it names in the table `days`.
"""

from datetime import UTC, datetime, time, timedelta
from functools import lru_cache

from models.events.app import MemoryToKeep
from models.events.base import Role
from models.language.contradiction import as_said, sentences_of
from models.language.days import names_a_day
from models.language.notable import DONE, use_of
from models.policy.app import AppPolicy

_DAY = timedelta(days=1)


@lru_cache(maxsize=1_024)
def is_of_use(sentence: str) -> float:
    """0-1: how much what a sentence of a memory says is of use later on; 0 where nothing tells.

    >>> is_of_use("User prefers tea."), is_of_use("User bought tea."), is_of_use("It rained.")
    (0.9, 0.2, 0.0)
    """
    return use_of(as_said(sentence), Role.USER)


def worth(memory: MemoryToKeep, now: datetime, policy: AppPolicy) -> float:
    """0-1: a memory's importance, less with its age.

    Args:
        memory: What changed later than now is as if it changed now.
        now: Time of the decision.
        policy: Half-lives, and what is left of what is over.
    """
    sentences = sentences_of(memory.content)
    changed = memory.updated_at.astimezone(UTC)
    uses = {each: is_of_use(each) for each in sentences}
    ahead = (names_a_day(each, changed.date()) for each, use in uses.items() if not 0.0 < use <= DONE)
    days = [day for day in ahead if day is not None]
    importance, since, half_life = memory.importance, changed, policy.half_life
    if days:
        over = datetime.combine(max(days), time(), UTC) + _DAY
        since = max(since, min(over, now))
        if memory.created_at < over <= now:
            importance *= policy.over_worth
    elif max(uses.values(), default=0.0) >= policy.lasting_use:
        half_life = policy.lasting_half_life
    age: float = max(now - since, timedelta()) / half_life
    return float(importance * 0.5**age)
