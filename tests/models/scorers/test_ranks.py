from __future__ import annotations

from typing import Any, cast

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.models.checkpoints.source import EMBEDDED_DIR
from probelight.models.scorers.base import Question, Scorer
from probelight.models.scorers.masked import MaskedScorer
from probelight.models.scorers.ranks import candidate_ranks, log_probabilities
from probelight.probes.record import Record
from probelight.protocols.engine.evaluation import ask
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.jobs.context import TrainerSettings

QUIET = TrainerSettings(accelerator="cpu", progress_bar=False)
RECORDS = [
    Record("1", "A dog is an [MASK].", ("animal", "house", "plant"), 0),
    Record("2", "The opposite of hot is [MASK].", ("cold", "warm"), 0),
]


def ranks_of(scorer: Scorer, records: list[Record]) -> Predictions:
    return ask(scorer, candidate_ranks(scorer), {"a": records}, QUIET)["a"]


def test_ranks_are_those_of_the_full_models_sorted_vocabulary() -> None:
    model = AutoModelForMaskedLM.from_pretrained(EMBEDDED_DIR, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_DIR)
    found = ranks_of(MaskedScorer(MaskedChoice()), RECORDS)
    for record, ranks in zip(found.records, found.scores, strict=True):
        inputs = tokenizer(record.stem, return_tensors="pt")
        place = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.no_grad():
            logits = model(**inputs).logits[0, place]
        order = logits.argsort(descending=True).tolist()
        ids = tokenizer.convert_tokens_to_ids(list(record.choices))
        assert ranks == [order.index(i) + 1 for i in ids]
        assert len(ranks) == len(record.choices)


def test_items_that_a_vocabulary_splits_are_skipped() -> None:
    records = [*RECORDS, Record("3", "A dog is an [MASK].", ("animal", "zzyzxian animal"), 0)]
    scorer = MaskedScorer(MaskedChoice(multi_token="pseudo_log_likelihood"))
    found = ranks_of(scorer, records)
    assert [record.id for record in found.records] == ["1", "2"]
    assert any("zzyzxian" in notice or "1 " in notice for notice in found.notices)


def test_equal_words_share_the_better_rank_and_what_is_no_number_comes_last() -> None:
    whole = torch.tensor([[0.0, 2.0, 2.0, 1.0], [3.0, torch.nan, 1.0, 0.0]]).double()

    class Told(Scorer):
        mode = "told"

        def choice_scores(self) -> Question:
            return Question(cast(Any, None), lambda batch: whole)

        def vocabulary(self) -> Question:
            return self.choice_scores()

    ids = torch.tensor([[1, 2, 3], [0, 1, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = candidate_ranks(Told()).answer({"candidate_ids": ids, "choice_mask": mask})
    assert found.tolist() == [[1.0, 1.0, 3.0], [2.0, 5.0, -torch.inf]]


def test_logits_that_differ_are_log_probabilities_that_differ() -> None:
    near = torch.tensor([[-30.0, torch.nextafter(torch.tensor(-30.0), torch.tensor(0.0)), 15.0]])
    found = log_probabilities(near)
    assert found[0, 0] < found[0, 1]
    torch.testing.assert_close(found.float(), near.log_softmax(-1))
