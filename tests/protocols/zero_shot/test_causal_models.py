"""Causal models are in the same tables as masked ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
from tests.fixtures.rows import read_predictions, read_result, read_results

Folder = Callable[[str], Path]
GPT2 = "model:\n  name_or_path: {folder}\n  kind: causal\n  random_weights: {random}\n"


def test_a_causal_model_and_its_control_answer_sentences(
    causal_folder: Folder, tmp_path: Path
) -> None:
    own = tmp_path / "my.jsonl"
    stems = ["a cat is [MASK] than a dog .", "the dog is [MASK] ."]
    write_ai2(own, [Record(str(i), s, ("smaller", "larger"), i) for i, s in enumerate(stems)])
    models = []
    for random in (False, True):
        models.append(tmp_path / f"random_{random}.yaml")
        models[-1].write_text(GPT2.format(folder=causal_folder("gpt2"), random=str(random).lower()))
    command = ["zero-shot", f"--data.path={own}", "--data.setup=mc_mlm"]
    command += [f"--models={','.join(map(str, models))}", "--trainer.progress_bar=false"]
    assert cli.main([*command, f"--output_dir={tmp_path / 'out'}", "--ranks=true"]) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {(r["model"], r["role"], r["kind"], r["mode"]) for r in rows} == {
        ("gpt2", "model", "causal", "causal_likelihood"),
        ("gpt2 (random weights)", "control", "causal", "causal_likelihood"),
    }
    results = [json.loads(p.read_text()) for p in tmp_path.glob("out/runs/*/result.json")]
    assert len({result["model_sha256"] for result in results}) == 2


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
