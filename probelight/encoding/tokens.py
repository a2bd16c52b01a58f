"""Texts to tokens: each distinct text once, cached on disk, with special tokens around it."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probelight.encoding.encoded_set import Ids
from probelight.io.atomic import remove_leftovers, write_bytes_atomic

_FORMAT = "probelight-tokens-1"


@dataclass(frozen=True)
class TokenStore:
    """Token ids of texts, without special tokens."""

    ids: NDArray[np.int32]  # (T,), one text after the other
    starts: NDArray[np.int64]  # (S + 1,) where each text begins in `ids`

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.ids[self.starts[index] : self.starts[index + 1]]

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens (S,) of each text."""
        return np.diff(self.starts)


def unknown_notice(
    tokenizer: Any, store: TokenStore, texts: Sequence[Sequence[int]], noun: str
) -> tuple[str, ...]:
    """Say how many items hold the tokenizer's piece for what it does not know.

    `texts` are the indices in `store` of each item's texts, below 0 for none; `what` names the
    items, in the plural.
    """
    if tokenizer.unk_token_id is None:
        return ()
    token_indices = np.flatnonzero(store.ids == tokenizer.unk_token_id)
    text_indices = set((np.searchsorted(store.starts, token_indices, side="right") - 1).tolist())
    num_unknown = sum(not text_indices.isdisjoint(ids) for ids in texts)
    if not num_unknown:
        return ()
    return (
        f"{num_unknown} of {len(texts)} {noun} contain text that the tokenizer does not know; the "
        f"model reads {tokenizer.unk_token} instead",
    )


def tokenise(
    tokenizer: Any, texts: Sequence[str], cache_dir: str | Path | None = None
) -> tuple[TokenStore, tuple[str, ...]]:
    """Return the tokens of distinct texts, without special tokens, from the cache if possible.

    The cache is the subfolder "tokens" of `cache_dir`; None keeps nothing. A cache file that is cut
    off, damaged or made for something else is built anew, and one that can't be written is done
    without; the notices, returned too, say so.
    """
    if cache_dir is None or not texts:
        return _tokenised(tokenizer, texts), ()
    digest = hashlib.sha256(f"{_FORMAT} {tokenizer_fingerprint(tokenizer)}\n".encode())
    for text in texts:
        encoded_text = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded_text).to_bytes(8, "little") + encoded_text)
    key = digest.hexdigest()
    path = Path(cache_dir).expanduser() / "tokens" / f"{key}.npz"
    notices: tuple[str, ...] = ()
    if path.exists():
        try:
            return _read_store(path, key, len(texts), len(tokenizer)), ()
        # What numpy and zipfile raise on bytes that are no archive, or only the beginning of one.
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            notices = (f"token cache {path} is unusable ({error}); it was built again",)
    store = _tokenised(tokenizer, texts)
    packed = io.BytesIO()
    name = np.frombuffer(key.encode(), dtype=np.uint8)
    np.savez(packed, ids=store.ids, starts=store.starts, key=name)
    try:
        write_bytes_atomic(path, packed.getvalue())
        remove_leftovers(path.parent)
    except OSError as error:
        notices += (f"token cache {path} cannot be written ({error}); continuing without it",)
    return store, notices


def tokenizer_fingerprint(tokenizer: Any) -> str:
    """Return the SHA-256 of all that decides how a tokenizer cuts: rules, vocabulary, versions."""
    digest = hashlib.sha256()
    for package in ("tokenizers", "transformers"):
        digest.update(f"{package} {version(package)}\n".encode())
    description = [type(tokenizer).__name__, sorted(map(str, tokenizer.special_tokens_map.items()))]
    digest.update(json.dumps(description).encode())
    if tokenizer.is_fast:
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # Left over from the last call; they decide nothing about the next one.
        rules.pop("truncation", None), rules.pop("padding", None)
        digest.update(json.dumps(rules, sort_keys=True).encode())
    else:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            for path in sorted(Path(folder).rglob("*")):
                digest.update(path.name.encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()


def _tokenised(tokenizer: Any, texts: Sequence[str]) -> TokenStore:
    rows: list[list[int]] = []
    if texts:
        rows = tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=starts[1:])
    flat = np.fromiter((i for row in rows for i in row), np.int32, int(starts[-1]))
    return TokenStore(ids=flat, starts=starts)


