"""The page of layouts: each file on it is read as it stands; what it becomes stands below it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from probelight.probes.source import load_file

PAGE = Path(__file__).parents[3] / "docs" / "data_files.md"
FILE = re.compile(r'```\w+ title="([^"]+)"\n(.*?)```\n((?:\n?- [^\n]*\n)*)', re.DOTALL)


def items_of(path: Path) -> str:
    """The items of a file as a list in Markdown."""
    lines = []
    for record in load_file(path).records:
        choices = [f"**{c}**" if c == record.gold else c for c in record.choices]
        stem = f"{record.stem} " if record.stem else ""
        lines.append(f"- {stem}{' / '.join(choices)}\n")
    return "\n" + "".join(lines)


def test_each_file_of_the_page_is_read_at_the_first_try(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text(encoding="utf-8")

    def with_items(file: re.Match[str]) -> str:
        name, content, _ = file.groups()
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return f"{file[0][: file.start(3) - file.start()]}{items_of(path)}"

    made = FILE.sub(with_items, page)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == page


def test_the_page_shows_three_items_of_each_layout_and_its_right_answers() -> None:
    page = PAGE.read_text(encoding="utf-8")
    files = {file[1]: file[3] for file in FILE.finditer(page)}
    assert len(files) == 18
    assert {text.count("\n- ") for text in files.values()} == {3}
    assert "- The grass was wet because **it had rained.** / it was mown." in files["copa.jsonl"]
    assert "an animal / **a stone**" in files["arc.jsonl"]
    assert "- **Cats sleep.** / Cats sleeps." in files["blimp.jsonl"]


@pytest.mark.parametrize("ending", ["parquet", "xlsx", "csv.gz", "json"])
def test_the_same_rows_are_read_in_each_format(ending: str, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    text = next(file[2] for file in FILE.finditer(page) if file[1] == "letters.csv")
    (tmp_path / "letters.csv").write_text(text, encoding="utf-8")
    frame = pd.read_csv(tmp_path / "letters.csv")
    path = tmp_path / f"letters.{ending}"
    write = {"xlsx": frame.to_excel, "parquet": frame.to_parquet, "csv.gz": frame.to_csv}
    write.get(ending, lambda path: frame.to_json(path, orient="records"))(path)
    assert items_of(path) == items_of(tmp_path / "letters.csv")
