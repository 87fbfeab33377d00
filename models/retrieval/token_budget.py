"""Token budget of a context window, and its sections (project memory, Budget Allocation)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from models.errors import BudgetTooSmall
from models.policy.project import ContextPolicy

_PARTS: Final = 10_000
"""Shares are reckoned in whole parts: a rounded product could give a larger budget less."""


class TokenBudget(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of a context window (project memory, Token Budget Management).

    Attributes:
        total: Of the window.
        system_prompt: Reserved for the system prompt, or its length if that is more.
        working_memory: Reserved for the current turn, which the caller adds.
        retrieved_context: Share of memories in what is available.
        recent_messages: Share of recent messages.
        used: By the items of the context, the system prompt among them.
        available: For everything but the two reserves.
    """

    total: int
    system_prompt: int
    working_memory: int
    retrieved_context: int
    recent_messages: int
    used: int
    available: int


def budget_of(policy: ContextPolicy, system_tokens: int = 0) -> TokenBudget:
    """How a window is divided, with nothing in it yet.

    Raises:
        BudgetTooSmall: The total does not hold the system prompt and the reserve of the current turn.

    >>> budget = budget_of(ContextPolicy())
    >>> budget.available, budget.recent_messages, budget.retrieved_context
    (118000, 70800, 47200)
    """
    reserved = max(policy.system_tokens, system_tokens)
    available = policy.total_tokens - reserved - policy.working_tokens
    if available < 0:
        raise BudgetTooSmall(
            f"{policy.total_tokens} tokens do not hold a system prompt of {system_tokens} and the "
            f"{policy.working_tokens} reserved for the current turn: shorten the prompt or raise the budget"
        )
    recent = available * round(policy.recent_share * _PARTS) // _PARTS
    return TokenBudget(
        total=policy.total_tokens,
        system_prompt=reserved,
        working_memory=policy.working_tokens,
        retrieved_context=available - recent,
        recent_messages=recent,
        used=0,
        available=available,
    )


def scaled_to(policy: ContextPolicy, total_tokens: int) -> ContextPolicy:
    """The same policy for a window of another size: reserves keep their share of it, rounded down together.

    >>> scaled = scaled_to(ContextPolicy(), 4_000)
    >>> scaled.total_tokens, scaled.system_tokens, scaled.working_tokens
    (4000, 62, 250)
    """
    reserved = total_tokens * (policy.system_tokens + policy.working_tokens) // policy.total_tokens
    working = total_tokens * policy.working_tokens // policy.total_tokens
    return replace(policy, total_tokens=total_tokens, system_tokens=reserved - working, working_tokens=working)
