"""Common work of the steps of one event of a project."""

from __future__ import annotations

from models.policy import Policy
from models.project.episodes import Episodes
from models.project.learning import Learning
from models.project.outputs import Emission
from models.project.state import ProjectState
from models.project.talk import Talk


class Work:
    """A project, while one event is folded.

    Args:
        state: The project.
        emission: Hears of what changes.
        policy: The rules.

    Attributes:
        state: The project.
        head: Its head.
        emission: Hears of what changes.
        policy: The rules of projects.
        talk: Its conversations.
        learning: Its memories and pending facts.
        episodes: Its episodes.
    """

    def __init__(self, state: ProjectState, emission: Emission, policy: Policy) -> None:
        self.state = state
        self.head = state.head
        self.emission = emission
        self.policy = policy.projects
        self.talk = Talk(state, emission, policy)
        self.learning = Learning(state, emission, policy)
        self.episodes = Episodes(state, emission, self.talk, policy)
