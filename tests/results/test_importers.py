from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probelight.io import files
from probelight.io.errors import RecordError, UsageError
from probelight.io.files import DataFile
from probelight.results.importers import answers, hf_trainer, letters, lm_eval, minicons, plain
from probelight.results.importers.answers import Answer, Gold, index_of, score_of, with_gold


def write_text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


ANIMAL = Answer(where="f:1", id="1", texts=("A cat is",), choices=("a", "b"), scores=(1.0, 0.25))
PLANT = Answer(where="f:2", texts=(" An  oak is",), choices=("a", "b"), scores=(0, 1), gold=1)


def golds(**right: str) -> Gold:
    golds_by_key = {name: (text, f"g:{name}") for name, text in right.items()}
    return Gold((DataFile("g", "", 1),), golds_by_key)


def test_golds_are_found_by_id_or_question() -> None:
    right = golds(**{"1": "b ", "An oak is": "b"})
    assert [answer.gold for answer in with_gold([ANIMAL, PLANT], right)] == [1, 1]


@pytest.mark.parametrize(
    ("right", "message"),
    [
        ({"1": "b"}, "f:2: the file of --gold has no line for this item"),
        ({"1": "c", "An oak is": "b"}, "g:1: the gold 'c' is not one of the candidates 'a', 'b'"),
        ({"1": "a", "An oak is": "a"}, "g:An oak is: the gold is 'a', but f:2 has 'b'"),
        ({"1": "a", "An oak is": "b", "3": "b"}, "g:3: this gold belongs to an item that"),
    ],
)
def test_golds_that_do_not_fit_are_refused(right: dict[str, str], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        with_gold([ANIMAL, PLANT], golds(**right))


def test_scores_and_choices() -> None:
    assert [score_of(cell) for cell in (1, "2e1", "-inf")] == [1.0, 20.0, -math.inf]
    for none in (None, True, "", "nan", "inf", [1], 10**400):
        with pytest.raises(RecordError, match="a number is needed"):
            score_of(none)
    assert answers.plain(" a\u00a0 b\n") == "a b"
    assert index_of("b  c", ("a", "b c")) == 1
    with pytest.raises(RecordError, match="matches several of the candidates"):
        index_of("a", ("a", "a "))


# Plain tables and lines of JSON.


OBJECTS = '{"id": 1, "text": "A cat is an", "scores": {"animal": 0.9, "plant": 1e-9}, "by": "m"}\n'
LISTS = '{"id": "2", "candidates": ["plant", "cät"], "scores": [0.7, "0.3"], "gold": " cät"}\n'
LISTED = "ID,candidate,score,gold\n1,animal,0.9,\n1,plant,0.1,\n2,plant,0.7,cät\n2,cät,0.3,cät\n"
WIDE = "id,animal,plant,cät,Gold\n1,0.9,0.1,,\n2,,0.7,0.3,cät\n"


def test_objects_and_lists_of_scores_are_read_from_json(tmp_path: Path) -> None:
    path = write_text(tmp_path / "scores.jsonl", f"{OBJECTS}\n{LISTS}")
    imported = plain.read(path)
    first, second = imported.answers
    assert (first.where, first.id, first.texts) == (f"{path}:1", "1", ("A cat is an",))
    assert (first.choices, first.scores, first.gold) == (("animal", "plant"), (0.9, 1e-9), None)
    assert (second.where, second.texts, second.gold) == (f"{path}:3", (), 1)
    assert (second.choices, second.scores) == (("plant", "cät"), (0.7, 0.3))
    assert imported.notices == ("keys ignored: by",)


@pytest.mark.parametrize("text", [LISTED, WIDE])
def test_listed_and_wide_tables_are_read(text: str, tmp_path: Path) -> None:
    first, second = plain.read(write_text(tmp_path / "scores.csv", text)).answers
    assert (first.id, first.choices, first.scores) == ("1", ("animal", "plant"), (0.9, 0.1))
    assert (second.choices, second.scores, second.gold) == (("plant", "cät"), (0.7, 0.3), 1)
    assert first.gold is None


def test_more_items_than_can_be_kept_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_ITEMS", 1)
    table = write_text(tmp_path / "scores.csv", LISTED)
    with pytest.raises(RecordError, match=f"^{table}: 2 items; a file can have at most 1$"):
        plain.read(table)
    lines = write_text(tmp_path / "scores.jsonl", OBJECTS + LISTS)
    with pytest.raises(RecordError, match=f"^{lines}: 2 items; a file can have at most 1$"):
        plain.read(lines)
    with pytest.raises(RecordError, match=f"^{lines}:2: a file can have at most 1 items$"):
        list(files.item_lines(lines, 1))
    monkeypatch.setattr(files, "MAX_ROWS", 3)
    with pytest.raises(RecordError, match=f"^{table}:5: a table can have at most 3 rows$"):
        plain.read(table)


WITH_MORE = "id,animal,plant,correct,margin,gold\n1,0.4,0.6,1,25,plant\n2,0.7,0.3,1,40,animal\n"
PREFIXED = "id,score_animal,Score_plant,gold,seconds\n1,0.4,0.6,plant,9\n2,0.7,0.3,animal,9\n"


@pytest.mark.parametrize(
    ("text", "ignored"), [(WITH_MORE, "correct, margin"), (PREFIXED, "seconds")]
)
def test_not_every_column_of_numbers_is_a_candidate(
    text: str, ignored: str, tmp_path: Path
) -> None:
    imported = plain.read(write_text(tmp_path / "scores.csv", text))
    assert [answer.choices for answer in imported.answers] == [("animal", "plant")] * 2
    assert [answer.scores for answer in imported.answers] == [(0.4, 0.6), (0.7, 0.3)]
    assert [answer.gold for answer in imported.answers] == [1, 0]
    assert imported.notices == ("candidates: animal, plant", f"columns ignored: {ignored}")


@pytest.mark.parametrize(
    ("header", "candidates", "choices", "message"),
    [
        ("id,animal,correct,gold", (), (), "candidates, animal, correct. Name them as --cand"),
        ("id,prob_a,prob_b,logit_a,logit_b", (), (), "prob_a, prob_b or logit_a, logit_b.*--cand"),
        ("id,a,b,score_a,score_b", (), ("a", "b"), "a, b or score_a, score_b.*--candidates"),
        ("id,x,y,gold", (), ("a", "b"), "candidates, x, y"),
        ("id,animal,plant,gold", ("animal", "plnat"), (), "no column 'plnat'.*'plant'"),
    ],
)
def test_columns_that_may_or_may_not_be_candidates_are_refused(
    header: str, candidates: tuple[str, ...], choices: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    row = ",".join(["1"] * len(header.split(",")))
    path = write_text(tmp_path / "scores.csv", f"{header}\n{row}\n")
    with pytest.raises(RecordError, match=message):
        plain.read(path, candidates, choices)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OBJECTS.replace("0.9", '"1_000"'), ":1: the score of 'animal' is '1_000'"),
        (OBJECTS.replace("0.9", '"\u0661"'), ":1: the score of 'animal' is '\u0661'"),
        (WIDE.replace("0.9", "1_0"), ":2: the score of 'animal' is '1_0'"),
        ("id,ID,a,b\n1,1,1,2\n", ":1: the columns id and ID both name the id"),
        (OBJECTS.replace("scores", "score"), ":1: `scores` is missing .did you mean 'score'"),
        (OBJECTS.replace("0.9", "NaN"), ":1: invalid JSON: NaN is not a JSON value"),
        (OBJECTS.replace("0.9", "true"), ":1: the score of 'animal' is True"),
        (OBJECTS.replace("0.9", "null"), ":1: the score of 'animal' is None"),
        (OBJECTS.replace("plant", "animal"), ":1: the key 'animal' is given twice"),
        (OBJECTS.replace('"text"', '"question": "x", "text"'), "text and question mean the same"),
        (LISTS.replace("0.7, ", ""), ":1: 2 candidates, but 1 scores"),
        (LISTS.replace(" cät", "dog"), ":1: the gold 'dog' is not one of the candidates"),
        (LISTS.replace('"plant", ', "1, "), ":1: a candidate is a number"),
        (LISTS.replace('"id": "2", ', ""), ":1: the item has neither `id` nor `text`"),
        ('{"id": "1", "scores": {"a": 1}}', r":1: 1 candidate\(s\); at least 2"),
        ('{"id": "1", "scores": 1}', ":1: `scores` is a number and `candidates` missing"),
        ('{"id": "1", "candidates": [], "scores": []}', r":1: 0 candidate\(s\); at least 2"),
        ("\n", ":1: the file is empty"),
        ("[]", ":1: a list, where an object"),
        (LISTED.replace("score", "scor"), ":1: no column for the score .did you mean 'scor'"),
        (LISTED.replace("1,plant", "1,animal"), ":3: the same item has this choice at .*:2 too"),
        (
            LISTED.replace("0.3,cät", "0.3,plant"),
            ":5: the same item has another text or gold at .*:4",
        ),
        (WIDE.replace("plant", "animal"), ":1: two columns are called 'animal'"),
        (WIDE.replace("0.1", "m"), ":2: the score of 'plant' is 'm'"),
        (WIDE.replace("0.9,0.1", ","), r":2: 0 candidate\(s\); at least 2"),
        (WIDE.replace("1,0.9", ",0.9"), ":2: the item has neither `id` nor `text`"),
    ],
)
def test_odd_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    is_table = text.partition("\n")[0].lower().startswith("id,")
    path = tmp_path / ("scores.csv" if is_table else "scores.jsonl")
    with pytest.raises(RecordError, match=message):
        plain.read(write_text(path, text))


