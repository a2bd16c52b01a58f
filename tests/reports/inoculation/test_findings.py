from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.results.load import Results
from tests.fixtures.report import findings

LOW = {"original_correct": (100, 98), "probe_correct": (200, 210)}


def test_inoculation_is_told_with_its_cost(demo_folder: Path) -> None:
    (said,) = findings(demo_folder)[2:]
    assert said.startswith(
        "With k = 1,000 examples of hypernymy, embedded went from 29.1% (26.4–32.0, n = 1,000) to "
        "55.3%"
    )
    assert "definitions went from 60.2%" in said
    assert "The inoculation cost was 3.8 points (95% interval 0.8 to 6.8)." in said
    # (301 - 297) / 500, and 3 points each way.
    assert said.endswith(
        "With k = 100 it came to 41.2%, at a cost of 0.8 points (95% interval −2.2 to 3.8), not "
        "distinguishable from none."
    )
    assert "added" not in said
    assert "selection items" not in said


def test_split_and_choice_on_reported_items_are_told(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    facts = {"selection": "paper", "report_split": "dev", "cost_interpretable": True}
    inoculated(**facts)
    (said,) = findings(tmp_path)
    assert "on its dev items" in said
    assert "95% interval −1.0 to 5.0), not distinguishable from none." in said
    assert said.endswith("The checkpoint was chosen on the reported items, as the paper did.")


def test_cost_at_chance_is_not_read(tmp_path: Path, inoculated: Callable[..., Results]) -> None:
    inoculated(LOW, cost_interpretable=False)
    (said,) = findings(tmp_path)
    assert "21.0% (18.6–23.6, n = 1,000) on it, not distinguishable from chance (20.0%);" in said
    assert said.endswith(
        "Before inoculation the original task was not above chance (20.0%), so the cost is not "
        "interpretable."
    )


def test_gain_of_the_original_task_is_told_with_what_was_added(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    for dose, seeds, after in ((1000, (1, 2, 3), 340), (100, (1, 2), 310)):
        for seed in seeds:
            extra = "none" if seed == 1 else "x1"
            own = {"dose": dose, "seed": seed, "extra": extra, "probe_correct": (200, 210)}
            inoculated({**own, "original_correct": (300, after)}, cost_interpretable=True)
    (said,) = findings(tmp_path)
    assert "embedded (mean of 3 seeds) went from 20.0%" in said
    assert (
        "the original task went from 60.0% (n = 500) to 68.0% (n = 500), with original-task "
        "examples added (extra x1 in 2 of 3 seeds)." in said
    )
    # The runs hold the items of no seed, so nothing is known about the means.
    assert "The inoculation cost was −8.0 points. Its runs did not record what each item" in said
    assert said.endswith(
        "so the means have no interval. With k = 100 (mean of 2 seeds) it came to 21.0%, while the "
        "original task gained 2.0 points, with original-task examples added (extra x1 in 1 of 2 "
        "seeds)."
    )


def test_gain_beyond_doubt_is_told_with_what_was_added(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    for dose, after in ((1000, 340), (100, 310)):
        own = {"dose": dose, "extra": "x1", "probe_correct": (200, 210)}
        inoculated({**own, "original_correct": (300, after)}, cost_interpretable=True)
    (said,) = findings(tmp_path)
    assert "the original task went from 60.0% (55.6–64.2, n = 500) to 68.0% (63.8–71.9, n" in said
    # 40 / 500 gained; at the small dose 10 / 500, which is less than the 3 points of doubt.
    assert (
        "was −8.0 points (95% interval −11.0 to −5.0): the original task gained, with "
        "original-task examples added (extra x1). With k = 100 it came to 21.0%, while the "
        "original task gained 2.0 points (95% interval −1.0 to 5.0), not distinguishable from "
        "none, with original-task examples added (extra x1)."
    ) in said


def test_namesakes_are_told_apart(tmp_path: Path, inoculated: Callable[..., Results]) -> None:
    for setup in ("a1", "b2"):
        inoculated(setup=setup)
    starts = [text.partition(" went")[0] for text in findings(tmp_path)]
    assert starts == [
        f"With k = 100 examples of hypernymy, embedded (setup {setup})" for setup in ("a1", "b2")
    ]


def test_what_was_added_is_told_of_a_cost_too(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    inoculated({"extra": "x2"}, cost_interpretable=True)
    (said,) = findings(tmp_path)
    assert (
        "to 58.0% (53.6–62.2, n = 500), with original-task examples added (extra x2). The" in said
    )


def test_checkpoint_worse_than_the_model_before_is_told(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    # The averages before are 0.40; after 0.39, 0.40 and 0.45.
    after = {1: (0.30, 0.48), 2: (0.30, 0.50), 3: (0.40, 0.50)}
    inoculated({"seed": 1, "selection": [(0.2, 0.6), after[1]]})
    (said,) = findings(tmp_path)
    assert said.endswith("was below that of the model before inoculation.")
    inoculated(*({"seed": seed, "selection": [(0.2, 0.6), after[seed]]} for seed in (2, 3)))
    (said,) = findings(tmp_path)
    assert said.endswith(
        "On the selection items the chosen checkpoint's average of both tasks was below that of "
        "the model before inoculation in 1 of 3 seeds."
    )


def test_a_probe_learned_to_below_chance_says_so(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    inoculated({"probe_correct": (291, 150)})
    (said,) = findings(tmp_path)
    assert "n = 1,000) on it, which is below chance (20.0%);" in said
