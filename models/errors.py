"""Errors that Turntide raises on purpose.

```
TurntideError
├── ConfigurationError      settings, policy or topics are wrong: the operator corrects them
├── InvalidRecord           one input record cannot be used: it becomes a dead letter
├── DeliveryFailed          an output or state write was refused or timed out: the role stops before the ack
├── Fenced                  another worker owns the partition: drop everything in flight
├── Stalled                 a partition does not advance although records wait: the process ends and is restarted
├── RecoveryFailed          state could not be rebuilt from its changelog within the deadline
├── NotCompacted            a space has too many memories after a compaction: a defect
├── AmbiguousApp            several apps have a session of this id: the caller must name the app
├── BudgetTooSmall          a context window is too small for its system prompt: the caller shortens it or raises it
├── StoreUnavailable        a vector store, catalog or sink does not answer: retried, then the role stops
│   └── EmbedderUnavailable a remote embedder does not answer: as a store; other embedders' vectors cannot replace it
├── LlmUnavailable          a language model does not answer: the fallback without a model is used
│   └── LlmTimedOut         it did not answer in time
├── LlmRubbish              its answer does not have the requested form: likewise
└── JudgeFailed             a judge has no answer: the built-in judgement counts, the answer has the reason
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
        detail: Description of the error.
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
    """A partition makes no progress although records wait."""


class RecoveryFailed(TurntideError):  # noqa: N818
    """State could not be rebuilt from its changelog within the deadline."""


class NotCompacted(TurntideError):  # noqa: N818
    """A compaction left a wrong number of memories."""


class AmbiguousApp(TurntideError):  # noqa: N818
    """Several apps have a session of this id, and the request names no app."""


class BudgetTooSmall(TurntideError):  # noqa: N818
    """A context window is too small for its system prompt and the reserve of the current turn."""


class StoreUnavailable(TurntideError):  # noqa: N818
    """A vector store, catalog or sink does not answer."""


class EmbedderUnavailable(StoreUnavailable):
    """A remote embedder does not answer."""


class LlmUnavailable(TurntideError):  # noqa: N818
    """A language model does not answer, after all tries."""


class LlmTimedOut(LlmUnavailable):
    """A language model did not answer in time."""


class LlmRubbish(TurntideError):  # noqa: N818
    """A language model's answer does not have the requested form."""


class JudgeFailed(_ReasonedError):  # noqa: N818
    """A judge of conversations has no answer: `timeout`, `unavailable`, `rubbish` or `no_text`."""
