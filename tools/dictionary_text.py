"""The data that the bundled models were pre-trained on: pairs of segments, masked on the fly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from probelight.builders.sources.gcide import DEFAULT_PATH
from probelight.builders.sources.wordnet import DEFAULT_DIR
from probelight.datamodules.loaders import EpochBatchSampler, ResumableData, ResumableLoader
from probelight.encoding.encoded_set import stacked, token_budget_batches
from probelight.io.ranges import MaxLength, NumItems, NumTokens, Seed, Share, ShareOrAll, Within
from tools.pretraining_text import TOKENS, VOCABULARY, DocumentStore, build_text

PAD, UNK, CLS, SEP, MASK = range(5)
IGNORE = -100
_MAX_NEIGHBOUR = 20


class DictionaryText(ResumableData):
    """Pairs of segments about one concept, masked for a BERT-style objective.

    Args:
        wordnet_dir: Folder of a WordNet 3.0 database.
        gcide_path: GCIDE in dictd's format; only paragraphs of 1913 are read.
        sources: Texts to read: names in `pretraining_text.DICTIONARIES` and
            `free_texts.FREE_TEXTS`.
        texts_dir: Folder under which the packages of the free texts are installed or unpacked.
        common_words: Keep only dictionary entries that have a name made of common words alone, the
            `common_words` most frequent in English; 0 keeps all entries.
        cache_dir: Folder that keeps vocabulary and tokens between runs.
        vocab_size: Tokens in the vocabulary.
        num_nouns: Number of frequent English nouns that must be one token each.
        whole_words: Further words that must be one token each, besides the numbers 0 to 120.
        max_length: Longest pair in tokens, including special tokens.
        max_tokens: Padded tokens per training batch.
        mask_rate: Share of words to mask; all tokens of a word are masked together.
        held_out_rate: Share of documents held out for measuring.
        swap_rate: Share of pairs whose second half is replaced by that of a neighbouring concept,
            for the next-sentence objective.
        definition_rate: Share of a dictionary's pairs whose second half is a definition without
            its word. The next-sentence objective then asks whether the word has this meaning.
        seed: Seed of text, order, pairs and masks.
    """

    def __init__(
        self,
        wordnet_dir: str = str(DEFAULT_DIR),
        gcide_path: str = str(DEFAULT_PATH),
        sources: Sequence[str] = ("wordnet", "gcide"),
        texts_dir: str = "/",
        common_words: Annotated[int, Within(0, 1_000_000)] = 0,
        cache_dir: str = "~/.cache/probelight/dictionary_text",
        vocab_size: NumItems = 12000,
        num_nouns: Annotated[int, Within(0, 1_000_000)] = 5000,
        whole_words: Sequence[str] = (),
        max_length: MaxLength = 128,
        max_tokens: NumTokens = 4096,
        mask_rate: Share = 0.2,
        held_out_rate: Share = 0.01,
        swap_rate: ShareOrAll = 0.5,
        definition_rate: ShareOrAll = 0.0,
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.max_length = max_length
        self.max_tokens = max_tokens
        self.mask_rate = mask_rate
        self.swap_rate = swap_rate
        self.definition_rate = definition_rate
        self.seed = seed
        self.text_settings: dict[str, Any] = {
            "wordnet_dir": wordnet_dir,
            "gcide_path": gcide_path,
            "sources": list(sources),
            "texts_dir": texts_dir,
            "common_words": common_words,
            "vocab_size": vocab_size,
            "num_nouns": num_nouns,
            "whole_words": list(whole_words),
            "held_out_rate": held_out_rate,
            "seed": seed,
        }
        key = hashlib.sha256(json.dumps(self.text_settings, sort_keys=True).encode()).hexdigest()
        self.folder = Path(cache_dir).expanduser() / key[:16]
        self.vocab_path = self.folder / VOCABULARY  # one piece per line, in the order of the ids

    def prepare_data(self) -> None:
        """Build text, vocabulary and tokens, unless they are in the cache."""
        if not (self.folder / TOKENS).exists():
            build_text(self.folder, **self.text_settings)

    def setup(self, stage: str | None = None) -> None:
        """Load the tokens and split the documents."""
        self.store = DocumentStore.read(self.folder)
        self.lengths = np.minimum(self.store.lengths() + 5, self.max_length)
        self.train_documents = np.flatnonzero(~self.store.held_out)
        self.held_out_documents = np.flatnonzero(self.store.held_out)

    def train_dataloader(self) -> ResumableLoader:
        """Return masked pairs, drawn again in each epoch.

        Raises:
            ValueError: If there are several processes, because this data cannot be sharded.
        """
        if self.trainer is not None and self.trainer.world_size > 1:
            raise ValueError("pre-training runs in one process; set --trainer.devices 1")
        return self.resumable(self._make_loader(self.train_documents, shuffle=True))

    def val_dataloader(self) -> ResumableLoader:
        """Return masked pairs of the held-out documents, the same in each epoch."""
        return self._make_loader(self.held_out_documents, shuffle=False)

    def _make_loader(self, documents: np.ndarray, shuffle: bool) -> ResumableLoader:
        sampler = TokenBudgetSampler(
            self.lengths[documents], self.max_tokens, seed=self.seed, shuffle=shuffle
        )
        pairs = MaskedPairs(self.store, documents, sampler if shuffle else None, self)
        return ResumableLoader(pairs, sampler, collate_fn=collate_pairs)


class TokenBudgetSampler(EpochBatchSampler):
    """Batches of items of similar lengths, with a maximum of padded tokens.

    Args:
        lengths: (N,) tokens of each item.
        max_tokens: Padded tokens of a batch.
        seed: Seed of the run.
        shuffle: Draw a new order in each epoch. False keeps the dataset's order.
    """

    def __init__(self, lengths: np.ndarray, max_tokens: int, *, seed: int, shuffle: bool) -> None:
        super().__init__(len(lengths), seed=seed)
        self.lengths = lengths
        self.max_tokens = max_tokens
        self.shuffle = shuffle

    @property
    def plan(self) -> dict[str, int]:
        """Return the settings that determine the batches."""
        return {"num_items": self.num_items, "seed": self.seed, "max_tokens": self.max_tokens}

    def global_batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch."""
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(self.num_items) if self.shuffle else np.arange(self.num_items)
        by_length = order[np.argsort(self.lengths[order], kind="stable")]
        batches = token_budget_batches(self.lengths, self.max_tokens, by_length)
        return [batches[i] for i in rng.permutation(len(batches))] if self.shuffle else batches


