"""Causal models are in the same tables as masked ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.protocols import cli
from tests.fixtures.rows import read_predictions, read_result

Folder = Callable[[str], Path]
GPT2 = "model:\n  name_or_path: {folder}\n  kind: causal\n  random_weights: {random}\n"


@pytest.mark.parametrize("kind", ["causal", "masked", "seq2seq"])
def test_white_space_around_texts_is_not_scored_and_said_once(
    kind: str, causal_folder: Folder, curve_lm: Folder, tmp_path: Path
) -> None:
    # As minicons and lm-evaluation-harness have it, a blank at the end would be a token.
    texts = [("the cat is larger . ", "the cat is a larger ."), ("a dog", "\ta a dog")]
    models = {"causal": causal_folder("gpt2"), "seq2seq": curve_lm("t5")}
    model = models.get(kind, "dictionary-lm")
    found = []
    for pairs in (texts, [(good.strip(), bad.strip()) for good, bad in texts]):
        own, out = tmp_path / "pairs.jsonl", tmp_path / str(len(found))
        rows = [
            {"sentence_good": good, "sentence_bad": bad, "UID": "x", "pairID": str(n)}
            for n, (good, bad) in enumerate(pairs)
        ]
        own.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        command = ["zero-shot", f"--data.path={own}", "--data.setup=minimal_pair"]
        command += [f"--model.name_or_path={model}", "--model.kind=auto", f"--output_dir={out}"]
        assert cli.main([*command, "--trainer.progress_bar=false"]) == 0
        notices = read_result(out).get("notices", [])
        said = [notice for notice in notices if "white space" in notice]
        found.append(([line["scores"] for line in read_predictions(out)], said))
    [(with_blanks, [notice]), (clean, none)] = found
    assert with_blanks == clean
    assert none == []
    assert notice.startswith("2 of 2 items have white space at the end of a choice or stem or arou")
    assert f"not scored (the first one: {tmp_path / 'pairs.jsonl'}:1)" in notice
