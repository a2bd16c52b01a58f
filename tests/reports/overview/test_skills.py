from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.overview.skills import KINDS, Skill, Verdict, models_of, verdicts
from reports.overview.verdicts import Evidence
from results.load import Results, load_results
from results.subset import Statements
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.grids import write_grid

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def told(found: tuple[Verdict, ...]) -> dict[tuple[str, str], str]:
    return {(one.skill.probe, one.model): one.judged.said for one in found}


def test_a_demo_has_a_verdict_a_probe_and_an_inoculation(demo_folder: Path) -> None:
    found = verdicts(load_results(demo_folder))
    assert told(found) == {
        ("age_comparison", "embedded"): "learned it",  # 85.1% after, no language 62.3%
        ("always_never", "embedded"): "not shown",  # 35.0%, the most frequent answer 36.1%
        ("antonym_negation", "embedded"): "not shown",  # 54.2%, from 49.8
        ("multihop_composition", "embedded"): "not shown",
        ("objects_comparison", "embedded"): "not shown",  # 43.6%, below chance
        ("taxonomy_conjunction", "embedded"): "knew it, in part",  # 61.3% of 3 choices
        ("hypernymy", "embedded"): "learned it, in part",  # 29.1% to 55.3% of 5 choices
    }
    by_kind = [one.skill.kind for one in found]
    assert by_kind == ["asked"] * 6 + ["inoculated"]
    assert [one.section for one in found] == ["curves", *["before"] * 5, "inoculation"]
    inoculated = found[-1]
    assert inoculated.skill == Skill("inoculated", "hypernymy", "originally definitions")
    # (301 - 282) / 500, with the interval of its row.
    assert inoculated.cost == "cost +3.8 points (+0.8 to +6.8)"


def test_a_control_that_learns_as_much_leaves_it_open(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.5 if num_train == 0 else 0.9

    write_curve_runs(tmp_path, shares, sizes=(0, 62), controls=("standard", "no_language"))
    (found,) = verdicts(load_results(tmp_path))
    assert found.judged.word == "cannot tell"
    labels = [one.label for one in found.judged.evidence]
    assert labels == ["after 62 examples", "without its language"]
    assert [one.value for one in found.judged.evidence] == pytest.approx([0.9, 0.9])


def test_of_several_curves_it_says_which_was_judged(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    for mode, level in (("linear", 0.9), ("mlp", 0.5)):
        write_curve_runs(tmp_path, lambda *_, at=level: at, mode=mode, sizes=(62,))
    (found,) = verdicts(load_results(tmp_path))
    assert found.judged.word == "not shown"
    assert found.judged.reason.endswith(" By the first of 2 curves (mlp, rate 0.001).")


def test_random_weights_that_learn_as_much_leave_it_open(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.5 if num_train == 0 else 0.9

    only = {"sizes": (0, 62), "controls": ("standard",)}
    write_curve_runs(tmp_path, shares, **only)
    assert told(verdicts(load_results(tmp_path))) == {("age_comparison", "embedded"): "learned it"}
    write_curve_runs(tmp_path, shares, model="embedded (random weights)", **only)
    (found,) = verdicts(load_results(tmp_path))
    assert found.judged.word == "cannot tell"
    assert found.judged.evidence[1].label == "with random weights"


def test_baselines_are_judged_where_they_are_alone(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, lambda *_: 0.9, model="ESIM (word_vectors)", sizes=(62,))
    (found,) = verdicts(load_results(tmp_path))
    assert (found.model, found.judged.word) == ("ESIM (word_vectors)", "cannot tell")


def test_a_baseline_of_the_choices_alone_leaves_what_was_learned_open(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    facts = {"original_task": "definitions", "report_split": "test"}
    write_run(tmp_path, "a", rows.inoculation(probe_correct=(200, 440)), **facts)
    assert told(verdicts(load_results(tmp_path))) == {
        ("hypernymy", "embedded"): "learned it, in part"
    }
    audit = {"protocol": "audit", "probe": "hypernymy", "split": "test", "model": "Choice-only"}
    audit |= {"kind": "choice_only", "role": "baseline"}
    chance = {**audit, "metric": "chance", "value": 0.2}
    write_run(tmp_path, "b", [rows.accuracy(430, 1000, **audit), chance])
    (found,) = verdicts(load_results(tmp_path))
    assert found.judged.word == "cannot tell"
    assert found.judged.evidence[1] == Evidence("from the choices alone", 0.43)


def test_a_floor_makes_the_cost_unreadable(inoculated: Callable[..., Results]) -> None:
    (found,) = verdicts(inoculated(cost_interpretable=False))
    assert found.cost == "cost not interpretable"


def test_every_pair_of_values_is_a_skill(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    """Of 90 pairs all are right, or half of them where "younger" is said of every one."""
    ages = list(range(15, 115, 10))
    write_grid(tmp_path, write_run, rows, "A", ages, lambda i, j: float(i < j))
    write_grid(tmp_path, write_run, rows, "A", ages, lambda i, j: 1.0, wording="released")
    write_grid(tmp_path, write_run, rows, "B", ages, lambda i, j: 1.0)
    found = verdicts(load_results(tmp_path))
    assert [(one.skill.words, one.skill.about, one.judged.said) for one in found] == [
        ("age comparison", "where what, 15–105 in steps of 10", "knew it"),
        ("age comparison", "where what, 15–105 in steps of 10, released wording", "not shown"),
    ]
    assert {one.section for one in found} == {"grids"}


def test_statements_are_judged_apart_from_their_negations(
    tmp_path: Path, write_run: WriteRun
) -> None:
    """By the noun alone all statements are right and all negations wrong: together, chance."""
    simp: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
    statements = [
        share(18, 36, **simp),
        share(18, 18, **simp, subset=Statements("affirmative")),
        share(0, 18, **simp, subset=Statements("negative")),
    ]
    found = verdicts(results_of(tmp_path, write_run, [share(25, 34, "sensitivity")], statements))
    assert [(one.skill.words, one.skill.about, one.judged.said) for one in found] == [
        ("CPRAG-102", "", "knew it"),
        ("NEG-136-SIMP", "affirmative", "knew it"),
        ("NEG-136-SIMP", "negative", "not shown"),
    ]
    assert found[2].judged.reason == "Before training 0.0% (0.0–17.6): below chance (50.0%)."


def test_of_a_sweep_the_chosen_run_is_judged(sweep: Results) -> None:
    (found,) = verdicts(sweep)
    assert found.judged.word == "learned it"  # 200 of 1,000 before, 440 after
    assert [run.key.split("-")[0] for run in found.runs] == ["chosen"]


def test_models_stand_by_the_numbers_in_their_names(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name in ("m@step1000", "m@step900", "m", "12", "9²"):
        write_run(tmp_path, name, rows.zero_shot("p", 40, 100, 2, model=name))
    found = models_of(verdicts(load_results(tmp_path)))
    assert found == ["9²", "12", "m", "m@step900", "m@step1000"]


def test_every_kind_has_a_heading() -> None:
    assert list(KINDS) == ["asked", "paired", "inoculated", "diagnosed"]
    assert Skill("asked", "taxonomy_small", "test").words == "taxonomy (small)"
    assert Skill("diagnosed", "cprag").words == "CPRAG-102"
