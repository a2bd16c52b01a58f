from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import checkpointing, mc_qa_evaluation, mc_qa_training


def arguments(model: Path, probe: str, **more: int) -> Namespace:
    common = {"mirror": None, "threads": 1, "device": "cpu", "output": None}
    return Namespace(model=str(model), probe=probe, **common, **more)


@pytest.mark.thorough
def test_a_step_has_the_gradients_of_the_peer(small_model: Path) -> None:
    chosen = arguments(small_model, "hypernymy_small", steps=4, rounds=1)
    figures = mc_qa_training.measure(chosen)
    assert figures["largest relative difference of a gradient"] < 1e-5
    peers = ("Probelight", "the same without Lightning", "plain Lightning", "Hugging Face Trainer")
    assert figures.keys() >= {f"seconds a step, {name}" for name in peers}


def test_an_evaluation_predicts_what_the_peer_predicts(small_model: Path) -> None:
    chosen = arguments(small_model, "hypernymy_small:test", items=30, rounds=1)
    figures = mc_qa_evaluation.measure(chosen)
    assert figures["largest difference of a score"] < 1e-5
    assert figures["tokens, no padding"] <= figures["tokens, Probelight"]
    assert figures["tokens, Probelight"] <= 1.05 * figures["tokens, no padding"]


def test_another_prediction_is_an_error() -> None:
    assert mc_qa_evaluation.agreement([[0.5, 0.25]], [[0.5, 0.0]]) == 0.25
    with pytest.raises(RuntimeError, match="item 1: predictions differ"):
        mc_qa_evaluation.agreement([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]])


def test_states_are_written_at_the_interval_and_at_the_end(small_model: Path) -> None:
    chosen = arguments(small_model, "hypernymy_small", steps=7, every=3)
    figures = checkpointing.measure(chosen)
    assert figures["states written"] >= 2
    assert 0 < figures["states' share of the fit, %"] < 100
