from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

from probelight import cli
from probelight.commands.diagnose.diagnose import (
    RECORDED,
    DiagnosisSpec,
    RecordedSpec,
)
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.probes.diagnostics.sets import SETS, load_set, shuffled
from probelight.results.model_outputs import find_recorded
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from probelight.runs.settings import TrainerSettings
from tests.fixtures.diagnostics import write_lists, write_recorded, write_released
from tests.fixtures.rows import read_results

Counts = dict[tuple[str, str, str, str], str]


def diagnose(recorded: Path, mirror: Path, out: Path) -> Counts:
    """Every number of results.csv, as a count."""
    command = ["diagnose", f"--recorded={recorded}", f"--mirror={mirror}", f"--output_dir={out}"]
    assert cli.main(command) == 0
    return {
        (row["model"], row["probe"], row["metric"], row["subset"]): (
            f"{round(float(row['value']) * int(row['num_items']))}/{row['num_items']}"
        )
        for row in read_results(out / "results.csv")
        if row["protocol"] == "diagnose"
    }


def select(counts: Counts, probe: str, metric: str, model: str = "bert") -> dict[str, str]:
    return {
        subset: counted
        for (whose, name, metric_name, subset), counted in counts.items()
        if (whose, name, metric_name) == (model, probe, metric)
    }


