"""Rules of what is kept for long: masking, anonymity, retention by privacy class, mining. Part of `models.policy`.

None of it but `masking.secrets` changes what the stream does: `models.policy.digest` leaves these sections out.
"""

from typing import Annotated, Literal

from msgspec import Meta

from models.events.base import Mode
from models.events.fields import Ratio
from models.policy.stream import PolicySection

Days = Annotated[int, Meta(ge=1, le=36_500)]
AtLeastTwo = Annotated[int, Meta(ge=2, le=1_000_000)]
AtLeastOne = Annotated[int, Meta(ge=1, le=10_000_000)]


MaskedKind = Literal["email", "phone", "card", "iban"]


class MaskingPolicy(PolicySection, frozen=True, kw_only=True):
    """What in words is replaced by its kind: secrets, `[token]`; where it is asked for personal data, `[email]`."""

    secrets: bool = True
    """API keys, tokens, private keys and passwords in addresses, before anything is folded, indexed or archived. The
    fold's input goes by it: it counts for the policy's digest where it is off."""
    at_archive: bool = False
    """In the archive: all words that it would keep. Of refused records only the reason is kept then."""
    at_index: bool = False
    """In the index: what is embedded, found and shown. Earlier points stay until `turntide ops reset index`."""
    kinds: tuple[MaskedKind, ...] = ("email", "phone", "card", "iban")
    phone_regions: tuple[Annotated[str, Meta(pattern="^[A-Z]{2}$")], ...] = ()
    """Countries (ISO 3166) whose numbers are known without +; others need their country code."""


class AnonymityPolicy(PolicySection, frozen=True, kw_only=True):
    """How many sessions and users whatever is shown must be about (k-anonymity, Sweeney 2002)."""

    min_sessions: Annotated[int, Meta(ge=1, le=100_000)] = 5
    min_users: Annotated[int, Meta(ge=1, le=100_000)] = 5


class RetentionPolicy(PolicySection, frozen=True, kw_only=True):
    """Age in days after which the archive lets go, by privacy class; None keeps it.

    Measured from the day on which the broker received the record. The class of a row is that of its most private
    column that is left: first the words go, then the row.
    """

    content_days: Days | None = None
    """Columns with words of people or made of them are emptied."""
    identified_days: Days | None = None
    """Rows that name a session or a user are removed."""
    operational_days: Days | None = None
    """Every row is removed."""


class OverviewMining(PolicySection, frozen=True, kw_only=True):
    """Headline numbers, and what stands out among them."""

    any_risk: Ratio = 0.3
    """Risk of a turn that counts as any risk: over where mode watch begins (0.25), below what an alert needs."""
    risk_quantiles: tuple[Ratio, ...] = (0.5, 0.9, 0.99)
    """Of the sessions' highest risk by day: the middle, the tenth and the hundredth that carry most."""
    significance: Ratio = 0.01
    """False discovery rate over the days, and over the apps, that are held against the rest; as in drift."""
    times_the_rest: Annotated[float, Meta(ge=1.0, le=1_000.0)] = 1.5
    """With many sessions every difference is significant: a share stands out at so many times the rest's."""


class EscalationMining(PolicySection, frozen=True, kw_only=True):
    """Shapes of risk curves, and how soon sessions escalate."""

    min_turns: AtLeastTwo = 8
    """Scored turns of a session whose curve has a shape: with fewer, two thirds of it are two turns each."""
    escalated_modes: tuple[Mode, ...] = (Mode.ELEVATED, Mode.CRITICAL)
    """A session escalates with its first turn in one of these, or with its first alert."""
    curve_points: AtLeastTwo = 100
    """A longer curve is cut into so many parts, each with its mean: bounds memory and the quadratic slope."""
    resampled_points: AtLeastTwo = 20
    """Every curve is brought to so many points before curves are compared: steps of 5 % of a session."""
    shapes: AtLeastTwo = 6
    """Clusters of curves: flat, and rising or peaking early or late, at two heights; alike ones share a name."""
    min_rise: Ratio = 0.15
    """Risk that moves less is noise: less than between the thresholds of two modes."""
    high_risk: Ratio = 0.45
    """A curve whose top reaches it is called high, else low: there mode elevated begins by default."""
    segment_turns: AtLeastTwo = 3
    """Least points between two changes: with two, any outlier is a change."""
    change_penalty: Annotated[float, Meta(gt=0.0, le=1_000.0)] = 3.0
    """A change costs so many times variance x log(points): 2 is the information criterion of Yao (1988), 3 is stricter,
    since risks of one session depend on each other."""
    noise_floor: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.02
    """Least standard deviation of a turn's risk: scores repeat exactly, and no noise would make every step a change."""
    confidence: Annotated[float, Meta(gt=0.5, lt=1.0)] = 0.95
    """Of intervals."""
    significance: Ratio = 0.01
    """False discovery rate over the comparisons of a run: apps with each other, shapes with the earlier period."""
    growth_ratio: Annotated[float, Meta(ge=1.0, le=1_000.0)] = 1.25
    """A shape grows, and an app escalates faster, if its share of sessions is so many times the other one: with many
    sessions any difference is significant."""
    apps: AtLeastOne = 12
    """The largest apps that are shown by themselves."""


