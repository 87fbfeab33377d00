"""Observation of one user turn, as the sequence signals see it."""

from msgspec import Struct

from models.text.features import Features


class Observation(Struct, frozen=True, gc=False):
    """One weighed user turn, in the order of arrival.

    Attributes:
        turn: Its number.
        risk: Its own risk by the scorer, 0-1.
        features: What it does (asks, orders, supposes, probes, rewrites rules).
        marks: What the vectors say of it: bits of `models.state.vectors.TurnMark`.
        nearness: Cosine to the user turn before it, None for the first or without vectors.
        refused: Whether the assistant refused since the user turn before it.
    """

    turn: int
    risk: float
    features: Features
    marks: int = 0
    nearness: float | None = None
    refused: bool = False
