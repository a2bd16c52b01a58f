from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.patches import FancyArrowPatch

from probelight.reports.build import inline_svg
from probelight.reports.inoculation.runs import Dose, doses, inoculations
from probelight.reports.overview import arrows
from probelight.reports.overview.glance import arrows_figure
from probelight.results.load import Results, load_results
from tests.fixtures.report import present, texts_of
from tests.fixtures.results import inoculation_rows, write_run

Inoculated = Callable[..., Results]


def whiskers_of(dose: Dose) -> list[tuple[int, float, float, bool]]:
    ends = present(arrows.ends_of(dose))
    return arrows.whiskers_of(dose, ends[0])


def test_an_arrow_a_dose_that_leads_to_its_section(inoculated: Inoculated) -> None:
    found = inoculated({"dose": 100}, {"dose": 2000, "probe_correct": (200, 500)})
    figure = arrows_figure(found)
    assert {"k = 100", "k = 2k", "chance 20.0"} <= set(texts_of(figure))
    assert figure is not None
    page = inline_svg(figure)
    assert set(re.findall(r'<a href="([^"]*)"', page)) == {"#inoculation"}
    assert '<use href="#arrows-' in re.sub(r"<use[^>]*? href", "<use href", page)
    assert page.startswith('<svg role="group"')  # an image may hold nothing that can be followed


def test_models_and_probes_are_told_apart_by_a_legend(inoculated: Inoculated) -> None:
    found = inoculated({"probe": "hypernymy"}, {"probe": "hyponymy"})
    assert {"hypernymy", "hyponymy"} <= set(texts_of(arrows_figure(found)))
    more = inoculated({"probe": "hypernymy", "model": "other_one"})
    assert {"dictionary-lm", "other_one"} <= set(texts_of(arrows_figure(more)))


def test_many_arrows_have_no_labels_and_the_rest_is_said(
    inoculated: Inoculated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrows, "MOST", 2)
    monkeypatch.setattr(arrows, "MOST_LABELLED", 1)
    found = present(arrows_figure(inoculated(*({"dose": dose} for dose in (1, 2, 3)))))
    assert not [text for text in texts_of(found) if text.startswith("k =")]
    assert found.caption.endswith("The first 2 of 3 are drawn.")


def test_an_inoculation_that_moved_nothing_has_its_mark_alone(inoculated: Inoculated) -> None:
    still = {"probe_correct": (200, 200), "original_correct": (300, 300)}
    assert "k = 100" in texts_of(arrows_figure(inoculated(still)))


def test_gain_and_cost_each_show_whether_they_can_be_told_from_none(tmp_path: Path) -> None:
    """Of 100 items each: 30 more are right, then 4 more and 4 fewer; of 100 others 2 or 40 fewer.

    The gain of 30 has an interval of about 21 to 39 points, that of none one of about 5 on either
    side; the rows have the cost with 3 points on either side.
    """

    def side(before: str, after: str) -> dict[str, object]:
        groups = list(range(100))
        return {"items": "a", "groups": groups, "before": before, "after": after}

    low, high = "1" * 20 + "0" * 80, "1" * 50 + "0" * 50
    same = "1" * 16 + "0" * 4 + "1" * 4 + "0" * 76
    for dose, after, lost in ((10, high, 40), (20, high, 2), (30, same, 40), (40, same, 2)):
        right = (20, after.count("1"))
        found = inoculation_rows(
            dose=dose, num_probe=100, probe_correct=right, original_correct=(300, 300 - 5 * lost)
        )
        run = write_run(tmp_path, f"k{dose}", found, hits_file="hits.json", original_task="o")
        hits = {"probe": side(low, after), "original": side(low, low)}
        (run / "hits.json").write_text(json.dumps(hits))
    line = next(iter(doses(inoculations(load_results(tmp_path))).values()))
    made = {dose.dose: whiskers_of(dose) for dose in line}
    told = {k: [is_told for *_, is_told in found] for k, found in made.items()}
    assert told == {10: [True, True], 20: [False, True], 30: [True, False], 40: [False, False]}
    # A cost of 2 points, -1 to 5, is at 60 - 5 to 60 + 1.
    (at, *ends, _), _ = made[20]
    assert (at, *ends) == pytest.approx((0, 55.0, 61.0))
    _, (at, low_end, high_end, _) = made[10]
    assert at == 1
    assert 20 + 20 < low_end < 20 + 23
    assert 20 + 37 < high_end < 20 + 41
    figure = present(arrows_figure(load_results(tmp_path)))
    assert figure.canvas is not None
    axis = figure.canvas.axes[0]
    drawn = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    assert [patch.get_linestyle() == "-" for patch in drawn] == [True, False, False, False]
    assert [patch.get_fill() for patch in drawn] == [True, False, False, False]
    whiskers = [one for one in axis.lines if one.get_marker() in ("|", "_")]
    solid = [one.get_linestyle() == "-" for one in whiskers]
    assert solid == [True, True, False, True, True, False, False, False]
    assert {"interval excludes 0", "interval includes 0"} <= set(texts_of(figure))


def test_a_cost_that_cannot_be_read_has_no_whisker(inoculated: Inoculated) -> None:
    found = inoculated({}, cost_interpretable=False)
    [[dose]] = doses(inoculations(found)).values()
    assert whiskers_of(dose) == []  # nor of the gain: the runs did not record their items


def test_without_inoculations_there_is_no_plot(demo_folder: Path, tmp_path: Path) -> None:
    for run in (demo_folder / "runs").glob("inoculation*"):
        run.rename(tmp_path / run.name)
    assert arrows_figure(load_results(demo_folder)) is None


def test_chance_is_that_of_the_real_choices_with_the_other_beside_it(tmp_path: Path) -> None:
    """Five are scored, of which four are real."""
    found = inoculation_rows()
    report = {**found[-1], "num_items": None}
    floors = [
        {**report, "metric": f"floor_{task}", "value": 0.25} for task in ("probe", "original")
    ]
    write_run(tmp_path, "padded", found + floors, original_task="o")
    assert "chance 25.0 (20.0 with empty choices)" in texts_of(
        arrows_figure(load_results(tmp_path))
    )
