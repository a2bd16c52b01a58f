from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.overview.skills import verdicts
from probelight.reports.overview.story import ASCII, BARS, WIDTH, bars, print_story, story
from probelight.results.load import RunSet, load_results
from tests.fixtures.diagnostics import share
from tests.fixtures.items import write_lines
from tests.fixtures.results import write_run, zero_shot_rows


def test_bars_stand_between_their_ends() -> None:
    assert bars([0.0, 0.5, 1.0], 0.0, 1.0) == "▁▅█"  # 3.5 of 7 is rounded to the even 4
    assert bars([0.2, 0.3, 0.4], 0.2, 0.9) == "▁▂▃"  # steps of 0.1 of 0.7
    assert bars([-1.0, 2.0], 0.0, 1.0) == "▁█"


def test_the_story_of_a_demo_has_the_numbers_of_results_csv(demo_folder: Path) -> None:
    lines = story(load_results(demo_folder))
    head = "What dictionary-lm knew, learned and forgot (accuracy in %)"
    assert lines[0] == head
    assert max(map(len, lines)) <= WIDTH
    verdicts = {line.split("  ")[0]: line for line in lines[2:9]}
    # 367 of 599 were right, and a third and 1% more by the most frequent answer.
    line = verdicts["? taxonomy conjunction"]
    assert line.endswith("cannot tell  61.3 before training, 34.3 majority")
    assert "○ always never" in verdicts
    # The mean of 420 and 431 of 500, and of 302 and 321: 85.1 and 62.3.
    chart = lines[lines.index("age comparison after 0, 62, 125, 250, 500 examples (chance 50.0)") :]
    assert [row.split() for row in chart[1:3]] == [
        ["full", "question", "▁▂▄▆█", "48.6", "→", "85.1"],
        ["without", "language", "▁▁▂▃▄", "50.0", "→", "62.3"],
    ]
    head, gained, cost = lines[-3:]
    assert head == "Fine-tuning on 100, 1,000 examples of hypernymy"
    assert "29.1 → 55.3" in gained
    assert "60.2 → 56.4" in cost
    assert cost.endswith("  cost +3.8 (+0.8 to +6.8)")


def test_a_change_that_may_be_0_says_so(inoculated: Callable[..., RunSet]) -> None:
    """A cost of 0.4 points with 3 on either side, and one of 7.6 with as many; names give way."""
    first = story(inoculated({"original_correct": (300, 298)}))
    assert first[-1].endswith("  no measurable cost (+0.4, −2.6 to +3.4)")
    name = {"probe": "a_probe_with_a_name_that_is_as_long_as_any", "model": "m"}
    doses = [{"dose": dose, "original_correct": (300, 302), **name} for dose in range(1, 9)]
    more = story(inoculated(*doses))
    assert more[-1].endswith("no measurable cost (−0.4, −3.4 to +2.6)")
    assert max(map(len, more)) <= WIDTH


def test_replay_has_a_line_below_the_dose_alone(inoculated: Callable[..., RunSet]) -> None:
    """Gains of 100 and 50 of 1,000, costs of 20 and 5 of 500."""
    alone = {"probe_correct": (200, 300), "original_correct": (300, 280)}
    replayed = {"extra": "x1", "probe_correct": (200, 250), "original_correct": (300, 295)}
    lines = story(inoculated(*({**rows, "seed": s} for rows in (alone, replayed) for s in (1, 2))))
    assert lines[-5] == "Fine-tuning on 100 examples of hypernymy"
    assert lines[-2:] == [
        "  without replay  gain +10.0, cost +4.0",
        "  with replay x1  gain +5.0, cost +1.0",
    ]


def test_a_gain_that_took_replay_says_so(inoculated: Callable[..., RunSet]) -> None:
    alone = {"probe_correct": (200, 250), "original_correct": (300, 250)}
    replayed: dict[str, Any] = {"extra": "x1", "probe_correct": (200, 300)}
    replayed["original_correct"] = (300, 290)
    replayed["selection"] = ((0.2, 0.6), (0.35, 0.6))  # a better average than alone
    results = inoculated(*({**rows, "seed": s} for rows in (alone, replayed) for s in (1, 2)))
    lines = story(results)
    assert lines[-5] == "Fine-tuning on 100 examples of hypernymy, with replay x1"
    assert lines[-4].endswith("gain +10.0")
    (verdict,) = verdicts(results)
    assert verdict.replay == "replay x1"
    assert verdict.changes == "with replay x1: gain +10.0 points; cost +2.0 points"