def test_golds_of_a_second_file(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "scores.jsonl", '{"text": "A  cat", "gold": "x"}\n{"id": 2, "gold": "y"}\n'
    )
    gold_file = plain.read_gold(path)
    assert gold_file.right == {"A cat": ("x", f"{path}:1"), "2": ("y", f"{path}:2")}
    # The same gold twice is no conflict.
    table = write_text(tmp_path / "gold.csv", "id,gold\n1,x\n2,y\n1,x \n")
    assert plain.read_gold(table).right["2"] == ("y", f"{table}:3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,gold\n1,x\n1,y\n", ":3: '1' has another gold, 'x', at .*:2"),
        ("id,gold\n1,\n", ":2: `gold` is missing"),
        ("name,gold\n1,x\n", ":2: `id` or `text` is missing"),
    ],
)
def test_odd_golds_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=message):
        plain.read_gold(write_text(tmp_path / "gold.csv", text))


# Tables of minicons.


LONG = """item,prefix,continuation,score,label,model
1,A cat is an,animal,-2.5,1,m
1,A cat  is an,plant,-7,0,m
2,"An oak, too, is a",plant,-1e-1,TRUE,m
2,"An oak, too, is a",cat,-inf,false,m
"""
PAIR_COLUMNS = "pairID\tUID\tsentence_good\tsentence_bad\tgood_score\tbad_score\n"


