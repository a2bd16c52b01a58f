from __future__ import annotations

from pathlib import Path

import pytest

from probelight.reports.build import build_report


def test_everything_is_written(demo_report: Path) -> None:
    found = sorted(p.relative_to(demo_report).as_posix() for p in demo_report.rglob("*.*"))
    figures = ("arrows", "inoculation", "learning_curve", "selection", "zero_shot")
    tables = (
        "curve_summary_age_comparison data inoculation learning_curve models "
        "predicted_shares runs software verdicts zero_shot zero_shot_parts"
    ).split()
    assert found == sorted(
        [f"figures/{name}.{kind}" for name in figures for kind in ("pdf", "png", "svg")]
        + [f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md", "tex")]
        + ["report.html", "report.md"]
    )


def test_a_report_in_its_folder_gives_the_same_bytes_again(demo_folder: Path) -> None:
    def content() -> dict[Path, bytes]:
        assert build_report(demo_folder).parent == demo_folder
        return {path: path.read_bytes() for path in demo_folder.rglob("*") if path.is_file()}

    assert content() == content()


def test_no_results_is_a_helpful_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no result is there"):
        build_report(tmp_path)
    assert not list(tmp_path.iterdir())
