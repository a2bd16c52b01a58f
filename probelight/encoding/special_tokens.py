"""Where a tokenizer puts its special tokens, and how it cuts what is too long."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Template:
    """The special tokens around one text or between two, as the tokenizer itself sets them.

    Attributes:
        parts: Ids before, between and behind the texts: 2 arrays for one text, 3 for a pair.
        part_types: Token types of `parts`.
        text_types: Token type of each text.
    """

    parts: tuple[Ids, ...]
    part_types: tuple[Ids, ...]
    text_types: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Any, num_texts: Literal[1, 2]) -> Template:
        """Reads the template off an encoded dummy.

        Raises:
            ValueError: If the tokenizer does not keep texts in one piece and in order.
        """
        dummies = ("one", "two three")[:num_texts]
        alone = [_ids(tokenizer, dummy) for dummy in dummies]
        whole = tokenizer(*dummies, return_token_type_ids=True, verbose=False)
        ids = np.asarray(whole["input_ids"], dtype=np.int64)
        types = np.asarray(whole.get("token_type_ids") or [0] * len(ids), dtype=np.int64)
        num_special = len(ids) - sum(map(len, alone))
        for bounds in _cuts(num_special, num_texts):
            template = cls._cut(ids, types, [len(a) for a in alone], bounds)
            if np.array_equal(template.assemble(*alone)[0], ids) and _specials_only(
                tokenizer, template
            ):
                return template
        raise ValueError(
            f"{type(tokenizer).__name__} changes texts when it joins them: {dummies} became "
            f"{tokenizer.convert_ids_to_tokens(ids.tolist())}"
        )

    @classmethod
    def _cut(cls, ids: Ids, types: Ids, lengths: list[int], bounds: tuple[int, ...]) -> Template:
        parts, part_types, text_types, at = [], [], [], 0
        for size, length in zip(bounds, [*lengths, 0], strict=True):
            parts.append(ids[at : at + size])
            part_types.append(types[at : at + size])
            at += size
            if len(parts) < len(bounds):
                text_types.append(int(types[at]))
            at += length
        return cls(tuple(parts), tuple(part_types), tuple(text_types))

    @property
    def num_special(self) -> int:
        """Special tokens in all."""
        return sum(map(len, self.parts))

    def assemble(self, *texts: NDArray[Any]) -> tuple[Ids, Ids]:
        """Token ids and token types of the texts with the special tokens around them."""
        ids, types = [self.parts[0]], [self.part_types[0]]
        for i, text in enumerate(texts):
            ids += [text.astype(np.int64), self.parts[i + 1]]
            types += [np.full(len(text), self.text_types[i]), self.part_types[i + 1]]
        return np.concatenate(ids), np.concatenate(types)


def longest_first(
    first: int, second: int, room: int, odd_to_first: bool = False
) -> tuple[int, int]:
    """How many tokens of two texts stay when the longer one is cut first.

    Texts that are both too long get half the room each. The odd token goes to the longer one (the
    second when they are equally long), as the `tokenizers` library has it.

    Args:
        first: Tokens of the first text.
        second: Tokens of the second text.
        room: Tokens that both may have together.
        odd_to_first: The odd token goes to the first text, as in tokenizers written in Python.
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
    """The first `keep` tokens of a text, or the last ones when `side` is "left"."""
    if keep >= len(text):
        return text
    return text[len(text) - keep :] if side == "left" else text[:keep]


def _ids(tokenizer: Any, text: str) -> Ids:
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return np.asarray(ids, dtype=np.int64)


def _cuts(total: int, num_texts: int) -> list[tuple[int, ...]]:
    """All ways to split `total` special tokens into the places around the texts."""
    sizes = itertools.product(range(total + 1), repeat=num_texts + 1)
    return [split for split in sizes if sum(split) == total]


def _specials_only(tokenizer: Any, template: Template) -> bool:
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    return all(int(i) in special for part in template.parts for i in part)
