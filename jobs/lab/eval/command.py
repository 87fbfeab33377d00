"""`turntide lab eval`: how good, on which data."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib import import_module
from inspect import iscoroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.lab.commands import LabGroup
from jobs.shared.output import OutputFormat, OutputOption, Printer, progress_bar
from models.errors import ConfigurationError

app = LabGroup("lab eval", "Measure the quality of Turntide's judgements and memory on dialogues.")

EmbedderName = StrEnum("EmbedderName", ["WORDLLAMA", "E5", "MINILM"])
EmbedderOption = Annotated[EmbedderName, typer.Option("--embedder", help="Embedder to measure with.")]
RetrievalFormat = StrEnum("RetrievalFormat", ["LOCOMO", "LONGMEMEVAL"])
"""Formats of conversations that come with questions and their evidence."""
FactsSplit = StrEnum("FactsSplit", ["DEV", "TEST", "ALL"])
ExtractionSplit = StrEnum("ExtractionSplit", ["DEV", "TEST", "RARE", "FOREIGN", "ALL"])
LeaveOut = StrEnum("LeaveOut", ["AUTO", "FAMILY", "NOTHING"])
_DATA = "Conversations with questions and the turns that answer them."
_SET = "Labelled messages, JSON lines. None: the set that Turntide brings."
_TALKS = "Talks with questions, JSON lines. None: the set that Turntide brings."
_SPLIT = "Tune rules on dev only; all other splits only measure."
ShowMisses = Annotated[bool, typer.Option("--show-misses", help="Also print misses and false hits, with the messages.")]


@app.shown(
    "escalation",
    "escalation --data dialogues.jsonl --output json",
    "escalation --data dialogues.jsonl --texts pool.jsonl.gz --leave-out family",
    "escalation --data mine.jsonl --leave-out nothing",
)
def escalation(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Labelled dialogues, one JSON object a line: source, label, turns. None: the ordinary chats that "
            "ship with Turntide, none of which should alert.",
            show_default=False,
        ),
    ] = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="Further texts for the models trained here; the format is that of `lab train scorer`."),
    ] = None,
    leave_out: Annotated[
        LeaveOut,
        typer.Option(
            help="Which model judges a dialogue. family: one trained here without the dialogue's family. nothing: the "
            "configured scorer, even if it was trained on the dialogue. auto: the configured scorer, but as `family` "
            "for families that it was trained on."
        ),
    ] = LeaveOut.AUTO,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure how well the scorer tells escalations from harmless talk, prefix by prefix, through the real fold.

    A dialogue's score is the highest probability after any of its turns; the policy raises the alerts. Baselines need
    no memory: the first user turn alone, the number of turns, the mean length. Where models are trained here, a bag of
    words (TF-IDF and logistic regression, `words_…`) is a further one. Figures that need both labels are empty where
    the data have one. Never prints text.
    """
    from jobs.lab.eval.escalation import measure, ordinary_chats, show
    from jobs.shared.dialogues import read_dialogues, read_pools

    dialogues = ordinary_chats() if data is None else read_dialogues(data)
    pool = read_pools(texts or (), dialogues)
    show(measure(dialogues, leave_out.value, pool), Printer(output))


@app.shown("facts", "facts --split dev --show-misses", "facts --data messages.jsonl --output json")
def facts(
    *,
    data: Annotated[Path | None, typer.Option(help=_SET, show_default=False)] = None,
    split: Annotated[FactsSplit, typer.Option(help=_SPLIT)] = FactsSplit.ALL,
    show_misses: ShowMisses = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure the facts that rules extract from users' messages, without a language model: to keep, and to forget.

    A fact counts as found if category, key and value agree with the label and the policy stores a fact of its
    confidence and importance. Two values agree if they have the same words, or one contains the other in one piece.
    --output csv prints the figures by category, or with --show-misses the misses. Needs no Kafka.
    """
    _by_rules("facts", output, data, split, show_misses=show_misses)


@app.shown("extraction", "extraction --split dev --show-misses", "extraction sentences.jsonl --output json")
def extraction(
    file: Annotated[Path | None, typer.Argument(help=_SET, show_default=False)] = None,
    *,
    split: Annotated[ExtractionSplit, typer.Option(help=_SPLIT)] = ExtractionSplit.ALL,
    show_misses: ShowMisses = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure the decisions, goals, constraints … extracted from project talk, compared with the source's patterns.

    A statement counts as found if its type agrees with the label and its confidence makes it a memory under the policy.
    Subjects have their own count. --output csv prints the figures by split and type, or with --show-misses the misses.
    Needs no Kafka.
    """
    _by_rules("extraction", output, file, split, show_misses=show_misses)


@app.shown(
    "topics",
    "topics locomo10.json --embedder e5 --output json",
    "topics dialogues.jsonl --where label=benign",
)
def topics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Dialogues, in any format of `turntide produce`. None: the demo's.", show_default=False),
    ] = None,
    *,
    embedder: EmbedderOption = EmbedderName.WORDLLAMA,
    where: Annotated[
        list[str] | None, typer.Option(help="Only dialogues with this field, as name=value; may be repeated.")
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, max=10_000, help="Sessions to mix from the dialogues.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The same seed and dialogues give the same figures.")] = 1,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Find the cosine above which a message joins a topic, for one embedder.

    Each session interleaves stretches of five dialogues, each cut in two; two messages belong together if they come
    from one dialogue. The fold of sessions sorts them into topics at every threshold; F1 counts pairs of user messages.
    --output json has all thresholds. Needs no Kafka; never prints a message.
    """
    from jobs.lab.eval.dialogues import read_dialogues
    from jobs.lab.eval.topics import measure

    dialogues = read_dialogues(files or (), where or ())
    _measure("topics", output, embedder, partial(measure, dialogues, sessions=sessions, seed=seed))


@app.shown(
    "retrieval",
    "retrieval --data locomo10.json --embedder e5",
    "retrieval --data longmemeval_s.json --format longmemeval --limit-conversations 50",
)
def retrieval(
    *,
    data: Annotated[Path | None, typer.Option(help=f"{_DATA} None: only the sets that ship with Turntide.")] = None,
    form: Annotated[RetrievalFormat, typer.Option("--format", help="Format of --data.")] = RetrievalFormat.LOCOMO,
    embedder: EmbedderOption = EmbedderName.WORDLLAMA,
    limit_conversations: Annotated[
        int | None, typer.Option(min=1, help="Only the first conversations, this many.", show_default="all")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure the share of evidence that hybrid search finds: BM25 alone, the formula, the ranker.

    Indexes the conversations as the index role does, and asks each question within its user's memory. Recall is
    evidence found / evidence, the mean over all questions that have evidence. LoCoMo's questions run a second time with
    every turn cut into a burst of messages. The set that ships with Turntide, in three styles of talk and four
    languages, always runs too. No weights rank a conversation that they were learned from: the shipped ones come from
    LoCoMo, so its conversations get weights learned from the others. --output csv prints only the recalls. Needs no
    Kafka; never prints text.
    """
    from jobs.lab.eval.dialogues import in_bursts, own_questions, read_questions
    from jobs.lab.eval.retrieval import measure

    sets = [] if data is None else [read_questions(data, form, limit=limit_conversations)]
    sets += [in_bursts(each) for each in sets if form is RetrievalFormat.LOCOMO]
    _measure("retrieval", output, embedder, partial(measure, [*sets, *own_questions()]))


