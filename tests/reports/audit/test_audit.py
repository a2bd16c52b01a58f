from __future__ import annotations

from dataclasses import replace

import pytest

from probelight.reports.audit.facts import Entry, entries
from probelight.reports.audit.findings import given_away
from probelight.reports.audit.tables import audit_table, rules_table, words_table
from probelight.results.load import Results, Run
from probelight.results.row import Row
from tests.fixtures import subsets


def run(kind: str, value: float, low: float, probe: str = "hypernymy", split: str = "test") -> Run:
    shared = {"protocol": "audit", "probe": probe, "split": split, "kind": kind, "role": "baseline"}
    size = {"num_items": 200, "num_groups": 100}
    rows = [
        Row(**shared, **size, metric="accuracy", value=value, ci_low=low, ci_high=2 * value - low),
        Row(**shared, metric="chance", value=0.2),
        Row(**shared, metric="accuracy", subset=subsets.UNTOUCHED, value=0.25, num_items=50),
    ]
    return Run(protocol="audit", model=kind, probe=probe, rows=tuple(rows), key=f"{kind}-{probe}")


def test_a_transformer_that_saw_the_choices_alone_is_called_so() -> None:
    shared = {"protocol": "audit", "probe": "mine", "split": "dev", "kind": "transformer"}
    rows = [
        Row(**shared, control="choice_only", metric="accuracy", value=0.5, ci_low=0.45),
        Row(**shared, control="choice_only", metric="chance", value=0.2),
    ]
    seen = Run(protocol="audit", model="tiny", probe="mine", rows=tuple(rows), key="seen")
    [entry] = entries(Results("x", (seen,)))
    assert (entry.group, entry.model) == ("part of the input", "Choice-only, tiny")
    assert entry.verdict == "gives itself away"


def counted() -> Run:
    shared = {"protocol": "audit", "probe": "hypernymy"}
    rows = [
        Row(**shared, split="test", metric="chance", value=0.2),
        Row(**shared, split="test", metric="accuracy", scoring="the longest answer", value=0.3),
        Row(**shared, split="test", metric="accuracy", scoring="the rarest words", value=0.4),
    ]
    for number, pmi in enumerate([1.5, 1.25, 1.0, 0.75, 0.5, 0.25, -1.0]):
        own = {**shared, "split": "all", "subset": subsets.answer_part("word", f"w{number}")}
        rows.append(Row(**own, metric="right_share", value=0.5, num_items=20))
        rows.append(Row(**own, metric="chance", value=0.25))
        rows.append(Row(**own, metric="pmi", value=pmi))
    return Run(protocol="audit", model="the answers alone", probe="hypernymy", rows=tuple(rows))


def test_ours_stand_beside_the_papers() -> None:
    results = Results("x", (run("choice_only", 0.41, 0.36), run("question_to_choice", 0.5, 0.4)))
    found = [(e.group, e.model, e.value.value, e.ours) for e in entries(results)]
    assert found == [
        ("guessing", "guessing", 0.2, False),
        ("part of the input", "Choice-only, GloVe", 0.46, False),
        ("part of the input", "Choice-only, BERT", 0.544, False),
        ("part of the input", "Choice-only, RoBERTa", 0.573, False),
        ("part of the input", "Choice-to-choice, GloVe", 0.355, False),
        ("part of the input", "VecSimilarity, word2vec", 0.33, False),
        ("part of the input", "choice_only", 0.41, True),
        ("question and choices", "Question-to-choice, GloVe", 0.47, False),
        ("question and choices", "Question-to-choice, ELMo", 0.515, False),
        ("question and choices", "question_to_choice", 0.5, True),
    ]
    assert [entry.untouched.value for entry in entries(results) if entry.untouched] == [0.25] * 2
    table = audit_table(results)
    assert table is not None
    ours = table.records[6]
    assert (ours["source"], ours["chance"], ours["verdict"]) == ("ours", 0.2, "gives itself away")
    assert ours["over_chance"] == pytest.approx(0.21)


