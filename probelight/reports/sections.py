"""The sections of a report, in the order of the page, with the functions that make each of them.

Those are named, not imported: a command loads only the modules of the tables that it prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.reports.table import Table
from probelight.results.load import WATCH, Results

if TYPE_CHECKING:
    from probelight.reports.figure import Figure  # matplotlib takes a second to import


@dataclass(frozen=True)
class Section:
    """A part of the page: a paragraph, then figures, then the tables with the numbers.

    Tables, figures and summaries are made by functions named "module:function" below
    `probelight.reports`. Each takes the `Results` and returns one, a list, or None for nothing.
    """

    name: str  # its anchor in the page
    title: str
    protocols: Sequence[str] = ()  # shown if there are runs of one of these; always if empty
    tables: Sequence[str] = ()
    figures: Sequence[str] = ()
    summary: Sequence[str] = ()  # sentences of its one paragraph
    printed: Mapping[str, Sequence[str]] = field(default_factory=dict)  # tables by command


@dataclass(frozen=True)
class Made:
    """A section with its contents."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    summary: str


def of(module: str, functions: str) -> tuple[str, ...]:
    """Return the names "module:function" of functions, separated by blanks, of a module."""
    return tuple(f"{module}:{function}" for function in functions.split())


# These two also take the file of the rule.
MEDALS, NOT_JUDGED = of("curve.medals", "medals_table not_judged")
ZERO_SHOT = (
    *of("zero_shot.scores", "zero_shot_table parts_table paradigms_table ranks_table"),
    *of("zero_shot.rules", "rules_table letters_table flips_table"),
    *of("zero_shot.phrasings", "phrasings_table"),
)
CURVES = of("curve.tables", "summary_tables")
EFFORT = of("curve.information", "code_table information_table")
ORIGINAL = of("inoculation.tables", "original_table")
DOSES = (
    *of("inoculation.tables", "seeds_table replay_table"),
    *of("inoculation.keeping", "keeping_table"),
    *of("inoculation.tables", "inoculation_table inoculation_parts_table"),
)
FORGOTTEN = (*of("forgetting", "changes_table"), *of("inoculation.classes", "classes_table"))
STEPS = of("steps", "steps_tables")
NEARER, UNIGRAMS, FITS = of("analyses", "taxonomy_distance_table unigrams_table fits_table")
AUDIT = of("audit", "audit_table rules_table words_table")
PAPERS = of("papers", "paper_tables")
COMPARED = of("compare", "systems_table differences_table")
PROVENANCE = "models_table data_table software_table runs_table"
DIAGNOSED = of("diagnostics", "accuracy_table survival_table sensitivity_table first_words_table")

