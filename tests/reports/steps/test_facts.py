from __future__ import annotations

import pytest

from probelight.reports.steps.facts import step_of


@pytest.mark.parametrize(
    ("revision", "step"),
    [
        ("step1000", 1000),
        ("step-1000", 1000),
        ("step_1000", 1000),
        ("steps=1000", 1000),
        ("step0", 0),
        ("Step20K", 20_000),
        ("step-2m", 2_000_000),
        ("1000", 1000),
        ("20k", 20_000),
        ("stage1-step5000-tokens21B", 5000),
        ("stage2-ingredient1-step11000-tokens47B", 11_000),
        ("global_step340500", 340_500),
        ("checkpoint-500", 500),
        ("ckpt_7", 7),
        ("iter-42", 42),
        ("main", None),
        ("", None),
        ("refs/pr/3", None),
        ("v1.0", None),
        ("tokens21B", None),
        ("footstep9", None),  # part of another word
        ("step12b3", None),
        ("9b1b32b6a0ef4a7c8f1e5d6c7b8a90123456789a", None),  # a commit
        ("1" * 40, None),
    ],
)
def test_the_step_is_the_number_behind_its_word_or_all_there_is(
    revision: str, step: int | None
) -> None:
    assert step_of(revision) == step
