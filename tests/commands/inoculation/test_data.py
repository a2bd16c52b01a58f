from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from probelight.commands.inoculation.data import (
    Tasks,
    original_splits,
    probe_splits,
    training_items,
)
from probelight.commands.inoculation.settings import Extra, InoculatedProbe, OriginalTask, Setting
from probelight.io.errors import UsageError
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from probelight.runs.context import RunContext
from tests.fixtures.tiny import ASKED


def test_the_parts_of_the_original_task_share_no_cluster(
    task: OriginalTask, context: RunContext
) -> None:
    splits = original_splits(context, task)
    sets = (splits.train, splits.selection, splits.reserved, splits.report)
    assert [len(records) for records in sets] == [32, 8, 24, 16]  # 40, 10, 30 and 20% of 80
    clusters = [{record.meta["cluster"] for record in records} for records in sets]
    assert sum(map(len, clusters)) == len(set.union(*clusters)) == 40


def test_doses_are_nested_leave_the_selection_alone_and_are_balanced_with_reserved_items(
    task: OriginalTask, second: InoculatedProbe, context: RunContext
) -> None:
    tasks = Tasks(probe_splits(context, second), original_splits(context, task))

    def items(dose: int, extra: Extra = "none", seed: int = 0) -> list[Record]:
        return training_items(tasks, Setting(dose, extra, seed))

    small = items(10)
    assert (len(small), items(30)[:10]) == (10, small)
    assert items(10, seed=1) != small
    selected = {record.meta["cluster"] for record in tasks.probe.selection}
    assert len(tasks.probe.selection) == 20
    assert not selected & {record.meta["cluster"] for record in tasks.probe.train}
    assert items(10, "x1")[:10] == small
    assert len(items(10, "x1")) == 20
    assert {r.id for r in items(12, "x2")[12:]} == {r.id for r in tasks.original.reserved}
    with pytest.raises(UsageError, match="--dose 61: only 60 probe examples"):
        items(61)
    with pytest.raises(UsageError, match="needs 26 reserved"):
        items(13, "x2")


def test_few_items_are_divided_and_it_is_said(second: InoculatedProbe, context: RunContext) -> None:
    splits = probe_splits(context, InoculatedProbe(second.name))  # 80 items, and 500 by default
    assert [len(splits.selection), len(splits.train)] == [16, 64]  # a fifth
    assert splits.notices == (
        "second: 16 of its 80 items are kept for selection, because there are too few for the "
        "default (probe.selection_items 500)",
    )
    with pytest.raises(UsageError, match=r"selection_items 80: second has only 80 .* such as 16"):
        probe_splits(context, replace(second, selection_items=80))
    assert not probe_splits(context, replace(second, selection_items=16)).notices


def test_an_original_task_of_few_items(
    task: OriginalTask, tmp_path: Path, context: RunContext
) -> None:
    rows = load_probe(task.sets[0], "train", mirror=context.mirror).records
    clusters = sorted({record.meta["cluster"] for record in rows})
    paths = {name: str(tmp_path / f"{name}.yaml") for name in ("four", "one")}
    for (name, path), num_clusters in zip(paths.items(), (4, 1), strict=True):
        few = [record for record in rows if record.meta["cluster"] in clusters[:num_clusters]]
        write_ai2(tmp_path / f"{name}.jsonl", few)
        config = {**ASKED, "description": "few", "files": {"train": f"{name}.jsonl"}}
        Path(path).write_text(yaml.safe_dump(config))
    four, single = paths.values()
    splits = original_splits(context, OriginalTask("few", [four], selection_share=0.05))
    sets = (splits.train, splits.selection, splits.reserved, splits.report)
    assert [len(records) for records in sets] == [2, 2, 2, 2]  # a cluster each
    # 0.05 of the 8 items are 0.4, which is nearer to no cluster than to one.
    assert splits.notices == (
        "four: original.selection_share 0.05: 2 of 6 items instead of a share of 0.0625",
    )
    with pytest.raises(UsageError, match=r"original\.report_share 0\.2: none of the 2 items of o"):
        original_splits(context, OriginalTask("few", [single]))
    none = OriginalTask("few", [four], reserved_share=0.0)
    assert original_splits(context, none).reserved == ()


def test_a_given_model_may_have_been_trained_on_held_out_report_items(
    task: OriginalTask, context: RunContext
) -> None:
    trained = replace(task, checkpoint="elsewhere", report_sets=[])
    [notice] = original_splits(context, trained).notices
    assert "from the train split, on which elsewhere may have been trained" in notice
    untrained = replace(trained, checkpoint=None)
    reported = replace(trained, report_sets=task.sets)
    assert not any(original_splits(context, task).notices for task in (untrained, reported))


def test_the_train_items_are_no_report_items(task: OriginalTask, context: RunContext) -> None:
    same = replace(task, report_sets=task.sets, report_split="train")
    with pytest.raises(UsageError, match=r"are the same \d+ \(.*leave out original.report_sets"):
        original_splits(context, same)


def test_paper_selection_chooses_on_what_it_reports(
    second: InoculatedProbe, context: RunContext
) -> None:
    splits = probe_splits(context, replace(second, selection="paper"))
    assert splits.selection == splits.report
    assert len(splits.train) == 80


def test_a_probe_without_a_report_file_keeps_whole_clusters_of_its_train_file(
    second: InoculatedProbe, context: RunContext
) -> None:
    splits = probe_splits(context, replace(second, report_split=None, report_share=0.25))
    sets = (splits.report, splits.selection, splits.train)
    assert [len(records) for records in sets] == [20, 20, 40]
    clusters = [{record.meta["cluster"] for record in records} for records in sets]
    assert sum(map(len, clusters)) == len(set.union(*clusters)) == 40


def test_reserved_sets_are_kept_for_add_some_as_a_whole(
    task: OriginalTask, tiny_probes: Path, context: RunContext
) -> None:
    reserved = replace(task, reserved_sets=[str(tiny_probes / "second.yaml")])
    splits = original_splits(context, reserved)
    # The share of 30% stays with the training items: 80 - 16 reported - 8 selected.
    assert [len(splits.train), len(splits.reserved)] == [56, 80]
    assert {r.meta["source_set"] for r in splits.reserved} == {"second"}


def test_overlap_with_the_train_file_is_by_group(
    second: InoculatedProbe, context: RunContext
) -> None:
    splits = probe_splits(context, second)
    assert [len(files) for files in (splits.train_files, splits.report_files)] == [1, 1]
    assert not any(splits.not_in_train(splits.train + splits.selection))
    assert all(splits.not_in_train(splits.report))
    (relative,) = splits.report[:1]
    meta = {**relative.meta, "cluster": splits.train[0].meta["cluster"]}
    assert splits.not_in_train([replace(relative, meta=meta)]) == [False]


def test_overlap_with_the_file_of_another_set_is_by_stem(
    tiny_probes: Path, context: RunContext
) -> None:
    sets = [str(tiny_probes / f"{name}.yaml") for name in ("first", "second")]
    splits = original_splits(context, OriginalTask("both", sets, report_sets=sets))
    first, second = splits.report[0], splits.report[-1]
    assert (first.meta["source_set"], second.meta["source_set"]) == ("first", "second")
    assert splits.not_in_train([first, second]) == [True, True]
    (foreign,) = [r for r in splits.train if r.meta["source_set"] == "second"][:1]
    assert splits.not_in_train([replace(first, stem=foreign.stem.upper())]) == [False]
    meta = {**first.meta, "cluster": foreign.meta["cluster"]}  # another set's clusters are no kin
    assert splits.not_in_train([replace(first, meta=meta)]) == [True]
