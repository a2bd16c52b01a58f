"""`train.py report FOLDER`: from result files to figures, tables, Markdown and one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probelight.io.atomic import remove_leftovers, write_bytes_atomic, write_text_atomic
from probelight.reports.latex import to_latex
from probelight.reports.sections import made_sections
from probelight.reports.table import to_csv, to_markdown
from probelight.results.load import load_results

MOST_NAMED = 12  # damaged files on the terminal


def build_report(
    folder: Path | Sequence[Path], output_dir: Path | None = None, medals: Path | None = None
) -> Path:
    """Make a report of all result files below one folder or several; return the page's path.

    Writes `report.html`, `report.md`, tables as `tables/*.csv`, `.md` and `.tex`, figures as
    `figures/*.png`, `.svg` and `.pdf`, and `items/*.js` where the page cannot hold all items. Each
    is written atomically, the page last; the same results give the same bytes. Prints which files
    could not be read and are left out.

    Args:
        folder: Output folder of a command, or one that holds several; any number of them.
        output_dir: Where the report goes; None means the (first) folder itself.
        medals: YAML file with another rule of when a model has earned a medal on a probe.


    Raises:
        FileNotFoundError: If a folder holds no result that can be read.
        ConfigError: If the rule cannot be read.
    """
    results = load_results(folder)
    # The page's colours are those of the figures, and matplotlib takes a second to import.
    from probelight.reports.page.html import to_html
    from probelight.reports.page.items import items_of
    from probelight.reports.page.markdown import to_markdown_report

    for sentence in results.damaged[:MOST_NAMED]:
        print(f"left out: {sentence}")
    if len(results.damaged) > MOST_NAMED:
        print(f"left out: {len(results.damaged) - MOST_NAMED:,} more files, which the page names")
    made = made_sections(results, medals)
    target = output_dir or (folder if isinstance(folder, Path) else folder[0])
    remove_leftovers(target)
    for figure in (figure for section in made for figure in section.figures):
        write_text_atomic(target / "figures" / f"{figure.name}.svg", figure.svg)
        write_bytes_atomic(target / "figures" / f"{figure.name}.png", figure.png)
        write_bytes_atomic(target / "figures" / f"{figure.name}.pdf", figure.pdf())
    for table in (table for section in made for table in section.tables):
        write_text_atomic(target / "tables" / f"{table.name}.csv", to_csv(table))
        write_text_atomic(target / "tables" / f"{table.name}.md", to_markdown(table) + "\n")
        write_text_atomic(target / "tables" / f"{table.name}.tex", to_latex(table))
    write_text_atomic(target / "report.md", to_markdown_report(results, made))
    items = items_of(results)
    for name, text in items.files.items() if items else ():
        write_text_atomic(target / name, text)
    page_path = target / "report.html"
    write_text_atomic(page_path, to_html(results, made, items, target))
    return page_path
