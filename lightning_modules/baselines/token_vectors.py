"""The seam of what gives texts a vector a token: files of word vectors, and other sources of them.

Shapes: N texts, L tokens, D numbers a token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.encoded_set import Ids
from probelight.encoding.vector_source import vectors_kind
from probelight.encoding.word_vectors import WordVectors, word_vectors
from probelight.encoding.words import PADDING_ID, words_of
from probelight.lightning_modules.baselines.word_rows import VectorRows, WordRows

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


# By what stands before the colon of `--model.vectors`: what makes vectors of what stands behind it,
# and of the dimension and the checksum of a saved model.
SOURCES = {
    "encoder": "probelight.lightning_modules.baselines.encoder_vectors:EncoderVectors.load",
    "elmo": "probelight.lightning_modules.baselines.elmo.vectors:ElmoVectors.load",
}


class Origin(Protocol):
    """Where vectors come from, for the folder of a saved model."""

    @property
    def source(self) -> str:
        """As `--model.vectors` names it."""
        ...

    @property
    def dimension(self) -> int:
        """D."""
        ...

    @property
    def sha256(self) -> str | None:
        """Of the files that they are made from, as hex."""
        ...


class TokenVectors(nn.Module, ABC):
    """Texts to tokens, tokens to ids, ids to vectors: what a baseline over vectors begins with.

    A source owns how a text is split and which ids its tokens have, from 1 on; 0 is padding. It is
    a `WordIndex`, and a module, so its weights are saved and trained with the baseline's, as far as
    it lets them be. A token's vector may depend on the other tokens of its text, and on no other
    text.
    """

    origin: Origin

    @property
    def dimension(self) -> int:
        """D."""
        return self.origin.dimension

    def split(self, text: str) -> list[str]:
        """The tokens of a text."""
        return words_of(text)

    @property
    @abstractmethod
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about the vectors."""

    @abstractmethod
    def ids(self, words: Sequence[str]) -> Ids:
        """(W,) ids of tokens; one that is not known yet gets one."""

    @abstractmethod
    def unknown(self, words: Iterable[str]) -> set[str]:
        """Those of these tokens, all asked for before, for which there is no vector."""

    @abstractmethod
    def forward(self, ids: Tensor) -> Tensor:
        """(N, L, D) vectors of ids (N, L), 0 at padding and where a token has none."""

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (N, L, D), and which tokens (N, L) are no padding."""
        return self(ids), ids != PADDING_ID

    def encoder(self, max_length: int, num_choices: int | None = None) -> ChoiceEncoder:
        """What turns records into batches of ids; see `WordPairEncoder`."""
        from probelight.encoding.words import WordPairEncoder

        return WordPairEncoder(self, max_length, num_choices, self.split)


class FileVectors(WordRows, TokenVectors):
    """Word vectors of a file, a row a word, whatever stands beside it.

    Args:
        vectors: The file.
        unknown: What a word without a vector gets: "zero", or "seeded" numbers as large as the
            file's.
        trainable: Whether the rows are trained.
        seed: Of the seeded numbers.
    """

    def __init__(
        self, vectors: WordVectors, unknown: str, *, trainable: bool = False, seed: int = 0
    ) -> None:
        super().__init__(VectorRows(vectors, unknown, seed), trainable=trainable)
        self.origin = vectors

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, padding_idx=PADDING_ID)


def token_vectors(
    source: str,
    unknown: str,
    *,
    trainable: bool = False,
    seed: int = 0,
    dimension: int | None = None,
    sha256: str | None = None,
) -> TokenVectors:
    """The vectors that `--model.vectors` names.

    Args:
        source: "embedded", a file in GloVe's text format (see `WordVectors`), or one of `SOURCES`,
            as "encoder:NAME".
        unknown: "zero" or "seeded"; see `FileVectors`.
        trainable: Whether vectors that can be trained are.
        seed: Of what is drawn.
        dimension: D of a saved model; the file may be missing then.
        sha256: Of the files of a saved model.

    Raises:
        WordVectorsError: If they cannot be had.
        PretrainedError: If an encoder cannot be loaded.
    """
    kind, name = vectors_kind(source)
    if kind:
        made: TokenVectors = resolve_name(SOURCES[kind])(name, dimension, sha256)
        return made
    found = word_vectors(source, dimension, sha256)
    return FileVectors(found, unknown, trainable=trainable, seed=seed)
