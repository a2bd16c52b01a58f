"""`train.py report FOLDER`: from result files to figures, tables, Markdown and one HTML page."""

from __future__ import annotations

from pathlib import Path

from reports.curve.medals import read_rule
from reports.kit.layout import to_csv
from results.load import load_results
from storage.files import write_bytes_atomic, write_text_atomic
from storage.leftovers import remove_leftovers


def build_report(folder: Path, output_dir: Path | None = None, medals: Path | None = None) -> Path:
    """Makes a report from every result file below a folder.

    Writes `report.html`, `report.md`, `tables/*.csv`, `figures/*.png` and `figures/*.svg`, each
    atomically; the same results give the same bytes. The page comes last: when it is there, the
    rest is too.

    Args:
        folder: Output folder of a command, or one that holds several.
        output_dir: Where the report goes; the folder itself where it is None.
        medals: YAML file with another rule of when a model has earned a medal on a probe.

    Returns:
        The path of the HTML page.

    Raises:
        FileNotFoundError: If the folder holds no result that can be read.
        MedalRuleError: If the rule cannot be read.
    """
    rule = read_rule() if medals is None else read_rule(medals)
    results = load_results(folder)
    # Drawing needs matplotlib, a second to import: not before there is something to draw.
    from reports.curve.figures import curve_figures
    from reports.grids.figures import age_grid_figure, size_grid_figure
    from reports.inoculation.difficulty_figures import difficulty_figure
    from reports.inoculation.figures import inoculation_figure
    from reports.inoculation.pareto import pareto_figure
    from reports.inoculation.selection import trajectory_figure
    from reports.kit.figures import zero_shot_figure
    from reports.page.html import to_html, to_markdown_report
    from reports.page.provenance import provenance_tables
    from reports.tables import tables

    before = (zero_shot_figure, age_grid_figure, size_grid_figure)
    after = (inoculation_figure, difficulty_figure, pareto_figure, trajectory_figure)
    drawn = [
        *(make(results) for make in before),
        *curve_figures(results),
        *(make(results) for make in after),
    ]
    figures = [figure for figure in drawn if figure is not None]
    made = [*tables(results, rule), *provenance_tables(results)]
    target = folder if output_dir is None else output_dir
    remove_leftovers(target)
    for figure in figures:
        write_text_atomic(target / "figures" / f"{figure.name}.svg", figure.svg)
        write_bytes_atomic(target / "figures" / f"{figure.name}.png", figure.png)
    for table in made:
        write_text_atomic(target / "tables" / f"{table.name}.csv", to_csv(table))
    write_text_atomic(target / "report.md", to_markdown_report(results, figures, made))
    page_path = target / "report.html"
    write_text_atomic(page_path, to_html(results, figures, made))
    return page_path
