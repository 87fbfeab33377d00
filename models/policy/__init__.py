"""Every threshold, window, half-life and limit, with the sources' defaults: policy is data.

`Policy()` is the default. `load_policy` reads a TOML or JSON file in which every field is optional; durations are
ISO 8601 (`"PT30M"`), times RFC 3339. Alerts carry the `version`, so that a page can be traced to its rules.
Where a figure has no source, its docstring says what set it.
"""

# ruff: noqa: F403, F405 - one name for all of them

import re
import tomllib
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from models.errors import ConfigurationError
from models.events import Ratio, Role
from models.policy.app import *
from models.policy.archive import *
from models.policy.escalation import *
from models.policy.notify import *
from models.policy.project import *
from models.policy.retrieval import *
from models.policy.stream import *
from models.policy.topic import *
from models.policy.user import *

_MOST_PANES = 240


class SessionPolicy(PolicySection, frozen=True, kw_only=True):
    """When a session ends and how far turns may be out of order."""

    timeout: timedelta = timedelta(minutes=30)
    """Silence in event time after which a session is closed (risk memory, clean-up)."""
    closed_retention: timedelta = timedelta(days=1)
    """How long a closed session is remembered, so that its late turns are known as late."""
    reorder_reach_turns: Annotated[int, Meta(ge=1, le=64)] = 64
    """Turn numbers below the highest that are still told apart as new or duplicate (one 64-bit map)."""

    def __post_init__(self) -> None:
        require(self.timeout > ZERO, "timeout must be positive")
        require(self.closed_retention > ZERO, "closed_retention must be positive")