def test_a_part_of_train_stands_beside_the_papers_test() -> None:
    runs = (run("choice_only", 0.3, 0.25, split="part of train"), run("choice_only", 0.3, 0.25))
    found = {(e.source, e.split, e.model): e.value.value for e in entries(Results("x", runs))}
    assert found["paper, test", "part of train", "Choice-only, BERT"] == 0.544
    assert found["paper", "test", "Choice-only, BERT"] == 0.544
    dev = entries(Results("x", (run("choice_only", 0.3, 0.25, split="dev"),)))
    assert [e.value.value for e in dev if e.model == "Choice-only, BERT"] == [0.638]


def test_a_probe_of_no_paper_has_no_published_rows() -> None:
    results = Results("x", (run("choice_only", 0.3, 0.25, "mine"),))
    assert [entry.ours for entry in entries(results)] == [True]


def test_seeds_are_told_apart() -> None:
    runs = [run("choice_only", 0.3, 0.25, "mine") for _ in range(2)]
    runs = [
        replace(one, rows=tuple(replace(row, seed=seed) for row in one.rows), key=str(seed))
        for seed, one in enumerate(runs)
    ]
    found = [entry.model for entry in entries(Results("x", tuple(runs)))]
    assert found == ["choice_only, seed 0", "choice_only, seed 1"]


@pytest.mark.parametrize(
    ("kind", "value", "low", "verdict"),
    [
        ("choice_only", 0.41, 0.36, "gives itself away"),
        ("choice_to_choice", 0.41, 0.35, "may give itself away"),  # up to 15 points, not above
        ("choice_only", 0.36, 0.21, "may give itself away"),
        ("choice_only", 0.36, 0.2, ""),  # perhaps chance
        ("choice_only", 0.35, 0.3, ""),
        ("vec_similarity", 0.6, 0.5, ""),  # it has read the question
    ],
)
def test_verdicts(kind: str, value: float, low: float, verdict: str) -> None:
    results = Results("x", (run(kind, value, low, "mine"),))
    found: list[Entry] = entries(results)
    assert [entry.verdict for entry in found] == [verdict]


def test_findings() -> None:
    runs = (
        run("choice_only", 0.41, 0.36),
        run("choice_only", 0.3, 0.22, "mine"),
        run("vec_similarity", 0.7, 0.6, "mine"),
    )
    assert given_away(Results("x", runs)) == [
        "hypernymy gives itself away: choice_only answers 41.0% (36.0–46.0, n = 200 in 100 groups) "
        "of its test items from the choices alone, +21.0 points over chance (20.0%).",
        "No baseline that sees the choices alone is more than 15 points over chance on mine.",
    ]
    assert given_away(Results("x", ())) == []


def test_what_is_counted() -> None:
    results = Results("x", (counted(),))
    looks, words = rules_table(results), words_table(results)
    assert looks is not None
    assert words is not None
    assert [row[1].text for row in looks.rows] == ["the rarest words", "the longest answer"]
    assert [row[2].text for row in words.rows] == ["w0", "w1", "w2", "w3", "w6"]
    assert [record["text"] for record in words.records] == [f"w{n}" for n in range(7)]


def test_a_rule_that_answers_a_probe_is_flagged() -> None:
    shared = {"protocol": "audit", "probe": "mine", "split": "dev"}
    size = {"num_items": 200, "num_groups": 100}
    name = "an answer with the asked word"
    rows = [
        Row(**shared, metric="chance", value=0.2),
        Row(
            **shared, **size, metric="accuracy", scoring=name, value=0.48, ci_low=0.44, ci_high=0.52
        ),
        Row(
            **shared,
            **size,
            metric="accuracy",
            scoring="the longest answer",
            value=0.36,
            ci_low=0.3,
        ),
    ]
    looks = Run(protocol="audit", model="the answers alone", probe="mine", rows=tuple(rows))
    results = Results("x", (run("choice_only", 0.3, 0.22, "mine"), looks))
    assert given_away(results) == [
        "mine gives itself away: to choose an answer with the asked word is right in 48.0% "
        "(44.0–52.0, n = 200 in 100 groups) of its dev items, +28.0 points over chance (20.0%).",
        "No baseline that sees the choices alone is more than 15 points over chance on mine.",
    ]
    table = rules_table(results)
    assert table is not None
    assert [record["verdict"] for record in table.records] == [
        *("gives itself away", "may give itself away")
    ]
