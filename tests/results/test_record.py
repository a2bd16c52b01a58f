from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import numpy as np
import pytest

from probelight.io.files import DataFile
from probelight.io.settings import typed
from probelight.results import details, record
from probelight.results.record import (
    MODEL,
    ModelSource,
    RunRecord,
    artifacts_of,
    check_artifact,
    check_model,
    data_files,
    git_commit,
    read_result,
    versions,
)
from probelight.results.row import RESULT_COLUMNS, Row, Subset, write_results
from tests.fixtures import subsets
from tests.fixtures.rows import read_results


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of one file, in place of the project's own."""
    monkeypatch.setattr(record, "checkout", lambda: tmp_path)
    (tmp_path / "a.py").write_text("1\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for command in (["init", "-q"], ["add", "a.py"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_versions_are_those_of_the_packages_that_decide_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record, "PACKAGES", ("numpy", "no-such-package-at-all"))
    assert versions() == {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "no-such-package-at-all": "absent",
    }


def test_the_commit_says_whether_tracked_files_differ(checkout: Path) -> None:
    head = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    assert git_commit() == commit
    (checkout / "b.txt").write_text("not tracked")
    assert git_commit() == commit
    (checkout / "a.py").write_text("2\n")
    assert git_commit() == f"{commit}+changes"


def test_outside_of_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "checkout", lambda: tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is there a git
    assert git_commit() == ""


def test_each_file_is_named_once_and_without_its_folder() -> None:
    data_a, data_b = DataFile("my/a.jsonl", "0a", 3), DataFile("my/b.jsonl", "1b", 5)
    again = DataFile("elsewhere/a.jsonl", "0a", 3)
    file_sets = [SimpleNamespace(files=(data_a,)), SimpleNamespace(files=(data_b, again))]
    assert data_files(file_sets) == (DataFile("a.jsonl", "0a", 3), DataFile("b.jsonl", "1b", 5))
    assert data_files([]) == ()


def typed_command(*arguments: str) -> str:
    record.set_command("zero-shot", arguments)
    return record.COMMAND_LINE.get()


def test_a_shell_reads_the_command_as_it_was_and_a_terminal_shows_it() -> None:
    arguments = ["\x1b[2J\x9bé", "it's \\ \x07", "a\nb", os.fsdecode(b"caf\xe9"), "", "$HOME `x`"]
    command = copy_context().run(typed_command, *arguments)
    assert "".join(c for c in command if not c.isprintable()) == "\n"  # of the text of two lines
    _, words = command.split(" zero-shot ", 1)
    script = f"LC_ALL=C printf '%s\\0' {words}"
    read = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert [os.fsdecode(word) for word in read.split(b"\0")[:-1]] == arguments


def test_the_command_is_kept_as_it_is_typed_without_its_secrets() -> None:
    typed = copy_context().run(
        typed_command, "--data.path", "my file.csv", "--mirror", "https://me:pw@host/x"
    )
    assert typed == "train.py zero-shot --data.path 'my file.csv' --mirror https://host/x"


KEPT = ("predictions.jsonl", f"{MODEL}/model.safetensors", f"{MODEL}/tokenizer.json")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "original-x"
    for name in (*KEPT, f"{MODEL}/chosen.json", "log.txt"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(f"{{}} {name}")
    (run / "result.json").write_text(json.dumps({"rows": [], "files": artifacts_of(run)}))
    return run


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (Path.unlink, "missing since the run ended"),
        (lambda path: path.write_text(""), r"changed since the run ended \(\d+ bytes then, 0 now"),
        (lambda path: path.write_text(path.read_text().upper()), "changed since the run ended; "),
    ],
)
@pytest.mark.parametrize("name", [*KEPT, f"{MODEL}/chosen.json"])
def test_what_has_changed_is_refused(
    name: str, damage: Callable[[Path], object], message: str, run: Path
) -> None:
    damage(run / name)
    checks = {True: lambda: check_model(run / MODEL), False: lambda: check_artifact(run, KEPT[0])}
    with pytest.raises(ValueError, match=message) as refused:
        checks[name.startswith(MODEL)]()
    assert str(refused.value).startswith(f"{run / name}: ")
    assert str(refused.value).endswith(f"remove {run} and rerun the command that made it")
    checks[not name.startswith(MODEL)]()  # whoever uses the other part is not kept from it


