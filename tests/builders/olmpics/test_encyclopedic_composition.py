from __future__ import annotations

import bz2
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probelight import cli
from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.olmpics.encyclopedic_composition import (
    ENCYCLOPEDIC_COMPOSITION,
    QUESTIONS,
    Chain,
    CompositionSettings,
    PlausibleAnswers,
    World,
    build_composition,
    check_facts,
    single_hop_facts,
)
from probelight.builders.sources.wikidata import Facts
from probelight.probes.source import load_file, load_probe

Triple = tuple[str, str, str]
SIZES = {"num_train": 18, "num_dev": 6, "num_test": 0}
BAND, BUSINESS = "Q215380", "Q4830453"


def triples() -> list[Triple]:
    """Bands with two members each, films with two actors of whom one is married, companies."""
    statements = []
    for n in range(40):
        band, wife, company, city = (f"Q{base + n}" for base in (100, 500, 800, 2000))
        statements += [(band, "P31", BAND), (band, "P571", f"+{1950 + n}-00-00T00:00:00Z")]
        statements += [(f"Q{300 + 2 * n + k}", "P463", band) for k in (0, 1)]
        film, actor = f"Q{600 + n}", f"Q{700 + n}"
        statements += [(film, "P161", actor), (film, "P161", f"Q{400 + n}"), (actor, "P26", wife)]
        statements += [(wife, "P21", f"Q{1 + n % 2}"), (wife, "P27", f"Q{5 + n % 3 // 2}")]
        statements += [(company, "P31", BUSINESS), (company, "P112", f"Q{900 + n}")]
        statements += [(company, "P159", city), (city, "P17", f"Q{5 + n % 2}")]
    return statements


def name(id: str) -> str:
    """A name for people to read, told apart by its letters."""
    return "".join(chr(ord("a") + int(digit)) for digit in id[1:]).capitalize()


def write_source(folder: Path, statements: Sequence[Triple]) -> str:
    rows = ["subject\tsubject_label\tproperty\tobject\tobject_label"]
    for subject, property, target in statements:
        label = name(target) if target.startswith("Q") else ""
        rows.append(f"{subject}\t{name(subject)}\t{property}\t{target}\t{label}")
    path = folder / "triples.tsv.bz2"
    path.write_bytes(bz2.compress(("\n".join(rows) + "\n").encode()))
    return str(path)


def world(*statements: Triple, **names: str) -> World:
    wikidata = Facts()
    for triple in statements:
        wikidata.add(*triple)
        wikidata.labels |= {id: names.get(id, name(id)) for id in triple[::2] if id.startswith("Q")}
    return World(wikidata)


def test_only_what_has_one_answer_is_asked() -> None:
    beatles = [("Q1", "P463", "Q2"), ("Q2", "P31", BAND), ("Q2", "P571", "+1960-00-00T00:00:00Z")]
    hall, wings = ("Q1", "P463", "Q3"), ("Q1", "P463", "Q4")
    names = {"Q1": "John Lennon", "Q2": "The Beatles"}
    chain = Chain("band", ("John Lennon", "The Beatles", "1960"), ("Q1", "Q2", "1960"))
    assert list(world(*beatles, hall, **names).chains("band")) == [chain]
    assert chain.question == "When did the band where John Lennon played first form?"
    assert chain.hops == (
        ("What band did John Lennon play in?", "The Beatles"),
        ("When did The Beatles first form?", "1960"),
    )
    for more in (
        [wings, ("Q4", "P31", BAND)],  # two bands, though of one the year is not known
        [("Q2", "P571", "1957")],  # two years
        [("Q9", "P463", "Q3")],  # another of the same name
    ):
        assert list(world(*beatles, *more, **names, Q9="John Lennon").chains("band")) == []
    labels = {"Q1": "Carlos Santana", "Q2": "Santana"}
    assert list(world(*beatles, **labels).chains("band")) == []
    assert list(world(*beatles, Q1="", Q2="The Beatles").chains("band")) == []


def test_films_and_founders() -> None:
    film = [("Q1", "P161", "Q2"), ("Q1", "P161", "Q3"), ("Q2", "P26", "Q4")]
    [chain] = world(*film).chains("spouse")
    assert chain.ids == ("Q1", "Q2", "Q4")
    assert list(world(*film, ("Q3", "P26", "Q5")).chains("spouse")) == []
    gates = [("Q1", "P112", "Q2"), ("Q1", "P159", "Q3"), ("Q1", "P31", BUSINESS)]
    [chain] = world(*gates).chains("headquarters")
    assert chain.ids == ("Q2", "Q1", "Q3")
    school = [("Q7", "P112", "Q2"), ("Q7", "P159", "Q8")]
    [chain] = world(*gates, *school).chains("headquarters")
    assert world(*gates, *school).all_right_answers("headquarters", "Q2") == {"Q3", "Q8"}
    assert list(world(*gates, *school, ("Q7", "P31", BUSINESS)).chains("headquarters")) == []


