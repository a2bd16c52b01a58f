"""Which finished runs answered a taxonomy probe, and of which stems the two concepts are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight import cli
from probelight.builders.sources.wordnet import DEFAULT_DIR
from probelight.commands.taxonomy_distance import (
    RESULTS,
    WORDNET,
    DistanceSpec,
    best_of,
    distance_rows,
    entities_of,
    taxonomy_items,
    taxonomy_runs,
    wordnet_of,
)
from probelight.io.errors import UsageError
from probelight.probes.record import Record
from probelight.probes.taxonomy_edges import ItemDistances
from probelight.results.predictions import ItemLine
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from tests.fixtures import subsets
from tests.fixtures.rows import read_results
from tests.fixtures.wordnet import write_wordnet


def answered(nearer: tuple[int, ...], placed: bool = True) -> ItemDistances:
    record = Record("1", "A [MASK].", ("gold", "near", "far"), 0)
    edges = ((2, 2 if placed else None), (1, None), (None, 3))
    return ItemDistances(record, ("a", "b"), edges, nearer, ())


def test_rows_worked_out_by_hand() -> None:
    items = [answered((1,)), answered((1,)), answered((1, 2)), answered(()), answered((1,), False)]
    chosen = [(1,), (0,), (2,), (2,), (1,)]
    rows = distance_rows(items, chosen, list("aabcd"), Row(model="m"))
    values = {(row.metric, row.subset): (row.value, row.num_items) for row in rows}
    assert values == {
        # The last item is left out: its right answer is above one concept only.
        ("nearer_chosen", None): (pytest.approx(2 / 3), 3),
        ("nearer_chosen_by_guessing", None): (pytest.approx((1 + 1 + 2) / 9), 3),
        ("accuracy", subsets.nearer_distractor(True)): (pytest.approx(1 / 3), 3),
        ("accuracy", subsets.nearer_distractor(False)): (0.0, 1),
    }
    assert {row.model for row in rows} == {"m"}
    assert [row.num_groups for row in rows] == [2, None, 2, 1]
    # Without an item that has a nearer distractor there is no share.
    [row] = distance_rows([answered(())], [(0,)], ["a"], Row())
    assert row.metric == "accuracy"


def test_a_tie_counts_each_of_its_choices_in_its_share() -> None:
    # Three tie (two of them nearer), two tie (gold and the nearer one), and nothing was said.
    items = [answered((1, 2)), answered((1,)), answered((1,))]
    rows = distance_rows(items, [(0, 1, 2), (0, 1), ()], list("abc"), Row())
    values = {(row.metric, row.subset): row.value for row in rows}
    assert values["nearer_chosen", None] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert values["accuracy", subsets.nearer_distractor(True)] == pytest.approx((1 / 3 + 1 / 2) / 3)


@pytest.mark.parametrize(
    ("scores", "prediction", "tied", "best"),
    [
        ([0.5, None, 0.1], 0, 1, (0,)),  # null was -inf
        ([None, 0.5, 0.5], 1, 2, (1, 2)),
        ([None, None, None], 0, 3, (0, 1, 2)),
        ([0.5, None, 0.1], None, 0, ()),  # null was no number
        ([0.5, 0.5, 0.5], 1, 2, (1, 2)),  # written scores are rounded
    ],
)
def test_the_best_choices_of_a_line_of_predictions(
    scores: list[float | None], prediction: int | None, tied: int, best: tuple[int, ...]
) -> None:
    line = ItemLine(
        **{"set": "p", "id": "1", "position": 1, "question": "?", "choices": ("a", "b", "c")},
        **{"scores": tuple(scores), "prediction": prediction, "tied": tied},
        **{"answer": 0, "correct": 0.0},
    )
    assert best_of(line) == best


def test_the_command_reads_the_predictions_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (DEFAULT_DIR / "index.sense").exists():
        pytest.skip(f"no WordNet in {DEFAULT_DIR}")
    zero_shot = ["zero-shot", "--probes=taxonomy_small,age_small", "--trainer.progress_bar=false"]
    assert cli.main([*zero_shot, f"--output_dir={tmp_path / 'zero'}"]) == 0
    command = ["taxonomy-distance", f"--results={tmp_path / 'zero'}"]
    command.append(f"--output_dir={tmp_path / 'out'}")
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "out" / "results.csv")
    values = {(row["metric"], row["subset"]): float(row["value"]) for row in rows}
    [path] = tmp_path.glob("out/runs/*/distances.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    with_nearer = [line for line in lines if line["nearer"]]
    share = sum(line["prediction"] in line["nearer"] for line in with_nearer) / len(with_nearer)
    assert values["nearer_chosen", ""] == pytest.approx(share)
    buffalo = next(line for line in lines if line["entities"] == ["buffalo", "stallion"])
    assert dict(zip(buffalo["choices"], buffalo["edges"], strict=True)) == {
        "equine": [None, 3],  # by way of the male horse and the horse
        "bovid": [1, None],  # the Old World buffalo; the American one is a bison
        "ungulate": [4, 5],  # ruminants and even-toed ungulates; odd-toed ones
    }
    assert cli.main(command) == 0
    assert "complete" in capsys.readouterr().out


def test_what_was_measured_is_the_answers_and_they_must_not_change(tmp_path: Path) -> None:
    source = RunFolder(tmp_path / "runs", "zero-shot-taxonomy_small-m", {"a": 1})
    source.write_lines("predictions.jsonl", [{"id": "1"}])
    about = {"protocol": "zero_shot", "model": "m", "probe": "taxonomy_small"}
    rows = (Row(**about, metric="accuracy", value=0.5, split="dev"),)
    answered = RunRecord(**about, key=source.key, rows=rows)
    source.finish(answered)
    spec = DistanceSpec.of(source.path, answered, "database")
    assert spec.key.startswith("taxonomy-distance-taxonomy_small-m-")
    assert (spec.run, spec.wordnet) == (source.key, "database")
    # Finished anew, as by another start: whole in itself, but not what was planned.
    source.write_lines("predictions.jsonl", [{"id": "2"}])
    source.finish(answered)
    context = RunContext(paths={"results": str(tmp_path), "wordnet": "nowhere"})
    run = CommandFolder(tmp_path / "out", {}).run(spec.name, spec.to_config())
    with pytest.raises(UsageError, match=r"predictions\.jsonl: changed since the run was planned"):
        make_run(spec, run, context)
    source.write_lines("predictions.jsonl", [{"id": "three"}])
    with pytest.raises(ValueError, match=r"predictions\.jsonl: changed since the run ended"):
        DistanceSpec.of(source.path, answered, "database")


def test_only_finished_runs_of_a_taxonomy_probe_are_measured(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    command = f"taxonomy-distance --results {tmp_path} --output_dir {tmp_path / 'out'}"
    assert "answered a taxonomy probe" in refused(command)
    runs = {}
    for name, protocol, probe in (
        ("zero", "zero_shot", "taxonomy_small"),
        ("curve", "curve", "taxonomy_small"),
        ("ages", "zero_shot", "age_small"),
        ("own", "zero_shot", "a-file-of-ones-own"),
        ("grid", "grid", "taxonomy_small"),
    ):
        runs[name] = RunFolder(tmp_path / "some" / "runs", name, {})
        runs[name].write_lines("predictions.jsonl", [])
        row = Row(protocol=protocol, probe=probe, split="dev", metric="accuracy", value=0.5)
        runs[name].finish(RunRecord(protocol=protocol, probe=probe, rows=(row,)))
    RunFolder(tmp_path / "some" / "runs", "begun", {}).write_lines("predictions.jsonl", [])
    context = RunContext(paths={RESULTS: str(tmp_path)})
    paths = [path for path, _ in taxonomy_runs(context)]
    assert paths == [runs["curve"].path, runs["zero"].path]
    assert [path for path, _ in taxonomy_runs(context, runs["zero"].key)] == [runs["zero"].path]


def test_the_two_concepts_of_a_stem_and_what_has_none() -> None:
    items = taxonomy_items(RunContext(), "taxonomy_small", "dev")
    assert items is not None
    first = items.records[0]
    assert [word in first.stem for word in entities_of(items, first)] == [True, True]
    assert taxonomy_items(RunContext(), "age_small", "dev") is None


def test_wordnet_is_opened_once_and_named_where_it_is_not_there(tmp_path: Path) -> None:
    context = RunContext(paths={WORDNET: str(write_wordnet(tmp_path))})
    wordnet = wordnet_of(context)
    assert wordnet_of(context) is wordnet
    assert wordnet[1]("poodle")["animal"] == 3  # dog, mammal, animal
    with pytest.raises(FileNotFoundError, match="nowhere"):
        wordnet_of(RunContext(paths={WORDNET: str(tmp_path / "nowhere")}))
