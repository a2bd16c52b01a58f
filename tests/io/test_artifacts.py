"""What a finished run left is refused once it has changed, in one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.io.artifacts import MODEL, check_left, check_model, left_files, read_result

KEPT = ("predictions.jsonl", f"{MODEL}/model.safetensors", f"{MODEL}/tokenizer.json")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "original-x"
    for name in (*KEPT, f"{MODEL}/chosen.json", "log.txt"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(f"{{}} {name}")
    (run / "result.json").write_text(json.dumps({"rows": [], "files": left_files(run)}))
    return run


def test_what_is_as_it_was_left_is_used(run: Path) -> None:
    check_left(run, "predictions.jsonl")
    check_model(run / MODEL)
    assert set(read_result(run / "result.json")["files"]) == {*KEPT, f"{MODEL}/chosen.json"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (Path.unlink, "missing since the run ended"),
        (lambda path: path.write_text(""), r"changed since the run ended \(0 bytes where it left"),
        (lambda path: path.write_text(path.read_text().upper()), "changed since the run ended; "),
    ],
)
@pytest.mark.parametrize("name", [*KEPT, f"{MODEL}/chosen.json"])
def test_what_has_changed_is_refused(
    name: str, damage: Callable[[Path], object], said: str, run: Path
) -> None:
    damage(run / name)
    checks = {True: lambda: check_model(run / MODEL), False: lambda: check_left(run, KEPT[0])}
    with pytest.raises(ValueError, match=said) as refused:
        checks[name.startswith(MODEL)]()
    assert str(refused.value).startswith(f"{run / name}: ")
    assert str(refused.value).endswith(f"remove {run} and give the command that made it again")
    checks[not name.startswith(MODEL)]()  # whoever uses the other part is not kept from it


def test_nothing_is_known_of_other_folders(run: Path, tmp_path: Path) -> None:
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
        check_left(run, MODEL)
    assert "\n" not in str(refused.value)
