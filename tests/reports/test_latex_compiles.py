"""What the report writes for papers is set by LaTeX itself: `pytest -m slow` where it is there.

On Debian: `apt-get install texlive-latex-recommended texlive-xetex`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from probelight.reports.build import build_report
from probelight.reports.formats import to_latex
from probelight.reports.table import Cell, Column, Table
from tests.fixtures.results import write_run, zero_shot_rows

pytestmark = pytest.mark.slow
HOSTILE = r"\input{x} & 5% $ # _ { } ~ ^ \\ < > | -- [MASK] * ` ' " + '" − ± → α Σ é ł 中 😀 \x1b'
ENGINES = ("pdflatex", "xelatex")


def hostile(name: str, num_rows: int) -> Table:
    """A table whose every text holds what LaTeX acts on."""
    columns = (
        Column(HOSTILE, str, "left", group="g"),
        Column(HOSTILE, str, group="g"),
        Column("code", str, "left", code=True),
        Column("words", str, "left", prose=True),
    )
    row = (Cell(HOSTILE, HOSTILE), Cell("−1.6", "40–60"), Cell("a_b" * 10), Cell(HOSTILE * 4))
    return Table(name, HOSTILE, HOSTILE, columns, (row,) * num_rows, pd.DataFrame())


def document(folder: Path) -> Path:
    names = sorted(path.stem for path in (folder / "tables").glob("*.tex"))
    lines = [
        r"\documentclass{article}",
        r"\usepackage{booktabs,longtable,array}",
        r"\begin{document}",
        *(rf"\clearpage\noindent\input{{tables/{name}}}" for name in names),
        r"\end{document}",
    ]
    path = folder / "all.tex"
    path.write_text("\n".join(lines), encoding="ascii")
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_all_tables_are_set_and_no_character_is_missing(
    engine: str, demo_folder: Path, tmp_path: Path
) -> None:
    if not shutil.which(engine):
        pytest.skip(f"{engine} is not installed")
    for number in range(12):
        model = f"org/{number}_{HOSTILE.partition('中')[0]}"
        write_run(demo_folder, f"m{number}", zero_shot_rows("p", 5, 10, 2, model=model))
    folder = build_report(demo_folder, tmp_path / "out").parent
    for table in (hostile("short", 2), hostile("long", 40)):
        (folder / "tables" / f"{table.name}.tex").write_text(to_latex(table), encoding="ascii")
    path = document(folder)
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", path.name]
    for _ in range(2):  # a longtable knows its columns from the run before
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    assert not re.findall(r"Missing character.*", log)
