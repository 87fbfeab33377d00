"""Every error Turntide raises on purpose.

```
TurntideError
├── ConfigurationError      settings, policy or topics are wrong: the operator mends them
├── InvalidRecord           one input record cannot be used: it becomes a dead letter
├── DeliveryFailed          an output or state write was refused or timed out: the role stops before the ack
├── Fenced                  another worker owns the partition: drop everything in flight
├── Stalled                 a partition does not move though records wait: the process ends and is started again
├── RecoveryFailed          state could not be rebuilt from its changelog within the deadline
├── NotCompacted            a space of memories has more than it may have after a compaction: a defect
├── AmbiguousApp            several apps have a session of this id: the asker names one
├── BudgetTooSmall          a context window does not hold its system prompt: the asker shortens it or allows more
├── StoreUnavailable        a vector store, catalog or sink does not answer: retried, then the role stops
│   └── EmbedderUnavailable a remote embedder does not answer: as a store; no other embedder's vectors can stand in
├── LlmUnavailable          a language model does not answer: what needs no model serves instead
│   └── LlmTimedOut         it did not answer in time
├── LlmRubbish              it answers in another form than it was asked for: likewise
└── JudgeFailed             a judge has no answer: the built-in judgement stands, the answer says why
```
"""


class TurntideError(Exception):
    """Root of the tree. The message says what, where and what to do."""


class ConfigurationError(TurntideError):
    """Settings, policy or topics are wrong; nothing was started."""


class _ReasonedError(TurntideError):
    """An error with a reason.

    Attributes:
        reason: Constant snake_case word, safe as a metric label.
        detail: What exactly is wrong.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class InvalidRecord(_ReasonedError):  # noqa: N818 - it is a verdict on data, not a failure
    """One input record cannot be used; the detail has none of the record's text."""


class DeliveryFailed(TurntideError):  # noqa: N818
    """The broker did not acknowledge an output or a state write."""


class Fenced(TurntideError):  # noqa: N818
    """Another worker has taken the partition; what is in flight must not be written."""


class Stalled(TurntideError):  # noqa: N818
    """A partition makes no progress though records wait."""


class RecoveryFailed(TurntideError):  # noqa: N818
    """State could not be rebuilt from its changelog within the deadline."""


class NotCompacted(TurntideError):  # noqa: N818
    """A compaction left another number of memories than it had to."""


class AmbiguousApp(TurntideError):  # noqa: N818
    """Several apps have a session of an id, and the request names none of them."""


class BudgetTooSmall(TurntideError):  # noqa: N818
    """A context window does not hold its system prompt and the reserve of the current turn."""


class StoreUnavailable(TurntideError):  # noqa: N818
    """A vector store, catalog or sink does not answer."""


class EmbedderUnavailable(StoreUnavailable):
    """A remote embedder does not answer."""


class LlmUnavailable(TurntideError):  # noqa: N818
    """A language model does not answer, after all tries."""


class LlmTimedOut(LlmUnavailable):
    """A language model did not answer in time."""


class LlmRubbish(TurntideError):  # noqa: N818
    """A language model's answer has another form than it was asked for."""


class JudgeFailed(_ReasonedError):  # noqa: N818
    """A judge of conversations has no answer: `timeout`, `unavailable`, `rubbish` or `no_text`."""