class MemoryPolicy(PolicySection, frozen=True, kw_only=True):
    """Sizes of the memory layers (risk memory, MEMORY_LIMITS). A turn is one message."""

    buffer_turns: Annotated[int, Meta(ge=1, le=50)] = 10
    """Immediate buffer: exact content of the last turns (layer 1)."""
    segment_turns: Annotated[int, Meta(ge=1, le=20)] = 5
    """Turns of one segment (layer 2)."""
    working_turns: Annotated[int, Meta(ge=1, le=400)] = 50
    """Turns the working memory covers with summaries (layer 2)."""
    summary_sentences: Annotated[int, Meta(ge=1, le=10)] = 2
    """Sentences of a segment's summary (layer 2, "in 2 sentences")."""
    sentence_chars: Annotated[int, Meta(ge=40, le=2_000)] = 280
    """Longest sentence of a summary; bounds the state."""
    summary_chars: Annotated[int, Meta(ge=40, le=20_000)] = 2_000
    """Longest summary taken from a slower summariser; bounds the state."""
    ask: bool = False
    """Whether a slower summariser is asked for segments too; on where a language model is configured."""
    asked_chars: Annotated[int, Meta(ge=100, le=4_000)] = 2_000
    """Length of a turn as the slower summariser sees it."""
    episode_sentences: Annotated[int, Meta(ge=1, le=50)] = 5
    """Sentences of an episode's summary, chosen from those of its segments: one of each equal part of the session."""
    past_segments: Annotated[int, Meta(ge=0, le=64)] = 16
    """Segments that have left the working memory of which a line is kept for the episode …"""
    past_segment_chars: Annotated[int, Meta(ge=40, le=500)] = 120
    """… and its length; together they bound the state at 2.5 KB."""
    key_topics: Annotated[int, Meta(ge=1, le=20)] = 5
    """Key topics of a segment or an episode."""
    recent_vectors: Annotated[int, Meta(ge=2, le=256)] = 32
    """User turns whose vectors the detectors compare; bounds the state at 73 bytes each."""
    stored_vectors: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    """Turns per session in the vector store (MEMORY_LIMITS)."""

    @property
    def segments(self) -> int:
        """Segments kept in the working memory."""
        return max(1, self.working_turns // self.segment_turns)


class ProfilePolicy(PolicySection, frozen=True, kw_only=True):
    """The session profile (risk memory, layer 3)."""

    every_turns: Annotated[int, Meta(ge=1, le=50)] = 5
    """A profile goes out with the first counted turn, then after so many; and with every change of mode or alert."""
    repeated_topics: Annotated[int, Meta(ge=1, le=256)] = 32
    """Topics whose frequency is kept; risky ones are kept beyond it."""
    topics_per_turn: Annotated[int, Meta(ge=1, le=16)] = 4
    """Ordinary topics one turn can count towards."""
    mode_transitions: Annotated[int, Meta(ge=1, le=256)] = 16
    """Latest changes of mode kept."""


class SuspicionWeights(PolicySection, frozen=True, kw_only=True):
    """Weights of `get_suspicion_score` (risk memory, layer 3)."""

    probing: Ratio = 0.3
    hypothetical: Ratio = 0.2
    meta_instruction: Ratio = 0.5


class SignalWeights(PolicySection, frozen=True, kw_only=True):
    """How much of the combined score each signal can make alone (not in the source; set on self-written sessions)."""

    level: Ratio = 0.8
    trajectory: Ratio = 0.5
    persistence: Ratio = 0.35
    anomaly: Ratio = 0.15
    suspicion: Ratio = 0.5
    repeated_probing: Ratio = 0.4
    topic_cycling: Ratio = 0.4
    information_gathering: Ratio = 0.35


class RiskPolicy(PolicySection, frozen=True, kw_only=True):
    """Risk history and the signals over it (risk memory, Signals A, B, C)."""

    source: Literal["scorer", "upstream"] = "scorer"
    """Whose risk of a turn counts. scorer: the scorer's, and a producer's beside it. upstream: the producer's in the
    scorer's place, for who trusts a judge of his own: the source formulas weigh it. Those that say something without
    any risk (`persistence`, `anomaly`, `suspicion`, `repeated_probing`) count nothing, so 0 on every turn raises
    nothing. A turn without a producer's risk has none: it is remembered, and moves no score."""
    scored_roles: tuple[Role, ...] = (Role.USER,)
    """Whose turns count as behaviour and are scored; an upstream risk counts for any role."""
    languages: tuple[Annotated[str, Meta(max_length=3)], ...] = ("en",)
    """That the scorer reads, ISO 639-1: of another it gives no risk, which is told (`unsupported`). None: all."""
    trajectory_window: Annotated[int, Meta(ge=3, le=200)] = 20
    """Scored turns the slope is fitted to (Signal A, `window`)."""
    trajectory_min: Annotated[int, Meta(ge=2, le=200)] = 5
    """Fewer scored turns give no trajectory (Signal A)."""
    trajectory_gain: Annotated[float, Meta(ge=0, le=1_000)] = 10.0
    """`max(0, slope * 10)` (Signal A); unbounded, bounded only where it is combined."""
    trajectory_caution: Annotated[float, Meta(ge=0, le=10)] = 1.0
    """Standard errors taken off the slope before it is combined, so that noise is no trend."""
    level_half_life_turns: Annotated[float, Meta(gt=0, le=1_000)] = 6.0
    """Scored turns after which a past risk weighs half in the level."""
    risky_topics: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=64)] = (
        "weapon",
        "hack",
        "bypass",
        "exploit",
    )
    """Stems of the topics of Signal B."""
    persistence_per_turn: Ratio = 0.1
    """Signal B: what one turn on a risky topic adds, up to 1."""
    risky_turn: Ratio = 0.35
    """Risk from which the detectors watch a turn for returns and rephrasings; the rules give a plain request 0.4."""
    suspicion: SuspicionWeights = SuspicionWeights()
    weights: SignalWeights = SignalWeights()

    def reads(self, language: str) -> bool:
        """Whether the scorer reads a language."""
        return not self.languages or language in self.languages

    @property
    def weights_in_force(self) -> SignalWeights:
        """Of the signals that count."""
        if self.source == "scorer":
            return self.weights
        return replace(self.weights, persistence=0.0, anomaly=0.0, suspicion=0.0, repeated_probing=0.0)

    def __post_init__(self) -> None:
        require(self.trajectory_min <= self.trajectory_window, "trajectory_min must not exceed trajectory_window")
        require(all(t and t == t.lower() for t in self.risky_topics), "risky_topics must be lower-case stems")


