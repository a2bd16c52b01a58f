from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from benchmarks.half_precision import measure
from benchmarks.random_model import write_wide_model
from probelight.io.package import BUNDLED_MODEL
from probelight.models.checkpoint_files import model_folder


@pytest.mark.thorough
def test_quick_answers_are_those_of_float32() -> None:
    chosen = {"mirror": None, "dtype": "bfloat16", "items": 4, "compared": 12, "rounds": 1}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    differ = [value for name, value in figures.items() if name.endswith("answers that differ")]
    assert differ == [0, 0, 0, 0]
    assert figures["shipped probes, items"] == 24


@torch.no_grad()
def test_neurons_that_do_nothing_change_no_answer(tmp_path: Path) -> None:
    write_wide_model(tmp_path, 1500)
    source = model_folder(BUNDLED_MODEL)
    text = AutoTokenizer.from_pretrained(source)("a cat is a [MASK] .", return_tensors="pt")
    bundled, wide = (
        AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
        for folder in (source, tmp_path)
    )
    assert wide.config.intermediate_size == 1500
    torch.testing.assert_close(wide(**text).logits, bundled(**text).logits, rtol=0, atol=1e-4)
