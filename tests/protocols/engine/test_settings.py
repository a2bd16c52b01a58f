from __future__ import annotations

import pytest

from probelight.io.errors import UsageError
from probelight.protocols.engine.settings import ModelSettings, SplitFiles, listed


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (ModelSettings(), "embedded"),
        (ModelSettings(name_or_path="group/bert/"), "bert"),
        (ModelSettings(name_or_path="a/b", random_weights=True), "b (random weights)"),
        (ModelSettings(name_or_path="a/b", name=" mine "), "mine"),
        (ModelSettings(kind="esim"), "ESIM (word_vectors)"),
        (
            ModelSettings(kind="mlm_baseline", vectors="d/glove.6B.50d.txt.gz"),
            "MLM-baseline (glove.6B.50d)",
        ),
    ],
)
def test_what_tables_call_a_model(model: ModelSettings, label: str) -> None:
    assert model.label == label


def test_a_name_that_looks_like_a_model_to_load_is_refused() -> None:
    with pytest.raises(UsageError, match=r"give the folder or Hub name .* as model\.name_or_path"):
        ModelSettings(name="group/bert")


def test_a_config_has_a_name_only_where_one_is_given() -> None:
    assert "name" not in ModelSettings().config()
    assert ModelSettings(name="mine").config()["name"] == "mine"


def test_a_config_has_a_form_of_likelihoods_only_where_it_is_not_the_original() -> None:
    assert "pll" not in ModelSettings(pll="original").config()
    chosen = ModelSettings(pll="within_word_l2r")
    assert chosen.config()["pll"] == "within_word_l2r"
    assert ModelSettings(**chosen.config()) == chosen
    with pytest.raises(
        UsageError, match=r"model\.pll within_word_l2r .* kind seq2seq masks nothing"
    ):
        ModelSettings(kind="seq2seq", pll="within_word_l2r")


def test_names_are_listed_by_commas_or_as_a_list() -> None:
    assert listed(" a, b ,,c") == listed(["a", " b", "", "c"]) == ["a", "b", "c"]
    assert listed("") == []


def test_the_files_that_are_given() -> None:
    assert SplitFiles(test="t.jsonl", train="a.jsonl").paths == {
        "train": "a.jsonl",
        "test": "t.jsonl",
    }
