from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probelight.reports.audit import audit_summary, audit_table, baselines, rules_table, words_table
from probelight.reports.table import Table
from probelight.results.load import Run, RunSet
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.report import present, records


def run(kind: str, value: float, low: float, probe: str = "hypernymy", split: str = "test") -> Run:
    shared = {"protocol": "audit", "probe": probe, "split": split, "kind": kind, "model": kind}
    size = {"num_items": 200, "num_groups": 100}
    rows = [
        Row(**shared, **size, metric="accuracy", value=value, ci_low=low, ci_high=2 * value - low),
        Row(**shared, metric="chance", value=0.2),
        Row(**shared, metric="accuracy", subset=subsets.UNTOUCHED, value=0.25, num_items=50),
    ]
    key = f"{kind}-{probe}-{split}"
    return Run(protocol="audit", model=kind, probe=probe, rows=tuple(rows), key=key, path=key)


def rows_of(table: Table | None) -> list[dict[str, Any]]:
    return records(present(table))


def with_rows(audit_run: Run, **columns: Any) -> Run:
    return replace(audit_run, rows=tuple(replace(row, **columns) for row in audit_run.rows))


def test_a_transformer_that_saw_the_choices_alone_is_called_so() -> None:
    seen = with_rows(run("transformer", 0.5, 0.45, "mine"), control="choice_only", model="tiny")
    [row] = rows_of(audit_table(RunSet("x", (seen,))))
    # The only row: of a probe of its own no paper has numbers.
    assert (row["group"], row["model"]) == ("part of the input", "Choice-only, tiny")
    assert row["verdict"] == "gives itself away"


def test_ours_are_next_to_the_papers() -> None:
    results = RunSet("x", (run("choice_only", 0.41, 0.36), run("question_to_choice", 0.5, 0.4)))
    table = audit_table(results)
    shown_rows = [
        (row["group"], row["model"], row["accuracy"], row["source"] == "ours")
        for row in rows_of(table)
    ]
    assert shown_rows == [
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
    assert [row["untouched"] for row in rows_of(table) if row["untouched"]] == [0.25] * 2
    ours = rows_of(table)[6]
    assert (ours["source"], ours["chance"], ours["verdict"]) == ("ours", 0.2, "gives itself away")
    assert ours["over_chance"] == pytest.approx(0.21)


def test_a_part_of_train_is_next_to_the_papers_test() -> None:
    runs = (run("choice_only", 0.3, 0.25, split="part of train"), run("choice_only", 0.3, 0.25))
    accuracies = {
        (row["source"], row["split"], row["model"]): row["accuracy"]
        for row in rows_of(audit_table(RunSet("x", runs)))
    }
    assert accuracies["paper, test", "part of train", "Choice-only, BERT"] == 0.544
    assert accuracies["paper", "test", "Choice-only, BERT"] == 0.544
    dev = rows_of(audit_table(RunSet("x", (run("choice_only", 0.3, 0.25, split="dev"),))))
    assert [row["accuracy"] for row in dev if row["model"] == "Choice-only, BERT"] == [0.638]


def test_seeds_have_names() -> None:
    seed_run = run("choice_only", 0.3, 0.25, "mine")
    runs = tuple(replace(with_rows(seed_run, seed=seed), path=str(seed)) for seed in range(2))
    models = [row["model"] for row in rows_of(audit_table(RunSet("x", runs)))]
    assert models == ["choice_only, seed 0", "choice_only, seed 1"]


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
def test_the_interval_gives_the_verdict(kind: str, value: float, low: float, verdict: str) -> None:
    results = RunSet("x", (run(kind, value, low, "mine"),))
    assert list(baselines(results).verdict) == [verdict]


def test_the_paragraph_names_what_is_given_away() -> None:
    runs = (
        run("choice_only", 0.41, 0.36),
        run("choice_only", 0.3, 0.22, "mine"),
        run("vec_similarity", 0.7, 0.6, "mine"),
    )
    assert audit_summary(RunSet("x", runs)) == (
        "hypernymy gives itself away: choice_only answers 41.0% of its test items from the choices "
        "alone, 21.0 points above chance. No baseline that sees only the choices is more than 15 "
        "points above chance on mine."
    )


def test_rules_and_words_are_counted_in_tables() -> None:
    shared = {"protocol": "audit", "probe": "hypernymy"}
    rows = [
        Row(**shared, split="test", metric="chance", value=0.2),
        Row(**shared, split="test", metric="accuracy", scoring="the longest answer", value=0.3),
        Row(**shared, split="test", metric="accuracy", scoring="the rarest words", value=0.4),
    ]
    for number, pmi in enumerate([1.5, 1.25, 1.0, 0.75, 0.5, 0.25, -1.0]):
        columns = {**shared, "split": "all", "subset": subsets.answer_part("word", f"w{number}")}
        rows.append(Row(**columns, metric="right_share", value=0.5, num_items=20))
        rows.append(Row(**columns, metric="chance", value=0.25))
        rows.append(Row(**columns, metric="pmi", value=pmi))
    results = RunSet("x", (Run(**shared, model="the answers alone", rows=tuple(rows)),))
    looks, words = present(rules_table(results)), present(words_table(results))
    assert [row[1].text for row in looks.rows] == ["the rarest words", "the longest answer"]
    assert [row[2].text for row in words.rows] == ["w0", "w1", "w2", "w3", "w6"]
    assert [row["text"] for row in records(words)] == [f"w{n}" for n in range(7)]
    assert audit_table(results) is None


def test_a_rule_that_answers_a_probe_is_flagged() -> None:
    shared = {"protocol": "audit", "probe": "mine", "split": "dev"}
    right = {**shared, "metric": "accuracy"}
    rows = [
        Row(**shared, metric="chance", value=0.2),
        Row(**right, scoring="an answer with the asked word", value=0.48, ci_low=0.44),
        Row(**right, scoring="the longest answer", value=0.36, ci_low=0.3),
    ]
    looks = Run(protocol="audit", model="the answers alone", probe="mine", rows=tuple(rows))
    results = RunSet("x", (run("choice_only", 0.3, 0.22, "mine"), looks))
    assert audit_summary(results) == (
        "mine gives itself away: choosing an answer with the asked word is right in 48.0% of its "
        "dev items, 28.0 points above chance. No baseline that sees only the choices is more than "
        "15 points above chance on mine."
    )
    assert [row["verdict"] for row in rows_of(rules_table(results))] == [
        *("gives itself away", "may give itself away")
    ]
