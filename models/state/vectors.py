"""Layer 4 inside the state: the vectors of the last user turns, small enough to travel in the changelog.

The full-size vectors of all turns live in the vector store; the detectors need only the recent ones, at once and
exactly as they were at that offset. A vector is cut to its first 64 dimensions (wordllama is trained so that a prefix
is a vector, Kusupati et al. 2022), scaled and rounded to int8. Products of such integers are exact in float32, so a
cosine is the same on every machine and in every order of summation.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.state.parts import Parts

DIMS = 64
"""Dimensions kept; shorter vectors are padded with zeros, which changes no cosine."""
_RECORD = np.dtype([("turn", "<u8"), ("marks", "u1"), ("vector", "i1", (DIMS,))])
"""73 bytes per turn, one part each."""


def _turn_of(record: bytes) -> int:
    return int.from_bytes(record[:8], "little")


class TurnMark:
    """What is known of a remembered turn: bits of one byte (plain integers; an `IntFlag` costs 20 µs per turn here)."""

    RISKY: Final = 1
    PROBING: Final = 2
    REFUSED: Final = 4
    """The assistant declined to answer it."""
    REPHRASED: Final = 8
    """Asks again what was risky, refused or probing."""
    REPEATED: Final = 16
    """Asks again what was harmless."""
    RETURNED: Final = 32
    """Came back to a risky matter after a detour."""
    GATHERED: Final = 64
    """A question near the risky matter."""


def quantise(vector: NDArray[np.float32], dims: int = DIMS) -> NDArray[np.float32] | None:
    """The first dimensions as whole numbers of -127 to 127, shape `(dims,)`; None for a zero vector.

    Up to 1,024 dimensions products of them stay exact in float32.
    """
    head = vector[:dims]
    sizes = np.abs(head)
    # `argmax` costs a seventh of a reduction, and like it lets NaN win.
    largest = float(sizes[sizes.argmax()]) if len(sizes) else 0.0
    if not 0.0 < largest < np.inf:
        return None
    scaled = np.rint(head * np.float32(127.0 / largest))
    return scaled if len(scaled) == dims else np.pad(scaled, (0, dims - len(scaled)))


def norm_of(vector: NDArray[np.float32]) -> float:
    """Length of a quantised vector. `dot` takes half as long as `@` on so few numbers."""
    return math.sqrt(vector.dot(vector))


class VectorRing:
    """The last user turns' vectors, read from their parts when first needed.

    Attributes:
        turns: Turn numbers in slot order (not sorted).
        marks: Their marks, in the same order.
        touched: Marks that came or went with the last turn.
    """

    def __init__(self, parts: Parts, capacity: int) -> None:
        self._parts = parts
        self._capacity = capacity
        loaded: list[bytes] = []
        while (data := parts.get(f"v{len(loaded)}")) is not None:
            loaded.append(data)
        if len(loaded) > capacity:
            loaded = self._shrunk(loaded)
        records = np.frombuffer(b"".join(loaded), dtype=_RECORD)
        self.turns: list[int] = records["turn"].tolist()
        self.marks: list[int] = records["marks"].tolist()
        self._matrix = np.zeros((capacity, DIMS), dtype=np.float32)
        self._matrix[: len(records)] = records["vector"]
        self.touched = 0
        self._risky_centroid: NDArray[np.float32] | None = None
        self._norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", self._matrix, self._matrix)), np.float32(1))

    def _shrunk(self, loaded: list[bytes]) -> list[bytes]:
        """The latest turns of a ring that another policy let grow larger; the others must not come back with it."""
        latest = sorted(loaded, key=_turn_of)[len(loaded) - self._capacity :]
        for slot in range(len(loaded)):
            if slot < self._capacity:
                self._parts.put(f"v{slot}", latest[slot])
            else:
                self._parts.drop(f"v{slot}")
        return latest

    def cosines(self, vector: NDArray[np.float32]) -> list[float]:
        """Cosine of a quantised vector to each remembered one, in slot order."""
        cosines: list[float] = (self._matrix.dot(vector) / (self._norms * norm_of(vector))).tolist()
        return cosines[: len(self.turns)]

    def risky_centroid(self) -> NDArray[np.float32] | None:
        """Sum of the risky turns' vectors (a cosine needs no mean), shape `(64,)`; None without any."""
        if self._risky_centroid is None:
            slots = [slot for slot, marks in enumerate(self.marks) if marks & TurnMark.RISKY]
            if slots:
                self._risky_centroid = self._matrix[slots].sum(axis=0)
        return self._risky_centroid

    def remember(self, turn: int, marks: int, vector: NDArray[np.float32]) -> None:
        """Add a turn in the place of the lowest turn number; one older than all in a full ring is not kept."""
        slot, marks_lost = len(self.turns), 0
        if slot < self._capacity:
            self.turns.append(turn)
            self.marks.append(marks)
        else:
            lowest = min(self.turns)
            if turn < lowest:
                return
            slot = self.turns.index(lowest)
            marks_lost = self.marks[slot]
            self.turns[slot], self.marks[slot] = turn, marks
        self.touched = marks | marks_lost
        if self.touched & TurnMark.RISKY:
            self._risky_centroid = None
        self._matrix[slot] = vector
        self._norms[slot] = norm_of(vector)
        self._write(slot)

    def mark(self, turn: int, mark: int) -> None:
        """Add a mark to a turn, if it is still remembered."""
        if turn in self.turns:
            slot = self.turns.index(turn)
            self.marks[slot] |= mark
            self._risky_centroid = None
            self._write(slot)

    def marks_of(self, turn: int) -> int:
        """All marks of a turn; 0 for one that is not remembered."""
        return self.marks[self.turns.index(turn)] if turn in self.turns else 0

    def marked(self, mark: int) -> list[int]:
        """Turn numbers that carry a mark, in order."""
        return sorted(turn for turn, marks in zip(self.turns, self.marks, strict=True) if marks & mark)

    def _write(self, slot: int) -> None:
        head = self.turns[slot].to_bytes(8, "little") + bytes((self.marks[slot],))
        self._parts.put(f"v{slot}", head + self._matrix[slot].astype(np.int8).tobytes())