def _read_store(path: Path, key: str, num_texts: int, vocab_size: int) -> TokenStore:
    with np.load(path, allow_pickle=False) as arrays:
        ids, starts, name = arrays["ids"], arrays["starts"], arrays["key"]
    store = TokenStore(ids=ids, starts=starts)
    if name.tobytes() != key.encode():
        raise ValueError("it was made for other texts")
    if ids.dtype != np.int32 or starts.dtype != np.int64 or starts.shape != (num_texts + 1,):
        raise ValueError("its arrays have another shape")
    if starts[0] != 0 or starts[-1] != len(ids) or (np.diff(starts) < 0).any():
        raise ValueError("its offsets are inconsistent")
    if len(ids) and (ids.min() < 0 or ids.max() >= vocab_size):
        raise ValueError("it has ids that are not in the vocabulary")
    return store


@dataclass(frozen=True)
class Template:
    """The special tokens around one text or between two, as the tokenizer itself sets them."""

    special_ids: tuple[Ids, ...]  # before, between and behind the texts: 2, or 3 for a pair
    special_types: tuple[Ids, ...]  # their token types
    text_types: tuple[int, ...]  # token type of each text

    @classmethod
    def of(cls, tokenizer: Any, num_texts: Literal[1, 2]) -> Template:
        """Read the template off an encoded dummy; refuse a tokenizer that changes its texts."""
        samples = ("one", "two three")[:num_texts]
        sample_ids = [
            np.asarray(tokenizer(sample, add_special_tokens=False, verbose=False)["input_ids"])
            for sample in samples
        ]
        encoded = tokenizer(*samples, return_token_type_ids=True, verbose=False)
        ids = np.asarray(encoded["input_ids"], dtype=np.int64)
        types = np.asarray(encoded.get("token_type_ids") or [0] * len(ids), dtype=np.int64)
        num_special = len(ids) - sum(map(len, sample_ids))
        special_tokens = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        # All ways to split the special tokens into the places around the texts.
        for sizes in itertools.product(range(num_special + 1), repeat=num_texts + 1):
            if sum(sizes) != num_special:
                continue
            template = cls._cut(ids, types, [len(a) for a in sample_ids], sizes)
            is_same = np.array_equal(template.assemble(*sample_ids)[0], ids)
            if is_same and special_tokens.issuperset(np.concatenate(template.special_ids).tolist()):
                return template
        raise ValueError(
            f"{type(tokenizer).__name__} changes texts when it joins them: {samples} became "
            f"{tokenizer.convert_ids_to_tokens(ids.tolist())}"
        )

    @classmethod
    def _cut(cls, ids: Ids, types: Ids, lengths: list[int], sizes: tuple[int, ...]) -> Template:
        special_ids, special_types, text_types, start = [], [], [], 0
        for size, length in zip(sizes, [*lengths, 0], strict=True):
            special_ids.append(ids[start : start + size])
            special_types.append(types[start : start + size])
            start += size
            if len(special_ids) < len(sizes):
                text_types.append(int(types[start]))
            start += length
        return cls(tuple(special_ids), tuple(special_types), tuple(text_types))

    @property
    def num_special(self) -> int:
        """Number of special tokens."""
        return sum(map(len, self.special_ids))

    def assemble(self, *texts: NDArray[Any]) -> tuple[Ids, Ids]:
        """Return ids and token types of the texts with the special tokens around them."""
        ids, types = [self.special_ids[0]], [self.special_types[0]]
        for i, text in enumerate(texts):
            ids += [text.astype(np.int64), self.special_ids[i + 1]]
            types += [np.full(len(text), self.text_types[i]), self.special_types[i + 1]]
        return np.concatenate(ids), np.concatenate(types)


def longest_first(
    first: int, second: int, room: int, odd_to_first: bool = False
) -> tuple[int, int]:
    """Return how many tokens of two texts stay in `room` when the longer one is cut first.

    Texts that are both too long get half the room each. The odd token goes to the longer one (the
    second when they are equally long), as in the `tokenizers` library, or with `odd_to_first` to
    the first, as in tokenizers written in Python.
    """
    if first + second <= room:
        return first, second
    short, long = sorted((first, second))
    long = max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
        if odd_to_first:
            return long, short
    return (long, short) if first > second else (short, long)


def cut(text: NDArray[Any], keep: int, side: str) -> NDArray[Any]:
    """Return the first `keep` tokens of a text, or the last ones when `side` is "left"."""
    if keep >= len(text):
        return text
    return text[len(text) - keep :] if side == "left" else text[:keep]