def test_each_rank_of_a_year_is_equally_often_right() -> None:
    near = PlausibleAnswers(world(), (), random.Random(0))
    chain = Chain("band", ("a", "b", "1978"), ("Q1", "Q2", "1978"))
    ranks, distances = Counter[int](), Counter[int]()
    for _ in range(3000):
        wrong = [int(year) for year in near.draw(chain) or ()]
        ranks[sum(year < 1978 for year in wrong)] += 1
        distances.update(abs(year - 1978) for year in wrong)
        assert len(set(wrong)) == 2
    assert {rank: round(n / 1000, 1) for rank, n in ranks.items()} == {0: 1.0, 1: 1.0, 2: 1.0}
    assert set(distances) == {1, 2, 3}


def test_a_city_within_the_right_one_is_not_wrong() -> None:
    cities = [(f"Q{n}", "P17", "Q30") for n in (60, 61, 62, 63)]
    tree = world(*cities, ("Q61", "P131", "Q64"), ("Q64", "P131", "Q60"), ("Q65", "P17", "Q31"))
    golds = [
        Chain("headquarters", ("x", "y", name(id)), ("Q1", "Q2", id))
        for id in ("Q60", "Q61", "Q62", "Q63", "Q65")
    ]
    near = PlausibleAnswers(tree, golds, random.Random(0))
    assert sorted(near.draw(golds[0]) or ()) == [name("Q62"), name("Q63")]
    assert near.draw(golds[4]) is None  # no other of its country


def test_wrong_answers_are_wrong_and_near_and_every_item_has_its_two_facts(tmp_path: Path) -> None:
    settings = CompositionSettings(source=write_source(tmp_path, triples()), **SIZES)
    probe = build_composition(settings)
    ids = {name(id): id for triple in triples() for id in triple[::2] if id.startswith("Q")}
    statements = {(subject, property, target) for subject, property, target in triples()}
    for record in [*probe["train"], *probe["dev"]]:
        _, bridge, answer = record.meta["ids"]
        if record.meta["template"] == "band":
            assert (bridge, "P571", f"+{record.gold}-00-00T00:00:00Z") in statements
            assert all(0 < abs(int(year) - int(record.gold)) <= 3 for year in record.wrong)
            continue
        property, like = {"spouse": ("P26", "P21"), "headquarters": ("P159", "P17")}[
            record.meta["template"]
        ]
        assert (bridge, property, answer) in statements
        for text in record.wrong:
            assert (bridge, property, ids[text]) not in statements
            shared = [o for s, p, o in statements if s == answer and p == like]
            assert (ids[text], like, shared[0]) in statements
    assert Counter(r.meta["template"] for r in probe["train"]) == dict.fromkeys(QUESTIONS, 6)
    assert check_splits(probe) == check_records(probe["train"]) == []
    assert check_facts(settings, probe["train"]) == []
    record = next(r for r in probe["train"] if r.meta["template"] == "spouse")
    swapped = replace(record, answer=record.choices.index(record.wrong[0]))
    assert [finding.check for finding in check_facts(settings, [swapped])] == [
        "a right answer is wrong (Wikidata)",
        "a wrong answer is right (Wikidata)",
    ]
    single_hops = single_hop_facts(settings, probe)["facts"]
    golds = {fact.stem: fact.gold for fact in single_hops}
    assert len(golds) == len(single_hops)
    assert check_records(single_hops) == []
    for record in [*probe["train"], *probe["dev"]]:
        entity, bridge, answer = record.meta["names"]
        _, first, second = QUESTIONS[record.meta["template"]]
        assert golds[first.format(entity)] == bridge
        assert golds[second.format(bridge)] == answer == record.gold


def test_the_command_writes_what_a_curve_takes(tmp_path: Path) -> None:
    line = ["probes", "build", ENCYCLOPEDIC_COMPOSITION.name, f"--output_dir={tmp_path}"]
    line += [f"--{name}={value}" for name, value in SIZES.items()]
    assert cli.main([*line, f"--source={write_source(tmp_path, triples())}"]) == 0
    folder = tmp_path / "encyclopedic_composition"
    data = load_probe(str(folder / "encyclopedic_composition.yaml"), "dev")
    assert len(data.records) == 6
    assert all(data.config.find_arguments(record.stem) for record in data.records)
    single_hops = load_file(str(folder / "facts.jsonl.gz"), "mc_qa").records
    assert f"{len(single_hops)} items" in (folder / "README.md").read_text("utf-8")
    assert set(data.config.files) == {"train", "dev"}
