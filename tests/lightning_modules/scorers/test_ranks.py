from __future__ import annotations

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from jobs.context import TrainerSettings
from lightning_modules.masked_choice import MaskedChoice
from lightning_modules.pretrained import EMBEDDED_DIR
from lightning_modules.scorers.base import Scorer
from lightning_modules.scorers.masked import MaskedScorer
from lightning_modules.scorers.ranks import candidate_ranks
from probes.record import Record
from protocols.engine.evaluation import Predictions, ask

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