def test_replay_of_some_seeds_or_doses_is_named_as_such(
    inoculated: Callable[..., RunSet],
) -> None:
    inoculated({"seed": 1}, {"seed": 2, "extra": "x1"})
    lines = story(inoculated({"seed": 1, "dose": 1000}, {"seed": 2, "dose": 1000}))
    assert "Fine-tuning on 100 (replay x1 in 1 of 2 seeds), 1,000 examples of hypernymy" in lines


def test_what_was_forgotten_is_shown_below_what_was_learned(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    inoculated({}, {"model": "other"})
    item = {"id": "1", "position": 1, "question": "q", "choices": ["a", "b"], "answer": 0}
    lines = [
        {**item, "set": "report_original_before", "scores": [1.0, 0.0], "prediction": 0},
        {**item, "set": "report_original", "scores": [0.0, 1.0], "prediction": 1},
    ]
    answers = [{**line, "tied": 1, "correct": float(not line["prediction"])} for line in lines]
    write_lines(next(tmp_path.glob("runs/*")), answers)
    assert story(load_results(tmp_path))[-3:] == [
        "dictionary-lm forgot this (original task): q",
        "  right answer: a",
        "  its answer after 100 examples: b",
    ]


def test_the_item_is_the_example_of_the_best_known_skill(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("unknown", 50, 100, 2))
    run = write_run(tmp_path, "b", zero_shot_rows("known", 90, 100, 2))
    item = {"set": "known", "id": "1", "position": 1, "question": "x" * 70 + " [MASK] y\n."}
    item |= {"choices": ["right", "wrong"], "scores": [0.0, 1.0], "answer": 0, "prediction": 1}
    write_lines(run, [{**item, "tied": 1, "correct": 0.0}])
    head, right, answer = story(load_results(tmp_path))[-3:]
    assert head.startswith("A typical item: xxx")
    assert head.endswith("x [MASK] y .")
    assert len(head) == WIDTH
    assert (right, answer) == ("  right answer: right", "  its answer before training: wrong")


def test_a_context_that_nothing_is_right_for_has_no_right_answer(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", [share(25, 34, "sensitivity")])
    context = {"context": "He", "target": "t", "predictions": ["ran", "is"], "expected": []}
    write_lines(run, [{**context, "probability": 0.5}])
    lines = story(load_results(tmp_path))
    assert lines[-2:] == ["A typical item: He ___", "  its answer before training: ran"]


def test_many_skills_and_long_names_keep_to_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        name = f"a_probe_with_a_name_that_is_much_too_long_for_any_terminal_{number:02}\x1b[2J"
        write_run(tmp_path, f"zero_shot-{number}", zero_shot_rows(name, 400, 500, 2))
    lines = story(load_results(tmp_path))
    assert len(lines) == 9
    assert lines[-1] == "  and 6 more in the report"
    assert max(map(len, lines)) <= WIDTH
    assert "\x1b" not in "".join(lines)
    assert all("cannot tell  80.0 before training" in line for line in lines[2:-1])
    print_story(load_results(tmp_path), "page: x", "in 1 seconds")
    assert capsys.readouterr().out.splitlines()[-2:] == ["page: x", "in 1 seconds"]


def test_nothing_to_judge_is_no_story(tmp_path: Path) -> None:
    write_run(tmp_path, "original", [])
    assert story(load_results(tmp_path)) == []


def test_a_terminal_without_the_signs_gets_others(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    print_story(load_results(demo_folder), "page: /tmp/é", "in 1 seconds")
    sys.stdout.flush()
    lines = output.getvalue().decode("ascii").splitlines()
    assert len(lines) <= 25
    assert any(re.fullmatch(r"  full question +_\.-\+# +48\.6 > 85\.1", line) for line in lines)
    assert "page: /tmp/?" in lines
    assert len(set(BARS.translate(ASCII))) == len(BARS)