def test_what_is_as_it_was_left_is_used_and_nothing_is_known_of_other_folders(
    run: Path, tmp_path: Path
) -> None:
    check_artifact(run, "predictions.jsonl")
    check_model(run / MODEL)
    assert set(read_result(run / "result.json")["files"]) == {*KEPT, f"{MODEL}/chosen.json"}
    (run / MODEL / "tokenizer.json").unlink()
    (run / "result.json").write_text(json.dumps({"rows": []}))  # from before there were records
    check_model(run / MODEL)
    (run / "result.json").unlink()  # not finished
    check_model(run / MODEL)
    check_model(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"rows": 3}'])
def test_a_damaged_result_names_itself_and_what_to_remove(text: str, run: Path) -> None:
    (run / "result.json").write_text(text)
    with pytest.raises(ValueError, match=r"result\.json: .*; remove ") as refused:
        check_artifact(run, MODEL)
    assert "\n" not in str(refused.value)


WHOLE = RunRecord(
    protocol="inoculation",
    model="m",
    rows=(Row(metric="a", value=0.5, subset=subsets.clusters(4)), Row(metric="b", value=1)),
    counts={"train": 3},
    notices=("one", "two"),
    seeds=(0, 1),
    data=(DataFile(path="a.jsonl", sha256="ab", num_items=3), DataFile(path="b", sha256="cd")),
    source=ModelSource(loaded_from="x", hub_id="x"),
    seconds=1.5,
    details=(
        details.OriginalParts(sets=("arc", "sciq"), train_items=100),
        details.CurveDetails(train="train of p", control_words={"no_language": {"a": "foo"}}),
        details.InoculationDetails(
            original_task="arc",
            report_split=None,
            setting={"dose": 3},
            history=({"epoch": 1.0}, {"epoch": 2.0}),
            cost_interpretable=False,
            candidates=("k1",),
        ),
        details.UnigramDetails(models=("a", "b"), measure="max"),
        details.ComparisonDetails(answered="zero shot", setting="", num_runs={"a": 1}, num_pairs=1),
    ),
    facts={"anything": [1, None]},
    key="k",
    files={"config.yaml": {"size": 3, "sha256": "ef"}},
)


def test_a_record_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(WHOLE.to_json()))
    assert RunRecord.read(path) == WHOLE
    bare = RunRecord(protocol="p")
    assert RunRecord.from_json(json.loads(json.dumps(bare.to_json())), "r") == bare