class MaskedPairs(Dataset[dict[str, Any]]):
    """One masked pair of segments per document; depends only on seed, epoch and document."""

    def __init__(
        self,
        store: DocumentStore,
        documents: np.ndarray,
        clock: EpochBatchSampler | None,
        settings: DictionaryText,
    ) -> None:
        self.store = store
        self.documents = documents
        self.clock = clock
        self.settings = settings
        pieces = settings.vocab_path.read_text(encoding="utf-8").splitlines()
        self.continues = np.array([piece.startswith("##") for piece in pieces])
        self.separator = pieces.index(".")
        self.colon = pieces.index(":") if settings.definition_rate else PAD

    def __getitem__(self, index: int) -> dict[str, Any]:
        epoch = self.clock.epoch if self.clock else 0
        document = int(self.documents[index])
        rng = np.random.default_rng([self.settings.seed, epoch, document])
        first, second, is_next = self._segments(document, rng)
        segments = [np.array([CLS]), first, np.array([SEP]), second, np.array([SEP])]
        ids = np.concatenate(segments[: 5 if len(second) else 3]).astype(np.int64)
        types = np.zeros(len(ids), dtype=np.int64)
        types[len(first) + 2 :] = 1
        masked, labels = self._mask(ids, rng)
        return {"ids": masked, "types": types, "labels": labels, "is_next": is_next}

    def _segments(
        self, document: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Return two segments, and whether the second continues the first."""
        # Within the length the batch was planned with, whichever document the second half is from.
        budget = int(self.settings.lengths[document]) - 3
        rate = 0.0 if self.store.in_order[document] else self.settings.definition_rate
        defines = rate > 0 and rng.random() < rate
        mine = self._sentences(document, rng, but_first=defines)
        if defines:
            word, definition = self._entry(document)
            first = self._join([word, *mine[: int(rng.integers(len(mine) + 1))]])
            second = [definition]
        elif len(mine) == 1:
            return mine[0][: budget + 1], mine[0][:0], IGNORE
        else:
            cut = int(rng.integers(1, len(mine)))
            first, second = self._join(mine[:cut]), mine[cut:]
        swapped = rng.random() < self.settings.swap_rate
        if swapped:
            offset = int(rng.integers(1, _MAX_NEIGHBOUR + 1)) * (1 if rng.random() < 0.5 else -1)
            index = int(np.searchsorted(self.documents, document)) + offset
            neighbour = int(self.documents[index % len(self.documents)])
            if defines:
                second = [self._entry(neighbour)[1]]
            else:
                second = self._sentences(neighbour, rng)[: max(1, len(second))]
        joined = self._join(second)
        half = budget // 2
        first = first[: max(half, budget - len(joined))]
        return first, joined[: budget - len(first)], int(not swapped)

    def _entry(self, document: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the word and the definition, of which a dictionary's first sentences are made."""
        sentence = self.store.sentences(document)[0]
        end = int(np.argmax(sentence == self.colon))
        return sentence[:end], sentence[end + 1 :]

    def _sentences(
        self, document: int, rng: np.random.Generator, but_first: bool = False
    ) -> list[np.ndarray]:
        """Return the sentences of a document; those of a dictionary in a random order."""
        sentences = self.store.sentences(document)[but_first:]
        if self.store.in_order[document]:
            return sentences
        return [sentences[i] for i in rng.permutation(len(sentences))]

    def _join(self, sentences: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([tokens for s in sentences for tokens in (s, [self.separator])])

    def _mask(self, ids: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids with whole words masked, and the labels at the masked places."""
        maskable = ids > MASK
        word = np.cumsum(~self.continues[ids]) - 1
        chosen = (rng.random(word[-1] + 1) < self.settings.mask_rate)[word] & maskable
        if not chosen.any():
            chosen[rng.choice(np.flatnonzero(maskable))] = True
        labels = np.where(chosen, ids, IGNORE)
        masked = np.where(chosen & (rng.random(len(ids)) < 0.9), MASK, ids)
        return masked, labels

    def __len__(self) -> int:
        return len(self.documents)


def collate_pairs(items: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Pad pairs to (B, L) inputs and `labels`, next to `is_next` (B,)."""
    input_ids = stacked((item["ids"] for item in items), PAD)
    return {
        "input_ids": input_ids,
        "token_type_ids": stacked((item["types"] for item in items), 0),
        "attention_mask": (input_ids != PAD).long(),
        "labels": stacked((item["labels"] for item in items), IGNORE),
        "is_next": torch.tensor([item["is_next"] for item in items]),
    }
