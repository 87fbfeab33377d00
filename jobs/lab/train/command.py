"""`turntide lab train`: the weights that Turntide ships, or your own, from labelled dialogues and questions."""

from __future__ import annotations

import asyncio
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jobs.lab.commands import LabGroup
from jobs.lab.eval.command import EmbedderName, EmbedderOption
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError
from streams.settings import load_settings
from streams.wiring import embedder_of

app = LabGroup("lab train", "Train weights, the table of near words and the packing dictionary.")


@app.shown(
    "scorer --data dialogues.jsonl --texts pool.jsonl.gz --to mine.scorer",
    "scorer --data dialogues.jsonl --to mine.scorer --version shop-2 --no-measure",
    "TURNTIDE_SCORER__FILE=mine.scorer turntide worker sessions",
)
def scorer(
    *,
    data: Annotated[
        Path, typer.Option(help="Labelled dialogues, one JSON object a line: source, label, licence, turns.")
    ],
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            help="Further texts to learn from (family, label harmful or benign, licence, turns). Families with one "
            "label are skipped: the model would mistake their style for the label."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(help="File to write.")],
    version: Annotated[str, typer.Option(help="Name of the result; alerts show it with its digest.")] = "escalation-1",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap in the card; training is deterministic.")] = 1,
    date: Annotated[str, typer.Option(help="Date in the card; none: today.")] = "",
    any_licence: Annotated[
        bool, typer.Option("--any-licence", help="Learn from sources under any licence, for your own use.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Measure on left-out families, for the card.")
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Train the turn scorer and the combination of signals; write both, with the model card, to one file.

    Sources without a permissive licence (MIT, Apache, BSD, CC BY …) are used for measuring only. The same data give
    the same bytes.
    """
    from jobs.lab.eval.escalation import judge_left_out, require_two
    from jobs.lab.eval.escalation_scoring import roc_auc_interval, summary
    from jobs.lab.train.card import COLUMNS, failures_of, measured_of
    from jobs.lab.train.scorer import trainer_with_own
    from jobs.shared.dialogues import read_dialogues, read_pools
    from jobs.shared.output import progress_bar
    from models.policy import Policy
    from models.risk.turn_model import ModelCard, TurnModel, write_model
    from streams.inference.wordllama import WordLlamaEmbedder

    _require_folder(to)
    dialogues = [dialogue for dialogue in read_dialogues(data) if dialogue.said_by_user]
    pool = read_pools(texts or (), dialogues)
    learnt = [dialogue for dialogue in [*dialogues, *pool] if any_licence or dialogue.may_ship]
    if not any(dialogue.escalating for dialogue in learnt):
        raise ConfigurationError(
            f"{data}: nothing escalating to learn from in which a user speaks, or all of it under licences that are "
            "missing, share-alike or unknown here (see --any-licence)"
        )
    embedder, measured = WordLlamaEmbedder(), dict[str, float]()
    if measure:
        require_two(dialogues, instead="Add others, or train without figures by --no-measure.")
        with progress_bar("families left out") as progress:
            everything = trainer_with_own([*dialogues, *pool], embedder)
            judged = judge_left_out(dialogues, everything, Policy(), progress)
        measured = measured_of(summary(judged), roc_auc_interval(judged, seed))
    day = date or datetime.now(UTC).date().isoformat()
    failures = failures_of({dialogue.source for dialogue in learnt})
    card = ModelCard(trained_on=day, seed=seed, sources=[], base_rate=0.0, measured=measured, failures=failures)
    trainer = trainer_with_own(learnt, embedder)
    file = trainer.train(version, card)
    written = write_model(file)
    to.write_bytes(written)
    name = TurnModel(file, written).name
    shown = {figure: measured[figure] for figure in COLUMNS[1:] if figure in measured}
    Printer(output).record(
        {"file": str(to), "name": name, "bytes": len(written), "dialogues": len(trainer.dialogues), **shown}
    )


@app.shown("harms", "harms --to mine.scorer")
def harms(
    *,
    to: Annotated[
        Path | None,
        typer.Option(help="Scorer file in which to replace the weights of kinds of harm.", show_default=False),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Retrain the classifier of kinds of harm (`train scorer` does it too); measure it on authors left out.

    The baselines are a bag of words trained on the same texts, and the most frequent kind. Learns from the project's
    own pairs, since public families have no labels of kind.
    """
    from msgspec import structs

    from jobs.lab.train.harms import fit_harms, measured_harms
    from jobs.lab.train.scorer import own_dialogues, own_pairs
    from jobs.lab.train.turns import features_of
    from models.risk.turn_model import write_model
    from streams.inference.trained_scorer import model_at, trained_scorer
    from streams.inference.wordllama import WordLlamaEmbedder

    embedder, pairs, model = WordLlamaEmbedder(), own_pairs(), model_at(to)
    scorer = trained_scorer(model, embedder)
    figures = measured_harms(pairs, own_dialogues(), scorer.risks, embedder)
    if to is not None:
        told = fit_harms(pairs, features_of([pair.harmful for pair in pairs], embedder))
        to.write_bytes(write_model(structs.replace(model.file, harms=told)))
    rows = [
        {"by": name} | {key: round(value, 3) for key, value in each._asdict().items()} for name, each in figures.items()
    ]
    Printer(output).rows("kinds of harm", rows)


@app.shown(
    "ranker --data locomo10.json --to ranker.toml",
    "ranker --data locomo10.json --embedder minilm --to ranker.toml",
)
def ranker(
    *,
    data: Annotated[Path, typer.Option(help="Conversations with questions and the turns that answer them (LoCoMo).")],
    to: Annotated[Path, typer.Option(help="File of weights; the weights of other embedders stay.")],
    embedder: EmbedderOption = EmbedderName.WORDLLAMA,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Train the ranker of turns. `turntide lab eval retrieval` measures it on conversations left out.

    Indexes the conversations as the index role does. Training takes two CPU seconds. Never prints text.
    """
    import tomli_w

    from jobs.lab.eval.dialogues import read_questions
    from jobs.lab.eval.retrieval import ask_all
    from jobs.lab.train.ranker import fit
    from jobs.shared.output import progress_bar
    from models.policy import Policy

    made_by = embedder_of(load_settings(vectors={"embedder": embedder, "url": None}))
    dialogues = read_questions(data)
    with progress_bar("questions") as progress:
        asked = asyncio.run(ask_all(dialogues, made_by, Policy(), progress))
    weights = fit((each.values, each.answers) for each in asked)
    others = tomllib.loads(to.read_text("utf-8")) if to.exists() else {}
    to.write_text(tomli_w.dumps(others | {embedder.value: weights}), "utf-8")
    Printer(output).record(
        {"file": str(to), "embedder": embedder.value, "questions": len(asked), "conversations": dialogues.conversations}
    )


@app.shown("statements --to statements.npz", "statements --data mine.tsv --to mine.npz --no-measure")
def statements(
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="Messages, tab-separated with a header: manner, states, because, text. None: Turntide's."),
    ] = None,
    to: Annotated[Path, typer.Option(help="File of weights; the shipped one is streams/inference/statements.npz.")],
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Measure on held-out messages.")] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Train the second reader of statements with the embedder e5; compare it with the rules and a bag of words.

    Measures each manner of writing with a reader trained on the others, then the labelled set of `turntide lab eval
    extraction`. Never prints a message.
    """
    import numpy as np

    from jobs.lab.train.statements import embedded_once, read_written, train
    from jobs.lab.train.statements import measure as measured
    from jobs.shared.output import status_line
    from models.policy import Policy
    from streams.inference.onnx_embedder import E5Embedder

    _require_folder(to)
    written, embed = read_written(data), embedded_once(E5Embedder().embed)
    with status_line("statements") as say:
        say(f"embedding {len(written):,} messages")
        vectors = embed([each.said for each in written])
        with to.open("wb") as file:
            np.savez_compressed(file, **train(written, vectors)._asdict())
        say("measuring")
        promote_from = Policy().projects.long_term.promote_from
        figures = list(measured(written, vectors, embed, promote_from)) if measure else []
    if figures:
        Printer(output).rows("read", figures)
    Printer(output).record({"file": str(to), "bytes": to.stat().st_size, "messages": len(written)})


@app.shown(
    "uv run --extra train-reader turntide lab train reader --to mine.reader",
    "uv run --extra train-reader turntide lab train reader --to mine.reader --seed 1 --version e5-reader-2",
)
def reader(
    *,
    to: Annotated[Path, typer.Option(help="File to write; the shipped one is streams/inference/e5.reader.")],
    version: Annotated[str, typer.Option(help="Name of the result; scorers show it with its digest.")] = "e5-reader-1",
    epochs: Annotated[int, typer.Option(min=1, help="How often each pair is shown.")] = 3,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Fine-tune the second reader of user turns on the project's own pairs, with PyTorch (extra `train-reader`).

    Takes about ten minutes on one core. Compares its readings with the shipped reader's over the project's own
    dialogues, which neither learnt from. Never prints a text. `turntide lab eval escalation` measures what is shipped.
    """
    import numpy as np

    from jobs.lab.train.reader import halves_of, in_order, trained_reader
    from jobs.lab.train.scorer import own_dialogues, own_pairs
    from jobs.shared.output import progress_bar
    from streams.inference.e5_reader import E5Reader
    from streams.inference.trained_scorer import shipped_reader

    _require_folder(to)
    pairs = own_pairs()
    with progress_bar("batches") as progress:
        made = trained_reader(pairs, version, progress, epochs=epochs, seed=seed)
    to.write_bytes(made.data)
    turns = [text for each in own_dialogues() for text in each.said_by_user]
    alike = np.corrcoef(made.readings(turns), E5Reader(shipped_reader("e5")).readings(turns))[0, 1]
    figures = {"in_order": in_order(made.readings(halves_of(pairs))), "correlation_with_shipped": float(alike)}
    Printer(output).record(
        {"file": str(to), "name": made.name, "bytes": len(made.data), "pairs": len(pairs)}
        | {name: round(each, 3) for name, each in figures.items()}
    )


@app.shown("distilled --data dialogues.jsonl --texts pool.jsonl.gz --to mine.reader")
def distilled(
    *,
    data: Annotated[Path, typer.Option(help="Labelled dialogues of families that it must not read.")],
    texts: Annotated[list[Path], typer.Option(help="Texts that it learns from (family, label, licence, turns).")],
    to: Annotated[Path, typer.Option(help="File to write; the shipped one is streams/inference/distilled.reader.")],
    version: Annotated[str, typer.Option(help="Name of the result.")] = "distilled-1",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Have the scorer's features imitate the shipped e5 reader (extra `e5`) on the project's own texts and these.

    Labels teach nothing here. Takes about four minutes on one core, nearly all of it e5's. Never prints a text.
    """
    import numpy as np

    from jobs.lab.train.distilled import distilled_from, texts_of
    from jobs.shared.dialogues import read_dialogues, read_pooled
    from jobs.shared.output import progress_bar
    from streams.inference.e5_reader import E5Reader
    from streams.inference.trained_scorer import shipped_reader
    from streams.inference.wordllama import WordLlamaEmbedder

    _require_folder(to)
    measured_on = read_dialogues(data)
    families = {each.family for each in measured_on}
    said = texts_of(each for each in read_pooled(texts) if each.family not in families and each.may_ship)
    teacher, embedder = E5Reader(shipped_reader("e5")), WordLlamaEmbedder()
    with progress_bar("texts") as progress:
        made = distilled_from(said, teacher, embedder, version, progress)
    to.write_bytes(made.data)
    others = [text for each in measured_on for text in each.said_by_user]
    alike = np.corrcoef(made.readings(others), teacher.readings(others))[0, 1]
    Printer(output).record(
        {"file": str(to), "name": made.name, "bytes": len(made.data), "texts": len(said)}
        | {"correlation_left_out": round(float(alike), 3)}
    )


@app.shown("card", "card mine.scorer > card.md")
def card(
    file: Annotated[Path | None, typer.Argument(help="Scorer file. None: the shipped one.", show_default=False)] = None,
) -> None:
    """Print a scorer's model card as Markdown."""
    from jobs.lab.train.card import card_page
    from streams.inference.trained_scorer import model_at

    typer.echo(card_page(model_at(file)), nl=False)


@app.shown("words --words frequency_dictionary_en_82_765.txt --to words.npz")
def words(
    *,
    words: Annotated[
        Path, typer.Option(help="One word a line, the most frequent first; the rest of a line is ignored.")
    ],
    to: Annotated[Path, typer.Option(help="File to write; the shipped one is models/retrieval/data/words.npz.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Rebuild the table of near words with the embedder e5.

    Takes the 20,000 most frequent words that are one search term, and for each the 50 nearest with a cosine of centred
    vectors from 0.3. Runs for some minutes. models/retrieval/data/words.md names the source of the shipped table.
    """
    import numpy as np

    from jobs.lab.train.words import table_of, words_of
    from jobs.shared.output import status_line
    from streams.inference.onnx_embedder import E5Embedder

    _require_folder(to)
    try:
        found = words_of(words.read_text("utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--words {words}: not a text file that can be read (UTF-8)") from error
    if not found:
        raise ConfigurationError(f"--words {words}: no line begins with a word that a search would look for")
    with status_line("words") as say:
        say(f"embedding {len(found):,} words")
        table = table_of(found, E5Embedder())
    with to.open("wb") as file:
        np.savez_compressed(file, **table._asdict())
    counts = {"words": len(found), "terms": len(table.terms), "pairs": len(table.neighbours)}
    Printer(output).record({"file": str(to), "bytes": to.stat().st_size, **counts})


@app.shown("packing --to zstd.dict")
def packing(
    *,
    to: Annotated[Path, typer.Option(help="File to write; the shipped one is models/session/topics/zstd.dict.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Train the dictionary that packs topics, on the project's own dialogues and messages.

    A new shipped dictionary is a change of format: only the dictionary that packed a block can unpack it.
    """
    from jobs.lab.train.packing import dictionary_of, packed_texts

    _require_folder(to)
    samples = packed_texts()
    to.write_bytes(dictionary_of(samples))
    Printer(output).record({"file": str(to), "bytes": to.stat().st_size, "texts": len(samples)})


def _require_folder(to: Path) -> None:
    if not to.parent.is_dir():
        raise ConfigurationError(f"--to {to}: there is no folder {to.parent}")
