"""Items asked for letters: against a plain loop over transformers, for each type of model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import probelight
from probelight.metrics.scoring_rules import LETTER
from probelight.probes.prompts import Prompts, Templates
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import TrainerSettings
from probelight.protocols.zero_shot.letters import ask_letters
from probelight.results.measured import Predictions
from probelight.results.row import Row
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
PROMPTS = Prompts(Templates.read(ROOT / "configs" / "prompt" / "default.yaml"), "mc_qa")
QUESTIONS = [
    Record("1", "which animal is larger ?", ("a cat", "a dog", "the antelope"), 2),
    Record("2", "is snow warm ?", ("never", "really"), 0),
]
ORDERS = ([(0, 1, 2), (1, 2, 0), (2, 0, 1)], [(0, 1), (1, 0)])


def prompts(record: Record, orders: list[tuple[int, ...]]) -> list[str]:
    """The prompts as they are to be, without the code under test."""
    found = []
    for order in orders:
        lines = [f"{'ABC'[i]}. {record.choices[place]}" for i, place in enumerate(order)]
        found.append("\n".join([f"Question: {record.stem}", *lines, "Answer:"]))
    return found


def asked(model: ModelSettings) -> Any:
    scorer = scorer_for(model, "mc_mlm")
    own = Predictions("mine", QUESTIONS, [[0.0] * len(r.choices) for r in QUESTIONS])
    return ask_letters(scorer, own, "cyclic", PROMPTS, TRAINER)


def test_a_masked_model_is_asked_at_a_mask() -> None:
    folder = ROOT / "assets" / "dictionary-lm"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = asked(ModelSettings("dictionary-lm"))
    for item, record in enumerate(QUESTIONS):
        for order, text in enumerate(prompts(record, ORDERS[item])):
            ids = tokenizer(f"{text} [MASK]", return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logs = model(ids).logits[0].log_softmax(-1)
            place = (ids[0] == tokenizer.mask_token_id).nonzero().item()
            labels = tokenizer.convert_tokens_to_ids([*"abc"[: len(record.choices)]])
            expected = [float(logs[place, label]) for label in labels]
            assert found.labels[item][order] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_causal_model_is_asked_behind_the_cue(
    family: str, causal_folder: Callable[[str], Path]
) -> None:
    folder = str(causal_folder(family))
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = asked(ModelSettings(folder, kind="causal", max_length=2000))
    most = model.config.max_position_embeddings
    for item, record in enumerate(QUESTIONS):
        for order, text in enumerate(prompts(record, ORDERS[item])):
            expected = []
            for label in "ABC"[: len(record.choices)]:
                given = tokenizer(text)["input_ids"]
                whole = tokenizer(f"{text} {label}")["input_ids"]
                rest = whole[len(given) :]
                assert whole[: len(given)] == given
                special = whole[:1] if whole[0] == tokenizer.bos_token_id else []
                kept = [*special, *whole[len(special) :][-(most - len(special)) :]]
                with torch.no_grad():
                    logs = model(torch.tensor([kept])).logits[0].log_softmax(-1)
                first = len(kept) - len(rest)
                expected.append(sum(float(logs[first + i - 1, one]) for i, one in enumerate(rest)))
            assert found.labels[item][order] == pytest.approx(expected, abs=1e-3)


def test_choices_have_the_scores_of_their_labels_and_rows_are_of_them() -> None:
    found = asked(ModelSettings("dictionary-lm"))
    one, other = found.labels[1]
    assert found.choices[1] == [[one[0], one[1]], [other[1], other[0]]]
    assert found.by_rule[LETTER].scores[1] == [one[0], one[1]]
    rows = {(r.metric, r.subset.text if r.subset else ""): r.value for r in found.rows("ab", Row())}
    right = [
        [max(s) == s[r.answer] for s in c] for c, r in zip(found.choices, QUESTIONS, strict=True)
    ]
    assert rows["mean_order_accuracy", ""] == pytest.approx(
        (sum(right[0]) / 3 + sum(right[1]) / 2) / 2
    )
    assert rows["all_orders_accuracy", ""] == (all(right[0]) + all(right[1])) / 2
    shares = [value for (metric, _), value in rows.items() if metric == "label_share"]
    assert sum(shares) == pytest.approx(1)


def test_the_command_lists_letters_next_to_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    line += ["--output_dir", str(tmp_path / "out"), "--scoring", "sum,letter"]
    assert cli.main([*line, "--letters.orders", "cyclic"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Asked for a letter: does the order of the choices decide?" in shown
    rows = read_results(tmp_path / "out" / "results.csv")
    by_rule = {row["scoring"]: row for row in rows if row["metric"] == "accuracy"}
    assert {"", "sum", "letter", "letter_debiased"} <= {*by_rule}
    items = probelight.load(tmp_path / "out").items
    right = [
        answers["letter"].best == (answer,)
        for answers, answer in zip(items["by_rule"], items["answer"], strict=True)
    ]
    assert float(by_rule["letter"]["value"]) == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scoring", "sum", "--letters.orders", "all"], "are of the rule letter; give --scoring"),
        (["--scoring", "letters"], "did you mean 'letter'"),
        (["--scoring", "letter", "--prompt.file", "no.yaml"], "no.yaml"),
    ],
)
def test_mistakes_are_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["zero-shot", "--probes", "taxonomy_small:dev", "--models", "dictionary-lm"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err
