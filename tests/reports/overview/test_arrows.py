from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.overview import arrows
from reports.overview.arrows import arrows_figure
from reports.page.html import inline_svg
from results.load import Results, load_results
from tests.fixtures.report import texts_of

Inoculated = Callable[..., Results]


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
    assert {"embedded", "other_one"} <= set(texts_of(arrows_figure(more)))


def test_many_arrows_have_no_labels_and_the_rest_is_said(
    inoculated: Inoculated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrows, "MOST", 2)
    monkeypatch.setattr(arrows, "MOST_LABELLED", 1)
    found = arrows_figure(inoculated(*({"dose": dose} for dose in (1, 2, 3))))
    assert found is not None
    assert not [text for text in texts_of(found) if text.startswith("k =")]
    assert found.caption.endswith("The first 2 of 3 are drawn.")


def test_an_inoculation_that_moved_nothing_has_its_mark_alone(inoculated: Inoculated) -> None:
    still = {"probe_correct": (200, 200), "original_correct": (300, 300)}
    assert "k = 100" in texts_of(arrows_figure(inoculated(still)))


def test_without_inoculations_there_is_no_plot(demo_folder: Path, tmp_path: Path) -> None:
    for run in (demo_folder / "runs").glob("inoculation*"):
        run.rename(tmp_path / run.name)
    assert arrows_figure(load_results(demo_folder)) is None
