from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols import cli
from tests.fixtures.results import write_run, zero_shot_rows


def test_the_report_says_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "out", "one", zero_shot_rows("age_small", 2, 4, 2))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "out", "--output_dir=pages"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("page: ")]
    assert said == [f"page: {tmp_path / 'pages' / 'report.html'}"]
    assert Path(said[0].removeprefix("page: ")).is_file()
    assert cli.main(["report", "out", "out"]) == 2
    assert "--output_dir" in capsys.readouterr().err


def test_the_report_of_an_empty_folder_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path)]) == cli.FAILURE
    assert str(tmp_path) in capsys.readouterr().err
