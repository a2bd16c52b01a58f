from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from probelight import cli
from probelight.reports.build import to_html
from probelight.reports.figure import STYLE
from probelight.reports.overview.glance import models_of
from probelight.reports.overview.skills import Skill, contamination_counts, verdicts
from probelight.reports.overview.verdicts import HELD
from probelight.results.load import RunSet, load_results
from tests.fixtures import subsets
from tests.fixtures.checkout import ROOT
from tests.fixtures.curves import levels
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.grids import write_grid
from tests.fixtures.results import (
    accuracy,
    inoculation_rows,
    write_curve,
    write_run,
    zero_shot_rows,
)

RANDOM = "dictionary-lm (random weights)"
SIMILARITY = ("vec_similarity", "VecSimilarity (w)")  # kind and label of a baseline


def test_a_demo_has_a_verdict_a_probe_and_an_inoculation(demo_folder: Path) -> None:
    judged = verdicts(load_results(demo_folder))
    assert [(v.skill.probe, v.words, v.protocol) for v in judged] == [
        ("age_comparison", "learned it", "curve"),  # 85.1% after, no language 62.3%
        ("always_never", "not shown", "zero_shot"),  # 35.0%, the most frequent answer 36.1%
        ("antonym_negation", "not shown", "zero_shot"),  # 54.2%, from 49.8
        ("multihop_composition", "not shown", "zero_shot"),
        ("objects_comparison", "not shown", "zero_shot"),  # 43.6%, below chance
        ("taxonomy_conjunction", "cannot tell", "zero_shot"),  # 61.3% of 3 choices, no control
        ("hypernymy", "cannot tell", "inoculation"),  # 29.1% to 55.3% of 5 choices, no control
    ]
    inoculated = judged[-1]
    assert inoculated.skill == Skill("inoculated", "hypernymy", "original task definitions")
    # (301 - 282) / 500, with the interval of its row.
    assert inoculated.cost == "cost +3.8 points (+0.8 to +6.8)"


def test_a_control_that_learns_as_much_leaves_it_open(tmp_path: Path) -> None:
    more: dict[str, Any] = {"sizes": (0, 62), "controls": ("standard", "no_language")}
    write_curve(tmp_path, levels(0.9, 0.9, untrained=0.5), **more)
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.word == "cannot tell"
    level = pytest.approx(0.9)
    assert verdict.evidence == (("after 62 examples", level), ("without language", level))


def test_of_several_curves_it_says_which_was_judged(tmp_path: Path) -> None:
    for mode, level in (("linear", 0.9), ("mlp", 0.5)):
        write_curve(tmp_path, lambda *_, at=level: at, mode=mode, sizes=(62,))
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.word == "not shown"
    assert verdict.reason.endswith(" By the first of 2 curves (mlp, rate 0.001).")


@pytest.mark.parametrize(("best", "word"), [(0.5, "learned it"), (0.9, "cannot tell")])
def test_random_weights_that_learn_as_much_leave_it_open(
    tmp_path: Path, best: float, word: str
) -> None:
    more: dict[str, Any] = {"sizes": (0, 62), "controls": ("standard",)}
    write_curve(tmp_path, levels(0.9, untrained=0.5), **more)
    write_curve(tmp_path, levels(best, untrained=0.5), model=RANDOM, **more)
    (verdict,) = verdicts(load_results(tmp_path))
    assert (verdict.model, verdict.word) == ("dictionary-lm", word)
    assert verdict.evidence[1] == ("with random weights", pytest.approx(best))


def test_baselines_are_judged_where_they_are_alone(tmp_path: Path) -> None:
    write_curve(tmp_path, lambda *_: 0.9, model="ESIM (word_vectors)", sizes=(62,))
    (verdict,) = verdicts(load_results(tmp_path))
    assert (verdict.model, verdict.word) == ("ESIM (word_vectors)", "cannot tell")


