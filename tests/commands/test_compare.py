"""Systems that answered the same items: "1" is right, "0" wrong, "2" half of a tie."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from probelight import cli
from probelight.commands.compare import compare, same_samples
from probelight.io.errors import UsageError
from probelight.io.files import DataFile
from probelight.reports.sections import filled_sections
from probelight.results.blocks import blocks_of, names_in_blocks
from probelight.results.details import ComparisonDetails, InoculationDetails
from probelight.results.load import UnreadableResultError, load_results
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder
from probelight.results.systems import RunScores, System, scores_of, systems_of
from tests.fixtures.tiny import Refused

SCORES = {"0": 0.0, "1": 1.0, "2": 0.5}
ROW = Row(probe="made", split="test", metric="accuracy", value=0.5)
TRAIN = DataFile(path="train.jsonl", sha256="0" * 64)


def lines(right: str, groups: Sequence[int] | None = None, word: str = "is", **more: Any) -> Any:
    """Lines of predictions.jsonl about as many items."""
    lines = []
    for number, mark in enumerate(right):
        item = {"set": "made", "id": f"i{number}", "position": number + 1}
        item |= {"question": f"Item {number} {word} [MASK].", "choices": ["larger", "smaller"]}
        item |= {"scores": [0.0, 1.0], "prediction": 1, "tied": 1, "answer": 1}
        item |= {} if groups is None else {"interval_group": groups[number]}
        lines.append({**item, "correct": SCORES[mark], **more})
    return lines


def leave_run(folder: Path, answers: Any, row: Row, **fields: Any) -> Path:
    command = CommandFolder(folder, {"command": "made"})
    run = command.run(f"{row.protocol}-{row.model}-{row.dose}", {"row": repr(row)})
    run.write_lines("predictions.jsonl", answers)
    about = {"protocol": row.protocol, "model": row.model, "probe": row.probe}
    run.finish(RunRecord(**about, rows=(row,), **fields))
    return folder


def leave_zero_shot(
    folder: Path, model: str, right: str, probe: str = "made", turned: bool = False, **more: Any
) -> Path:
    """A zero-shot run on one probe."""
    row = replace(ROW, protocol="zero_shot", model=model, probe=probe, mode="zero_shot")
    row = replace(row, num_items=len(right), num_groups=more.pop("num_groups", None))
    answers = lines(right, **more)
    return leave_run(folder, answers[::-1] if turned else answers, row)


def leave_curve(
    folder: Path, model: str, size: int, by_seed: Mapping[int, str], **more: Any
) -> Path:
    """A point of a curve, with a control whose answers are no answers to the items."""
    about = {"protocol": "curve", "model": model, "mode": "mlp", "control": "standard"}
    control = lines("1" * len(next(iter(by_seed.values()))), control="no_language", seed=1)
    answers = [
        line
        for seed, right in by_seed.items()
        for line in lines(right, control="standard", seed=seed, **more)
    ]
    row = replace(ROW, **about, num_train=size)
    return leave_run(folder, [*control, *answers], row, data=(TRAIN,))


def leave_inoculation(
    folder: Path, dose: int, seed: int, end: str, start: str, *, chosen: int = 0, **about: Any
) -> Path:
    """An inoculation of which probe and original task have the same items."""
    row = Row(
        protocol="inoculation", model="m", probe="made", dose=dose, extra="none", seed=seed,
        learning_rate=1e-4, split="report", metric="probe_accuracy", value=0.5,
    )  # fmt: skip
    row = replace(row, **about)
    sets = {"report_probe": end, "report_original": end}
    sets |= {"report_probe_before": start, "report_original_before": start}
    answers = [line for name, right in sets.items() for line in lines(right, set=name)]
    names = tuple(map(str, range(chosen)))
    details = InoculationDetails(original_task="task", setup="abc", candidates=names)
    return leave_run(folder, answers, row, details=(details,))


FIRST, SECOND = "1111111111110000", "1110000000001000"
RowsOf = Callable[..., list[Row]]


def values(rows: list[Row]) -> dict[tuple[str, str], float]:
    return {(row.metric, row.subset_text): row.value for row in rows}


def test_two_folders_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bert = leave_zero_shot(tmp_path / "a", "bert", FIRST)
    roberta = leave_zero_shot(tmp_path / "b", "roberta", SECOND)
    leave_zero_shot(tmp_path / "b", "roberta", SECOND, probe="lonely")
    out = tmp_path / "out"
    assert cli.main(["compare", str(bert), str(roberta), "--output_dir", str(out)]) == 0
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "not compared, because there is no counterpart: lonely (test, zero shot) in b" in printed
    assert "page: " in printed
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Systems compared on the same items" in page
    numbers = values(load_results(out).rows)
    p_value = float(binomtest(1, 10).pvalue)
    pair = "bert − roberta"
    assert numbers["difference", pair] == pytest.approx(0.5)
    assert numbers["accuracy", "bert"] == 0.75
    for metric in ("mcnemar_p", "p_value", "adjusted_p_value"):
        assert numbers[metric, pair] == pytest.approx(p_value)
    # A report of the folder, made from its files alone, shows it again.
    sections = filled_sections(load_results(out))
    assert {table.name for s in sections for table in s.tables} >= {"compared", "compared_systems"}


@pytest.fixture
def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RowsOf:
    """`rows_of(out, *folders, **more)`: the rows of a comparison, of which no page is made."""
    build = "probelight.reports.build.build_report"
    monkeypatch.setattr(build, lambda folder: folder / "report.html")

    def compared(out: str, *folders: str, **more: Any) -> list[Row]:
        compare([tmp_path / name for name in folders], tmp_path / out, **more)
        return load_results(tmp_path / out).rows

    return compared


def subsets(rows: list[Row], kind: str) -> set[str]:
    return {row.subset_text for row in rows if row.subset and row.subset.kind == kind}


def test_p_values_are_adjusted_over_all_comparisons(tmp_path: Path, rows_of: RowsOf) -> None:
    rights = {"x": "1" * 10 + "0" * 10, "y": "0" * 20, "z": "1" * 4 + "0" * 16}
    for model, right in rights.items():
        leave_zero_shot(tmp_path / "a", model, right)
        leave_zero_shot(tmp_path / "a", model, right[::-1], probe="turned")
    rows = rows_of("out", "a")
    assert rows_of("out", "a") == rows  # the same command goes on
    raw = [row.value for row in rows if row.metric == "p_value"]
    mine = [row.value for row in rows if row.metric == "adjusted_p_value"]
    assert sorted(raw) == pytest.approx([2 / 2**10] * 2 + [2 / 2**6] * 2 + [2 / 2**4] * 2)
    # The i-th of six by size, times 6 / i, but never above the next one: by hand 6/2, 6/4, 6/6.
    hand = {2 / 2**10: 3 * 2 / 2**10, 2 / 2**6: 1.5 * 2 / 2**6, 2 / 2**4: 2 / 2**4}
    assert mine == pytest.approx([hand[p] for p in raw])
    assert {row.num_items for row in rows} == {20}


def test_curves_meet_at_each_size_with_all_seeds(tmp_path: Path, rows_of: RowsOf) -> None:
    for model, shift in (("x", 3), ("y", 0)):
        for size in (62, 1000):
            rights = {seed: "1" * (4 + seed + shift) + "0" * (16 - seed - shift) for seed in (1, 2)}
            leave_curve(tmp_path / model, model, size, rights, groups=[i // 2 for i in range(20)])
    leave_curve(tmp_path / "y", "y", 125, {1: "1" * 20})
    rows = rows_of("out", "x", "y")
    runs = load_results(tmp_path / "out").of("compare")
    details = [run.detail(ComparisonDetails) for run in runs]
    settings = ["mlp, 1,000 examples", "mlp, 62 examples"]
    assert sorted(d.setting for d in details if d) == settings
    assert all(d and d.num_runs == {"x": 2, "y": 2} and d.num_pairs == 2 for d in details)
    difference = next(row for row in rows if row.metric == "difference")
    assert difference.value == pytest.approx(3 / 20)
    assert (difference.num_items, difference.num_groups) == (20, 10)
    assert any("mlp, 125 examples in y" in notice for run in runs for notice in run.notices)


def test_settings_of_one_model_are_compared_where_nothing_else_is(
    tmp_path: Path, rows_of: RowsOf
) -> None:
    for dose, right in ((50, "1100"), (1000, "1110")):
        for seed in (1, 2):
            leave_inoculation(tmp_path / "a", dose, seed, right, "1000")
    rows = rows_of("out", "a", probes="task")
    assert len(subsets(rows, "versus")) == 1
    assert subsets(rows, "model") == {"m (50 examples)", "m (1,000 examples)"}
    assert {row.probe for row in rows} == {"task"}


def test_ways_of_keeping_and_their_rates_are_settings(tmp_path: Path, rows_of: RowsOf) -> None:
    """Each was chosen among the epochs of one setting, so its rate was given."""
    for rate, right in ((1e-4, "1100"), (1e-3, "1110")):
        leave_inoculation(tmp_path / "a", 50, 1, right, "1000", chosen=1, learning_rate=rate)
    method: dict[str, Any] = {"keeping": "l2_sp", "strength": 0.01}
    leave_inoculation(tmp_path / "a", 50, 1, "1111", "1000", chosen=1, **method)
    rates = {"m (learning rate 0.0001)", "m (learning rate 0.001)"}
    assert subsets(rows_of("out", "a", probes="task"), "model") == rates
    [run] = load_results(tmp_path / "out").of("compare")
    alone = "counterpart: task (report, inoculated), 50 examples, with l2"
    assert any(alone in notice for notice in run.notices)


def test_a_model_in_two_folders_is_called_by_them_too(tmp_path: Path, rows_of: RowsOf) -> None:
    for name, end in (("a", "1100"), ("b", "1110")):
        leave_inoculation(tmp_path / name, 50, 1, end, "1000")
    rows = rows_of("out", "a", "b")
    assert subsets(rows, "model") == {"m (a)", "m (b)"}
    runs = load_results(tmp_path / "out").of("compare")
    details = {run.probe: run.detail(ComparisonDetails) for run in runs}
    answered = {probe: detail.answered for probe, detail in details.items() if detail}
    assert answered == {"made": "inoculated", "task": "inoculated"}
    # What was inoculated is one model, which said the same in both before.
    assert any("counted once: 2 of 8 systems" in notice for notice in runs[0].notices)


def test_groups_that_differ_or_are_missing_are_noticed(tmp_path: Path, rows_of: RowsOf) -> None:
    leave_zero_shot(tmp_path / "a", "x", "110011", num_groups=3)
    leave_zero_shot(tmp_path / "b", "y", "110000")
    leave_zero_shot(tmp_path / "a", "x", "110011", probe="p", groups=[0, 0, 1, 1, 2, 2])
    leave_zero_shot(tmp_path / "b", "y", "110000", probe="p", groups=[0, 0, 0, 0, 1, 1])
    rows = rows_of("out", "a", "b")
    notices = [notice for run in load_results(tmp_path / "out").runs for notice in run.notices]
    assert len([notice for notice in notices if "did not record groups of items" in notice]) == 1
    assert len([notice for notice in notices if "runs group the items differently" in notice]) == 1
    assert {(row.probe, row.num_groups) for row in rows} == {("made", 6), ("p", 2)}


@pytest.mark.parametrize(
    ("right", "more", "words"),
    [
        ("1010", {}, "4 are in both, 2 only in a (x); 0 only in b; let both answer all items"),
        (
            "101010",
            {"word": "was"},
            "0 are in both, 6 only in a; 6 only in b (y); the same wording",
        ),
        ("10101011", {}, "6 are in both, 0 only in a; 2 only in b; 'Item 6 is [MASK].'"),
    ],
)
def test_other_items_are_refused_with_their_number(
    tmp_path: Path, right: str, more: dict[str, Any], words: str
) -> None:
    leave_zero_shot(tmp_path / "a", "x", "110011")
    leave_zero_shot(tmp_path / "b", "y", right, **more)
    with pytest.raises(UsageError) as caught:
        compare([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert [phrase for phrase in words.split("; ") if phrase not in str(caught.value)] == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("folders", "more", "words"),
    [
        ("a b", {}, "a: made (test, zero shot)"),
        ("a b a/", {}, "is given twice"),
        ("a b", {"probes": "mad"}, "did you mean 'made'?"),
        ("a b", {"output_dir": None}, "--output_dir"),
        ("a c", {}, "there is no such folder"),
        ("many", {}, "9 systems are too many"),
    ],
)
def test_folders_that_cannot_be_compared_are_refused(
    tmp_path: Path, folders: str, more: dict[str, Any], words: str
) -> None:
    leave_zero_shot(tmp_path / "a", "x", "110011")
    for model, right in (("y", "110011"), ("z", "110010")):  # z is there for nobody
        leave_zero_shot(tmp_path / "b", model, right, probe="other")
    for model in "abcdefghi":
        leave_zero_shot(tmp_path / "many", model, "110011")
    paths = [tmp_path / name for name in folders.split()]
    with pytest.raises((UsageError, FileNotFoundError), match=re.escape(words)):
        compare(**{"folders": paths, "output_dir": tmp_path / "out", **more})


def test_what_is_in_two_folders_counts_once(tmp_path: Path, rows_of: RowsOf) -> None:
    for name, models in (("a", {"x": "1101"}), ("b", {"x": "1101", "y": "1000"})):
        for model, right in models.items():
            leave_zero_shot(tmp_path / name, model, right)
    for folders in ("ab", "ba"):
        assert subsets(rows_of(f"out {folders}", *folders), "versus") == {"x − y"}
    [run] = load_results(tmp_path / "out ba").of("compare")
    assert "counted once: 1 of 3 systems" in run.notices[0]
    copy = leave_zero_shot(tmp_path / "c", "x", "1101")
    with pytest.raises(UsageError, match="counted once: 1 of 2 systems"):
        compare([tmp_path / "a", copy], tmp_path / "none")


def read(folder: Path) -> list[RunScores]:
    return list(scores_of(load_results(folder), folder.name))


def test_items_meet_wherever_they_stand_and_however_they_are_padded(tmp_path: Path) -> None:
    [plain] = read(leave_zero_shot(tmp_path / "a", "x", "1002"))
    padded = {"choices": ["larger", "smaller", ""], "scores": [0.0, 1.0, 0.5], "turned": True}
    [answered] = read(leave_zero_shot(tmp_path / "b", "y", "0010", **padded))
    assert list(answered.scores.values()) == [0.0, 1.0, 0.0, 0.0]
    assert next(iter(answered.scores))[0] == "i3"
    [block], notices = blocks_of([System((plain,)), System((answered,))], across_folders=True)
    assert notices == []
    first, second = (system.scores(block.items)[0].tolist() for system in block.systems)
    assert (first, second) == ([1.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0])


def test_an_item_that_is_asked_twice_is_two(tmp_path: Path) -> None:
    [twice] = read(leave_zero_shot(tmp_path / "a", "x", "100", id="same", question="Who?"))
    assert list(twice.scores.values()) == [1.0, 0.0, 0.0]
    assert [item[-1] for item in twice.scores] == [1, 2, 3]


def test_runs_of_one_seed_are_pairs_where_they_have_one_sample(tmp_path: Path) -> None:
    sizes, by_seed = {"a": 62, "b": 62, "c": 125}, {1: "10", 2: "01"}
    curves = [read(leave_curve(tmp_path / n, n, size, by_seed)) for n, size in sizes.items()]
    (first, same, larger), _ = systems_of([run for runs in curves for run in runs])
    assert same_samples(first, same)
    assert not same_samples(first, larger)
    [zero_shot] = read(leave_zero_shot(tmp_path / "d", "d", "10"))
    assert not same_samples(System((zero_shot,)), System((zero_shot,)))


def test_a_run_that_is_there_twice_is_said(tmp_path: Path) -> None:
    [run] = read(leave_zero_shot(tmp_path / "a", "x", "10"))
    copy = replace(run, path="runs/other", scores=dict.fromkeys(run.scores, 1.0))
    systems, [notice] = systems_of([run, copy, replace(run, path="runs/again")])
    assert [system.runs for system in systems] == [(run,)]
    assert notice.startswith("a/runs/other: not compared, because runs/zero_shot-x")


def test_names_say_no_more_than_is_needed(tmp_path: Path) -> None:
    [run] = read(leave_zero_shot(tmp_path / "a", "x", "10"))

    def names(*answers: RunScores) -> list[str]:
        systems, _ = systems_of(answers)
        [block], _ = blocks_of(systems, across_folders=False)
        [labels] = names_in_blocks([block])
        return list(labels)

    causal, there = {"scored by": "causal"}, {"folder": "b", "origin": "other weights"}
    assert names(run, replace(run, model="y")) == ["x", "y"]
    assert names(run, replace(run, **there)) == ["x (a)", "x (b)"]
    assert names(run, replace(run, setting=causal)) == ["x (zero_shot)", "x (causal)"]
    assert names(run, replace(run, setting=causal, **there)) == ["x (a)", "x (b)"]


def test_damage_is_named(tmp_path: Path) -> None:
    folder = leave_zero_shot(tmp_path / "a", "x", "10", scores=[0.0])
    with pytest.raises(UnreadableResultError, match=r"predictions\.jsonl:1: 2 choices, but 1"):
        read(folder)
    assert CommandFolder(folder, {"command": "made"}).finished()


def test_a_loop_of_links_is_no_folder(refused: Refused, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    line = refused(f"compare {loop} {tmp_path} --output_dir={tmp_path / 'out'}", cli.FAILURE)
    assert line.endswith(f"{loop}: there is no such folder")


def leave_by_rules(
    folder: Path, model: str, hits: str, letter: str, mode: str = "zero_shot"
) -> Path:
    """A zero-shot run that was also scored by letters."""
    row = replace(ROW, protocol="zero_shot", model=model, mode=mode, num_items=len(hits))
    answers = lines(hits)
    for line, digit in zip(answers, letter, strict=True):
        line |= {"best": [1], "by_rule": {"letter": {"scores": [0.0, 1.0], "best": [int(digit)]}}}
    command = CommandFolder(folder, {"command": "made"})
    run = command.run(f"zero_shot-{model}", {"row": repr(row)})
    run.write_lines("predictions.jsonl", answers)
    about = {"protocol": "zero_shot", "model": model, "probe": "made"}
    rows = (row, replace(row, scoring="letter"))
    run.finish(RunRecord(**about, rows=rows))
    return folder


@pytest.mark.thorough
def test_rules_and_ways_of_asking_are_compared_apart_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bert = leave_by_rules(tmp_path / "one", "bert", "1111110000", "1100000000")
    gpt2 = leave_by_rules(tmp_path / "two", "gpt2", "1111000000", "1111111100")
    chat = leave_by_rules(tmp_path / "chat", "gpt2", "1111000000", "1" * 10, "zero_shot, chat")

    def differences(folders: list[Path], *options: str) -> dict[str, float]:
        out = tmp_path / "_".join(["out", *(f.name for f in folders), *options])
        line = ["compare", *map(str, folders), "--output_dir", str(out), *options]
        assert cli.main(line) == 0
        rows = [row for run in load_results(out).runs for row in run.rows]
        return {r.subset_text: r.value for r in rows if r.metric == "difference"}

    assert differences([bert, gpt2]) == {"bert − gpt2": pytest.approx(0.2)}
    letter = differences([bert, gpt2], "--scoring", "letter")
    assert letter == {"bert − gpt2": pytest.approx(-0.6)}
    mixed = differences([gpt2], "--scoring", "own,letter", "--mix_rules")
    assert [*mixed.values()] == [pytest.approx(-0.4)]
    by_mode = differences([bert, chat], "--mix_rules")
    assert [*by_mode.values()] == [pytest.approx(0.2)]
    capsys.readouterr()
    out = ["--output_dir", str(tmp_path / "refused")]
    assert cli.main(["compare", str(bert), str(chat), *out]) == 2
    assert "--mix_rules compares them with each other" in capsys.readouterr().err
    assert cli.main(["compare", str(bert), str(gpt2), *out, "--scoring", "pmi"]) == 2
    assert "no run in these folders was scored by pmi" in capsys.readouterr().err
    assert cli.main(["compare", str(bert), str(gpt2), *out, "--scoring", "leter"]) == 2
    assert "there is no rule 'leter' (did you mean 'letter'?)" in capsys.readouterr().err
