"""The command on small files: its tables, its lines, and what it refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.commands.contamination.contamination import item_scores, run_scores
from probelight.metrics.intervals import wilson
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.results.load import Run, RunSet
from tests.fixtures.results import write_run, zero_shot_rows


def question(number: int, stem: str, concept: str = "c") -> Record:
    return Record(f"q{number}", stem, ("yes it is", "no"), 0, {"cluster": f"{concept}{number}"})


PROBE = [question(1, "one two three"), question(2, "four five six"), question(3, "one two nine")]
OTHER = [question(9, "zero one two three"), question(2, "seven eight")]


def answered_line(name: str, record: Record, position: int, **more: Any) -> dict[str, Any]:
    item = {"set": name, "id": record.id, "position": position, "question": record.stem}
    prediction = {"scores": [1.0, 0.0], "prediction": 0, "tied": 1, "answer": record.answer}
    return {**item, "choices": list(record.choices), **prediction, **more}


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., None]:
    """Writes a run of a model with its lines of predictions.jsonl into the folder `runs`."""

    def write(name: str, lines: list[dict[str, Any]]) -> None:
        run = write_run(tmp_path / "runs", name, zero_shot_rows(name, 1, 3, 2, model=name))
        (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return write


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    write_ai2(tmp_path / "probe" / "dev.jsonl", PROBE)
    write_ai2(tmp_path / "probe" / "train.jsonl", OTHER)
    (tmp_path / "text.txt").write_text("Nine – yes, it is!\n")
    return tmp_path / "probe"


def search(probe: Path, *options: str, ngram: int = 3) -> dict[tuple[str, str], dict[str, str]]:
    """Run the command into the folder `out`; return the scores by what contaminates, and part."""
    root = probe.parent if probe.is_dir() else probe.parents[1]
    runs, out = root / "runs", root / "out"
    line = ["probes", "contamination", str(probe), f"--ngram={ngram}", *options]
    assert cli.main([*line, f"--results={runs}", f"--output_dir={out}"]) == 0
    if not (out / "contamination_scores.csv").exists():
        return {}
    with (out / "contamination_scores.csv").open() as file:
        return {(row["contaminated_by"], row["part"]): row for row in csv.DictReader(file)}


def test_counts_lines_and_scores(
    probe: Path, write_lines: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    item_scores = {1: (1.0, 0.0, 0.5), 2: (0.0, 0.0, 0.5)}
    lines = [
        answered_line(f"standard-seed{seed}", r, at, correct=score, control="standard", seed=seed)
        for seed, scores in item_scores.items()
        for at, (r, score) in enumerate(zip(PROBE, scores, strict=True), start=1)
    ]
    lines += [{**line, "question": "blah", "correct": 1.0} for line in lines]  # a control's
    write_lines("curve-a", lines)
    write_lines("other", [])
    train_file, text_file = str(probe / "train.jsonl"), str(probe.parent / "text.txt")
    scores = search(probe, f"--against={train_file}", f"--corpus={text_file}")
    assert "notice: 1 of 2 runs answered none of these items" in capsys.readouterr().out
    out = probe.parent / "out"
    with (out / "contamination.csv").open() as file:
        first, second = csv.DictReader(file)
    # Trigrams of "one two three yes it is" and so on: theirs has one-two-three, and with its own
    # answer two-three-yes, three-yes-it and yes-it-is, which is of all three.
    assert first == {
        **{"text": train_file, "split": "dev", "num_items": "3", "stem": "1", "with_answer": "3"},
        **{"contaminated": "3", "entire": "1", "concept": "1", "answer": "", "longest": "6"},
    }
    assert [second[key] for key in ("stem", "with_answer", "entire", "longest")] == list("0304")
    items = [json.loads(text) for text in (out / "items.jsonl").read_text().splitlines()]
    assert [item["found"][train_file]["share"] for item in items] == [1.0, 0.25, 0.25]
    assert [item["found"][train_file]["concept"] for item in items] == [False, True, False]
    assert items[2]["found"][text_file]["piece"] == "nine yes it is"
    assert items[2]["found"][text_file]["where"] == f"{text_file}:1"
    # Seeds are averaged: 0.5, 0 and 0.5; by n-grams all are contaminated.
    assert float(scores["any of them", "all"]["accuracy"]) == pytest.approx(1 / 3)
    assert ("any of them", "clean") not in scores
    concept = f"{train_file}, by concept"
    assert float(scores[concept, "contaminated"]["accuracy"]) == 0.0
    assert float(scores[concept, "clean"]["accuracy"]) == 0.5
    assert scores[concept, "clean"]["num_items"] == "2"


def test_a_share_and_a_single_seed(
    probe: Path, write_lines: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    items = enumerate(zip(PROBE, (1.0, 0.0, 1.0), strict=True), start=1)
    write_lines("a", [answered_line("dev", r, at, correct=score) for at, (r, score) in items])
    scores = search(probe / "dev.jsonl", "--min_share=0.25", f"--against={probe}:train")
    clean = scores[f"{probe}:train", "clean"]
    assert (clean["num_items"], float(clean["accuracy"])) == ("2", 0.5)
    assert (float(clean["ci_low"]), float(clean["ci_high"])) == wilson(1, 2)
    search(probe / "dev.jsonl", f"--corpus={probe.parent / 'text.txt'}", ngram=9)
    assert "no item is contaminated" in capsys.readouterr().out


def test_a_damaged_line_is_named_and_its_run_left_out(
    probe: Path, write_lines: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    line = answered_line("dev", PROBE[0], 1, correct=1.0)
    damaged = answered_line("dev", PROBE[1], 2, correct=7.0)
    write_lines("whole", [line])
    write_lines("damaged", [line, damaged])
    scores = search(probe / "dev.jsonl", f"--against={probe}:train")
    notices = " ".join(capsys.readouterr().out.split())
    assert "notice: runs/damaged-" in notices
    assert "predictions.jsonl:2: `correct` is 7.0, not from 0 to 1" in notices
    assert "answered none of these items" not in notices
    assert {row["model"] for row in scores.values()} == {"whole"}


def test_runs_that_differ_in_a_setting_alone_have_their_whole_keys(tmp_path: Path) -> None:
    keys = ("a-111111111111", "a-222222222222", "b-333333333333")
    item = replace(PROBE[0], position=1)
    for key, correct in zip(keys, (1.0, 0.0, 1.0), strict=True):
        (tmp_path / key).mkdir()
        line = json.dumps(answered_line("dev", item, 1, correct=correct)) + "\n"
        (tmp_path / key / "predictions.jsonl").write_text(line)
    runs = tuple(Run(protocol="zero_shot", model="m", key=key, path=key) for key in keys)
    answered, notices = item_scores(RunSet("made", runs, folder=tmp_path), [item])
    assert [run.run for run in answered] == [*keys[:2], "b"]
    assert notices == []
    scored = list(run_scores(answered, ["1"], {"text": [True]}))
    assert [(row["run"], row["accuracy"]) for row in scored if row["part"] == "contaminated"] == [
        ("a-111111111111", 1.0), ("a-222222222222", 0.0), ("b", 1.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("DEV", "give --against"),
        ("DEV --against=DEV", "these are the probe's own items"),
        ("DEV --against=siq", "did you mean 'sciq'"),
        ("'nothing at all' --against=DEV", "there is no probe or file"),
        ("age_small:tset --against=DEV", "has no split 'tset'"),
        ("DEV --against=DEV --ngram=0", "--ngram 0: give a number"),
        ("DEV --against=PROBE:test", "it has train, dev"),
        ("PARENT --against=DEV", "no train, dev or test file"),
    ],
)
def test_mistaken_arguments_are_named(
    arguments: str, words: str, probe: Path, refused: Callable[..., str]
) -> None:
    for name, path in {"DEV": probe / "dev.jsonl", "PROBE": probe, "PARENT": probe.parent}.items():
        arguments = arguments.replace(name, str(path))
    assert words in refused(f"probes contamination {arguments}")
