from __future__ import annotations

import pytest

from probes.catalog import ConfigError, load_probe_config
from probes.controls import no_language, perturbed_language
from probes.record import Record, RecordError
from probes.source import ProbeData
from probes.variants import but_not, vary

PEN = Record(
    "p1",
    "What is usually located at hand and used for writing?",
    ("pen", "spoon", "computer"),
    0,
    {"source": "paper"},
    7,
)
CONFIG = load_probe_config("property_conjunction")


def test_the_papers_example() -> None:
    varied = but_not(PEN, CONFIG)
    assert varied.stem == "What is usually located at hand but not used for writing?"
    assert varied.choices == PEN.choices
    assert varied.gold == "spoon"
    assert (varied.id, varied.position, varied.meta) == ("p1-but_not", 7, PEN.meta)


def test_the_first_distractor_is_the_first_choice_that_is_not_gold() -> None:
    later = Record("p2", PEN.stem, ("spoon", "pen", "computer"), 1)
    assert but_not(later, CONFIG).gold == "spoon"


def test_a_second_verb_is_negated_behind_it() -> None:
    record = Record("p3", "What is made of gold and is usually worn ?", ("a", "b"), 0)
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
