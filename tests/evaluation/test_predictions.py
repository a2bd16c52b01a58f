"""Predictions of scorers: by pieces too, in one process or several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, BertModel

from probelight.evaluation import scorers
from probelight.evaluation.scorers import predict, scorer_for
from probelight.io.process import say_once
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.kept_model import KeptModel
from probelight.models.networks import Batch
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record
from probelight.runs.settings import TrainerSettings
from tests.fixtures.snippets import module_of

ITEMS = [Record(str(i), "What?", ("a", "b", "c"), 0) for i in range(4)]
TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
LONG = " ".join(["w1", "w2"] * 20)  # more than the tiny model's 32 tokens


def test_items_that_all_go_by_their_pieces_are_scored_and_their_cuts_said(tiny_model: Path) -> None:
    """No item has a batch of its own; one more, which has, changes nothing."""
    model = ModelSettings(str(tiny_model), multi_token="pseudo_log_likelihood", kind="transformer")
    scorer = scorer_for(model, "mc_mlm")
    pieces = [Record("a", f"{LONG} [MASK] .", ("red green", "blue"), 0)]
    records = [*pieces, Record("b", "a [MASK] .", ("red", "blue"), 0)]
    predictions = predict(scorer, {"pieces": pieces}, TRAINER)["pieces"]
    among = predict(scorer, {"whole": records}, TRAINER)["whole"]
    assert list(predictions.scores[0]) == pytest.approx(list(among.scores[0]), abs=1e-5)
    cut = "2 of 2 texts were cut to 32 tokens around their answer"
    assert cut in predictions.notices
    assert cut in among.notices


class OnMeta(nn.Module):
    """A network that begins on the meta device, and can leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, device="meta"))

    def to(self, device: Any) -> Any:
        self.weight = nn.Parameter(torch.zeros(1, device=device))
        return self

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.expand(len(ids), 1)


def test_a_scorer_that_jobs_share_stays_on_its_device() -> None:
    """That of somebody else is brought back to where it was."""
    scorer = module_of("probelight/models/unigrams.py").Unigrams("a b c", max_length=8)
    for cache, device in ((None, "meta"), (KeptModel(), "cpu")):
        scorer.network, scorer.kept_model = OnMeta(), cache
        predict(scorer, {"x": ITEMS}, TRAINER)
        assert scorer.network.weight.device.type == device


@pytest.mark.parametrize(("options", "used"), [({}, 16), ({"max_length": 24}, 24)])
def test_a_trained_model_reads_as_much_as_it_was_trained_with(
    options: dict[str, int], used: int, tiny_model: Path, tmp_path: Path
) -> None:
    """Held against transformers: each pair alone, cut by the tokenizer itself."""
    module = SentenceChoice(str(tiny_model), max_length=16, seed=1)
    module.save_pretrained(tmp_path / "trained")
    records = [Record("a", LONG, ("red", "blue green red"), 0)]
    settings = ModelSettings(str(tmp_path / "trained"), kind="transformer", **options)
    predictions = predict(scorer_for(settings, "mc_qa"), {"x": records}, TRAINER)["x"]
    encoder = BertModel.from_pretrained(tmp_path / "trained", add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "trained")
    expected = []
    for choice in records[0].choices:
        pair = tokenizer([LONG], [choice], truncation=True, max_length=used, return_tensors="pt")
        with torch.no_grad():
            expected.append(float(module.head(encoder(**pair).last_hidden_state[:, 0])))
    assert list(predictions.scores[0]) == pytest.approx(expected, abs=1e-5)
    assert f"1 of 1 questions were cut to {used} tokens per pair" in predictions.notices[0]


def test_lightning_and_the_loop_without_it_give_the_same_scores(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelSettings(str(tiny_model), multi_token="pseudo_log_likelihood", kind="transformer")
    scorer = scorer_for(model, "mc_mlm")
    records = [
        Record("a", f"{LONG} [MASK] .", ("red green", "blue"), 0),
        Record("b", "a [MASK] .", ("red", "blue"), 0),
        Record("c", "a red [MASK] .", ("red", "blue", "green"), 0),
    ]
    sets = {"all": records, "some": records[1:]}
    ours = predict(scorer, sets, TRAINER)
    words = scorers.ask_about(scorer, scorer.vocabulary(), records[1:], TRAINER)
    monkeypatch.setattr(scorers, "single_device", lambda _: None)
    theirs = predict(scorer, sets, TRAINER)
    assert [ours[name].scores for name in sets] == [theirs[name].scores for name in sets]
    assert [ours[name].notices for name in sets] == [theirs[name].notices for name in sets]
    assert scorers.ask_about(scorer, scorer.vocabulary(), records[1:], TRAINER) == words


@pytest.mark.parametrize("by_lightning", [False, True])
def test_batches_that_do_not_fit_are_halved_and_multiplied_as_asked(
    by_lightning: bool,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_once.cache_clear()
    scorer = scorer_for(ModelSettings(str(tiny_model), kind="transformer"), "mc_mlm")
    records = [Record(str(i), "a [MASK] ." + " red" * i, ("red", "blue"), 0) for i in range(9)]
    sets = {"all": records, "some": records[3:]}
    expected = predict(scorer, sets, TRAINER)
    question, seen = scorer.choice_scores(), set()

    def cramped(batch: Batch) -> Tensor:
        seen.add(torch.get_float32_matmul_precision())
        if len(batch["item"]) > 2:
            raise torch.OutOfMemoryError
        return question.answer(batch)

    if by_lightning:
        monkeypatch.setattr(scorers, "single_device", lambda _: None)
    settings = replace(TRAINER, matmul_precision="high")
    halved = scorers.ask(scorer, replace(question, answer=cramped), sets, settings)
    for name in sets:
        for row, reference in zip(halved[name].scores, expected[name].scores, strict=True):
            assert list(row) == pytest.approx(list(reference), abs=1e-5)
    assert seen == {"high"}
    assert torch.get_float32_matmul_precision() == "highest"
    assert capsys.readouterr().err.count("so it is divided in two") == 1


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
    chosen = scorers.single_device(replace(TRAINER, **options))
    assert (chosen and chosen.type) == device