def test_all_sets_in_both_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = write_recorded(tmp_path / "outputs")
    write_recorded(outputs, model="other", words=["x"] * 6)
    write_recorded(
        outputs, "role", words=["tipped", "worked", "x", "x"], probabilities=[0.1, 0.2, 0.3, 0.3]
    )
    write_recorded(outputs, "negsimp", words=["fish"] * 8, probabilities=[0.9, 0.8, 0.1, 0.1] * 2)
    write_recorded(
        outputs, "negnat", words=["x"] * 8, probabilities=[0.2, 0.1, 0.1, 0.3, 0.1, 0.2, 0.3, 0.1]
    )
    write_lists(outputs, "ROLE-1500", [["", "signed"], ["left", "x"]])
    for name in ("TEMP", "GEN"):
        pets = [["animal"], ["animal", "x"], ["x", "text"], ["book"]]  # the first word counts
        write_lists(outputs, f"NEG-1500-SIMP-{name}", pets)
    rows = diagnose(outputs, write_released(tmp_path / "mirror"), tmp_path / "out")
    assert "50.0 (1/2)" in capsys.readouterr().out
    assert select(rows, "cprag", "accuracy@1", "other")[""] == "0/2"
    assert select(rows, "role", "accuracy@1")[""] == "2/4"
    by_hand = {
        # football is second; cake (0.5) is below toast (0.6).
        ("cprag", "accuracy@1"): {"": "1/2", "high constraint": "0/1", "low constraint": "1/1"},
        ("cprag", "sensitivity"): {"": "1/2", "high constraint": "1/1", "low constraint": "0/1"},
        ("role", "sensitivity"): {"": "1/2"},
        ("neg_simp", "accuracy@1"): {"": "1/2"},
        ("neg_simp", "sensitivity"): {"": "2/4", "affirmative": "2/2", "negative": "0/2"},
        # Diving: true above false in both; rockets: 0.1 below 0.3, and 0.1 below 0.2.
        ("neg_nat", "sensitivity"): {
            "": "2/4", "affirmative": "1/2", "negative": "1/2",
            "natural": "2/2", "affirmative natural": "1/1", "negative natural": "1/1",
            "less natural": "0/2",
            "affirmative less natural": "0/1", "negative less natural": "0/1",
        },
        ("neg_nat", "accuracy@1"): {},
        ("role_1500", "accuracy@1"): {"": "2/2"},
        ("neg_1500_simp_temp", "accuracy@1"): {"": "1/2"},
        ("neg_1500_simp_temp", "negation_sensitivity"): {"": "1/2"},
    }  # fmt: skip
    for (probe, metric), counted in by_hand.items():
        assert select(rows, probe, metric) == counted
    for metric in ("accuracy@1", "negation_sensitivity"):
        assert select(rows, "neg_1500_simp_gen", metric) == {"": "1/2"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--sets=cprag,rol", "--sets rol: there is no such set (did you mean 'role'?); choose"),
        ("--recorded=WHOLE --sets=role", "it has outputs for cprag, but for none of --sets role"),
        ("--models=mlm_baseline", "knows nothing before training, and diagnose does not"),
        ("--recorded=SHORT", "modelpreds-cprag-bert.txt: 5 lines instead of 6"),
        ("--recorded=NONE", "modelpreds-cprag-bert.txt: missing; put it next to"),
        (
            "--recorded=WHOLE --write_recorded=WHOLE",
            "writes outputs of models; give --models or --model",
        ),
        (
            "--recorded=WHOLE --models=dictionary-lm --write_recorded=WHOLE",
            "is the folder that --recorded reads; give another one",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(
    options: str, words: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    for name, predictions in {"WHOLE": "it\n" * 6, "SHORT": "it\n" * 5, "NONE": ""}.items():
        path = write_recorded(tmp_path / name) / "modelpreds-cprag-bert.txt"
        path.write_text(predictions)
        if not predictions:
            path.unlink()
        options = options.replace(f"={name}", f"={tmp_path / name}")
    mirror, out = write_released(tmp_path / "mirror"), tmp_path / "out"
    command = ["diagnose", *options.split(), f"--mirror={mirror}", f"--output_dir={out}"]
    assert words in refused(command, 1 if "SHORT" in options else cli.USAGE_ERROR)
    assert not out.exists()


@pytest.mark.paper_data
def test_counts_on_the_recorded_outputs_are_the_published_ones(
    tmp_path: Path, data_mirror: Path
) -> None:
    rows = diagnose(data_mirror / "lm-diagnostics/recorded", data_mirror, tmp_path / "out")
    published = {
        ("cprag", "sensitivity"): {
            "": "25/34", "high constraint": "11/18", "low constraint": "14/16",
        },
        ("cprag", "article_obedience"): {"": "5/5", "behind a": "5/5"},
        ("neg_simp", "accuracy@1"): {"": "7/18"},
        ("neg_simp", "accuracy@5"): {"": "18/18"},
        ("neg_simp", "sensitivity"): {"": "18/36", "affirmative": "18/18", "negative": "0/18"},
        # All errors repeat the subject (section 9.1); few words are "an ant is not a ant" (9.3).
        ("neg_simp", "repeated_subject"): {"": "11/11"},
        ("neg_simp", "article_obedience"): {"": "42/44", "behind a": "34/36", "behind an": "8/8"},
        ("neg_simp", "unchanged_by_not"): {"": "18/22"},
    }  # fmt: skip
    bert = "bert-base-uncased"
    for (probe, metric), counted in published.items():
        assert select(rows, probe, metric, bert) == counted
    expected = {"accuracy@1": "8/34", "accuracy@5": "18/34", "sensitivity_margin": "15/34"}
    assert {metric: select(rows, "cprag", metric, bert)[""] for metric in expected} == expected
    assert select(rows, "neg_simp", "sensitivity_margin", bert)["affirmative"] == "17/18"


@pytest.mark.paper_data
def test_the_larger_sets_are_counted_like_their_lists(tmp_path: Path, data_mirror: Path) -> None:
    folder = data_mirror / "extended-diagnostics"
    rows = diagnose(folder / "recorded", data_mirror, tmp_path / "out")
    model = "distilbert-base-uncased"
    for title, name, step in (
        ("ROLE-1500", "role_1500", 1),
        ("NEG-1500-SIMP-TEMP", "neg_1500_simp_temp", 2),
        ("NEG-1500-SIMP-GEN", "neg_1500_simp_gen", 2),
    ):
        lines = (folder / f"{title}.txt").read_text().split("\n")
        lists = (folder / "recorded" / title / f"{model}.txt").read_text().split("\n")
        quoted = [f"'{line.strip(' ,').split()[-1]}'" for line in lines if line]
        guesses = [line.strip("[]").split(", ") for line in lists if line]
        assert len(quoted) == len(guesses)
        for k in (1, 5, 10, 20):
            right = sum(quoted[i] in guesses[i][:k] for i in range(0, len(quoted), step))
            counted = f"{right}/{len(quoted) // step}"
            assert select(rows, name, f"accuracy@{k}", model) == {"": counted}
        changed = sum(guesses[i][0] != guesses[i + 1][0] for i in range(0, len(guesses), 2))
        share = {"": f"{changed}/{len(guesses) // 2}"} if step == 2 else {}
        assert select(rows, name, "negation_sensitivity", model) == share


def planned(tmp_path: Path, **outputs: list[object]) -> tuple[RecordedSpec, RunFolder, RunContext]:
    mirror = write_released(tmp_path / "mirror")
    write_recorded(tmp_path / "outputs", **outputs)  # type: ignore[arg-type]
    names = [source.recorded_as for source in SETS.values()]
    [recorded] = find_recorded(tmp_path / "outputs", names)
    spec = RecordedSpec.of(load_set("cprag", mirror), recorded)
    context = RunContext(mirror=str(mirror), paths={RECORDED: str(tmp_path / "outputs")})
    return spec, RunFolder(tmp_path / "runs", spec.name, spec.to_config()), context


def test_the_run_of_recorded_outputs(tmp_path: Path) -> None:
    spec, run, context = planned(tmp_path, probabilities=[0.2, "nan", 0.1, 0.5, 0.4, 0.1])
    make_run(spec, run, context)
    record = run.result()
    assert record is not None
    assert (record.protocol, record.probe, record.model) == ("diagnose", "cprag", "bert")
    assert record.counts == {"items": 2, "prompts": 6}
    assert [use.path for use in record.data] == [
        "CPRAG-102.tsv", "modelpreds-cprag-bert.txt", "modeltgtprobs-cprag-bert.txt",
    ]  # fmt: skip
    assert record.notices[1].startswith("bert on CPRAG-102: 1 of 2 comparisons left out")
    lines = (run.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert json.loads(lines[0])["expected"] == ["football"]
    assert json.loads(lines[1]) == {
        "context": "He caught the pass. He loved",
        "target": "baseball",
        "expected": [],
        "predictions": ["it", "football"],
        "probability": None,
    }


def test_a_model_of_ours_as_a_plain_loop_measures_it(
    tmp_path: Path, asked_model: Path, plain: Callable[[str], dict[str, float]]
) -> None:
    def right(context: str, words: list[str], k: int) -> bool:
        return any(word in words for word in list(plain(context))[:k])

    mirror = write_released(tmp_path / "mirror")
    model = ModelSettings(name_or_path=str(asked_model), kind="transformer")
    context = RunContext(TrainerSettings("cpu", progress_bar=False), mirror=str(mirror))
    rows = {}
    for name in ("cprag", "role"):
        spec = DiagnosisSpec.of(load_set(name, mirror), model, shuffles=3).under(context.trainer)
        run = RunFolder(tmp_path / "runs", spec.name, spec.to_config())
        make_run(spec, run, context)
        record = run.result()
        assert record is not None
        rows[name] = {(r.metric, r.subset_text, r.perturbation): r for r in record.rows}
        assert record.seeds == ((0, 1, 2) if name == "cprag" else ())
        assert (record.model_sha256, record.source.loaded_from) != ("", "")
    # "tipped", behind the waitress, is no entry.
    questions = [
        ("the owner forgot which customer the waitress had", ["served", "worked"]),
        ("the camper saw which bear the girl had", ["seen"]),
        ("the camper saw which girl the bear had", ["eaten"]),
    ]
    nouns = {
        "": lambda text: text,
        "generic_object": lambda text: re.sub(r"which \w+", "which one", text),
        "generic_subject": lambda text: re.sub(r"the \w+ had", "the other had", text),
        "generic_both": lambda text: re.sub(r"which .* had", "which one the other had", text),
    }
    for k in (1, 5, 10, 20):
        unchanged = [right(text, words, k) for text, words in questions]
        for name, changed in nouns.items():
            perturbed = [right(changed(text), words, k) for text, words in questions]
            row = rows["role"][f"accuracy@{k}", "", name]
            assert (row.value, row.num_items) == (pytest.approx(sum(perturbed) / 3), 3)
            if name and any(unchanged):
                survivors = [a for a, b in zip(perturbed, unchanged, strict=True) if b]
                row = rows["role"][f"survival@{k}", "", name]
                assert row.value == pytest.approx(sum(survivors) / len(survivors))
    first, second = load_set("cprag", mirror).items
    for k in (5, 20):
        draws = [
            (right(f"{shuffled(first, s)} He loved", ["football"], k)
             + right(f"{shuffled(second, s)} ate the", ["cake"], k)) / 2
            for s in range(3)
        ]  # fmt: skip
        row, sd = (
            rows["cprag"][f"accuracy@{k}{end}", "", "shuffled+truncated"] for end in ("", "_sd")
        )
        assert (row.value, sd.value) == pytest.approx((fmean(draws), stdev(draws)))


def test_outputs_that_changed_since_they_were_planned(tmp_path: Path) -> None:
    spec, run, context = planned(tmp_path)
    write_recorded(tmp_path / "outputs", probabilities=[0.1] * 6)
    with pytest.raises(UsageError, match=r"modeltgtprobs-cprag-bert\.txt: changed since"):
        make_run(spec, run, context)
    write_recorded(tmp_path / "other", model="other")
    gone = RunContext(mirror=context.mirror, paths={RECORDED: str(tmp_path / "other")})
    with pytest.raises(UsageError, match="other: changed since"):
        make_run(spec, run, gone)