def inoculate(
    folder: Path, right: tuple[int, int], control: str = "", dose: int = 100, **more: Any
) -> None:
    """Writes an inoculation of 1,000 items, of which these are right before and after."""
    rows = inoculation_rows(probe_correct=right, dose=dose, **more)
    fields = {"original_task": "definitions", "report_split": "test"}
    name = f"inoculate-{control}-{dose}-{'-'.join(more.values())}"
    write_run(folder, name, [{**row, "control": control} for row in rows], **fields)


def audit(
    folder: Path, right: int, kind: str = "choice_only", label: str = "Choice-only (w)"
) -> None:
    """Writes what a baseline scored of 1,000 items."""
    columns = {"protocol": "audit", "probe": "hypernymy", "split": "test", "model": label}
    columns |= {"kind": kind, "role": "baseline"}
    chance = {**columns, "metric": "chance", "value": 0.2}
    write_run(folder, f"audit-{label}-{right}", [accuracy(right, 1000, **columns), chance])


def test_without_its_control_an_inoculation_leaves_it_open(tmp_path: Path) -> None:
    """Of 1,000 items 270 are right before, 440 after; intervals of Wilson are at most 3.1 wide."""
    inoculate(tmp_path, (270, 440))
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.word == "cannot tell"
    original = " Its original task was definitions."
    assert verdict.reason.endswith("but no like-for-like control was run." + original)
    # A baseline of a part, however low, is none; nor is a control after fewer examples.
    audit(tmp_path, 200)
    inoculate(tmp_path, (250, 260), "choice_only", dose=50)
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.word == "cannot tell"
    inoculate(tmp_path, (250, 300), "choice_only")
    (verdict,) = verdicts(load_results(tmp_path))
    # 27.0% before is not clearly above 25.0%, 44.0% after is clearly above 30.0.
    assert verdict.words == "learned it, in part"
    assert verdict.evidence[1] == ("from the choices alone", 0.30)
    assert verdict.reason == (
        "After 100 examples 44.0% (41.0–47.1), from 27.0% before inoculation; compared with 30.0% "
        "from the choices alone." + original
    )
    (run,) = verdict.runs
    assert {row.control for row in run.rows} == {""}  # the control has no verdict of its own


def test_what_was_known_before_inoculation_needs_its_control_too(tmp_path: Path) -> None:
    inoculate(tmp_path, (300, 310))
    inoculate(tmp_path, (205, 210), "choice_only")
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.words == "knew it, in part"
    assert verdict.reason.startswith(
        "Before inoculation 30.0% (27.2–32.9), above chance (20.0%); compared with 20.5% from the "
        "choices alone, 21.0% from the choices alone after 100 examples."
    )


