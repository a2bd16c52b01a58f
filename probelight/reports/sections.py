"""The sections of a report: what makes each of them, and of which protocols' runs.

The whole page from top to bottom is in `SECTIONS`. Makers are named, not imported: what there are
no runs of is never loaded, and a command that ends with a table loads the module of that table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.reports.table import Table
from probelight.results.load import Results

if TYPE_CHECKING:
    from probelight.reports.figure import Figure  # matplotlib takes a second to import


@dataclass(frozen=True)
class Section:
    """A part of the page: figures first, then a paragraph, then the tables with the numbers.

    Makers are called with the results and named "module:function" below `probelight.reports`. They
    return one thing, several, or None where there is nothing to show.

    Attributes:
        name: Its address in the page.
        title: Its heading.
        protocols: It shows runs of these; of all where there are none.
        tables: Makers of its tables, in the order of the page.
        figures: Makers of its figures.
        summary: Makers of the sentences of its one paragraph, which its tables do not say.
        printed: By protocol the makers of the tables that its command prints when it has finished.
    """

    name: str
    title: str
    protocols: Sequence[str] = ()
    tables: Sequence[str] = ()
    figures: Sequence[str] = ()
    summary: Sequence[str] = ()
    printed: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """A section with its contents, drawn and counted."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    summary: str

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.figures or self.tables or self.summary)


MEDALS = "curve.medals:medals_table"  # these two are also given a file, with their rule
NOT_JUDGED = "curve.medals:not_judged"
ZERO_SHOT = (
    "zero_shot.scores:zero_shot_table",
    "zero_shot.scores:parts_table",
    "zero_shot.scores:paradigms_table",
    "zero_shot.scores:ranks_table",
    "zero_shot.rules:rules_table",
    "zero_shot.rules:flips_table",
)
AUDIT = ("audit:audit_table", "audit:rules_table", "audit:words_table")
SECTIONS = (
    Section(
        "overview",
        "At a glance",
        tables=("overview.grid:verdicts_table",),
        figures=("overview.arrows:arrows_figure",),
    ),
    Section(
        "before",
        "Before any training",
        ("zero_shot",),
        tables=(
            *ZERO_SHOT,
            "zero_shot.scores:predicted_shares_table",
            "zero_shot.rules:flipped_items_table",
        ),
        figures=("zero_shot.figure:zero_shot_figure",),
        summary=("zero_shot.scores:summary", "zero_shot.rules:unread"),
        printed={"zero_shot": ZERO_SHOT},
    ),
    Section(
        "grids",
        "Predictions over all pairs of values",
        ("grid",),
        tables=("grids:grid_table", "grids:sizes_table"),
        figures=(
            "grid_figures:age_grid_figure",
            "grid_figures:size_grid_figure",
        ),
        summary=("grids:summary",),
        printed={"grid": ("grids:grid_table",)},
    ),
    Section(
        "curves",
        "Learning curves",
        ("curve",),
        tables=(
            "curve.tables:summary_tables",
            MEDALS,
            "curve.tables:against_table",
            "curve.tables:parts_table",
            "curve.tables:curve_table",
        ),
        figures=(
            "curve.figures:models_figure",
            "curve.figures:control_figures",
        ),
        summary=("curve.scores:summary", NOT_JUDGED),
        printed={"curve": ("curve.tables:summary_tables", MEDALS)},
    ),
    Section(
        "analyses",
        "What the answers follow",
        ("taxonomy_distance", "unigrams"),
        tables=("analyses:taxonomy_distance_table", "analyses:unigrams_table"),
        printed={
            "taxonomy_distance": ("analyses:taxonomy_distance_table",),
            "unigrams": ("analyses:unigrams_table",),
        },
    ),
    Section(
        "diagnostics",
        "Psycholinguistic diagnostics",
        ("diagnose",),
        tables=(
            "diagnostics:own_accuracy_table",
            "diagnostics:survival_table",
            "diagnostics:own_sensitivity_table",
            "diagnostics:first_words_table",
            "diagnostics:words_tables",
        ),
        figures=(
            "diagnostics_figures:accuracy_figure",
            "diagnostics_figures:sensitivity_figure",
        ),
        summary=("diagnostics:summary",),
        printed={
            "diagnose": (
                "diagnostics:accuracy_table",
                "diagnostics:survival_table",
                "diagnostics:sensitivity_table",
                "diagnostics:first_words_table",
            )
        },
    ),
    Section(
        "steps",
        "By training step",
        ("zero_shot", "diagnose"),
        tables=("steps:steps_tables",),
        figures=("steps:steps_figures",),
        printed={
            "zero_shot": ("steps:steps_tables",),
            "diagnose": ("steps:steps_tables",),
        },
    ),
    Section(
        "inoculation",
        "Inoculation",
        ("original", "before", "inoculation"),
        tables=(
            "inoculation.tables:original_table",
            "inoculation.tables:seeds_table",
            "inoculation.tables:inoculation_table",
            "inoculation.pareto:pareto_table",
            "inoculation.tables:inoculation_parts_table",
        ),
        figures=(
            "inoculation.figures:inoculation_figure",
            "inoculation.pareto:pareto_figure",
            "inoculation.figures:trajectory_figure",
        ),
        summary=("inoculation.tables:summary",),
        printed={
            "original": ("inoculation.tables:original_table",),
            "inoculation": (
                "inoculation.tables:original_table",
                "inoculation.tables:seeds_table",
                "inoculation.tables:inoculation_table",
                "inoculation.tables:inoculation_parts_table",
            ),
        },
    ),
    Section(
        "concepts",
        "What a model knows, concept by concept",
        ("zero_shot", "curve", "inoculation"),
        tables=(
            "concepts:clusters_table",
            "concepts:concepts_table",
            "difficulty:difficulty_table",
        ),
        figures=("difficulty:difficulty_figure",),
        summary=("concepts:summary",),
    ),
    Section(
        "audit",
        "Is the probe any good?",
        ("audit",),
        tables=AUDIT,
        summary=("audit:summary",),
        printed={"audit": AUDIT},
    ),
    Section(
        "papers",
        "With the papers' numbers",
        tables=(
            "papers:listed_table",
            "papers:paper_tables",
        ),
        summary=("papers:summary",),
        printed={"curve": ("papers:paper_tables",)},
    ),
    Section(
        "fits",
        "Fits",
        ("fit",),
        tables=("analyses:fits_table",),
        printed={"fit": ("analyses:fits_table",)},
    ),
    Section(
        "compared",
        "Systems on the same items",
        ("compare",),
        tables=("compare:differences_table", "compare:systems_table"),
        figures=("compare:differences_figure",),
        summary=("compare:summary",),
        printed={"compare": ("compare:systems_table", "compare:differences_table")},
    ),
    Section(
        "provenance",
        "Where the numbers come from",
        tables=(
            "page.provenance:models_table",
            "page.provenance:data_table",
            "page.provenance:software_table",
            "page.provenance:runs_table",
        ),
    ),
)


