"""The sections of a report, in the order of the page, and what makes the contents of each.

Makers are functions of a `RunSet` that return a table, a figure or a text, a list of these, or None
for nothing. They are named "MODULE: FUNCTION FUNCTION" below this package and imported when they
are called: a command loads only those of the tables it prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from probelight.reports.figure import Figure
from probelight.reports.table import Table
from probelight.results.load import WATCH, RunSet

FORGETTING = "forgetting"  # the section, and the protocol that it comes first with
ON_PAGE = "*"  # after the maker of a table that no command prints


@dataclass(frozen=True)
class Section:
    """A part of the page: a paragraph, then figures, then the tables with the numbers.

    Attributes:
        name: Its anchor in the page.
        title: Its heading.
        protocols: It is shown if there are runs of one of these, or always if there are none.
        tables: Makers of its tables, which commands print too but for those with a `*`.
        figures: Makers of its figures.
        summary: Makers of the sentences of its one paragraph.
        printed_by: The protocols whose commands print its tables; None for its own.
        alone: Of a protocol whose command prints one of its tables: the function that makes that.
    """

    name: str
    title: str
    protocols: Sequence[str] = ()
    tables: Sequence[str] = ()
    figures: Sequence[str] = ()
    summary: Sequence[str] = ()
    printed_by: Sequence[str] | None = None
    alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FilledSection:
    """A section with its contents."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    summary: str


SECTIONS = (
    Section(
        "overview",
        "At a glance",
        tables=["overview.glance: verdicts_table*"],
        figures=["overview.glance: changes_figure"],
    ),
    Section(
        "training",
        "What the training taught and made the model forget",
        [WATCH],
        ["steps: changes_table*"],
    ),
    Section(
        "before",
        "Accuracy on each probe",
        ["zero_shot"],
        [
            "zero_shot.scores: zero_shot_table parts_table paradigms_table ranks_table",
            "zero_shot.consistency: rules_table letters_table flips_table phrasings_table",
            "zero_shot.scores: predicted_shares_table*",
            "zero_shot.consistency: flipped_items_table*",
            "zero_shot.calibration: calibration_table*",
        ],
        ["zero_shot.scores: zero_shot_figure", "zero_shot.calibration: calibration_figure"],
        [
            "zero_shot.scores: zero_shot_sentences",
            "zero_shot.consistency: verdict_sentence unread_runs",
        ],
    ),
    Section(
        "grids",
        "Every pair of values",
        ["grid"],
        ["grids: grid_table sizes_table*"],
        ["grids: age_grid_figure size_grid_figure"],
        ["grids: grids_summary"],
    ),
    Section(
        "curves",
        "Learning curves",
        ["curve"],
        [
            "curve.tables: summary_tables",
            "curve.comparisons: medals_table",
            "curve.information: code_table information_table",
            "curve.tables: against_table* parts_table* curve_table*",
        ],
        ["curve.figures: models_figure control_figures"],
        [
            "curve.comparisons: curve_sentences not_judged_sentence",
            "curve.information: over_confidence_sentences",
        ],
    ),
    Section(
        "information",
        "How much the input tells the model",
        ["information"],
        ["curve.information: imported_table"],
    ),
    Section(
        "analyses",
        "What the answers depend on",
        ["taxonomy_distance", "unigrams"],
        ["analyses: taxonomy_distance_table unigrams_table"],
        alone={"taxonomy_distance": "taxonomy_distance_table", "unigrams": "unigrams_table"},
    ),
    Section(
        "diagnostics",
        "Psycholinguistic diagnostics",
        ["diagnose"],
        [
            "diagnostics: accuracy_table survival_table sensitivity_table first_words_table",
            "diagnostics: words_tables*",
        ],
        ["diagnostics: accuracy_figure sensitivity_figure"],
        ["diagnostics: diagnostics_summary"],
    ),
    Section(
        "steps",
        "Results by training step",
        ["zero_shot", "diagnose", WATCH],
        ["steps: steps_tables"],
        ["steps: steps_figures"],
        printed_by=["zero_shot", "diagnose"],
    ),
    Section(
        "inoculation",
        "Inoculation",
        ["original", "before", "inoculation", "trade_off"],
        [
            "inoculation.tables: original_table seeds_table replay_table",
            "inoculation.keeping: keeping_table",
            "inoculation.tables: inoculation_table inoculation_parts_table",
            "inoculation.keeping: keeping_settings_table*",
            "inoculation.training: pareto_table*",
        ],
        [
            "inoculation.figures: keeping_figure inoculation_figure trajectory_figure",
            "inoculation.training: pareto_figure",
        ],
        [
            "inoculation.tables: inoculation_sentences",
            "inoculation.keeping: keeping_sentences",
        ],
        printed_by=["original", "inoculation", "trade_off"],
        alone={"original": "original_table"},
    ),
    Section(
        "learned",
        "How items were learned, epoch by epoch",
        ["inoculation", "data_map"],
        ["inoculation.training: dynamics_table"],
        ["inoculation.training: data_map_figure"],
        printed_by=["data_map"],
    ),
    Section(
        FORGETTING,
        "What was forgotten, gained and kept",
        ["inoculation", "forgetting"],
        ["forgetting: changes_table classes_table lost_table* concepts_table*"],
        ["forgetting: verdicts_figure"],
        ["forgetting: forgetting_summary"],
    ),
    Section(
        "concepts",
        "What a model knows, concept by concept",
        ["zero_shot", "curve", "inoculation"],
        ["concepts: clusters_table* concepts_table*", "difficulty: difficulty_table*"],
        ["difficulty: difficulty_figure"],
        ["concepts: concepts_summary"],
    ),
    Section(
        "audit",
        "Is the probe any good?",
        ["audit"],
        ["audit: audit_table rules_table words_table"],
        summary=["audit: audit_summary"],
    ),
    Section(
        "papers",
        "Comparison with the papers",
        tables=["papers: listed_table* paper_tables"],
        summary=["papers: papers_summary"],
        printed_by=["curve", "diagnose"],
    ),
    Section("fits", "Validation of fits", ["fit"], ["analyses: fits_table"]),
    Section(
        "compared",
        "Systems compared on the same items",
        ["compare"],
        ["compare: systems_table differences_table"],
        ["compare: differences_figure"],
        ["compare: comparison_summary"],
    ),
    Section(
        "provenance",
        "Where the numbers come from",
        tables=["provenance: models_table* data_table* software_table* runs_table*"],
    ),
)


