from __future__ import annotations

from results.model_outputs import ModelOutputs


def test_the_longest_list_says_how_far_down_a_model_is_known() -> None:
    assert ModelOutputs((("a",), ("a", "b"), ())).num_predictions == 2
    assert ModelOutputs(()).num_predictions == 0