def made_sections(results: Results, medals: Path | None = None) -> list[Made]:
    """Return the sections that have something to show, in the order of the page.

    Args:
        results: What was read.
        medals: YAML file with the rule of when a model earns a medal; the shipped one for None.

    Raises:
        ValueError: If two tables or two figures have one name: their files would be one.
        ConfigError: If the rule cannot be read.
    """
    found = []
    for section in _shown(results):
        figures = _make(section.figures, results)
        tables = _make(section.tables, results, medals)
        summary = " ".join(_make(section.summary, results, medals))
        made = Made(section.name, section.title, figures, tables, summary)
        found += [] if made.is_empty else [made]
    for kind in ("tables", "figures"):
        names = Counter(one.name for section in found for one in getattr(section, kind))
        if twice := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"{kind} of one name: {', '.join(twice)}")
    return found


def made_tables(results: Results) -> tuple[Table, ...]:
    """Return all tables of the results, in the order of the page, without drawing a figure."""
    return _make([name for section in _shown(results) for name in section.tables], results)


def made_summaries(results: Results) -> tuple[str, ...]:
    """Return the sentences of all sections' paragraphs."""
    return _make([name for one in _shown(results) for name in one.summary], results)


def printed(protocol: str, results: Results) -> tuple[Table, ...]:
    """Return the tables that a protocol's command prints when it has finished."""
    return _make([name for one in SECTIONS for name in one.printed.get(protocol, ())], results)


def _shown(results: Results) -> list[Section]:
    protocols = {run.protocol for run in results.runs}
    return [one for one in SECTIONS if not one.protocols or protocols & {*one.protocols}]


def _make(names: Iterable[str], results: Results, medals: Path | None = None) -> tuple[Any, ...]:
    """Return what the makers of these names made, without what is None or empty."""
    found: list[Any] = []
    for name in names:
        make = resolve_name(f"probelight.reports.{name}")
        with_rule = name in (MEDALS, NOT_JUDGED)
        made = make(results, medals) if with_rule else make(results)
        found += made if isinstance(made, list | tuple) else [made]
    return tuple(one for one in found if one is not None and one != "")