@pytest.mark.thorough
def test_the_demo_with_its_audit_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was found: 27.7 before, 35.0 after; choice-only 26.2, VecSimilarity 32.0."""
    monkeypatch.setitem(STYLE, "pdf.fonttype", 3)  # PDFs are made in a quarter of the time
    demo, audited = tmp_path / "demo", tmp_path / "audit"
    inoculate(demo, (277, 350))
    inoculate(demo, (215, 220), "choice_only")
    (alone,) = verdicts(load_results(demo))
    assert alone.words == "knew it, in part"
    assert alone.evidence[1] == ("after 100 examples", 0.35)
    audit(audited, 262)
    audit(audited, 320, *SIMILARITY)
    (verdict,) = verdicts(load_results([demo, audited]))
    assert verdict.word == "cannot tell"
    assert verdict.reason == (
        "After 100 examples 35.0% (32.1–38.0); by VecSimilarity it is 32.0%, which is not "
        "clearly lower. Its original task was definitions."
    )
    assert cli.main(["report", str(demo), str(audited), f"--output_dir={tmp_path / 'out'}"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    overview = page[page.index('id="overview"') : page.index('id="inoculation"')]
    grid = overview[overview.index("<table") : overview.index("</table>")]
    words = ("cannot tell", "knew it", "learned it")
    assert [word in grid for word in words] == [True, False, False]
    assert verdict.reason in overview
    assert f"<p>{HELD}</p>" in overview
    assert HELD in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_random_weights_are_a_control_of_an_inoculation(tmp_path: Path) -> None:
    inoculate(tmp_path, (200, 440))
    inoculate(tmp_path, (200, 250), model=RANDOM)
    (verdict,) = verdicts(load_results(tmp_path))
    assert verdict.words == "learned it, in part"
    assert verdict.evidence[1] == ("with random weights", 0.25)


def test_a_choice_only_run_stands_against_a_zero_shot_score(tmp_path: Path) -> None:
    for model, right in (("dictionary-lm", 400), (RANDOM, 200)):
        rows = zero_shot_rows("hypernymy", right, 1000, 5, model=model, majority=0.2)
        write_run(tmp_path, model, [{**row, "split": "test"} for row in rows])
    assert [v.words for v in verdicts(load_results(tmp_path))] == ["knew it, in part"]
    inoculate(tmp_path, (200, 390), "choice_only", dose=500)
    verdict, *_ = verdicts(load_results(tmp_path))
    assert verdict.word == "cannot tell"
    assert verdict.evidence[1] == ("from the choices alone", 0.39)


@pytest.mark.thorough
def test_no_further_evidence_in_the_folders_raises_a_verdict(tmp_path: Path) -> None:
    """Baselines and controls of drawn scores, one after the other, next to a like-for-like one."""
    order = ["not shown", "cannot tell", "learned it", "knew it"]
    draw, lowered = Random(0), 0
    for number in range(8):
        folder = tmp_path / str(number)
        inoculate(folder, (draw.randrange(190, 400), draw.randrange(300, 700)))
        inoculate(folder, (200, 210), "choice_only")
        (verdict,) = verdicts(load_results(folder))
        height = order.index(verdict.word)

        def near(base: int) -> int:
            return base + draw.randrange(-100, 250)

        further: list[Callable[[Path], None]] = [
            lambda at: audit(at, near(200)),
            lambda at: audit(at, near(200), "choice_to_choice", "Choice-to-choice (w)"),
            lambda at: audit(at, near(200), *SIMILARITY),
            lambda at: inoculate(at, (near(200), near(250)), "choice_only", dose=50),
            lambda at: inoculate(at, (near(200), near(250)), "choice_only", dose=2000),
            lambda at: inoculate(at, (near(200), near(250)), model=RANDOM),
        ]
        draw.shuffle(further)
        for add in further:
            add(folder)
            (verdict,) = verdicts(load_results(folder))
            new_height = order.index(verdict.word)
            assert new_height <= height, verdict
            lowered += new_height < height
            height = new_height
    assert lowered > 2


def test_a_floor_makes_the_cost_unreadable(inoculated: Callable[..., RunSet]) -> None:
    (verdict,) = verdicts(inoculated(cost_interpretable=False))
    assert verdict.cost == "cost not interpretable"


def test_every_pair_of_values_is_a_skill(tmp_path: Path) -> None:
    """Of 90 pairs all are right, or half of them where "younger" is said of every one."""
    ages = list(range(15, 115, 10))
    write_grid(tmp_path, "A", ages, lambda i, j: float(i < j))
    write_grid(tmp_path, "A", ages, lambda i, j: 1.0, wording="released")
    write_grid(tmp_path, "B", ages, lambda i, j: 1.0)
    words = [verdict.words for verdict in verdicts(load_results(tmp_path))]
    assert words == ["cannot tell", "not shown"]  # without a control
    name = "m (random weights)"
    write_grid(tmp_path, "A", ages, lambda i, j: 1.0, name)
    judged = verdicts(load_results(tmp_path))
    assert [(v.skill.words, v.skill.about, v.words) for v in judged] == [
        ("age comparison", "where what, 15–105 in steps of 10", "knew it"),
        ("age comparison", "where what, 15–105 in steps of 10, released wording", "not shown"),
    ]
    assert {v.protocol for v in judged} == {"grid"}


def test_statements_are_judged_apart_from_their_negations(tmp_path: Path) -> None:
    """By the noun alone all statements are right and all negations wrong: together, chance."""
    simp: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
    halves = map(subsets.statements, ("affirmative", "negative"))
    statements = [share(18, 36, **simp)]
    statements += [
        share(n, 18, **simp, subset=half) for n, half in zip((18, 0), halves, strict=True)
    ]
    disturbed = share(12, 34, "sensitivity", perturbation="shuffled+truncated")
    cprag = [share(34, 34, "sensitivity"), disturbed]
    half = [share(9, 18, **simp, subset=row.get("subset")) for row in statements]
    random = [{**row, "model": "m (random weights)"} for row in half]
    alone = results_of(tmp_path / "alone", statements)
    assert [v.word for v in verdicts(alone)] == ["cannot tell", "not shown"]
    judged = verdicts(results_of(tmp_path / "all", cprag, statements, random))
    assert [(v.skill.words, v.skill.about, v.words) for v in judged] == [
        ("CPRAG-102", "", "knew it"),
        ("NEG-136-SIMP", "affirmative", "knew it"),
        ("NEG-136-SIMP", "negative", "not shown"),
    ]
    assert judged[2].reason == "Before training 0.0% (0.0–17.6): below chance (50.0%)."


def test_a_diagnostic_is_judged_by_its_rows_whatever_its_record_names(tmp_path: Path) -> None:
    simp = share(18, 18, "sensitivity", probe="neg_simp", model="n")
    run = write_run(tmp_path, "a", [share(25, 34, "sensitivity"), simp])
    judged = verdicts(load_results(tmp_path))
    assert [v.skill.probe for v in judged] == ["cprag", "neg_simp"]
    assert [[r.key for r in verdict.runs] for verdict in judged] == [[run.name]] * 2


def test_of_a_sweep_the_chosen_run_is_judged(sweep: RunSet) -> None:
    (verdict,) = verdicts(sweep)
    assert verdict.word == "cannot tell"  # 200 of 1,000 before, 440 after, no control
    assert verdict.evidence[0][1] == 0.44
    assert [run.key.split("-")[0] for run in verdict.runs] == ["chosen"]


def test_models_stand_by_the_numbers_in_their_names(tmp_path: Path) -> None:
    for name in ("m@step1000", "m@step900", "m", "12", "9²"):
        write_run(tmp_path, name, zero_shot_rows("p", 40, 100, 2, model=name))
    models = models_of(verdicts(load_results(tmp_path)))
    assert models == ["9²", "12", "m", "m@step900", "m@step1000"]


def asked(folder: Path, loaded_from: str) -> RunSet:
    rows = zero_shot_rows("hypernymy_small", 229, 500, 5)
    rows = [{**row, "split": "test"} for row in rows]
    write_run(folder, "asked", rows, loaded_from=loaded_from)
    return load_results(folder)


def test_what_a_bundled_model_has_read_stands_beside_the_verdict(tmp_path: Path) -> None:
    results = asked(tmp_path, "bookshelf-qa")
    (verdict,) = verdicts(results)
    warning = "334 of 500 items share 8 words in a row with its training text"
    assert verdict.contamination == warning
    assert f"<small>{warning}</small>" in to_html(results, [])


def test_no_warning_for_another_model(tmp_path: Path) -> None:
    (verdict,) = verdicts(asked(tmp_path, "runs/tuned"))
    assert verdict.contamination == ""


def test_contamination_is_that_of_the_model_card() -> None:
    card = (ROOT / "assets" / "bookshelf-lm" / "README.md").read_text(encoding="utf-8")
    row = r"^\| (\w+), (dev|test) \| ([\d,]+) \|.*\| ([\d,]+) \([\d.]+%\) \|$"
    expected: dict[str, dict[str, str]] = {}
    for probe, split, num_items, shared in re.findall(row, card, re.MULTILINE):
        if shared != "0":
            expected.setdefault(probe, {})[split] = f"{shared} of {num_items}"
    assert len(expected) == 5
    assert contamination_counts()["items"] == expected