def test_a_row_per_choice(tmp_path: Path) -> None:
    path = write_text(tmp_path / "scored.csv", LONG)
    imported = minicons.read(path)
    first, second = imported.answers
    assert (first.id, first.texts, first.choices) == ("1", ("A cat is an",), ("animal", "plant"))
    assert (first.scores, first.gold, first.where) == ((-2.5, -7.0), 0, f"{path}:2")
    assert (second.texts, second.scores) == (("An oak, too, is a",), (-0.1, -float("inf")))
    assert (imported.name, imported.notices) == ("scored", ("columns ignored: model",))


def test_rows_of_an_item_may_lie_apart(tmp_path: Path) -> None:
    header, *rows = LONG.splitlines()
    mixed = "\n".join([header, rows[2], rows[0], rows[3], rows[1]])
    first, second = minicons.read(write_text(tmp_path / "scored.csv", mixed)).answers
    assert (first.id, first.choices, first.gold) == ("2", ("plant", "cat"), 0)
    assert (second.id, second.scores) == ("1", (-2.5, -7.0))


def test_surprisals_are_turned(tmp_path: Path) -> None:
    text = "ID,Sentence,Surprisal,condition\na,x y,3.5,good\na,x z,4,bad\n"
    imported = minicons.read(write_text(tmp_path / "scored.csv", text))
    assert (imported.answers[0].scores, imported.answers[0].gold) == ((-3.5, -4.0), 0)
    assert imported.notices == ("scores are the file's surprisals with the sign reversed",)


