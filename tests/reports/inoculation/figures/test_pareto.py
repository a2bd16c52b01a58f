from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from probelight.reports.figure import BLUE, ORANGE, Figure
from probelight.reports.inoculation.figures.pareto import pareto_figure
from probelight.results.load import Results
from tests.fixtures.inoculations import FAST, SLOW


def test_a_seed_looks_the_same_in_every_panel(
    inoculated: Callable[..., Results],
) -> None:
    figure = pareto_figure(
        inoculated(
            *(
                {"dose": dose, "seed": seed, "learning_rate": rate, "selection": selection}
                for dose, seed in ((100, 1), (100, 2), (1000, 2))
                for rate, selection in ((1e-5, SLOW), (5e-5, FAST))
            )
        )
    )
    assert figure is not None
    groups = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}g")
    by_id = {group.get("id"): ElementTree.tostring(group, "unicode") for group in groups}
    for colour, panels in ((BLUE, ["axes_1"]), (ORANGE, ["axes_1", "axes_2"])):
        assert [name for name in ("axes_1", "axes_2") if colour in by_id[name]] == panels
    assert {"seed 1", "seed 2"} <= _texts(figure)


def test_figure_names_its_tasks_marks_and_choice(sweep: Results) -> None:
    figure = pareto_figure(sweep)
    assert figure is not None
    said = _texts(figure)
    assert {"hypernymy, k = 100", "definitions, accuracy %", "hypernymy, accuracy %"} <= said
    assert "embedded · test" in said
    assert {"extra none", "extra x1", "M*"} <= said
    assert "seed 1" not in said  # with one seed there is nothing to tell apart
    assert pareto_figure(sweep) == figure


def _texts(figure: Figure) -> set[str]:
    nodes = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(node.itertext()) for node in nodes}