class SequenceMining(PolicySection, frozen=True, kw_only=True):
    """Frequent sequences of modes and signals."""

    min_support: Ratio = 0.02
    """Share of sessions that a pattern must stand in: of fewer, chance alone gives many."""
    longest_pattern: AtLeastTwo = 5
    """Events of a pattern: people do not read longer ones, and their number grows with every event."""
    longest_sequence: Annotated[int, Meta(ge=2, le=250)] = 120
    """First events of a session that are looked at: a session that goes to and fro for hours says the same again."""
    same_share: Ratio = 0.9
    """A pattern is left out if one that contains it has so large a share of its sessions: 1 leaves all closed ones."""
    signal_level: Ratio = 0.25
    """A signal is there from this value on: its bounded scale is 0-1, the level's is left to the mode."""
    before_alert: AtLeastTwo = 8
    """Events before the first alert that are held against as many of sessions without an alert."""
    patterns: AtLeastOne = 40
    """Rows of a table of patterns: more are not read."""
    findings: AtLeastOne = 5
    """Patterns before alerts that are told, none of them part of another: the rest says the same with fewer words."""
    most_patterns: AtLeastOne = 20_000
    """Where more are frequent the support is doubled until fewer are: it bounds time and memory."""
    significance: Ratio = 0.01
    """False discovery rate over all patterns of a run."""
    lift: Annotated[float, Meta(ge=1.0, le=1_000.0)] = 1.5
    """A pattern is told if sessions with it alert so many times as often as those without."""
    confidence: Annotated[float, Meta(gt=0.5, lt=1.0)] = 0.95
    """Of intervals of transitions."""


class TopicMining(PolicySection, frozen=True, kw_only=True):
    """Clusters of topics.

    Measured on 1,292 stretches of six turns from eight sources of dialogues (`MiniBatchKMeans`, 20 clusters):
    normalised mutual information with the source 0.58, seen from the mean of all texts; 0.54 without that. HDBSCAN left
    72 to 85 % of them without a cluster (0.33-0.41) and took 39 s for 10,000 texts, k-means 0.5 s for 50,000.
    """

    clusters: AtLeastTwo = 20
    """At most so many clusters of topics: as many as somebody reads."""
    novel_clusters: AtLeastOne = 5
    """At most so many more of texts that are far from all earlier topics; few days bring more than one new matter."""
    sessions_per_cluster: AtLeastTwo = 10
    """There are no more clusters than the sessions give with so many each: twice what may be shown at the least."""
    fitted_texts: AtLeastTwo = 50_000
    """Texts from which the clusters are learnt, evenly over all; the others only join. It bounds time and memory."""
    day_texts: AtLeastOne = 100_000
    """Of a day with more, whole sessions are drawn by lot until there are so many, and of the days beside it as large a
    share: two weeks take about 3 GB then, and a session in every hundred is still hundreds a day."""
    session_share: Ratio = 0.2
    """A session is about a cluster if so much of its texts is: a session of 400 turns touches nearly every one."""
    novelty_clusters: AtLeastTwo = 200
    """What is novel is measured from so many clusters of the earlier period, or one per session: the few clusters that
    people read lie too far from their own texts for that."""
    novel_quantile: Ratio = 0.95
    """Farther from all topics of the earlier period than this share of its own texts: novel. One in twenty is, then,
    where nothing changed."""
    significance: Ratio = 0.01
    """False discovery rate over all clusters."""
    name_words: AtLeastOne = 4
    """Words in a cluster's name."""
    evidence_words: AtLeastOne = 8
    """Words by which evidence is looked up."""