def test_a_row_per_pair(tmp_path: Path) -> None:
    text = PAIR_COLUMNS + '7\tsv\tThe "cat" sleeps.\tThe "cat" sleep.\t-8\t-9\n'
    [answer] = minicons.read(write_text(tmp_path / "scored.tsv", text)).answers
    assert (answer.id, answer.paradigm, answer.texts, answer.gold) == ("7", "sv", ("",), 0)
    assert (answer.choices[1], answer.scores) == ('The "cat" sleep.', (-8.0, -9.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG.replace("-7,0", "x,0"), ":3: the score of 'plant' is 'x'; a number is needed"),
        (LONG.replace("-7,0", "nan,0"), ":3: the score of 'plant' is 'nan'"),
        (LONG.replace("-7,0", "-7,1"), ":2: the item has 2 right choices; one is needed"),
        (LONG.replace("-7,0", "-7,maybe"), ":3: 'maybe' does not say whether the choice is right"),
        (LONG.replace("plant,-7", "animal ,-7"), ":3: the same item has this choice at .*:2 too"),
        (
            LONG.replace("1,A cat  is", "1,A dog is"),
            ":3: the same item has another text or gold at .*:2",
        ),
        (LONG.replace("1,A cat is", ",A cat is"), ":2: the item is empty"),
        (LONG.replace("score", "scoer"), ":1: no column for the score .did you mean 'scoer'"),
        (LONG.replace("prefix", "sentence"), ":1: the columns sentence and continuation both"),
        (LONG.replace(",m\n1", "\n1"), ":2: 5 cell.s., where the header has 6"),
        (LONG.splitlines()[0], "a header and rows are needed"),
        (LONG + '3,"open', ":6: unexpected end of data"),
        ("", "a header and rows are needed"),
        ("sentence_good,sentence_bad,score_good\na,b,1\n", ":1: no column for the wrong score"),
        (",item,sentence,score\n0,1,a b,-1\n", r":1: column 1 has no name; .*index=False"),
    ],
)
def test_odd_tables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=message):
        minicons.read(write_text(tmp_path / "scored.csv", text))


# Predictions of the Hugging Face Trainer.


LOGITS = np.array([[0.5, -1.0], [2.0, 3.0]], dtype=np.float32)


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "out.npz", **arrays)
    return folder / "out.npz"


def test_predictions_with_their_labels(tmp_path: Path) -> None:
    path = saved(tmp_path, predictions=LOGITS, label_ids=np.array([1, 0]), metrics=np.zeros(1))
    imported = hf_trainer.read(path)
    assert [answer.scores for answer in imported.answers] == [(0.5, -1.0), (2.0, 3.0)]
    assert [answer.gold for answer in imported.answers] == [1, 0]
    assert imported.answers[1].where == f"{path}: row 2"
    assert imported.notices == ("arrays ignored: metrics",)


def test_predictions_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "out.npy", LOGITS)
    imported = hf_trainer.read(tmp_path / "out.npy")
    assert [answer.gold for answer in imported.answers] == [None, None]
    assert (imported.name, imported.files[0].num_items) == ("out", 2)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"predictions": LOGITS * np.nan}, "row 1: the score is nan"),
        ({"predictions": LOGITS[0]}, r"the shape \(2,\); one row per item"),
        ({"predictions": LOGITS[:, :1]}, "one logit per choice"),
        ({"predictions": LOGITS, "label_ids": np.array([1])}, "one whole number for each of 2"),
        (
            {"predictions": LOGITS, "label_ids": np.array([0, 2])},
            "row 2: the label 2 is not from 0 to 1",
        ),
        ({"arr_0": LOGITS}, "it contains arr_0; write it with np.savez"),
        ({"predictions": np.zeros((1_000_001, 2), "i1")}, r"\(1000001, 2\); 1 to 1,000,000 rows"),
        ({"predictions": np.zeros((2, 2_500_001), "i1")}, "with at most 5,000,000 logits in all"),
        ({"predictions": LOGITS[:0]}, r"\(0, 2\); 1 to 1,000,000 rows"),
        ({"predictions": LOGITS, "label_ids": np.array([{}, 1])}, "label_ids .* Python objects"),
        ({"predictions": np.array([{}], dtype=object)}, "Python objects, which cannot be read"),
    ],
)
def test_other_arrays_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=message):
        hf_trainer.read(saved(tmp_path, **arrays))


