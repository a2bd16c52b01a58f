from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols import cli
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder

ROW = Row(
    protocol="zero_shot",
    model="tiny",
    probe="age_small",
    control="standard",
    mode="zero_shot",
    num_train=0,
    split="dev",
    metric="accuracy",
    value=0.5,
    num_items=4,
)


def test_the_report_says_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CommandFolder(tmp_path / "out", {"command": "zero-shot"}).run("one", {})
    run.finish(RunRecord(protocol="zero_shot", model="tiny", probe="age_small", rows=(ROW,)))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "out", "--output_dir=pages"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("page: ")]
    assert said == [f"page: {tmp_path / 'pages' / 'report.html'}"]
    assert Path(said[0].removeprefix("page: ")).is_file()
    assert cli.main(["report", "out", "out"]) == 2
    assert "--output_dir" in capsys.readouterr().err
