from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import RecordError, UsageError
from probelight.results.model_outputs import ModelOutputs, Recorded, find_recorded, read_recorded
from tests.fixtures.diagnostics import write_lists, write_recorded

SETS = ["cprag", "role", "ROLE-1500"]
ASKED = [("He loved", "tea"), ("He’s “in” the", "bus")]


def recorded(folder: Path, end: str = ".txt") -> Recorded:
    write_recorded(folder, words=("tea it", "car"), probabilities=[0.5, "1e-3"], end=end)
    [recording] = find_recorded(folder, SETS)
    return recording


@pytest.mark.parametrize("end", [".txt", ""])
def test_words_and_probabilities(end: str, tmp_path: Path) -> None:
    model = recorded(tmp_path, end=end)
    assert (model.recorded_as, model.model) == ("cprag", "bert")
    assert [file.num_items for file in model.files] == [2, 2]
    assert read_recorded(model, ASKED) == ModelOutputs((("tea", "it"), ("car",)), 2, (0.5, 0.001))


def test_any_number_of_models_in_both_forms(tmp_path: Path) -> None:
    for name, model in (("role", "b-1.5"), ("cprag", "b-1.5"), ("cprag", "a")):
        write_recorded(tmp_path, name, model)
    write_lists(tmp_path, "ROLE-1500", [["x"]])
    (tmp_path / "ROLE-1500" / "other").write_text("['x']\n")
    assert [f"{r.recorded_as} {r.model}" for r in find_recorded(tmp_path, SETS)] == [
        *("cprag a", "cprag b-1.5", "role b-1.5", "ROLE-1500 bert", "ROLE-1500 other"),
    ]


def test_no_word_first_and_no_probability(tmp_path: Path) -> None:
    write_lists(tmp_path / "lists", "ROLE-1500", [["", "a", "", "b"], ["A", "b"]])
    [recording] = find_recorded(tmp_path / "lists", SETS)
    # The model was asked for four, whatever became of the first; later ones keep their rank.
    assert read_recorded(recording, ASKED) == ModelOutputs((("a", "", "b"), ("A", "b")), 4)
    write_recorded(tmp_path, words=["a", "b"], probabilities=["nan", 0])
    [recording] = find_recorded(tmp_path, SETS)
    assert read_recorded(recording, ASKED).probabilities == (None, 0.0)


def test_the_lists_are_held_against_the_set_but_for_quotes_and_the_mask(tmp_path: Path) -> None:
    contexts, targets = tmp_path / "cprag-contextlist.txt", tmp_path / "cprag-targetlist"
    contexts.write_text('He loved  [MASK]\nHe\'s "in" the [MASK]')
    targets.write_text("tea\nbus")
    recording = recorded(tmp_path)
    assert recording.lists == (contexts, targets)
    read_recorded(recording, ASKED)
    targets.write_text("tea\ncar")
    with pytest.raises(RecordError, match="targetlist:2: 'car' instead of 'bus'"):
        read_recorded(recording, ASKED)
    contexts.write_text("He loved [MASK]")
    with pytest.raises(RecordError, match=r"contextlist\.txt: 1 lines instead of 2"):
        read_recorded(recording, ASKED)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("modelpreds", "tea\n", ": 1 lines instead of 2, one per context and target"),
        ("modelpreds", "tea\n\n", ":2: empty; write the model's best words"),
        ("modelpreds", "tea\ncar\nbus\n", ": 3 lines instead of 2"),
        ("modeltgtprobs", "0.5\n", ": 1 lines instead of 2"),
        ("modeltgtprobs", "0.5\nhigh\n", ":2: 'high' is not a probability from 0 to 1"),
        ("modeltgtprobs", "-3.5\n0.5\n", ":1: '-3.5' is not a probability"),
    ],
)
def test_damaged_files_are_named(name: str, text: str, message: str, tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    path = tmp_path / f"{name}-cprag-bert.txt"
    path.write_text(text)
    with pytest.raises(RecordError) as error:
        read_recorded(recording, ASKED)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize("line", ["tea bus", "['a', 1]", "('a',)", "[" * 9999, "__import__('os')"])
def test_a_line_that_is_no_list_of_words(line: str, tmp_path: Path) -> None:
    write_lists(tmp_path, "ROLE-1500", [["x"]])
    path = tmp_path / "ROLE-1500" / "bert.txt"
    path.write_text(f"['x']\n{line}\n")
    [recording] = find_recorded(tmp_path, SETS)
    with pytest.raises(RecordError, match=r"bert\.txt:2: not a list of words"):
        read_recorded(recording, ASKED)


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("modelpreds", "modeltgtprobs"):
        write_recorded(tmp_path / name)
        path = tmp_path / name / f"{name}-cprag-bert.txt"
        path.unlink()
        with pytest.raises(UsageError, match=f"^{path}: missing; put it next to model"):
            find_recorded(tmp_path / name, SETS)
    (tmp_path / "empty").mkdir()
    write_recorded(tmp_path / "twice")
    write_recorded(tmp_path / "twice", end="")
    write_lists(tmp_path / "both", "ROLE-1500", [["x"]])
    write_recorded(tmp_path / "both", "ROLE-1500")
    write_recorded(tmp_path / "odd", "cprg")
    for name, message in {
        "never": "no such folder of recorded outputs",
        "empty": r"no recorded outputs; it needs .* where SET is cprag, role, ROLE",
        "twice": "exists too; keep one of them",
        "both": "bert on ROLE-1500 is in",
        "odd": "its name does not tell the set and the model",
    }.items():
        with pytest.raises(UsageError, match=message):
            find_recorded(tmp_path / name, SETS)
