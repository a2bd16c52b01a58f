"""Answering without Lightning: every record gets its scores, and the scorer stays as it was."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.models import answering
from probelight.models.answering import answer, give_memory_back, scores_by_item
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.probes.record import Record

RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
    Record("3", "the [MASK] is larger than a dog .", ("antelope", "cat"), 0),  # three pieces
]


@pytest.fixture
def scorer(checkpoint: Callable[..., Path]) -> MaskedScorer:
    return MaskedScorer(MaskedLM(str(checkpoint()), multi_token="pseudo_log_likelihood"))


def test_each_record_gets_the_scores_of_its_distinct_choices(scorer: MaskedScorer) -> None:
    found = answer(scorer, {"a": RECORDS})["a"]
    assert {place: len(scores) for place, scores in found.scores.items()} == {0: 3, 1: 2}
    assert found.needs_pll == (2,)
    assert "1 of 3 records have a candidate that is not one vocabulary item" in found.notices[0]
    batch = scorer.masked.encoder().encode(RECORDS).collate([0, 1])
    with torch.no_grad():
        plain = scorer.choice_scores().answer(batch)
    assert found.scores[0] == pytest.approx(plain[0].tolist(), abs=1e-6)
    assert found.scores[1] == pytest.approx(plain[1, :2].tolist(), abs=1e-6)


def test_the_choice_mask_says_which_choices_there_are_not_their_scores() -> None:
    batch = {
        "item": torch.tensor([4, 2, -1]),
        "scores": torch.tensor(
            [[-math.inf, 1.0, -math.inf], [math.nan, 2.0, 3.0], [0.0, 0.0, 0.0]]
        ),
        "choice_mask": torch.tensor([[True, True, False], [True, True, True], [True] * 3]),
    }
    found = scores_by_item(batch)
    assert found[4] == [-math.inf, 1.0]
    assert found[2] == pytest.approx([math.nan, 2.0, 3.0], nan_ok=True)
    assert set(found) == {4, 2}


@pytest.mark.parametrize("options", [{"max_tokens": 1}, {"num_workers": 1}, {"progress": True}])
def test_how_batches_are_made_changes_no_score(
    options: dict[str, Any], scorer: MaskedScorer
) -> None:
    whole = answer(scorer, {"a": RECORDS, "b": RECORDS[:1]})
    state = torch.get_rng_state()
    found = answer(scorer, {"a": RECORDS, "b": RECORDS[:1]}, **options)
    assert torch.equal(torch.get_rng_state(), state)
    for name, one in whole.items():
        for place, scores in one.scores.items():
            assert found[name].scores[place] == pytest.approx(scores, abs=1e-5)


def test_other_questions_have_numbers_of_their_own(scorer: MaskedScorer) -> None:
    found = answer(scorer, {"a": RECORDS}, scorer.vocabulary(), per_choice=False)["a"]
    assert {len(numbers) for numbers in found.scores.values()} == {len(scorer.masked.tokenizer)}
    assert sorted(found.scores) == [0, 1]


def test_lower_precision_changes_numbers_and_none_that_is_not_known(scorer: MaskedScorer) -> None:
    exact = answer(scorer, {"a": RECORDS})["a"].scores[0]
    lower = answer(scorer, {"a": RECORDS}, precision="bf16-mixed")["a"].scores[0]
    assert exact != lower
    assert lower == pytest.approx(exact, abs=0.1)
    with pytest.raises(KeyError, match="64-true"):
        answer(scorer, {"a": RECORDS}, precision="64-true")


def test_the_scorer_is_left_where_it_was_and_in_eval_mode(scorer: MaskedScorer) -> None:
    scorer.network.train()
    before = {name: value.clone() for name, value in scorer.network.state_dict().items()}
    answer(scorer, {"a": RECORDS}, device="cpu")
    assert not scorer.network.training
    for name, value in scorer.network.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.device.type == "cpu"


def test_a_set_without_a_record_to_pose_is_refused_by_name(
    checkpoint: Callable[..., Path],
) -> None:
    scorer = MaskedScorer(MaskedLM(str(checkpoint()), multi_token="skip"))
    with pytest.raises(ValueError, match=r"^b: no records to batch \(1 were skipped by the tok"):
        answer(scorer, {"a": RECORDS[:1], "b": RECORDS[2:]})


def test_memory_is_given_back_every_so_many_batches(
    scorer: MaskedScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []
    monkeypatch.setattr(answering, "give_memory_back", lambda: called.append(0))
    monkeypatch.setattr(answering, "_TRIM_EVERY", 2)
    records = [Record(str(i), RECORDS[0].stem, RECORDS[0].choices, 0) for i in range(5)]
    answer(scorer, {"a": records}, max_tokens=1)
    assert called == [0, 0]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    give_memory_back()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_holes_between_what_is_kept_go_back_to_the_system() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("no glibc")
    give_memory_back()  # so that all of it comes anew from the system
    start = _resident()
    kept, holes = [], []
    for _ in range(2_000):  # 200 MB in blocks that are too small for a mapping of their own
        holes.append(torch.ones(25_000))
        kept.append(torch.ones(8))
    assert _resident() - start > 150 << 20
    holes.clear()
    give_memory_back()
    assert _resident() - start < 50 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