class CampaignMining(PolicySection, frozen=True, kw_only=True):
    """Near-duplicate probing across sessions and users.

    Likeness was set on 5,663 different user turns of 1,437 dialogues, of whatever risk and some of them made from
    templates: at the defaults the largest group has 47 of them, with a Jaccard of 0.4 it has 65, with a cosine of 0.85
    it has 126. Of copies with every tenth word exchanged 85 % are found by their shingles and 68 % by their vectors.
    """

    risk: Ratio = 0.5
    """Least risk of a turn that may be probing: the middle of the scale, far above ordinary turns."""
    min_words: AtLeastOne = 6
    """Shorter texts are alike by chance ("tell me more")."""
    head_chars: AtLeastOne = 2_000
    """Characters of a text that are compared, as many as the embedder reads."""
    shingle_words: AtLeastOne = 2
    """Words in a row that are compared as one; of the copies with every tenth word
    exchanged three find 62 %."""
    permutations: AtLeastTwo = 128
    """Hashes of a MinHash signature: the error of a Jaccard of 0.5 is 0.04."""
    bands: AtLeastOne = 32
    """Bands of a signature, a divisor of `permutations`; four hashes each make candidates from a Jaccard of 0.42 on."""
    jaccard: Ratio = 0.5
    """Least share of common shingles of near duplicates."""
    cosine: Ratio = 0.9
    """Least cosine of their vectors where the shingles differ."""
    most_turns: AtLeastOne = 5_000
    """Turns of a day that are compared, the riskiest: more than people can follow up, and a bound for the work."""
    most_texts: AtLeastOne = 40_000
    """Different texts of a period that are compared, the riskiest: the work grows with their square."""
    name_words: AtLeastOne = 4
    """Words in a campaign's name."""
    evidence_words: AtLeastOne = 8
    """Words by which evidence is looked up."""


class MemoryMining(PolicySection, frozen=True, kw_only=True):
    """Health of what is remembered."""

    stale_days: Days = 90
    """A fact of which nothing was heard for so long is stale: a quarter, in which people move and change plans."""
    duplicate_min_chars: AtLeastOne = 4
    """Values shorter than this are no duplicates of each other: `yes` and `red` may be true of many things."""
    alike_min_ratio: Ratio = 0.8
    """Memories of one space that share so many of their words say the same (Jaccard; 0.8 is usual for near-duplicates,
    Broder 1997)."""
    lossy_min_ratio: Ratio = 0.5
    """An app whose topics lose more of their probes than this to compaction is a finding: a search for what was said
    fails more often than not."""
    flipping_min_ratio: Ratio = 0.05
    """Likewise a category of facts that flips back for so many of its users: one in twenty is no slip of the tongue."""


class DriftMining(PolicySection, frozen=True, kw_only=True):
    """Today against a baseline."""

    baseline_days: Days = 28
    """Days before the period that it is held against: four weeks, so that each day of the week counts alike."""
    significance: Ratio = 0.01
    """False discovery rate over all tests of a run (Benjamini and Hochberg 1995)."""
    min_sessions: AtLeastTwo = 30
    """Sessions on either side below which nothing is tested: the tests' p-values are those of large samples."""
    most_sessions_per_day: AtLeastTwo = 5_000
    """So many of a day's sessions are kept, chosen by a hash of their ids: 5,000 tell a quantile to 1 %."""
    most_apps: AtLeastOne = 20
    """Apps with the most sessions that are looked at singly."""
    bins: Annotated[int, Meta(ge=2, le=100)] = 10
    """Quantile bins of the baseline for the stability index: deciles, as its thresholds are stated for."""
    psi_shifted: Annotated[float, Meta(gt=0.0)] = 0.2
    """Stability index from which a population has shifted (Siddiqi 2006: below 0.1 stable, above 0.25 shifted)."""
    auc_shifted: Annotated[float, Meta(gt=0.0, lt=0.5)] = 0.1
    """Distance of the Mann-Whitney AUC from 0.5 that matters: with many sessions everything is significant."""
    min_labels: AtLeastTwo = 30
    """Labels of a week below which its calibration is not told."""
    calibration_bins: Annotated[int, Meta(ge=2, le=50)] = 5
    """Equal bins of probability for the calibration error: labels are few, so that the bins must be, too."""


class ArchivePolicy(PolicySection, frozen=True, kw_only=True):
    """Rules of everything offline."""

    anonymity: AnonymityPolicy = AnonymityPolicy()
    mining_batch_rows: AtLeastOne = 4_000_000
    """Rows of as many days are mined at once: it bounds the memory, one day is the least."""
    retention: RetentionPolicy = RetentionPolicy()
    overview: OverviewMining = OverviewMining()
    escalation: EscalationMining = EscalationMining()
    sequences: SequenceMining = SequenceMining()
    topics: TopicMining = TopicMining()
    campaigns: CampaignMining = CampaignMining()
    memory: MemoryMining = MemoryMining()
    drift: DriftMining = DriftMining()