class DetectorPolicy(PolicySection, frozen=True, kw_only=True):
    """Thresholds on the cosine of two turns' vectors (risk memory, layer 4, use cases 1-3).

    The figures belong to the embedder; these were measured on wordllama's first 64 dimensions as int8, with
    self-written questions: 30 rephrased pairs (median cosine 0.81, a tenth below 0.58), 16 pairs on one matter but
    asking something else (median 0.62, a tenth above 0.78), 1,230 unrelated pairs (median 0.06, one in a
    hundred above 0.43).
    """

    rephrased: Ratio = 0.65
    """Two questions are one rephrased: finds 83 % of those, 19 % of the same matter, 0.1 % of the unrelated."""
    near: Ratio = 0.40
    """Two turns are on the same matter: finds 97 % of the rephrased, 88 % of the same matter, 2 % of the unrelated."""
    topic_change: Ratio = 0.25
    """Below it a turn has left the matter of the one before, if it shares no topic either: 89 % of unrelated pairs lie
    below, none of the others."""
    repeats_full: Count = 4
    """Rephrasings of risky, refused or probing questions that make the signal 1."""
    harmless_repeat: Ratio = 0.05
    """What repeating a harmless question adds."""
    detour_turns: Count = 3
    """Unrelated user turns between a risky turn and the return to it."""
    returns_full: Count = 3
    """Returns that make the signal 1."""
    gathering_min: Count = 3
    """Questions near the risky matter before they count as gathering."""
    gathering_full: Count = 8
    """Questions near the risky matter that make the signal 1."""


class AppModes(PolicySection, frozen=True, kw_only=True):
    """Thresholds of one app, as `turntide alerts calibrate` proposes them; what is not named is as for all."""

    app_id: Annotated[str, Meta(min_length=1, max_length=256)]
    elevated: ModeThreshold
    critical: ModeThreshold

    def __post_init__(self) -> None:
        rising = self.elevated.enter <= self.critical.enter and self.elevated.leave <= self.critical.leave
        require(rising, "thresholds must rise from elevated to critical")


class ModePolicy(PolicySection, frozen=True, kw_only=True):
    """Risk modes (risk memory names `RiskMode`; its values are the project's own).

    Of 781 benign public dialogues scored by the rules, 8 % reach watch and 2.3 % raise an alert, most of these stitched
    together from security questions; an upstream risk that stays at 0.6 reaches elevated.
    """

    watch: ModeThreshold = ModeThreshold(enter=0.25, leave=0.17)
    elevated: ModeThreshold = ModeThreshold(enter=0.45, leave=0.33)
    critical: ModeThreshold = ModeThreshold(enter=0.70, leave=0.55)
    dwell_turns: Annotated[int, Meta(ge=0, le=1_000)] = 3
    """Counted turns a mode lasts at least before it can fall; it rises at once."""
    apps: Annotated[tuple[AppModes, ...], Meta(max_length=1_000)] = ()

    def thresholds(self, app_id: str) -> tuple[ModeThreshold, ModeThreshold, ModeThreshold]:
        """Of watch, elevated and critical, in an app. Watch never lies above elevated."""
        for app in self.apps:
            if app.app_id == app_id:
                enter, leave = min(self.watch.enter, app.elevated.enter), min(self.watch.leave, app.elevated.leave)
                return ModeThreshold(enter=enter, leave=leave), app.elevated, app.critical
        return self.watch, self.elevated, self.critical

    def __post_init__(self) -> None:
        rising = self.watch.enter <= self.elevated.enter <= self.critical.enter
        falling = self.watch.leave <= self.elevated.leave <= self.critical.leave
        require(rising and falling, "thresholds must rise from watch over elevated to critical")


class AlertPolicy(PolicySection, frozen=True, kw_only=True):
    """When an alert is raised, repeated and resolved."""

    min_scored_turns: Count = 3
    """Evidence before a mode raises an alert, where the source formulas or risks that producers send decide."""
    single_turn_risk: Ratio = 0.9
    """One turn of this risk alerts at once, as critical, whatever the evidence."""
    renotify_after: timedelta = timedelta(minutes=30)
    """Event time between repeats while firing in an elevated mode and not acknowledged."""
    worsened_step: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.1
    """A score, or a riskiest turn, this far above what was told last is told at once, also in quiet hours: the next
    digit of what people read, so at most ten times in a row. 1 tells none but a rise to critical."""
    resolve_after_turns: Count = 5
    """Counted turns below elevated that resolve an alert."""
    evidence_turns: Annotated[int, Meta(ge=1, le=20)] = 5
    """Turns named as evidence."""
    min_evidence_turns: Annotated[int, Meta(ge=0, le=1_000)] = 1
    """Turns that must have raised the log-odds before the calibrated judgement raises an alert. One is enough: the
    probability knows how little it says. More make alerts later (3: half of the public attacks are over by then)."""
    allow: Annotated[tuple[Allowance, ...], Meta(max_length=1_000)] = ()
    """What may be talked about without waking anybody."""
    quiet_hours: QuietHours | None = None

    def __post_init__(self) -> None:
        require(self.renotify_after > ZERO, "renotify_after must be positive")


