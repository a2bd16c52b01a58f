from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import RecordError
from probelight.results.importers.minicons import read

LONG = """item,prefix,continuation,score,label,model
1,A cat is an,animal,-2.5,1,m
1,A cat  is an,plant,-7,0,m
2,"An oak, too, is a",plant,-1e-1,TRUE,m
2,"An oak, too, is a",cat,-inf,false,m
"""
PAIRS = "pairID\tUID\tsentence_good\tsentence_bad\tgood_score\tbad_score\n"


def written(folder: Path, text: str, name: str = "scored.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_a_choice(tmp_path: Path) -> None:
    path = written(tmp_path, LONG)
    found = read(path)
    first, second = found.answers
    assert (first.id, first.texts, first.choices) == ("1", ("A cat is an",), ("animal", "plant"))
    assert (first.scores, first.gold, first.where) == ((-2.5, -7.0), 0, f"{path}:2")
    assert (second.texts, second.scores) == (("An oak, too, is a",), (-0.1, -float("inf")))
    assert (found.name, found.notices) == ("scored", ("columns that are not read: model",))


def test_rows_of_an_item_may_lie_apart(tmp_path: Path) -> None:
    header, *rows = LONG.splitlines()
    mixed = "\n".join([header, rows[2], rows[0], rows[3], rows[1]])
    first, second = read(written(tmp_path, mixed)).answers
    assert (first.id, first.choices, first.gold) == ("2", ("plant", "cat"), 0)
    assert (second.id, second.scores) == ("1", (-2.5, -7.0))


def test_surprisals_are_turned(tmp_path: Path) -> None:
    text = "ID,Sentence,Surprisal,condition\na,x y,3.5,good\na,x z,4,bad\n"
    found = read(written(tmp_path, text))
    assert (found.answers[0].scores, found.answers[0].gold) == ((-3.5, -4.0), 0)
    assert found.notices == ("scores are the file's surprisals with their sign turned",)


def test_a_row_a_pair(tmp_path: Path) -> None:
    text = PAIRS + '7\tsv\tThe "cat" sleeps.\tThe "cat" sleep.\t-8\t-9\n'
    [found] = read(written(tmp_path, text, "scored.tsv")).answers
    assert (found.id, found.paradigm, found.texts, found.gold) == ("7", "sv", ("",), 0)
    assert (found.choices[1], found.scores) == ('The "cat" sleep.', (-8.0, -9.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LONG.replace("-7,0", "x,0"), ":3: the score of 'plant' is 'x'; a number is needed"),
        (LONG.replace("-7,0", "nan,0"), ":3: the score of 'plant' is 'nan'"),
        (LONG.replace("-7,0", "-7,1"), ":2: 2 right choices of the item; one is needed"),
        (LONG.replace("-7,0", "-7,maybe"), ":3: 'maybe' does not say whether the choice is right"),
        (LONG.replace("plant,-7", "animal ,-7"), ":3: its item has this choice at .*:2 too"),
        (
            LONG.replace("1,A cat  is", "1,A dog is"),
            ":3: its item has another text or gold at .*:2",
        ),
        (LONG.replace("1,A cat is", ",A cat is"), ":2: the item is empty"),
        (LONG.replace("score", "scoer"), ":1: no column for the score .did you mean 'scoer'"),
        (LONG.replace("prefix", "sentence"), ":1: the columns sentence and continuation are both"),
        (LONG.replace(",m\n1", "\n1"), ":2: 5 cell.s., where the header has 6"),
        (LONG.splitlines()[0], "a header and rows are needed"),
        (LONG + '3,"open', ":6: unexpected end of data"),
        ("", "a header and rows are needed"),
        ("sentence_good,sentence_bad,score_good\na,b,1\n", ":1: no column for the wrong score"),
        (",item,sentence,score\n0,1,a b,-1\n", r":1: column 1 has no name; .*index=False"),
    ],
)
def test_odd_tables_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=said):
        read(written(tmp_path, text))
