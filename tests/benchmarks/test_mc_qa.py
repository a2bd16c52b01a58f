from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import checkpointing, mc_qa_evaluation, mc_qa_training


def test_a_step_has_the_gradients_of_the_peer(small_model: Path) -> None:
    chosen = Namespace(
        model=str(small_model),
        probe="hypernymy_small",
        mirror=None,
        steps=4,
        rounds=1,
        threads=1,
        device="cpu",
        output=None,
    )
    figures = mc_qa_training.measure(chosen)
    assert figures["largest relative difference of a gradient"] < 1e-5
    assert {name for name in figures if name.startswith("seconds a step")} == {
        f"seconds a step, {name}"
        for name in (
            mc_qa_training.OURS,
            mc_qa_training.BARE,
            mc_qa_training.PLAIN,
            mc_qa_training.HUGGING_FACE,
        )
    }


def test_an_evaluation_predicts_what_the_peer_predicts(small_model: Path) -> None:
    chosen = Namespace(
        model=str(small_model),
        probe="hypernymy_small:test",
        mirror=None,
        items=30,
        rounds=1,
        threads=1,
        device="cpu",
        output=None,
    )
    assert mc_qa_evaluation.measure(chosen)["largest difference of a score"] < 1e-5


def test_another_prediction_is_an_error() -> None:
    assert mc_qa_evaluation.agreement([[0.5, 0.25]], [[0.5, 0.0]]) == 0.25
    with pytest.raises(RuntimeError, match="item 1: predictions differ"):
        mc_qa_evaluation.agreement([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]])


def test_states_are_written_at_the_interval_and_at_the_end(small_model: Path) -> None:
    chosen = Namespace(
        model=str(small_model),
        probe="hypernymy_small",
        mirror=None,
        steps=7,
        every=3,
        threads=1,
        device="cpu",
        output=None,
    )
    figures = checkpointing.measure(chosen)
    assert figures["states written"] >= 2
    assert 0 < figures["states' share of the fit, %"] < 100