class Policy(PolicySection, frozen=True, kw_only=True):
    """All rules of one deployment."""

    version: Annotated[str, Meta(min_length=1, max_length=64)] = "default-1"
    """Named in every alert; give each change a new one."""
    session: SessionPolicy = SessionPolicy()
    memory: MemoryPolicy = MemoryPolicy()
    topics: TopicPolicy = TopicPolicy()
    users: UserPolicy = UserPolicy()
    apps: AppPolicy = AppPolicy()
    projects: ProjectPolicy = ProjectPolicy()
    retrieval: RetrievalPolicy = RetrievalPolicy()
    profile: ProfilePolicy = ProfilePolicy()
    risk: RiskPolicy = RiskPolicy()
    escalation: EscalationPolicy = EscalationPolicy()
    detectors: DetectorPolicy = DetectorPolicy()
    modes: ModePolicy = ModePolicy()
    alerts: AlertPolicy = AlertPolicy()
    window: WindowShape = WindowShape()
    """Windows of one session."""
    partition: PartitionPolicy = PartitionPolicy()
    intake: IntakePolicy = IntakePolicy()
    archive: ArchivePolicy = ArchivePolicy()
    """Of what is done offline; it is no part of the policy's digest."""
    masking: MaskingPolicy = MaskingPolicy()
    """Of words that are kept in archive and index; likewise."""
    prompts: PromptPolicy = PromptPolicy()
    """Of what readers are given; likewise."""
    notify: NotifyPolicy = NotifyPolicy()
    """Of how people are told of alerts; likewise."""

    @property
    def judging_model(self) -> CombinationModel | None:
        """The model that judges sessions; None: the source formulas do."""
        return self.escalation.model_in_force if self.risk.source == "scorer" else None

    @property
    def late_panes(self) -> int:
        """Slides between the watermark and the newest event time, of the finer window."""
        finest = min(self.window.slide, self.partition.app_window.slide)
        return -(-self.partition.watermark_lateness // finest)

    def __post_init__(self) -> None:
        most = max(self.window.panes, self.partition.app_window.panes) + self.late_panes
        require(
            most <= _MOST_PANES,
            f"windows and partition.watermark_lateness keep {most} slides open, at most {_MOST_PANES}: "
            "lengthen the slide or shorten grace and lateness",
        )


def load_policy(data: bytes, kind: Literal["toml", "json"]) -> Policy:
    """Read a policy file; what it does not name keeps its default.

    Raises:
        ConfigurationError: Not readable, an unknown field, or a value out of range; names the field.
    """
    try:
        raw = tomllib.loads(data.decode()) if kind == "toml" else msgspec.json.decode(data)
        return msgspec.convert(raw, Policy)
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        meant = _meant(str(error))
        raise ConfigurationError(
            f"policy ({kind}): {error}{meant}. Correct or remove the field; omitted fields have defaults."
        ) from error


_GONE = {
    "merge_similarity": "removed: topics of a session no longer merge, which made sorting worse at every value",
    "session_sum_weight": "removed: a search no longer ranks sessions",
}
"""Fields of earlier releases, and why they were removed."""


def _meant(error: str) -> str:
    """Hint for an unknown field: why it was removed, or a similar field of the same section."""
    unknown = re.search(r"unknown field `([^`]+)`(?: - at `\$\.?([^`]*)`)?", error)
    if unknown is None:
        return ""
    if unknown[1] in _GONE:
        return f" ({_GONE[unknown[1]]})"
    section: object = Policy()
    for part in filter(None, (unknown[2] or "").split(".")):
        section = getattr(section, part, None)
    near = get_close_matches(unknown[1], getattr(section, "__struct_fields__", ()), 1)
    return f" (did you mean {near[0]}?)" if near else ""
