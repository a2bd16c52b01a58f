"""Texts to tokens: the cache is whole or built anew; special tokens and cuts as the tokenizer's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probelight.encoding.tokens import (
    Template,
    tokenise,
    tokenizer_fingerprint,
    unknown_notice,
)

TEXTS = ["The dog is older.", "", "antelope", "zebra cat"]


def _rows(tokenizer: Any, texts: list[str], cache: Path | None) -> list[list[int]]:
    store, notices = tokenise(tokenizer, texts, cache)
    assert notices == ()
    return [store[i].tolist() for i in range(len(store))]


def _by_tokenizer(tokenizer: Any) -> list[list[int]]:
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]


def test_tokens_are_the_tokenizers_with_and_without_cache(tokenizer: Any, tmp_path: Path) -> None:
    for cache in (None, tmp_path, tmp_path):
        assert _rows(tokenizer, TEXTS, cache) == _by_tokenizer(tokenizer)
        assert _rows(tokenizer, [], cache) == []


def test_a_second_time_nothing_is_tokenised(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _rows(tokenizer, TEXTS, tmp_path)
    monkeypatch.setattr("probelight.encoding.tokens._tokenised", None)
    assert _rows(tokenizer, TEXTS, tmp_path) == first
    with pytest.raises(TypeError):  # other texts are not in the cache
        tokenise(tokenizer, TEXTS[:3], tmp_path)


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "flipped", "foreign"])
def test_a_damaged_cache_is_built_anew_and_said(
    tokenizer: Any, tmp_path: Path, damage: str
) -> None:
    tokenise(tokenizer, TEXTS, tmp_path)
    (path,) = (tmp_path / "tokens").iterdir()
    content = path.read_bytes()
    middle = content.find(np.lib.format.magic(1, 0)) + 130  # inside of the first array
    path.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "garbage": b"PK\x03\x04 this is no archive",
            "empty": b"",
            "flipped": content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :],
            "foreign": content,
        }[damage]
    )
    texts = TEXTS
    if damage == "foreign":  # a whole file under the name of other texts
        texts = [*TEXTS[:3], "dog cat"]
        tokenise(tokenizer, texts, tmp_path)
        (new_path,) = set((tmp_path / "tokens").iterdir()) - {path}
        path = path.replace(new_path)
    store, notices = tokenise(tokenizer, texts, tmp_path)
    expected = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert [store[i].tolist() for i in range(len(store))] == expected
    assert len(notices) == 1
    assert f"{path} is unusable" in notices[0]
    assert _rows(tokenizer, texts, tmp_path) == expected  # and it is whole again


def test_a_cache_that_can_not_be_written_is_done_without(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    store, notices = tokenise(tokenizer, TEXTS, tmp_path / "file")
    assert [store[i].tolist() for i in range(len(store))] == _by_tokenizer(tokenizer)
    assert "cannot be written" in notices[0]


def test_the_fingerprint_is_of_the_rules_not_of_the_last_call(kind: str, tokenizer: Any) -> None:
    fingerprint = tokenizer_fingerprint(tokenizer)
    tokenizer("a cat", truncation=True, max_length=3, padding="max_length")
    assert tokenizer_fingerprint(tokenizer) == fingerprint
    tokenizer.add_tokens(["zebra"])
    assert tokenizer_fingerprint(tokenizer) != fingerprint


@pytest.mark.thorough
def test_a_slow_tokenizer_has_a_fingerprint_and_a_cache(
    make_tokenizer: Callable[..., Any], tmp_path: Path
) -> None:
    tokenizer, again = make_tokenizer("characters"), make_tokenizer("characters")
    assert tokenizer_fingerprint(tokenizer) == tokenizer_fingerprint(again)
    assert _rows(tokenizer, ["a cat"], tmp_path) == [[ord(c) for c in "a cat"]]
    assert _rows(again, ["a cat"], tmp_path) == [[ord(c) for c in "a cat"]]
    assert len(list((tmp_path / "tokens").iterdir())) == 1


def test_items_that_hold_an_unknown_piece_are_counted_once(
    make_tokenizer: Callable[..., Any],
) -> None:
    tokenizer = make_tokenizer("wordpiece")
    store, _ = tokenise(tokenizer, ["a zebra zebra", "a cat", "zebra"])
    assert unknown_notice(tokenizer, store, [[1], [1, -1]], "items") == ()
    [notice] = unknown_notice(tokenizer, store, [[0, 2], [1, 0], [1]], "items")
    assert notice.startswith("2 of 3 items contain text that the tokenizer does not know")
    assert "[UNK]" in notice


class Odd:
    """A tokenizer that does something to a text when it puts special tokens, 1 and 2, around it."""

    unk_token_id = None
    all_special_ids = (1, 2)

    def __init__(self, change: Callable[[list[int]], list[int]]) -> None:
        self.change = change

    def __call__(self, text: str, add_special_tokens: bool = True, **_: Any) -> dict[str, Any]:
        ids = [11, 12]
        return {"input_ids": [1, *self.change(ids), 2] if add_special_tokens else ids}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"t{i}" for i in ids]


@pytest.mark.parametrize(
    ("change", "became"),
    [
        (lambda ids: ids[::-1], "'t1', 't12', 't11', 't2'"),
        (lambda ids: [13, *ids], "'t1', 't13', 't11', 't12', 't2'"),  # a word of its own
        (lambda ids: ids[:1], "'t1', 't11', 't2'"),
    ],
    ids=["reversed", "more", "less"],
)
def test_a_tokenizer_that_changes_texts_when_it_joins_them_is_refused(
    change: Callable[[list[int]], list[int]], became: str
) -> None:
    with pytest.raises(ValueError, match=rf"Odd changes texts .*\('one',\) became \[{became}\]"):
        Template.of(Odd(change), 1)
    assert Template.of(Odd(list), 1).num_special == 2  # which only adds special tokens
