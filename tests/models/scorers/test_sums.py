from __future__ import annotations

import torch

from probelight.models.scorers.sums import scores_of_choices

# Two items over three texts of 2, 1 and 3 tokens; the second item has one choice.
BATCH = {
    "pair_index": torch.tensor([[2, 0], [1, 0]]),
    "choice_mask": torch.tensor([[True, True], [True, False]]),
}
SCORES, COUNTS = torch.tensor([-1.0, -2.0, -4.0, -0.5, -0.25, -0.75]), torch.tensor([2, 1, 3])


def test_each_choice_gets_the_sum_or_the_mean_of_its_own_tokens() -> None:
    sums = scores_of_choices(BATCH, SCORES, COUNTS, "sum")
    assert sums.tolist() == [[-1.5, -3.0], [-4.0, -torch.inf]]
    assert sums.dtype == torch.float32
    means = scores_of_choices(BATCH, SCORES, COUNTS, "mean")
    assert means.tolist() == [[-0.5, -1.5], [-4.0, -torch.inf]]


def test_the_mean_of_equal_numbers_is_that_number() -> None:
    batch = {"pair_index": torch.tensor([[0, 1]]), "choice_mask": torch.ones(1, 2).bool()}
    found = scores_of_choices(batch, torch.full((13,), -3.3), torch.tensor([10, 3]), "mean")
    assert found[0, 0] == found[0, 1]