def test_what_is_as_it_is_without_being_said_is_not_written() -> None:
    as_json = RunRecord(protocol="p", details=(details.CurveDetails(train="t"),)).to_json()
    assert {"seconds", "key", "source", "inoculation"}.isdisjoint(as_json)
    assert "first_stage" not in as_json["curve"]
    assert {"python", "torch"} <= as_json["versions"].keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "^r: written by another version of Probelight, .* another --output_dir"),
        ({"seeds": [0, "x"]}, r"^r: `seeds\[1\]` must be a whole number, not 'x'"),
        ({"seeds": 7}, "^r: `seeds` must be a list, not 7"),
        ({"counts": []}, r"^r: `counts` must be a mapping, not \[\]"),
        ({"rows": [{"value": 1}, {"value": "x"}]}, r"^r: `rows\[1\].value` must be a number, not"),
        ({"data": [{"path": "a"}]}, r"^r: `data\[0\].sha256` is missing"),
        (
            {"curve": {"trian": "t"}},
            r"^r: `curve.trian` is not a known key \(did you mean 'train'\?\)",
        ),
        ({"model": 3}, "^r: `model` must be text in quotes, not 3"),
        ({"seconds": "1"}, "^r: `seconds` must be a number, not '1'"),
        *(
            ({"counts": {"items": items}}, r"^r: `counts\.items` must be a whole")
            for items in ("many", None, [3])
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunRecord.from_json({**WHOLE.to_json(), **change}, "r")


# Rows and the parts of a set that they are of.


def test_columns_are_the_contract_in_its_order() -> None:
    assert ",".join(RESULT_COLUMNS) == (
        "protocol,model,probe,control,mode,scoring,num_train,dose,extra,keeping,strength,"
        "learning_rate,epoch,seed,split,subset,perturbation,metric,value,ci_low,ci_high,num_items,"
        "num_groups,role,kind,run_dir"
    )


def test_written_numbers_come_back_in_full_and_are_finite(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.csv"
    row = Row(
        metric="accuracy", value=1 / 3, num_items=3, subset=subsets.source_set('a, "b"'), seed=None
    )
    write_results(path, [row, Row(value=np.float64(0.1))])
    first, second = read_results(path)
    assert list(first) == list(RESULT_COLUMNS)
    assert float(first["value"]) == 1 / 3
    assert (first["num_items"], first["subset"], first["seed"]) == ("3", 'a, "b"', "")
    assert second["value"] == "0.1"
    write_results(path, [])
    assert path.read_text() == ",".join(RESULT_COLUMNS) + "\n"
    with pytest.raises(ValueError, match="row 2: ci_low is nan"):
        write_results(tmp_path / "x.csv", [Row(value=1), Row(value=0.5, ci_low=math.nan)])
    assert not (tmp_path / "x.csv").exists()


def test_a_row_comes_back_from_json_as_it_was() -> None:
    row = Row(metric="m", value=0.25, seed=0, subset=subsets.choices("a", "b"), role="model")
    as_json = json.loads(json.dumps(row.to_json()))
    assert set(as_json) == {"metric", "value", "seed", "subset", "role"}
    assert typed(Row, as_json, "r") == row


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([], "row 3: it must be a mapping of keys to values"),
        ({"metric": "m"}, "row 3: `value` must be a finite number, not nan"),
        ({"value": "0.5"}, "row 3: `value` must be a number, not '0.5'"),
        ({"value": True}, "row 3: `value` must be a number, not True"),
        ({"value": math.inf}, "row 3: `value` must be a finite number, not inf"),
        ({"value": 1, "dose": [2]}, r"row 3: `dose` must be a whole number, not \[2\]"),
        (
            {"value": 1, "metrik": 1},
            r"row 3: `metrik` is not a known key \(did you mean 'metric'\?\)",
        ),
        ({"value": 1, "metric": 2}, "row 3: `metric` must be text in quotes, not 2"),
        ({"value": 1, "role": "rival"}, "row 3: `role` must be .*'control', not 'rival'"),
        ({"value": 1, "subset": "template=a"}, "row 3: `subset` is 'template=a', which is not"),
    ],
)
def test_a_cell_that_is_not_what_it_should_be_is_named(cells: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        typed(Row, cells, "row 3")


def test_reading_results_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, probelight.reports.build, probelight.results.load, probelight.results.row;"
        "print([m for m in ('torch', 'transformers', 'pytorch_lightning', 'matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PARTS: list[tuple[Subset, dict[str, object]]] = [
    (subsets.UNTOUCHED, {"text": "group not in train"}),
    (
        subsets.choices("older", "younger"),
        {"words": ["older", "younger"], "text": "pair=older/younger"},
    ),
    (subsets.nearer_distractor(True), {"exists": True, "text": "with a nearer distractor"}),
    (subsets.cloze(0.166666667), {"upper": 0.166666667, "text": "cloze <=.17"}),
    (Subset.of("length", "up to 5 words", most=5), {"most": 5, "text": "up to 5 words"}),
]


@pytest.mark.parametrize(("subset", "fields"), PARTS)
def test_a_part_is_written_with_its_fields_and_text(
    subset: Subset, fields: dict[str, object]
) -> None:
    as_json = json.loads(json.dumps(subset.to_json()))
    assert as_json == {"kind": subset.kind, **fields}
    assert Subset.from_json(as_json) == subset


@pytest.mark.parametrize(
    "value",
    [
        *("template=has", {}, {"kind": "template"}, {"text": "all"}),
        {"kind": "cloze", "upper": math.inf, "text": "cloze"},
        {"kind": "choices", "words": ["a", 1], "text": "pair"},
        {"kind": "new", "text": "new", "inner": {}},
        {"kind": "new", "text": 1},
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a part of a set"):
        Subset.from_json(value)
