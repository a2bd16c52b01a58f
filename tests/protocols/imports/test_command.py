"""The whole command, on files that other programs wrote and on mistaken ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import train
from results.items.lines import read_item_lines
from results.load import load_results
from tests.fixtures.rows import read_results

WRITTEN = Path(__file__).parents[2] / "fixtures" / "lm_eval" / "tiny-gpt2"
SAMPLES = sorted(WRITTEN.glob("samples_own_[pt]*.jsonl"))
ITEMS = [
    {"id": "a", "question": "Is a cat an animal?", "choices": ["no", "yes"], "answer": 1},
    {"id": "b", "question": "Is an oak an animal?", "choices": ["no", "yes"], "answer": 0},
    {"id": "c", "question": "Are they alive?", "choices": ["yes", "some", "no"], "answer": 0},
]
SCORES = {"c": {"some": 0.25, "no": 0.25, "yes": 0.5}, "b": {"yes": 0.5, "no": 0.5}}
SCORES["a"] = {"yes": 0.0, "no": 1.0}


def own_file(folder: Path) -> Path:
    """The items in the AI2 format."""
    path = folder / "alive.jsonl"
    rows = []
    for item in ITEMS:
        labelled = [{"label": "ABC"[i], "text": t} for i, t in enumerate(item["choices"])]  # type: ignore[arg-type]
        question = {"stem": item["question"], "choices": labelled}
        rows.append({"id": item["id"], "question": question, "answerKey": "ABC"[item["answer"]]})  # type: ignore[call-overload]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def scored(folder: Path, scores: dict[str, dict[str, float]]) -> Path:
    path = folder / "scored.jsonl"
    lines = (json.dumps({"id": name, "scores": own}) + "\n" for name, own in scores.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def numbers(out: Path) -> dict[tuple[str, str], float]:
    rows = [row for row in read_results(out / "results.csv") if not row["subset"]]
    return {(row["probe"], row["metric"]): float(row["value"]) for row in rows}


def test_files_of_the_harness_are_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["import", "lm_eval", *map(str, SAMPLES), f"--output_dir={tmp_path}"]
    assert train.main(command) == 0
    said = [[json.loads(line)["acc"] for line in path.read_text().splitlines()] for path in SAMPLES]
    found = numbers(tmp_path)
    assert found["own_pairs", "accuracy"] == sum(said[0]) / len(said[0])
    assert found["own_taxonomy", "accuracy"] == pytest.approx(sum(said[1]) / len(said[1]))
    results = load_results(tmp_path)
    assert {(run.model, run.kind) for run in results.runs} == {("tiny-gpt2", "imported")}
    [run] = [run for run in results.runs if run.probe == "own_pairs"]
    assert run.notices[0].endswith("measured by another program; 4 items as the file has them")
    lines = read_item_lines(results, run)
    assert [(one.prediction, one.correct) for one in lines] == [(0, 1), (1, 0), (0, 1), (0, 1)]
    assert lines[0].scores == (-61.876259, -69.264977)
    capsys.readouterr()
    assert train.main(command) == 0
    assert "own_pairs, tiny-gpt2: complete" in capsys.readouterr().out.replace("\n", " ")


def test_probabilities_of_items_of_a_file(tmp_path: Path) -> None:
    own, out = own_file(tmp_path), tmp_path / "out"
    command = [
        "import",
        "plain",
        str(scored(tmp_path, SCORES)),
        "--model=gpt",
        f"--data.path={own}",
    ]
    command += ["--data.setup=mc_qa", f"--output_dir={out}"]
    assert train.main([*command, "--scores=logarithm"]) == 0
    found = numbers(out)
    # a is wrong, b a tie of two, c right; two of the three have two choices.
    assert found["alive", "accuracy"] == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert found["alive", "tied_share"] == pytest.approx(1 / 3)
    assert found["alive", "chance"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    results = load_results(out)
    lines = read_item_lines(results, results.runs[0])
    assert [line.id for line in lines] == ["a", "b", "c"]
    assert lines[0].scores == (0.0, None)  # the probability 0
    assert lines[2].scores == (-0.693147, -1.386294, -1.386294)
    before = (out / "results.csv").read_bytes()
    scored(tmp_path, {**SCORES, "a": {"yes": 1.0, "no": 0.0}})
    assert train.main([*command, "--scores=logarithm"]) == train.USAGE_ERROR
    assert (out / "results.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lm-eval", "x"], "there is no format 'lm-eval' (did you mean 'lm_eval'?)"),
        (["plain", "SCORED", "--model=m", "--output_dir="], "--output_dir is required"),
        (["plain", "SCORED"], "does not say whose results they are; give --model NAME"),
        (["plain", "SCORED", "--model=a,b"], "--model: 2 names, but 1 files"),
        (["plain", "SCORED", "SCORED", "--model=a", "OWN"], "2 files have results of a on alive"),
        (["plain", "SCORED", "--model=a", "OWN", "--probe=age_small"], "--probe or --data.path"),
        (["plain", "SCORED", "--model=a", "--probe=a,b"], "--probe: one probe a command"),
        (["lm_eval", "SCORED"], "by its name no file of samples"),
    ],
)
def test_mistaken_commands_end_with_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [f"--data.path={own_file(tmp_path)}", "--data.setup=mc_qa"]
    line = [str(scored(tmp_path, SCORES)) if word == "SCORED" else word for word in arguments]
    line = [word for one in line for word in (own if one == "OWN" else [one])]
    out = tmp_path / "out"
    assert train.main(["import", f"--output_dir={out}", *line]) == train.USAGE_ERROR
    assert said in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
