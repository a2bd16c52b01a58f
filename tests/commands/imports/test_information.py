"""V-information of another program's log-probabilities, by hand; malformed files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from probelight import cli
from probelight.commands.imports.information import read_bits
from tests.fixtures.rows import read_results

HEADER = "id,label,log_probability,log_probability_without"


def test_bits_of_each_item_and_their_mean(tmp_path: Path) -> None:
    path = tmp_path / "nli.csv"
    path.write_text(f"{HEADER}\n1,yes,-0.1,-0.7\n2,no,-0.5,-0.7\n3,yes,-2,-0.7\n")
    lines = tmp_path / "same.jsonl"
    lines.write_text(
        '{"id": 1, "label": "yes", "log_probability": -0.1, "log_probability_without": -0.7}\n'
    )
    out = tmp_path / "out"
    line = ["import", "pvi", f"{path}=bert", f"{lines}=gpt", "--output_dir", str(out)]
    assert cli.main(line) == 0
    rows = {(r["model"], r["subset"]): float(r["value"]) for r in read_results(out / "results.csv")}
    bits = [0.6 / math.log(2), 0.2 / math.log(2), -1.3 / math.log(2)]
    assert rows["bert", ""] == pytest.approx(sum(bits) / 3, abs=1e-5)
    assert rows["bert", "label=yes"] == pytest.approx((bits[0] + bits[2]) / 2, abs=1e-5)
    assert rows["gpt", ""] == pytest.approx(bits[0], abs=1e-5)
    [items] = out.glob("runs/import-nli-bert-*/pvi.csv")
    assert items.read_text().splitlines()[1] == f"1,yes,{round(bits[0], 6)}"
    assert cli.main(["report", str(out)]) == 0
    assert cli.main(line) == 0  # it is complete


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{HEADER}\n1,yes,-0.1,0.7\n",
            "nli.csv:2: `log_probability_without` is 0.7: give the natural logarithm",
        ),
        (f"{HEADER}\n1,yes,,-1\n", "nli.csv:2: `log_probability` is missing"),
        (f"{HEADER}\n1,yes,-1_0,-1\n", "nli.csv:2: `log_probability` must be a number, not '-1_0'"),
        (f"{HEADER}\n1,yes,-inf,-1\n", "nli.csv:2: `log_probability` must be a number, not '-inf'"),
        (f"Id,{HEADER}\n1,1,yes,-1,-1\n", "nli.csv:1: two columns are called 'Id' and 'id'"),
        ("id,label,log_prob,log_probability_without\n1,a,-1,-1\n", "'log_probability' is missing"),
    ],
)
def test_malformed_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "nli.csv"
    path.write_text(text)
    assert cli.main(["import", "pvi", str(path), "--output_dir", str(tmp_path / "out")]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "raw"), [("log_probability", "false"), ("log_probability", '"1_0"'), ("id", "true")]
)
def test_true_and_false_are_no_numbers_and_no_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, raw: str
) -> None:
    cells = {"id": "1", "label": '"a"', "log_probability": "-1", "log_probability_without": "-1"}
    line = ", ".join(f'"{name}": {cell}' for name, cell in (cells | {key: raw}).items())
    (tmp_path / "nli.jsonl").write_text(f"{{{line}}}\n")
    out = ["--output_dir", str(tmp_path / "out")]
    assert cli.main(["import", "pvi", str(tmp_path / "nli.jsonl"), *out]) == 1
    assert f"nli.jsonl:1: `{key}` " in capsys.readouterr().err


def test_columns_are_known_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "nli.csv").write_text(f"{HEADER.upper()}\n1,yes,-1,-2\n")
    assert read_bits(tmp_path / "nli.csv") == [("1", "yes", round(1 / math.log(2), 6))]
