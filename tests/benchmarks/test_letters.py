from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.letters import measure


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_quick_letters_are_those_of_sums(kind: str) -> None:
    chosen = {"rounds": 1, "items": 4, "kind": kind, "threads": 1}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    assert figures["largest difference"] < 1e-5
    assert figures["prompts a second, letters"] > 0
