from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks import memory


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "checkpointing"), [("tiny", False), ("tiny", True), ("gpt2-tiny", False)]
)
def test_what_is_predicted_is_what_pytorch_records(model: str, checkpointing: bool) -> None:
    chosen = Namespace(
        models=model, probe="definitions_small", steps=3, batch_size=4, threads=1, output=None
    )
    chosen.checkpointing, chosen.precision, chosen.by = checkpointing, "32-true", "pytorch"
    figures = memory.measure(chosen)
    assert figures[f"{model}: predicted / measured"] == pytest.approx(1, abs=0.2)
