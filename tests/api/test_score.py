"""`probelight.score`: no folder, no Lightning, a model in memory left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertModel

import probelight
from probelight.io.errors import ProbelightError, UsageError
from probelight.probes.source import ProbeData
from tests.fixtures.checkout import ROOT

FOLDER = str(ROOT / "assets" / "dictionary-lm")


@pytest.fixture(scope="module")
def probe() -> ProbeData:
    return probelight.load_probe("taxonomy_small", split="dev")


@pytest.fixture
def network() -> Any:
    return AutoModelForMaskedLM.from_pretrained(FOLDER, dtype=torch.float32)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(FOLDER)


def by_transformers(network: Any, tokenizer: Any, probe: ProbeData) -> list[list[float]]:
    """The logit of each candidate at the mask, one sentence at a time."""
    scores = []
    for record in probe.records:
        ids = tokenizer(record.stem, return_tensors="pt")
        with torch.no_grad():
            logits = network.eval()(**ids).logits[0]
        mask = (ids["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
        words = tokenizer.convert_tokens_to_ids([*record.choices])
        scores.append([float(logits[mask, word]) for word in words])
    return scores


def test_scores_are_those_of_a_loop_with_transformers(
    network: Any, tokenizer: Any, probe: ProbeData
) -> None:
    expected = by_transformers(network, tokenizer, probe)
    results = probelight.score("dictionary-lm", probe)
    for scores, reference in zip(results.items["scores"], expected, strict=True):
        assert scores == pytest.approx(reference, abs=1e-3)
    right = [
        scores.index(max(scores)) == record.answer
        for scores, record in zip(expected, probe.records, strict=True)
    ]
    assert results.accuracy == pytest.approx(sum(right) / 50)
    assert results.chance == pytest.approx(1 / 3)
    low, high = results.interval
    assert low < results.accuracy < high
    percent = f"{100 * results.accuracy:.1f}% "
    assert repr(results).startswith(f"dictionary-lm on taxonomy_small: {percent}")


def test_a_masked_model_in_memory_answers_questions_as_from_its_folder(
    network: Any, tokenizer: Any
) -> None:
    items = [
        {"question": "Which is larger?", "choices": ["a whale", "a mouse"], "answer": "a whale"}
    ]
    in_memory = probelight.score((network, tokenizer), items)
    results = probelight.zero_shot("dictionary-lm", items)
    [expected] = results.items["scores"]
    assert in_memory.items["scores"][0] == pytest.approx(expected, abs=1e-4)


def test_a_model_in_memory_scores_the_same_and_stays_as_it_was(
    network: Any, tokenizer: Any, probe: ProbeData
) -> None:
    network.train()
    network.bert.embeddings.requires_grad_(False)
    flags = [weight.requires_grad for weight in network.parameters()]
    torch.manual_seed(5)
    drawn = torch.get_rng_state()
    results = probelight.score(network, probe, tokenizer=tokenizer)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(module.training for module in network.modules())
    assert [weight.requires_grad for weight in network.parameters()] == flags
    assert True in flags
    assert False in flags
    expected = probelight.score("dictionary-lm", probe)
    assert [*results.items["scores"]] == [*expected.items["scores"]]
    assert results.model == "dictionary-lm"


def test_items_in_memory_are_a_probe_of_their_own() -> None:
    item = {"sentence": "A whale is [MASK] than a mouse.", "choices": ["larger", "smaller"]}
    results = probelight.score("dictionary-lm", [{**item, "answer": 0}, {**item, "answer": 1}])
    assert results.accuracy == 0.5  # one of the two is right, whatever it says
    assert [*results.items["item"]] == ["items:items-1@1", "items:items-2@2"]


def test_a_probe_in_memory_may_be_given_a_name() -> None:
    item = {"sentence": "A whale is [MASK].", "choices": ["large", "small"], "answer": 0}
    assert probelight.load_probe([item], name="whales").config.name == "whales"
    assert probelight.load_probe("age_small:dev", name="ages").config.name == "ages"


def test_a_dataset_is_a_probe_too() -> None:
    from datasets import Dataset

    rows = {"question": ["What is a cat?"] * 2, "choices": [["a tree", "an animal"]] * 2}
    probe = probelight.load_probe(Dataset.from_dict({**rows, "answer": [0, 1]}))
    assert probe.config.setup == "mc_qa"
    assert [record.answer for record in probe.records] == [0, 1]


@pytest.mark.parametrize(("mask", "why"), [("[PAD]", "is its pad_token too"), ("dog", "is a word")])
def test_a_mask_token_that_texts_may_hold_is_refused(
    mask: str, why: str, network: Any, probe: ProbeData
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(FOLDER, mask_token=mask)
    with pytest.raises(ProbelightError, match=f"dictionary-lm: .*mask token .*{why}"):
        probelight.score(network, probe, tokenizer=tokenizer)


def test_what_cannot_be_scored_is_one_error(network: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a model in memory needs its tokenizer"):
        probelight.load_model(network)
    with pytest.raises(UsageError, match="a BertModel has no language-model"):
        probelight.load_model(BertModel(network.config), tokenizer=object())
    with pytest.raises(ProbelightError, match="did you mean 'age_small'"):
        probelight.load_probe("age_smal")
    with pytest.raises(ProbelightError, match=r"nothing\.csv: there is no such file"):
        probelight.load_probe(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match=r"load_model: .max_lenght. .*did you mean 'max_length'"):
        probelight.load_model("dictionary-lm", max_lenght=64)
    with pytest.raises(ProbelightError, match=r"no folder .*nothing"):
        probelight.score(str(tmp_path / "nothing"), "age_small")
