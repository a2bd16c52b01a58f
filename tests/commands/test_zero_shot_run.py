"""The sets that are asked for, their jobs, and the rows of a run, worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from probelight.commands import zero_shot as command
from probelight.evaluation.measures import zero_shot_rows
from probelight.evaluation.prompting import prompt_spec
from probelight.evaluation.ranks import rank_rows
from probelight.evaluation.scorers import scorer_for
from probelight.io.errors import UsageError
from probelight.models import kept_model, loading
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import ProbeConfig
from probelight.probes.importers.items import write_ai2
from probelight.probes.prompts import PromptSettings
from probelight.probes.record import Record, groups_of
from probelight.probes.source import ProbeData
from probelight.probes.user_files import DEFAULT_FILE, FileSettings
from probelight.results.measured import Predictions
from probelight.results.record import checksums
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_jobs
from probelight.runs.settings import TrainerSettings
from probelight.runs.spec import spec_from, spec_type

MODEL = ModelSettings("somewhere/bert", kind="transformer")
TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
SIZES = ("smaller", "larger")
RECORDS = tuple(
    Record(stem, stem, SIZES, answer, {"template": template})
    for stem, answer, template in zip(
        "abcd", (0, 0, 1, 0), ("one", "one", "two", "two"), strict=True
    )
)
# Right, wrong, a tie, right.
SAID = Predictions("said", RECORDS, [[2.0, 1.0], [1.0, 2.0], [3.0, 3.0], [2.0, 0.0]])


def test_the_sets_of_a_model_share_what_is_read_and_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass over the files and one checksum, of sentences and of questions together."""
    calls: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return function(*args, **options)

        return call

    for module, name in ((loading, "load_pretrained"), (kept_model, "model_fingerprint")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    model = ModelSettings(kind="transformer")
    sets = command.load_sets(["age_small", "definitions_small"], DEFAULT_FILE, None, None)
    sets = [
        loaded._replace(data=replace(loaded.data, records=loaded.data.records[:4]))
        for loaded in sets
    ]
    context = command.context_of(sets, RunContext(TRAINER))
    sums = set()
    for job in command.zero_shot_jobs(sets, [model], TRAINER):
        run = RunFolder(tmp_path, job.spec.name, job.spec.to_config())
        sums.add(job.spec.make(run, context).model_sha256)
    setups = {loaded.data.config.setup for loaded in sets}
    assert setups == {"mc_mlm", "mc_qa"}
    assert calls == ["load_pretrained", "model_fingerprint"]
    assert sums == {scorer_for(model, setup).fingerprint() for setup in setups}


# Choices of its own for one item: what all items share is then a position.
MIXED = (replace(RECORDS[0], choices=("heavier", "lighter")), *RECORDS[1:])
POSITIONS = ("choice 1", "choice 2")


@pytest.mark.parametrize(
    ("candidates", "records", "classes"),
    [(SIZES, RECORDS, SIZES), ((), RECORDS, SIZES), ((), MIXED, POSITIONS)],
)
def test_an_accuracy_has_what_it_must_be_read_beside(
    candidates: tuple[str, ...], records: tuple[Record, ...], classes: tuple[str, str]
) -> None:
    config = ProbeConfig("sizes", "mc_mlm", 2, 0.5, candidates=candidates, group_by="stem")
    predictions, data = replace(SAID, records=records), ProbeData(config, records, (), ())
    rows = zero_shot_rows(predictions, data, Row(model="m"))
    values = {(row.metric, row.subset_text): (row.value, row.num_items) for row in rows}
    # No model sees the position of a choice, unless it is asked for its letter. The item of
    # "larger" prefers it more than two of the three others do.
    of_classes = {("majority_accuracy", ""): (0.75, 4), ("auc", ""): (pytest.approx(2 / 3), 4)}
    by_letter = zero_shot_rows(predictions, data, Row(), gold_labels=[(r.answer,) for r in records])
    assert [row.value for row in by_letter if row.metric == "majority_accuracy"] == [0.75]
    assert values == {
        **(of_classes if classes == SIZES else {}),
        ("accuracy", ""): (0.625, 4),
        ("tied_share", ""): (0.25, 4),
        ("near_tied_share", ""): (0.0, 4),
        ("chance", ""): (0.5, 4),
        ("macro_accuracy", ""): (pytest.approx((2 / 3 + 1 / 2) / 2), 4),
        ("predicted_share", classes[0]): (0.625, 4),
        ("predicted_share", classes[1]): (0.375, 4),
        ("accuracy", "template=one"): (0.5, 2),
        ("accuracy", "template=two"): (0.75, 2),
    }
    assert {row.model for row in rows} == {"m"}


def test_an_empty_choice_that_wins_is_an_answer_without_a_text() -> None:
    """Two candidates and three empty choices; the right one, the wrong one, and two empty ones."""
    records = tuple(Record(str(i), f"{i} [MASK]?", ("more", "less"), 0) for i in range(4))
    config = ProbeConfig("p", "mc_qa", 2, 0.5, candidates=("more", "less"))
    scores = [[float(choice == best) for choice in range(5)] for best in (0, 1, 4, 4)]
    predictions = Predictions("p", records, scores)
    rows = zero_shot_rows(predictions, ProbeData(config, records, (), ()), Row())
    cells = {(row.metric, row.subset_text): row.value for row in rows}
    assert cells["accuracy", ""] == 0.25
    assert (cells["chance", ""], cells["floor", ""]) == (pytest.approx(0.2), 0.5)
    shares = {text: value for (metric, text), value in cells.items() if metric == "predicted_share"}
    assert {text.split("'")[-1]: value for text, value in shares.items()} == shares
    assert sorted(shares.values()) == [0.25, 0.25, 0.5]
    assert any("choice 5" in text for text in shares)


def test_a_set_that_changed_behind_the_plan_is_refused(
    age: command.LoadedSet, tmp_path: Path
) -> None:
    context = RunContext(TRAINER)
    [job] = command.zero_shot_jobs([age], [ModelSettings(kind="transformer")], TRAINER)
    spec = replace(cast(command.ZeroShotSpec, job.spec), data_sha256=("0" * 64,))
    run = RunFolder(tmp_path / "runs", spec.name, spec.to_config())
    with pytest.raises(UsageError, match="changed since the run was planned"):
        spec.make(run, context)
    assert run.result() is None


def test_rows_of_ranks_worked_out_by_hand() -> None:
    records = [Record(str(i), "a [MASK]", ("x", "y"), i % 2) for i in range(4)]
    ranks = Predictions("p", records, [[1, 10], [3, 11], [10, 9], [40, 2]])
    ranked = rank_rows(ranks, ["a", "b", "c", "c"], Row(model="m"))
    rows = {row.metric: row for row in ranked}
    # Right answers have the ranks 1, 11, 10 and 2.
    assert rows["median_gold_rank"].value == 6.0
    assert rows["gold_in_top10"].value == 3 / 4
    assert rows["all_in_top10"].value == 2 / 4
    assert {row.num_items for row in rows.values()} == {4}
    assert [row.num_groups for row in ranked] == [None, 3, 3]
    assert {row.model for row in rows.values()} == {"m"}


@pytest.fixture
def age() -> command.LoadedSet:
    [loaded] = command.load_sets(["age_small"], DEFAULT_FILE, None, None)
    return loaded


def key(loaded: command.LoadedSet, trainer: TrainerSettings = TRAINER, **more: Any) -> str:
    [job] = command.zero_shot_jobs([loaded], [MODEL], trainer, **more)
    return job.key


def test_the_domain_stem_decides_numbers_where_it_is_asked_for(age: command.LoadedSet) -> None:
    config = replace(age.data.config, domain_stem="Older is [MASK] .")
    with_stem = age._replace(data=replace(age.data, config=config))
    with_pmi, by_sum = (
        {"asking_by_set": {"age_small": command.Asking(rules)}}
        for rules in (["sum", "pmi"], ["sum"])
    )
    assert key(with_stem, **with_pmi) != key(age, **with_pmi)
    assert key(with_stem, **by_sum) == key(age, **by_sum)


def test_each_probe_has_its_own_split_that_of_all_or_dev() -> None:
    sets = command.load_sets(["age_small", "taxonomy_small:test"], DEFAULT_FILE, None, None)
    assert [(loaded.name, loaded.split) for loaded in sets] == [
        ("age_small", "dev"),
        ("taxonomy_small", "test"),
    ]
    [only] = command.load_sets(["age_small"], DEFAULT_FILE, "train", None)
    assert only.split == "train"


def test_what_the_catalogue_lacks_is_told_to_the_process_that_reads_it(
    tmp_path: Path, tiny_probes: Path
) -> None:
    path = tmp_path / "whales.v2.jsonl"
    write_ai2(path, [Record("1", "a whale is [MASK] than a mouse .", ("larger", "smaller"), 0)])
    table = tmp_path / "told.csv"
    table.write_text("sentence,gold\na whale is [MASK] .,large\n")
    mirror = str(tiny_probes / "mirror")
    named = ["age_small:test", str(tiny_probes / "first.yaml")]
    for sets in (
        command.load_sets((), FileSettings(str(table), choices="small,large"), None, None),
        command.load_sets((), FileSettings(str(path), "mc_mlm"), None, None),
        command.load_sets(named, DEFAULT_FILE, None, mirror),
    ):
        planned = command.context_of(sets, RunContext(mirror=mirror))
        context = RunContext.from_json(json.loads(json.dumps(planned.to_json())))
        for loaded in sets:
            read = command.read_set(context, loaded.name, loaded.split, None)
            assert read is not loaded.data
            assert (read.records, read.notices) == (loaded.data.records, loaded.data.notices)
            assert (read.config.name, checksums(read)) == (
                loaded.data.config.name,
                checksums(loaded.data),
            )
            assert command.read_set(planned, loaded.name, loaded.split, None) is loaded.data
    assert list(planned.user_probes) == ["first"]  # age_small is known everywhere


def test_two_probes_of_one_name_are_refused(tmp_path: Path, tiny_probes: Path) -> None:
    text = (tiny_probes / "second.yaml").read_text()
    (tmp_path / "first.yaml").write_text(text.replace("a test", "another"))
    named = f"{tiny_probes / 'first.yaml'}:test,{tmp_path / 'first.yaml'}:test"
    with pytest.raises(UsageError, match="two probes are called 'first'"):
        command.load_sets(named.split(","), DEFAULT_FILE, None, str(tiny_probes / "mirror"))


def test_another_process_reads_the_same_spec(age: command.LoadedSet) -> None:
    prompt = prompt_spec(2, "auto", PromptSettings(system="Be brief.", seed=3))
    asking = command.Asking(["sum", "letter"], "cyclic", prompt)
    options: dict[str, Any] = {"ranks": True, "asking_by_set": {age.name: asking}}
    options |= {"examples": {age.name: age.data}, "phrasings_by_set": {age.name: ["someone"]}}
    [job] = command.zero_shot_jobs([age], [MODEL], TRAINER, **options)
    read = spec_from(spec_type(job.spec), json.loads(json.dumps(job.spec.to_config())))
    assert (read, read.key) == (job.spec, job.key)


def test_a_limit_draws_whole_groups_and_is_part_of_the_key(tmp_path: Path) -> None:
    whole, [drawn] = (
        command.load_sets(["age_small:dev"], DEFAULT_FILE, None, None, limit)
        for limit in (None, 61)
    )
    kept = {record.position for record in drawn.data.records}
    by_group: dict[str, set[int]] = {}
    records = whole[0].data.records
    for record, group in zip(
        records, groups_of(records, whole[0].data.config.group_by), strict=True
    ):
        by_group.setdefault(group, set()).add(record.position)
    assert 0 < len(kept) <= 61 < len(records)
    assert all(group <= kept or not group & kept for group in by_group.values())
    [job], [whole_job] = (
        command.zero_shot_jobs(sets, [ModelSettings(kind="transformer")], TRAINER)
        for sets in ([drawn], whole)
    )
    assert job.key != whole_job.key
    folder = CommandFolder(tmp_path / "runs", {"command": "test"})
    run_jobs([job], folder, RunContext(TRAINER, quiet=True))
    [record] = folder.finished()
    assert record.counts["items"] == len(kept)
    assert any("whole groups drawn with seed 0" in notice for notice in record.notices)
    with pytest.raises(UsageError, match="--limit 1 is smaller than a group of age_small"):
        drawn.drawn(1)
