"""What is a number in a user's file, and what only Python takes for one."""

from __future__ import annotations

import math

import pytest

from probelight.io.numbers import number_of, whole_number_of


@pytest.mark.parametrize(
    ("written", "number"),
    [("1", 1), (" -0.5 ", -0.5), ("+3.", 3), (".5", 0.5), ("1e-3", 0.001), (2, 2), (0.25, 0.25)],
)
def test_numbers(written: object, number: float) -> None:
    assert number_of(written) == number
    assert number_of(written, finite=False) == number


@pytest.mark.parametrize(
    "written",
    [True, False, None, [1], "", " ", "true", "1_000", "1_0.5", "\u0661", "\uff13", "1\u0660",
     "nan", "0x10", "1:30", "1,5", "\u22121", "1e999", "-1e999", 10**400, math.nan, b"1"],
)  # fmt: skip
def test_what_is_no_number(written: object) -> None:
    assert math.isnan(number_of(written))
    assert math.isnan(number_of(written, finite=False))
    assert whole_number_of(written) is None


@pytest.mark.parametrize("written", ["-inf", "-Infinity", -math.inf])
def test_infinities_are_numbers_where_they_are_allowed(written: object) -> None:
    assert math.isnan(number_of(written))
    assert number_of(written, finite=False) == -math.inf


def test_whole_numbers() -> None:
    assert (whole_number_of("12"), whole_number_of(3), whole_number_of("2.0")) == (12, 3, 2)
    assert whole_number_of("2.5") is None
