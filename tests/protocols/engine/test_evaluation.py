"""What is said of items whose texts are too long, or that are scored piece by piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertModel

from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.probes.record import Record
from probelight.protocols.engine import evaluation
from probelight.protocols.engine.evaluation import ask_about, predict, single_device
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
LONG = " ".join(["w1", "w2"] * 20)  # more than the tiny model's 32 tokens


def test_items_that_all_go_by_their_pieces_are_scored_and_their_cuts_said(tiny_model: Path) -> None:
    """No item has a batch of its own; one more, which has, changes nothing."""
    model = ModelSettings(str(tiny_model), multi_token="pseudo_log_likelihood")
    scorer = scorer_for(model, "mc_mlm")
    pieces = [Record("a", f"{LONG} [MASK] .", ("red green", "blue"), 0)]
    whole = [*pieces, Record("b", "a [MASK] .", ("red", "blue"), 0)]
    found = predict(scorer, {"pieces": pieces}, TRAINER)["pieces"]
    among = predict(scorer, {"whole": whole}, TRAINER)["whole"]
    assert list(found.scores[0]) == pytest.approx(list(among.scores[0]), abs=1e-5)
    cut = "2 of 2 texts were cut to 32 tokens around their answer"
    assert cut in found.notices
    assert cut in among.notices


@pytest.mark.parametrize(("given", "used"), [({}, 16), ({"max_length": 24}, 24)])
def test_a_trained_model_reads_as_much_as_it_was_trained_with(
    given: dict[str, int], used: int, tiny_model: Path, tmp_path: Path
) -> None:
    """Held against transformers: each pair alone, cut by the tokenizer itself."""
    module = SentenceChoice(str(tiny_model), max_length=16, seed=1)
    module.save_pretrained(tmp_path / "trained")
    asked = [Record("a", LONG, ("red", "blue green red"), 0)]
    settings = ModelSettings(str(tmp_path / "trained"), **given)
    found = predict(scorer_for(settings, "mc_qa"), {"x": asked}, TRAINER)["x"]
    encoder = BertModel.from_pretrained(tmp_path / "trained", add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "trained")
    expected = []
    for choice in asked[0].choices:
        pair = tokenizer([LONG], [choice], truncation=True, max_length=used, return_tensors="pt")
        with torch.no_grad():
            expected.append(float(module.head(encoder(**pair).last_hidden_state[:, 0])))
    assert list(found.scores[0]) == pytest.approx(expected, abs=1e-5)
    assert f"1 of 1 questions were cut to {used} tokens a pair" in found.notices[0]


def test_lightning_and_the_loop_without_it_give_the_same_scores(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelSettings(str(tiny_model), multi_token="pseudo_log_likelihood")
    scorer = scorer_for(model, "mc_mlm")
    records = [
        Record("a", f"{LONG} [MASK] .", ("red green", "blue"), 0),
        Record("b", "a [MASK] .", ("red", "blue"), 0),
        Record("c", "a red [MASK] .", ("red", "blue", "green"), 0),
    ]
    sets = {"all": records, "some": records[1:]}
    ours = predict(scorer, sets, TRAINER)
    words = ask_about(scorer, scorer.vocabulary(), records[1:], TRAINER)
    monkeypatch.setattr(evaluation, "single_device", lambda _: None)
    theirs = predict(scorer, sets, TRAINER)
    assert [ours[name].scores for name in sets] == [theirs[name].scores for name in sets]
    assert [ours[name].notices for name in sets] == [theirs[name].notices for name in sets]
    assert ask_about(scorer, scorer.vocabulary(), records[1:], TRAINER) == words


@pytest.mark.parametrize(
    ("options", "device"),
    [
        ({}, "cpu"),
        ({"precision": "bf16-mixed"}, "cpu"),
        ({"precision": "bf16-true"}, None),
        ({"devices": 2, "strategy": "ddp"}, None),
        ({"devices": -1}, None),
        ({"strategy": "ddp"}, None),
        ({"accelerator": "tpu"}, None),
    ],
)
def test_lightning_is_asked_for_where_one_plain_device_is_not_enough(
    options: dict[str, Any], device: str | None
) -> None:
    found = single_device(replace(TRAINER, **options))
    assert (found and found.type) == device