@app.shown("context", "context --embedder e5 --output json", "context talks.jsonl --one-user --output csv")
def context(
    file: Annotated[Path | None, typer.Argument(help=_TALKS, show_default=False)] = None,
    *,
    embedder: EmbedderOption = EmbedderName.WORDLLAMA,
    one_user: Annotated[bool, typer.Option("--one-user", help="Give all talks to one user, which is harder.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure how many questions about talks have their answer in the prompt that memory makes.

    Folds and indexes each talk for its own user, then asks every question with budgets of 2,000, 1,000 and 500 tokens.
    Compares the prompt with the first ten turns of the search, with retrieval, and with ten turns by words alone.
    --output json also has each talk. Needs no Kafka; never prints text.
    """
    from jobs.lab.eval.context_answers import measure, read_talks

    _measure("context", output, embedder, partial(measure, read_talks(file, one_user=one_user)))


@app.shown("tiers --data locomo10.json", "tiers --data locomo10.json --embedder e5 --output json")
def tiers(
    *,
    data: Annotated[Path, typer.Option(help=f"{_DATA} In LoCoMo's format.")],
    embedder: EmbedderOption = EmbedderName.WORDLLAMA,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Measure what the three tiers keep of conversations, and how near episodes are to questions.

    Folds every turn by user with extractive summaries, and compares each question with the episodes that hold its
    evidence, with the user's other episodes, and with other users' episodes. An embedder's `episode_distance` separates
    these. --output csv prints only that curve. Needs no Kafka; never prints text.
    """
    from jobs.lab.eval.dialogues import read_questions
    from jobs.lab.eval.tiers import measure

    _measure("tiers", output, embedder, partial(measure, read_questions(data)))


def _measure(name: str, output: OutputFormat, embedder: EmbedderName, measure: Callable[..., Any]) -> None:
    """Measure with this embedder, the policy and a bar of progress, and print."""
    from jobs.lab.bench.result import publish
    from streams.settings import load_settings
    from streams.wiring import embedder_of, policy_of

    settings = load_settings(vectors={"embedder": embedder.value})

    def measured() -> object:
        with progress_bar(f"{name}, {embedder.value}") as progress:
            found = measure(embedder_of(settings), policy_of(settings), progress)
            return asyncio.run(found) if iscoroutine(found) else found

    publish(f"eval-{name}", output, measured)


def _by_rules(name: str, output: OutputFormat, file: Path | None, split: StrEnum, *, show_misses: bool) -> None:
    """Print how the rules read the messages of a split; with their misses, CSV has these alone."""
    from jobs.lab.bench.result import publish
    from jobs.lab.eval.scores import rows_of_misses
    from streams.settings import load_settings
    from streams.wiring import policy_of

    evaluation = import_module(f"jobs.lab.eval.{name}")
    chosen = [each for each in evaluation.read_messages(file) if split in ("all", each.split)]
    if not chosen:
        raise ConfigurationError(f"no labelled message of split {split.value}: give a file that has some")
    report = evaluation.measure(chosen, policy_of(load_settings()))
    if output is not OutputFormat.CSV or not show_misses:
        hidden = set() if show_misses else {"misses"}
        publish(f"eval-{name}", output, lambda: {key: each for key, each in report.items() if key not in hidden})
    if output is not OutputFormat.JSON and show_misses:
        Printer(output).rows("Missed or wrong", rows_of_misses(report["misses"]))