def header(shape: str, descr: str = "<f8") -> bytes:
    """The header of a .npy file, which may promise anything."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"a longer text", "damaged .the magic string"),
        (header("(1000000000000, 2)"), r"\(1000000000000, 2\); 1 to 1,000,000 rows"),
        (header("(-1, 2)"), "1 to 1,000,000 rows"),
        (header("(1000, 2)") + b"1234567", "damaged .Failed to read all data"),
        (header("(" * 300), "damaged"),
        (header("'a'"), "damaged .shape is not valid"),
        (header("(1, 2)", "zz"), "damaged .descr is not a valid"),
        (header("(1, 2)", "O") + b"cos\nsystem\n", "Python objects, which cannot be read"),
    ],
)
def test_damaged_arrays_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=rf"out\.npy: .*{message}"):
        hf_trainer.read(path)
    with zipfile.ZipFile(tmp_path / "out.npz", "w") as archive:
        archive.writestr("predictions.npy", content)
    with pytest.raises(RecordError, match=r"out\.npz: "):
        hf_trainer.read(tmp_path / "out.npz")


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, predictions=LOGITS)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"'predictions\.npy' in the zip archive is encrypted"):
        hf_trainer.read(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04cut")
    (tmp_path / "pipe.npy").symlink_to("/dev/zero")
    for name, error, message in (
        ("predict_results_swag.txt", UsageError, "labels or metrics without the scores"),
        ("out.pkl", UsageError, "not that of a NumPy file"),
        ("out.npz", FileNotFoundError, "there is no such file"),
        ("cut.npz", RecordError, "damaged"),
        ("pipe.npy", RecordError, "a device or a pipe"),
    ):
        with pytest.raises(error, match=message):
            hf_trainer.read(tmp_path / name)


# Files that lm-evaluation-harness 0.4.13 wrote of our own items, and what is made of odd ones.


DATE = "2026-11-22T17-13-44.496219"
WRITTEN = Path(__file__).parents[1] / "fixtures" / "lm_eval" / "tiny-gpt2"
TAXONOMY = WRITTEN / f"samples_own_taxonomy_{DATE}.jsonl"
PAIRS = WRITTEN / f"samples_own_pairs_{DATE}.jsonl"


def sample(path: Path = TAXONOMY, line: int = 0) -> dict[str, Any]:
    item: dict[str, Any] = json.loads(path.read_text().splitlines()[line])
    return item


def samples(folder: Path, *lines: object) -> Path:
    path = folder / f"samples_mine_{DATE}.jsonl"
    return write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def test_a_deep_document_is_refused(tmp_path: Path) -> None:
    deep = json.loads('{"a":' * 800 + "1" + "}" * 800)
    with pytest.raises(RecordError, match=":1: values nested more than 50 levels deep"):
        lm_eval.read(samples(tmp_path, {**sample(), "doc": deep}))


def test_arguments_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """A file with sorted keys has gen_args_10 before gen_args_2; the responses are a list."""
    arguments = {f"gen_args_{n}": {"arg_0": "A", "arg_1": f" word{n}"} for n in range(12)}
    line = {
        "doc_id": 0, "doc": {"id": "x"}, "target": "10", "acc": 1,
        "arguments": dict(sorted(arguments.items())),
        "filtered_resps": [[str(-abs(n - 10)), "False"] for n in range(12)],
    }  # fmt: skip
    [answer] = lm_eval.read(samples(tmp_path, line)).answers
    assert answer.choices == tuple(f"word{n}" for n in range(12))
    assert answer.gold == answer.scores.index(0) == 10


def test_a_file_that_the_harness_wrote() -> None:
    file = lm_eval.read(TAXONOMY)
    assert (file.name, file.model, file.files[0].num_items) == ("own_taxonomy", "tiny-gpt2", 3)
    first = file.answers[0]
    assert first.where == f"{TAXONOMY}:1"
    assert first.id == "taxonomy_conjunction-dev-1"
    assert first.texts[0] == "A screw and a sentinel are both a type of ."
    assert "A screw and a sentinel are both a type of [MASK]." in first.texts
    assert first.choices == ("guard", "keeper", "defender")
    assert first.scores == (-28.26746368408203, -38.2860221862793, -47.017024993896484)
    assert [answer.gold for answer in file.answers] == [2, 0, 1]


@pytest.mark.parametrize("path", [TAXONOMY, PAIRS])
def test_the_accuracy_is_the_harness_s_own(path: Path) -> None:
    right = [a.scores.index(max(a.scores)) == a.gold for a in lm_eval.read(path).answers]
    assert right == [sample(path, line)["acc"] == 1 for line in range(len(right))]


def test_sentences_without_a_context_are_pairs() -> None:
    pairs = lm_eval.read(PAIRS).answers
    assert pairs[0].texts[0] == ""
    assert pairs[0].choices == ("Cats sleep.", "Cats sleeps.")
    assert [pair.paradigm for pair in pairs] == ["sv", "sv", "npi", "sv"]


def test_lists_and_numbers_are_read_as_objects_and_texts_are(tmp_path: Path) -> None:
    item = sample()
    arguments = [list(pair.values()) for pair in item["arguments"].values()]
    scores = [[float(score), is_greedy == "True"] for score, is_greedy in item["filtered_resps"]]
    typed_item = {**item, "target": 2, "arguments": arguments, "filtered_resps": scores}
    [answer] = lm_eval.read(samples(tmp_path, typed_item)).answers
    first = lm_eval.read(TAXONOMY).answers[0]
    assert (answer.choices, answer.scores, answer.gold) == (first.choices, first.scores, 2)


def test_what_choices_say_without_their_context_is_left_out(tmp_path: Path) -> None:
    item = sample()
    alone = [["", pair["arg_1"]] for pair in item["arguments"].values()]
    arguments = [list(pair.values()) for pair in item["arguments"].values()] + alone
    scores = [*item["filtered_resps"], *[["-1.0", "True"]] * 3]
    item |= {"arguments": arguments, "filtered_resps": scores, "acc_mutual_info": 0.0}
    imported = lm_eval.read(samples(tmp_path, item))
    assert imported.answers[0].choices == ("guard", "keeper", "defender")
    assert imported.answers[0].scores == lm_eval.read(TAXONOMY).answers[0].scores
    assert imported.notices == (
        "1 items also have scores of choices without context; these are ignored",
    )


def test_choices_in_the_contexts(tmp_path: Path) -> None:
    texts = [["The cat sat, as the cat", " was tired."], ["The cat sat, as the mat", " was tired."]]
    raw = {"doc": {}, "arguments": texts, "filtered_resps": [[-1, True], [-2, True]], "target": "0"}
    [answer] = lm_eval.read(samples(tmp_path, raw)).answers
    assert (answer.texts, answer.choices[1]) == (("",), "The cat sat, as the mat was tired.")
    assert answer.gold is None  # `target` is the continuation there


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"doc_id": 0}, "the item with `doc_id` 0 is at .*:1 too; if the task has several"),
        ({"acc": 1.0}, "`acc` 1 contradicts the scores and `target` '2'"),
        ({"filtered_resps": [["nan", "False"]] * 3}, "a log-likelihood is 'nan'; a number is"),
        ({"filtered_resps": [["-1", "False"]] * 2}, "3 arguments, but 2 responses"),
        ({"filtered_resps": ["-1"] * 3}, "a response is a string"),
        (
            {"doc": None, "arguments": {}, "filtered_resps": []},
            "fewer than two responses; a multiple",
        ),
    ],
)
def test_odd_samples_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = samples(tmp_path, sample(), {**sample(), "doc_id": 1, **changes})
    with pytest.raises(RecordError, match=message) as error:
        lm_eval.read(path)
    assert str(error.value).startswith(f"{path}:2: ")


def test_a_target_that_is_an_index_and_another_choice_is_refused(tmp_path: Path) -> None:
    item = {"doc": {}, "arguments": [["1 + 1 =", " 1"], ["1 + 1 =", " 0"]], "target": "0"}
    item["filtered_resps"] = [[-1, True], [-2, True]]
    with pytest.raises(RecordError, match="is both a choice and the index of another one"):
        lm_eval.read(samples(tmp_path, item))
    assert lm_eval.read(samples(tmp_path, {**item, "target": 0})).answers[0].gold == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"results_{DATE}.json", "the accuracies of tasks, without the scores of items"),
        ("arc_write_out_info.json", "lm-evaluation-harness 0.3, without scores"),
        ("pretrained=gpt2_arc.jsonl", "its name is not that of a file of samples"),
        ("", "a folder"),
    ],
)
def test_other_files_are_refused_by_name(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lm_eval.read(WRITTEN / name)


def test_other_tasks_arrays_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"own_gen.*:1: .*only multiple-choice tasks can be"):
        lm_eval.read(WRITTEN / f"samples_own_gen_{DATE}.jsonl")
    with pytest.raises(RecordError, match=r":1: .*a JSON array, as versions before 0\.4\.3 wrote"):
        lm_eval.read(samples(tmp_path, [sample()]))
    with pytest.raises(RecordError, match="it has no samples"):
        lm_eval.read(samples(tmp_path))


ONE = '{"id": 1, "text": "A cat is an", "order": ["animal", "plant"], "scores": {"A": -1, "B": -2}'
OTHER = ONE.replace('["animal", "plant"]', '["plant", "animal"]')


def test_labels_in_two_orders_are_one_item(tmp_path: Path) -> None:
    second = OTHER.replace('"A": -1', '"A": -3') + ', "gold": "plant", "by": "me"}'
    imported = letters.read(write_text(tmp_path / "said.jsonl", f"{ONE}}}\n{second}\n"))
    [answer] = imported.answers
    assert (answer.choices, answer.scores, answer.gold) == (("animal", "plant"), (-1, -2), 1)
    assert [(of.order, of.scores) for of in answer.labelled] == [
        (("animal", "plant"), (-1, -2)),
        (("plant", "animal"), (-3, -2)),
    ]
    assert (imported.name, imported.notices) == ("said", ("keys ignored: by",))


@pytest.mark.parametrize(
    "scores", ['{"B": -2, "A": -1}', '{" b": -2, "a": -1}', '{"2": -2, "1": -1}', "[-1, -2]"]
)
def test_labels_may_come_by_size(scores: str, tmp_path: Path) -> None:
    text = ONE.replace('{"A": -1, "B": -2}', scores) + "}\n"
    [answer] = letters.read(write_text(tmp_path / "said.jsonl", text)).answers
    assert answer.labelled[0].scores == (-1, -2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "said.jsonl:1: the file is empty"),
        (f"{ONE}}}\n{ONE}}}", "said.jsonl:2: the item that begins at .*:1 already has this"),
        (f"{ONE}}}\n{OTHER.replace('plant', 'tree')}}}", ":2: the same item has other choices at"),
        (f"{ONE}}}\n{OTHER.replace('A cat', 'A dog')}}}", ":2: the same item has another text at"),
        (
            f'{ONE}, "gold": "plant"}}\n{OTHER}, "gold": "animal"}}',
            ":2: the same item has another gold at",
        ),
        (ONE.replace("order", "ordre") + "}", "`order` is missing .did you mean 'ordre'"),
        (ONE.replace('{"A": -1, "B": -2}', "7") + "}", "`scores` is a number; an object of"),
        (ONE.replace('"A"', '"yes"') + "}", "the labels 'yes', 'B' are neither A, B, ... nor 1, 2"),
        (ONE.replace(', "B": -2', "") + "}", "2 choices in `order`, but 1 labels"),
        (ONE.replace("-2", "null") + "}", "the score of 'B' is None; a number is needed"),
        (ONE.replace('"plant"', '"animal "') + "}", "two choices in `order` are the same"),
        (ONE.replace('"plant"', "3") + "}", "a choice is a number; a text is needed"),
        (ONE.replace('"id": 1, "text": "A cat is an", ', "") + "}", "neither `id` nor `text`"),
        (f'{ONE}, "gold": "tree"}}', "the gold 'tree' is not one of the candidates"),
    ],
)
def test_odd_labels_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=message):
        letters.read(write_text(tmp_path / "said.jsonl", text + "\n" * bool(text)))
