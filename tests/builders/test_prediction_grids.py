from __future__ import annotations

import pytest

from probelight.builders.prediction_grids import AGES, OBJECTS, SIZES, Wording, age_grids, grid_of
from probelight.probes.catalog import load_probe_config
from probelight.probes.record import Record


def answers(records: tuple[Record, ...]) -> dict[tuple[object, ...], str]:
    return {tuple(record.meta["arguments"]): record.gold for record in records}


def test_the_four_panels_put_ages_and_years_in_both_sentences() -> None:
    a, b, c, d = age_grids(ages=(20, 30), years=(1960, 1990))
    assert [grid.name for grid in (a, b, c, d)] == ["A", "B", "C", "D"]
    assert [grid.records[0].stem for grid in (a, b, c, d)] == [
        "A 20 year old person is [MASK] than me in age, If I am a 30 year old person.",
        "A person born in 1960 is [MASK] than me in age, If i was born in 1990.",
        "A 1960 year old person is [MASK] than me in age, If I am a 1990 year old person.",
        "A person born in 20 is [MASK] than me in age, If i was born in 30.",
    ]
    # Who was born earlier is older, whatever the number.
    assert answers(a.records) == {(20, 30): "younger", (30, 20): "older"}
    assert answers(b.records) == {(1960, 1990): "older", (1990, 1960): "younger"}
    assert answers(c.records) == {(1960, 1990): "younger", (1990, 1960): "older"}
    assert answers(d.records) == {(20, 30): "older", (30, 20): "younger"}


def test_every_ordered_pair_once_without_the_diagonal() -> None:
    grid = age_grids()[0]
    assert grid.values == tuple(AGES) == tuple(range(15, 106))
    assert len({record.stem for record in grid.records}) == len(grid.records) == 91 * 90
    assert sum(record.gold == "older" for record in grid.records) == 91 * 90 // 2


def test_sentences_are_those_of_the_released_files_or_of_the_paper() -> None:
    record = age_grids(ages=(15, 16), wording="released")[0].records[0]
    assert record.stem == "A 15 year old person age is [MASK] than a 16 year old person ."
    stem = "The size of a nail is usually much [MASK] than the size of a house plant"
    for wording, end in (("released", " ."), ("paper", ".")):
        sizes = grid_of(SIZES, ("nail", "house plant"), wording)
        assert (sizes.records[0].stem, sizes.records[0].gold) == (stem + end, "smaller")


@pytest.mark.parametrize("wording", ["paper", "released"])
def test_the_patterns_of_the_probes_find_the_arguments(wording: Wording) -> None:
    grids = (age_grids(ages=(20, 81), wording=wording)[0], grid_of(SIZES, OBJECTS, wording))
    for grid in grids:
        config = load_probe_config(grid.probe)
        for record in grid.records:
            arguments = config.find_arguments(record.stem)
            assert arguments is not None
            texts = [record.stem[start:end] for start, end in arguments.spans]
            assert texts == [str(value) for value in record.meta["arguments"]]


@pytest.mark.parametrize("values", [(), (20,), (20, 20)])
def test_a_grid_needs_different_values(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="grid A: give at least two values"):
        grid_of("A", values, "paper")