SECTIONS = (
    Section(
        "overview",
        "At a glance",
        tables=of("overview.grid", "verdicts_table"),
        figures=of("overview.arrows", "arrows_figure"),
    ),
    Section(
        "training",
        "What the training taught and made the model forget",
        (WATCH,),
        of("steps", "changes_table"),
    ),
    Section(
        "before",
        "Accuracy on each probe",
        ("zero_shot",),
        (
            *ZERO_SHOT,
            *of("zero_shot.scores", "predicted_shares_table"),
            *of("zero_shot.rules", "flipped_items_table"),
            *of("zero_shot.calibration", "calibration_table"),
        ),
        of("zero_shot.figure", "zero_shot_figure calibration_figure"),
        of("zero_shot.scores", "summary") + of("zero_shot.rules", "other_verdicts unread"),
        {"zero_shot": ZERO_SHOT},
    ),
    Section(
        "grids",
        "Every pair of values",
        ("grid",),
        of("grids", "grid_table sizes_table"),
        of("grid_figures", "age_grid_figure size_grid_figure"),
        of("grids", "summary"),
        {"grid": of("grids", "grid_table")},
    ),
    Section(
        "curves",
        "Learning curves",
        ("curve",),
        (*CURVES, MEDALS, *EFFORT, *of("curve.tables", "against_table parts_table curve_table")),
        of("curve.figures", "models_figure control_figures"),
        (*of("curve.scores", "summary"), NOT_JUDGED, *of("curve.information", "summary")),
        {"curve": (*CURVES, MEDALS, *EFFORT)},
    ),
    Section(
        "information",
        "How much the input tells the model",
        ("information",),
        of("curve.information", "imported_table"),
        printed={"information": of("curve.information", "imported_table")},
    ),
    Section(
        "analyses",
        "What the answers depend on",
        ("taxonomy_distance", "unigrams"),
        (NEARER, UNIGRAMS),
        printed={"taxonomy_distance": (NEARER,), "unigrams": (UNIGRAMS,)},
    ),
    Section(
        "diagnostics",
        "Psycholinguistic diagnostics",
        ("diagnose",),
        (*DIAGNOSED, *of("diagnostics", "words_tables")),
        of("diagnostics", "accuracy_figure sensitivity_figure"),
        of("diagnostics", "summary"),
        {"diagnose": DIAGNOSED},
    ),
    Section(
        "steps",
        "Results by training step",
        ("zero_shot", "diagnose", WATCH),
        STEPS,
        of("steps", "steps_figures"),
        printed={"zero_shot": STEPS, "diagnose": STEPS},
    ),
    Section(
        "inoculation",
        "Inoculation",
        ("original", "before", "inoculation"),
        (
            *(*ORIGINAL, *DOSES),
            *of("inoculation.keeping", "keeping_settings_table"),
            *of("inoculation.pareto", "pareto_table"),
            *of("inoculation.dynamics", "dynamics_table"),
        ),
        (
            *of("inoculation.keeping_figure", "keeping_figure"),
            *of("inoculation.figures", "inoculation_figure trajectory_figure"),
            *of("inoculation.pareto", "pareto_figure"),
            *of("inoculation.dynamics", "data_map_figure"),
        ),
        (*of("inoculation.tables", "summary"), *of("inoculation.keeping", "summary")),
        {"original": ORIGINAL, "inoculation": (*ORIGINAL, *DOSES)},
    ),
    Section(
        "forgetting",
        "Items lost and gained",
        ("inoculation", "forgetting"),
        (*FORGOTTEN, *of("forgetting", "concepts_table")),
        summary=of("forgetting", "summary"),
        printed={"inoculation": FORGOTTEN, "forgetting": FORGOTTEN},
    ),
    Section(
        "concepts",
        "What a model knows, concept by concept",
        ("zero_shot", "curve", "inoculation"),
        (*of("concepts", "clusters_table concepts_table"), *of("difficulty", "difficulty_table")),
        of("difficulty", "difficulty_figure"),
        of("concepts", "summary"),
    ),
    Section(
        "audit",
        "Is the probe any good?",
        ("audit",),
        AUDIT,
        summary=of("audit", "summary"),
        printed={"audit": AUDIT},
    ),
    Section(
        "papers",
        "Comparison with the papers",
        tables=(*of("papers", "listed_table"), *PAPERS),
        summary=of("papers", "summary"),
        printed={"curve": PAPERS, "diagnose": PAPERS},
    ),
    Section("fits", "Validation of fits", ("fit",), (FITS,), printed={"fit": (FITS,)}),
    Section(
        "compared",
        "Systems compared on the same items",
        ("compare",),
        COMPARED,
        of("compare", "differences_figure"),
        of("compare", "summary"),
        {"compare": COMPARED},
    ),
    Section("provenance", "Where the numbers come from", tables=of("page.provenance", PROVENANCE)),
)


def made_sections(results: Results, medals: Path | None = None) -> list[Made]:
    """Return the sections that have something to show, in the order of the page.

    `medals` is a YAML file with the rule of when a model earns a medal; None takes the shipped one.

    Raises:
        ValueError: If two tables or two figures have the same name, and so the same file.
        ConfigError: If the rule cannot be read.
    """
    found = []
    for section in shown_sections(results):
        figures = make(section.figures, results)
        tables = make(section.tables, results, medals)
        summary = " ".join(make(section.summary, results, medals))
        if figures or tables or summary:
            found.append(Made(section.name, section.title, figures, tables, summary))
    for kind in ("tables", "figures"):
        names = Counter(shown.name for section in found for shown in getattr(section, kind))
        if twice := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"{kind} of one name: {', '.join(twice)}")
    return found


def printed(protocol: str, results: Results) -> tuple[Table, ...]:
    """Return the tables that a protocol's command prints when it has finished."""
    names = [name for section in SECTIONS for name in section.printed.get(protocol, ())]
    return make(names, results)


def shown_sections(results: Results) -> list[Section]:
    """Return the sections that show runs of the results' protocols."""
    protocols = {run.protocol for run in results.runs}
    return [s for s in SECTIONS if not s.protocols or protocols & {*s.protocols}]


def make(names: Iterable[str], results: Results, medals: Path | None = None) -> tuple[Any, ...]:
    """Call the functions of these names and return all they made, without None and ""."""
    found: list[Any] = []
    for name in names:
        maker = resolve_name(f"probelight.reports.{name}")
        with_rule = name in (MEDALS, NOT_JUDGED)
        made = maker(results, medals) if with_rule else maker(results)
        found += made if isinstance(made, list | tuple) else [made]
    return tuple(made for made in found if made is not None and made != "")
