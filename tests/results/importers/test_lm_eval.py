"""Files that lm-evaluation-harness 0.4.13 wrote of our own items, and what is made of odd ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import RecordError, UsageError
from probelight.results.importers.lm_eval import read

DATE = "2026-11-22T17-13-44.496219"
WRITTEN = Path(__file__).parents[2] / "fixtures" / "lm_eval" / "tiny-gpt2"
TAXONOMY = WRITTEN / f"samples_own_taxonomy_{DATE}.jsonl"
PAIRS = WRITTEN / f"samples_own_pairs_{DATE}.jsonl"


def sample(path: Path = TAXONOMY, line: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text().splitlines()[line])
    return found


def written(folder: Path, *samples: object) -> Path:
    path = folder / f"samples_mine_{DATE}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
    return path


def test_a_file_that_the_harness_wrote() -> None:
    found = read(TAXONOMY)
    assert (found.name, found.model, found.files[0].num_items) == ("own_taxonomy", "tiny-gpt2", 3)
    first = found.answers[0]
    assert first.where == f"{TAXONOMY}:1"
    assert first.id == "taxonomy_conjunction-dev-1"
    assert first.texts[0] == "A screw and a sentinel are both a type of ."
    assert "A screw and a sentinel are both a type of [MASK]." in first.texts
    assert first.choices == ("guard", "keeper", "defender")
    assert first.scores == (-28.26746368408203, -38.2860221862793, -47.017024993896484)
    assert [one.gold for one in found.answers] == [2, 0, 1]


@pytest.mark.parametrize("path", [TAXONOMY, PAIRS])
def test_the_accuracy_is_the_harness_s_own(path: Path) -> None:
    right = [one.scores.index(max(one.scores)) == one.gold for one in read(path).answers]
    assert right == [sample(path, line)["acc"] == 1 for line in range(len(right))]


def test_sentences_without_a_context_are_pairs() -> None:
    found = read(PAIRS).answers
    assert found[0].texts[0] == ""
    assert found[0].choices == ("Cats sleep.", "Cats sleeps.")
    assert [one.paradigm for one in found] == ["sv", "sv", "npi", "sv"]


def test_lists_and_numbers_are_read_as_objects_and_texts_are(tmp_path: Path) -> None:
    one = sample()
    asked = [list(pair.values()) for pair in one["arguments"].values()]
    scores = [[float(score), said == "True"] for score, said in one["filtered_resps"]]
    other = {**one, "target": 2, "arguments": asked, "filtered_resps": scores}
    [found] = read(written(tmp_path, other)).answers
    first = read(TAXONOMY).answers[0]
    assert (found.choices, found.scores, found.gold) == (first.choices, first.scores, 2)


def test_what_choices_say_without_their_context_is_left_out(tmp_path: Path) -> None:
    one = sample()
    alone = [["", pair["arg_1"]] for pair in one["arguments"].values()]
    asked = [list(pair.values()) for pair in one["arguments"].values()] + alone
    scores = [*one["filtered_resps"], *[["-1.0", "True"]] * 3]
    one |= {"arguments": asked, "filtered_resps": scores, "acc_mutual_info": 0.0}
    found = read(written(tmp_path, one))
    assert found.answers[0].choices == ("guard", "keeper", "defender")
    assert found.answers[0].scores == read(TAXONOMY).answers[0].scores
    assert found.notices == ("1 items also have scores of choices without context, not read",)


def test_choices_in_the_contexts(tmp_path: Path) -> None:
    asked = [["The cat sat, as the cat", " was tired."], ["The cat sat, as the mat", " was tired."]]
    one = {"doc": {}, "arguments": asked, "filtered_resps": [[-1, True], [-2, True]], "target": "0"}
    [found] = read(written(tmp_path, one)).answers
    assert (found.texts, found.choices[1]) == (("",), "The cat sat, as the mat was tired.")
    assert found.gold is None  # `target` is the continuation there


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"doc_id": 0}, "the item of `doc_id` 0 is at .*:1 too; of a task with several filt"),
        ({"acc": 1.0}, "`acc` is 1, but by its scores and `target` '2' it is not"),
        ({"filtered_resps": [["nan", "False"]] * 3}, "a log-likelihood is 'nan'; a number is"),
        ({"filtered_resps": [["-1", "False"]] * 2}, "3 arguments, but 2 responses"),
        ({"filtered_resps": ["-1"] * 3}, "a response is a string"),
        ({"doc": None, "arguments": {}, "filtered_resps": []}, "one response, where a multiple"),
    ],
)
def test_odd_samples_are_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = written(tmp_path, sample(), {**sample(), "doc_id": 1, **changes})
    with pytest.raises(RecordError, match=said) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:2: ")


def test_a_target_that_is_an_index_and_another_choice_is_refused(tmp_path: Path) -> None:
    one = {"doc": {}, "arguments": [["1 + 1 =", " 1"], ["1 + 1 =", " 0"]], "target": "0"}
    one["filtered_resps"] = [[-1, True], [-2, True]]
    with pytest.raises(RecordError, match="is a choice, and the index of another one"):
        read(written(tmp_path, one))
    assert read(written(tmp_path, {**one, "target": 0})).answers[0].gold == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"results_{DATE}.json", "the accuracies of tasks, not what was said of each item"),
        ("arc_write_out_info.json", "lm-evaluation-harness 0.3, without scores"),
        ("pretrained=gpt2_arc.jsonl", "by its name no file of samples"),
        ("", "a folder"),
    ],
)
def test_other_files_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(WRITTEN / name)


def test_other_tasks_arrays_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"own_gen.*:1: .*only multiple-choice tasks are read"):
        read(WRITTEN / f"samples_own_gen_{DATE}.jsonl")
    with pytest.raises(RecordError, match=r":1: .*a JSON array, as versions before 0\.4\.3 wrote"):
        read(written(tmp_path, [sample()]))
    with pytest.raises(RecordError, match="it holds no sample"):
        read(written(tmp_path))
