from __future__ import annotations

import math

import pytest

from probelight.io.errors import RecordError
from probelight.protocols.imports.kept_scores import kept
from probelight.results.importers.answers import Answer

SAID = Answer(where="f:1", choices=("a", "b\u00e4 "), scores=(0.0, 0.25))


def test_what_is_kept() -> None:
    assert kept([SAID], "as_given") == (SAID,)
    assert kept([SAID], "logarithm")[0].scores == (-math.inf, pytest.approx(-math.log(4)))
    assert kept([SAID], "per_character")[0].scores == (0.0, 0.125)


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(RecordError, match=r"f:1: --scores logarithm: 1\.5 is no probability"):
        kept([Answer(where="f:1", scores=(0.5, 1.5))], "logarithm")
    with pytest.raises(RecordError, match="f:1: --scores per_character: the texts of the choices"):
        kept([Answer(where="f:1", scores=(0.5, 1.5))], "per_character")