def _was_asked_otherwise(results: RunSet) -> bool:
    """Return whether choices were scored by further rules, by letter or in phrasings."""
    return any(row.scoring or row.metric == "consistency" for row in results.rows)


# Modules whose makers have nothing to show, and are not called, unless this is so.
CONDITIONS: Mapping[str, Callable[[RunSet], bool]] = {
    "zero_shot.consistency": _was_asked_otherwise,
    "zero_shot.calibration": _was_asked_otherwise,
    "steps": lambda results: any(r.protocol == WATCH or r.source.revision for r in results.runs),
}
# Makers of what follows from a rule of medals, which a user may replace.
BY_RULE = ("curve.comparisons:medals_table", "curve.comparisons:not_judged_sentence")


def filled_sections(results: RunSet, medals: Path | None = None) -> list[FilledSection]:
    """Return the sections that have something to show, in the order of the page.

    `medals` is a YAML file with the rule of when a model earns a medal; None takes the shipped one.

    Raises:
        ValueError: If two tables or two figures have the same name, and so the same file.
        ConfigError: If the rule cannot be read.
    """
    sections = []
    for section in shown_sections(results):
        figures, tables, sentences = (
            make(makers, results, medals)
            for makers in (section.figures, section.tables, section.summary)
        )
        if figures or tables or sentences:
            summary = " ".join(sentences)
            sections.append(FilledSection(section.name, section.title, figures, tables, summary))
    for kind in ("tables", "figures"):
        names = Counter(content.name for section in sections for content in getattr(section, kind))
        if twice := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"{kind} of one name: {', '.join(twice)}")
    return sections


def printed(protocol: str, results: RunSet) -> tuple[Table, ...]:
    """Return the tables that a protocol's command prints when it has finished."""
    makers: list[str] = []
    for section in SECTIONS:
        if protocol in (section.protocols if section.printed_by is None else section.printed_by):
            alone = f":{section.alone[protocol]}" if protocol in section.alone else ""
            printed_makers = (m for m in named(section.tables) if not m.endswith(ON_PAGE))
            makers += [maker for maker in printed_makers if maker.endswith(alone)]
    return make(makers, results)


def shown_sections(results: RunSet) -> list[Section]:
    """Return the sections that show runs of the results' protocols."""
    protocols = {run.protocol for run in results.runs}
    sections = [s for s in SECTIONS if not s.protocols or protocols & {*s.protocols}]
    # Who asks what was forgotten reads that first.
    return sorted(sections, key=lambda s: not (s.name == FORGETTING and FORGETTING in protocols))


def named(makers: Iterable[str]) -> Iterator[str]:
    """Yield each maker as "MODULE:FUNCTION", with its `*`."""
    for names in makers:
        module, _, functions = names.partition(":")
        yield from (f"{module}:{function}" for function in functions.split())


def make(makers: Iterable[str], results: RunSet, medals: Path | None = None) -> tuple[Any, ...]:
    """Call makers and return all they made, without None and ""; `medals` as above."""
    outputs: list[Any] = []
    for maker in named(makers):
        maker = maker.removesuffix(ON_PAGE)
        has_contents = CONDITIONS.get(maker.partition(":")[0])
        if has_contents is None or has_contents(results):
            function = resolve_name(f"{__package__}.{maker}")
            output = function(results, medals) if maker in BY_RULE else function(results)
            outputs += output if isinstance(output, list | tuple) else [output]
    return tuple(output for output in outputs if output is not None and output != "")
