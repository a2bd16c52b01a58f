"""Files of other programs whose columns have other names, by --columns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from probelight import cli
from tests.fixtures.rows import read_results

PAIRS = """item,good,bad,score_good,gpt2_good,gpt2_bad,opt_good,opt_bad
1,Cats sleep.,Cats sleeps.,0,-10,-12,-9,-8
2,Dogs bark.,Dogs barks.,0,-11,-12,-9,-10
3,A cat is.,A cat are.,0,-5,-4,-9,-10
4,A dog is.,A dog are.,0,-5,-6,-9,-10
"""


def imported(folder: Path, *options: str) -> int:
    return cli.main(["import", *options, "--output_dir", str(folder / "out")])


def value(folder: Path, metric: str) -> float:
    [row] = [
        row
        for row in read_results(folder / "out" / "results.csv")
        if (row["metric"], row["subset"], row["scoring"]) == (metric, "", "")
    ]
    return float(row["value"])


def test_scores_and_an_index_of_the_right_answer_under_other_keys(tmp_path: Path) -> None:
    rows = [
        {"uid": name, "id": 7, "options": ["animal", "plant"], "pll_scores": scores} | right
        for name, scores, right in (
            ("A cat is an", [-1.5, -2.5], {"answer_idx": 0}),
            ("An oak is a", [-1.5, -2.5], {"answer_idx": 1}),
            ("An ant is an", [-1.0, -9.0], {"answer_idx": 0}),
        )
    ]
    path = tmp_path / "pll.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    # Their own `id`, the same in all rows, is not read, as another key was named.
    columns = "id=uid,candidates=options,scores=pll_scores,gold_index=answer_idx"
    options = ["plain", str(path), "--model", "bert", "--columns", columns]
    items = tmp_path / "items.csv"
    items.write_text(
        "id,sentence,gold,choices\nA cat is an,a?,animal,animal|plant\n"
        "An oak is a,b?,plant,animal|plant\nAn ant is an,c?,animal,animal|plant\n"
    )
    assert imported(tmp_path, *options, "--data.path", str(items)) == 0
    assert value(tmp_path, "accuracy") == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize("scores", ["[-1.5, -2.5]", "[-1.5 -2.5]"])  # of pandas, and of numpy
def test_lists_in_the_cells_of_a_table(scores: str, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "text": ["A cat is an", "An oak is a"],
            "candidates": [["animal", "plant"], ["plant", "animal"]],
            "scores": [scores, scores],
            "right": [0, 1],
        }
    )
    table.to_csv(tmp_path / "lists.csv", index=False)
    options = ["plain", str(tmp_path / "lists.csv"), "--model", "bert"]
    assert imported(tmp_path, *options, "--columns", "gold_index=right") == 0
    assert value(tmp_path, "accuracy") == 0.5


@pytest.mark.parametrize(("model", "accuracy"), [("gpt2", 3 / 4), ("opt", 3 / 4)])
def test_log_likelihoods_in_columns_of_several_models(
    model: str, accuracy: float, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    columns = f"score_good={model}_good,score_bad={model}_bad"
    assert imported(tmp_path, "minicons", f"{path}={model}", "--columns", columns) == 0
    assert value(tmp_path, "accuracy") == accuracy
    [config] = (tmp_path / "out").glob("runs/*/config.yaml")
    assert f"score_good: {model}_good" in config.read_text()


def test_information_in_bits_of_items_without_an_id(tmp_path: Path) -> None:
    path = tmp_path / "vinfo.tsv"
    path.write_text("sentence\tnull_ent\tcond_ent\na\t1.0\t0.25\nb\t1.0\t1.5\nb\t0.5\t0.5\n")
    columns = "null_entropy=null_ent,conditional_entropy=cond_ent"
    assert imported(tmp_path, "pvi", f"{path}=bert", "--columns", columns) == 0
    assert value(tmp_path, "v_information") == pytest.approx((0.75 - 0.5 + 0) / 3, abs=1e-6)
    [items] = (tmp_path / "out").glob("runs/*/pvi.csv")
    assert items.read_text().splitlines()[1:] == ["2,any,0.75", "3,any,-0.5", "4,any,0.0"]


@pytest.mark.parametrize(
    ("format", "columns", "message"),
    [
        ("minicons", "score_good=gtp2_good", "pairs.csv:1: no column 'gtp2_good' (did you mean"),
        ("minicons", "score_god=gpt2_good", "no 'score_god' (did you mean 'score_good'?)"),
        ("minicons", "score_good", "--columns score_good: give OURS=THEIRS"),
        ("minicons", "score_good=bad,score_bad=bad", "score_bad or bad is there twice"),
        ("lm_eval", "id=item", "--columns is for plain, minicons, letters, table, correct, pvi,"),
        (
            "pvi",
            "null_entropy=gpt2_good,conditional_entropy=bad,id=item",
            "pairs.csv:2: `null_entropy` is -10: give a number from 0",
        ),
        (
            "pvi",
            "null_entropy=opt_good,conditional_entropy=opt_bad,id=item,label=good,"
            "log_probability=gpt2_good,log_probability_without=gpt2_bad",
            "pairs.csv:2: there are id, label, log_probability, log_probability_without and "
            "null_entropy, conditional_entropy; leave one of them out",
        ),
    ],
)
def test_a_mistake_in_the_names_is_told(
    format: str, columns: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    assert imported(tmp_path, format, f"{path}=m", "--columns", columns) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("right", "message"),
    [
        ({"k": 2}, "pll.jsonl:1: `gold_index` is 2; a number from 0 to 1"),
        ({"k": True}, "`gold_index` is True"),
        ({"k": 0, "gold": "a"}, "`gold` and `gold_index` both say"),
        ({}, "pll.jsonl:1: no column 'k'"),
    ],
)
def test_an_index_that_names_no_candidate_is_refused(
    right: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pll.jsonl"
    path.write_text(json.dumps({"text": "q?", "candidates": ["a", "b"], "scores": [1, 2]} | right))
    assert imported(tmp_path, "plain", f"{path}=m", "--columns", "gold_index=k") != 0
    assert message in capsys.readouterr().err


def test_a_column_of_our_name_that_was_not_named_is_no_candidate(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("uid,id,text,gold,cat,dog\na,1,A?,cat,0.9,0.1\nb,2,B?,cat,0.2,0.8\n")
    assert imported(tmp_path, "plain", f"{path}=m", "--columns", "id=uid") == 0
    assert value(tmp_path, "accuracy") == 1 / 2


LIKELIHOODS = """\
item,question,a,b,answer,right,gpt_a,gpt_b,gpt_ab_A,gpt_ab_B,gpt_ba_A,gpt_ba_B,opt_a,opt_b
1,A cat is an,animal,plant,animal,0,-2,-5,-0.1,-2.0,-0.6,-1.0,-5,-2
2,An oak is a,animal,plant,plant,1,-2,-5,-0.1,-2.0,-0.6,-1.0,-5,-2
3,An ant is an,animal,plant,animal,0,-3,-4,-0.3,-1.5,-2.0,-0.2,-2,-4
"""


def numbers_of(folder: Path, metric: str, scoring: str = "") -> dict[str, float]:
    rows = read_results(folder / "out" / "results.csv")
    return {
        row["model"]: float(row["value"])
        for row in rows
        if (row["metric"], row["subset"], row["scoring"]) == (metric, "", scoring)
    }


@pytest.mark.parametrize("gold", ["gold=answer", "gold_index=right"])
def test_words_and_their_scores_in_columns_of_each_model(gold: str, tmp_path: Path) -> None:
    path = tmp_path / "ll.csv"
    path.write_text(LIKELIHOODS)
    columns = f"id=item,text=question,candidates=a+b,scores={{model}}_a+{{model}}_b,{gold}"
    files = [f"{path}=gpt", f"{path}=opt", "--data.name", "ll"]
    assert imported(tmp_path, "plain", *files, "--columns", columns) == 0
    # gpt always says animal; opt says plant, plant, animal.
    assert numbers_of(tmp_path, "accuracy") == pytest.approx({"gpt": 2 / 3, "opt": 2 / 3})
    chosen = {
        path.parent.name.split("-")[2]: [
            line["choices"][line["prediction"]]
            for line in map(json.loads, path.read_text().splitlines())
        ]
        for path in (tmp_path / "out").glob("runs/*/predictions.jsonl")
    }
    assert chosen == {
        "gpt": ["animal", "animal", "animal"],
        "opt": ["plant", "plant", "animal"],
    }


def test_both_orders_of_labels_in_one_row(tmp_path: Path) -> None:
    path = tmp_path / "ll.csv"
    path.write_text(LIKELIHOODS)
    columns = (
        "id=item,text=question,order=a+b,scores={model}_ab_A+{model}_ab_B,"
        "reversed={model}_ba_A+{model}_ba_B,gold=answer"
    )
    assert imported(tmp_path, "letters", f"{path}=gpt", "--columns", columns) == 0
    # In the order a, b: animal thrice. In the order b, a, where A is plant: plant, plant, animal.
    assert numbers_of(tmp_path, "accuracy") == {"gpt": pytest.approx(2 / 3)}
    assert numbers_of(tmp_path, "mean_order_accuracy", "letter") == {"gpt": pytest.approx(2 / 3)}
    assert numbers_of(tmp_path, "all_orders_accuracy", "letter") == {"gpt": pytest.approx(1 / 3)}
    assert numbers_of(tmp_path, "unstable_share", "letter") == {"gpt": pytest.approx(2 / 3)}


def test_a_choice_that_an_item_lacks_has_empty_columns(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    path.write_text("text,c1,c2,c3,s1,s2,s3,k\nA?,x,,z,-1,,-3,2\nB?,x,y,z,-1,-2,-3,0\n")
    columns = "candidates=c1+c2+c3,scores=s1+s2+s3,gold_index=k"
    assert imported(tmp_path, "plain", f"{path}=m", "--columns", columns) == 0
    assert value(tmp_path, "chance") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert value(tmp_path, "accuracy") == 1 / 2  # its gold is z by its number among all three


def test_the_right_choice_may_be_in_one_column_for_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    columns = "candidates=good+bad,scores={model}_good+{model}_bad,gold_index=0,text=item"
    assert imported(tmp_path, "plain", f"{path}=opt", "--columns", columns) == 0
    assert value(tmp_path, "accuracy") == 3 / 4


@pytest.mark.parametrize(
    ("format", "columns", "message"),
    [
        ("plain", "candidates=a+c,scores=gpt_a+gpt_b", "ll.csv:1: no column 'c'"),
        ("plain", "candidates=a+b,scores=gtp_a+gpt_b", "no column 'gtp_a' (did you mean 'gpt_a'"),
        ("plain", "candidates=a+b,scores=gpt_a", "ll.csv:2: `scores` is a string and `candidates`"),
        ("plain", "candidates=a+b,scores=gpt_a+gpt_b,gold_index=2", "`gold_index` is 2; a number"),
        ("plain", "gold_index=right", "ll.csv:2: `scores` is missing"),
        ("letters", "order=a+b,scores=gpt_a+gpt_b,reversed=opt_a", "`reversed` is a string; an"),
        ("letters", "scores=gpt_a+gpt_b", "`order` is missing; in a table, name its columns as"),
        ("letters", "order=a+b,scores={model}_a+{model}_c", "no column 'm_a'"),
        ("minicons", "sentence=a+b,score=gpt_a", "no column 'a+b'"),
    ],
)
def test_lists_of_columns_that_cannot_be_read(
    format: str, columns: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ll.csv"
    path.write_text(LIKELIHOODS)
    line = [format, f"{path}=m", "--columns", f"id=item,{columns}"]
    assert imported(tmp_path, *line) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_not_named_has_no_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ll.csv"
    path.write_text(LIKELIHOODS)
    assert imported(tmp_path, "plain", str(path), "--columns", "scores={model}_a") == 2
    assert "{model} in --columns is the name of a file's model; give FILE=MODEL" in (
        capsys.readouterr().err
    )
