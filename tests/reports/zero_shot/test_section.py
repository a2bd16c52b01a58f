from __future__ import annotations

from pathlib import Path

from probelight.reports.zero_shot.section import ZERO_SHOT
from probelight.results.load import load_results


def test_the_page_has_every_answer_share_and_the_terminal_what_is_read_first(
    demo_folder: Path,
) -> None:
    results = load_results(demo_folder)
    made = ZERO_SHOT.made(results)
    assert [figure.name for figure in made.figures] == ["zero_shot"]
    names = [table.name for table in made.tables]
    assert names == ["zero_shot", "predicted_shares", "zero_shot_parts"]  # no pairs, ranks or rules
    printed = [make(results) for make in ZERO_SHOT.printed["zero_shot"]]
    assert printed == [made.tables[0], made.tables[2], None, None, None, None]


def test_one_sentence_says_of_a_model_what_it_knew(demo_folder: Path) -> None:
    [said] = ZERO_SHOT.made(load_results(demo_folder)).findings
    assert said.startswith("Before any training, embedded chose the right word on 61.3% ")
    assert "always_never 35.0% (29.7–40.8, n = 280" in said  # 98 of 280, majority 101
