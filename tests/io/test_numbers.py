"""What is a number in a user's file, and what only Python takes for one."""

from __future__ import annotations

import math

import pytest
import yaml

from probelight.io.documents import number_of, parse_yaml, whole_number_of


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" -0.5 ", -0.5), ("+3.", 3), (".5", 0.5), ("1e-3", 0.001), (2, 2), (0.25, 0.25)],
)
def test_texts_of_numbers_are_read(text: object, number: float) -> None:
    assert number_of(text) == number
    assert number_of(text, finite=False) == number


@pytest.mark.parametrize(
    "text",
    [True, False, None, [1], "", " ", "true", "1_000", "1_0.5", "\u0661", "\uff13", "1\u0660",
     "nan", "0x10", "1:30", "1,5", "\u22121", "1e999", "-1e999", 10**400, math.nan, b"1"],
)  # fmt: skip
def test_texts_of_no_number_are_nan(text: object) -> None:
    assert math.isnan(number_of(text))
    assert math.isnan(number_of(text, finite=False))
    assert whole_number_of(text) is None


@pytest.mark.parametrize("text", ["-inf", "-Infinity", -math.inf])
def test_infinities_are_numbers_where_they_are_allowed(text: object) -> None:
    assert math.isnan(number_of(text))
    assert number_of(text, finite=False) == -math.inf


def test_whole_numbers_have_no_fraction() -> None:
    assert (whole_number_of("12"), whole_number_of(3), whole_number_of("2.0")) == (12, 3, 2)
    assert whole_number_of("2.5") is None


@pytest.mark.parametrize("text", ["1_000", "1:30", "0x10", "010", "-1_0.5", "1_0e-5"])
def test_a_setting_that_only_yaml_takes_for_a_number_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=f"{text} can be a number or a text"):
        parse_yaml(f"shots: [{text}]")
    assert parse_yaml(f"shots: '{text}'") == {"shots": text}


def test_numbers_and_texts_of_settings_stay_what_they_are() -> None:
    text = "[10, -0.5, 1e-5, 0, 0.0, step_10, 12:ab, 1.2.3, 2026-01-02]"
    texts = ["step_10", "12:ab", "1.2.3", "2026-01-02"]
    assert parse_yaml(text) == [10, -0.5, 1e-5, 0, 0.0, *texts]
