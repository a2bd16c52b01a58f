from __future__ import annotations

import math

import pytest

from probelight.io.errors import RecordError
from probelight.io.files import DataFile
from probelight.results.importers.answers import Answer, Gold, place_of, plain, score_of, with_gold

ANIMAL = Answer(where="f:1", id="1", texts=("A cat is",), choices=("a", "b"), scores=(1.0, 0.25))
PLANT = Answer(where="f:2", texts=(" An  oak is",), choices=("a", "b"), scores=(0, 1), gold=1)


def golds(**right: str) -> Gold:
    told = {name: (text, f"g:{name}") for name, text in right.items()}
    return Gold((DataFile("g", "", 1),), told)


def test_golds_are_found_by_id_or_question() -> None:
    right = golds(**{"1": "b ", "An oak is": "b"})
    assert [one.gold for one in with_gold([ANIMAL, PLANT], right)] == [1, 1]


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ({"1": "b"}, "f:2: the file of --gold has no line for this item"),
        ({"1": "c", "An oak is": "b"}, "g:1: the gold 'c' is none of the candidates 'a', 'b'"),
        ({"1": "a", "An oak is": "a"}, "g:An oak is: the gold is 'a', but f:2 says 'b'"),
        ({"1": "a", "An oak is": "b", "3": "b"}, "g:3: a gold of an item that the scores do not"),
    ],
)
def test_golds_that_do_not_fit_are_refused(right: dict[str, str], said: str) -> None:
    with pytest.raises(RecordError, match=said):
        with_gold([ANIMAL, PLANT], golds(**right))


def test_scores_and_choices() -> None:
    assert [score_of(one) for one in (1, "2e1", "-inf")] == [1.0, 20.0, -math.inf]
    for none in (None, True, "", "nan", "inf", [1], 10**400):
        with pytest.raises(RecordError, match="a number is needed"):
            score_of(none)
    assert plain(" a\u00a0 b\n") == "a b"
    assert place_of("b  c", ["a", "b c"]) == 1
    with pytest.raises(RecordError, match="is several of the candidates"):
        place_of("a", ["a", "a "])
