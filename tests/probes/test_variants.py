from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError, RecordError
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import no_language, perturbed_language
from probelight.probes.importers.ai2 import read_ai2, write_ai2
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.probes.variants import but_not, vary

PEN = Record(
    "p1",
    "What is usually located at hand and used for writing?",
    ("pen", "spoon", "computer"),
    0,
    {"source": "paper", "first_distractor": "spoon"},
    7,
)
CONFIG = load_probe_config("property_conjunction")


def test_the_papers_example() -> None:
    varied = but_not(PEN, CONFIG)
    assert varied.stem == "What is usually located at hand but not used for writing?"
    assert varied.choices == PEN.choices
    assert varied.gold == "spoon"
    assert (varied.id, varied.position, varied.meta) == ("p1-but_not", 7, PEN.meta)


@pytest.mark.parametrize(
    "choices", [("computer", "pen", "spoon"), ("computer", "spoon", "pen"), ("spoon", "computer")]
)
def test_the_answer_is_the_distractor_with_the_first_property_wherever_it_stands(
    choices: tuple[str, ...],
) -> None:
    # a spoon is located at hand, a computer is used for writing
    choices = choices if "pen" in choices else (*choices, "pen")
    varied = but_not(replace(PEN, choices=choices, answer=choices.index("pen")), CONFIG)
    assert (varied.gold, varied.choices) == ("spoon", choices)


def test_rows_that_do_not_say_which_distractor_is_the_first_are_refused(tmp_path: Path) -> None:
    # The released wording: the choices are shuffled, and there are no notes.
    stem = "what usually used for fun and is usually located at toy store"
    choices = ("exercising", "salesperson", "chess set")
    write_ai2(tmp_path / "dev.jsonl", [Record("43fe8e00", stem, choices, 2)])
    [record] = read_ai2(tmp_path / "dev.jsonl").records
    with pytest.raises(RecordError, match=r"dev\.jsonl:1: nothing says which wrong answer has the"):
        but_not(record, CONFIG)
    told = replace(record, meta={"first_distractor": "exercising"})
    changed = but_not(told, CONFIG)
    assert changed.stem == "what usually used for fun but is not usually located at toy store"
    assert changed.gold == "exercising"
    gold = replace(record, meta={"first_distractor": "chess set"})
    with pytest.raises(RecordError, match=r"is 'chess set', and the wrong answers are 'ex"):
        but_not(gold, CONFIG)


def test_a_second_verb_is_negated_behind_it() -> None:
    stem = "What is made of gold and is usually worn ?"
    record = Record("p3", stem, ("a", "b"), 0, {"first_distractor": "b"})
    assert but_not(record, CONFIG).stem == "What is made of gold but is not usually worn ?"


def test_a_record_without_two_properties_is_named() -> None:
    other = Record("p4", "Which pen is it?", ("a", "b"), 0, {}, 3)
    with pytest.raises(RecordError, match=r"p4@3: the two arguments of property_conjunction"):
        but_not(other, CONFIG)


def test_the_controls_fit_the_variant() -> None:
    data = vary(ProbeData(CONFIG, (PEN,), (), ()), "but_not")
    assert data.config.name == "property_conjunction_but_not"
    [record] = data.records
    assert no_language(record, data.config, {}).stem == "located at hand used for writing"
    perturbed = perturbed_language(record, data.config, {"but": "foo", "not": "ya"})
    assert perturbed.stem == "What is usually located at hand foo ya used for writing?"


def test_a_variant_that_a_probe_does_not_declare_is_refused() -> None:
    data = ProbeData(load_probe_config("age_comparison"), (), (), ())
    with pytest.raises(ConfigError, match="age_comparison has no variant 'but_not'; it has none"):
        vary(data, "but_not")
    with pytest.raises(ConfigError, match="did you mean 'but_not'"):
        vary(ProbeData(CONFIG, (PEN,), (), ()), "butnot")
