"""The sections of a report, in the order of the page, with the functions that make each of them.

A section imports its modules when it is made: a command loads only those of the tables it prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from probelight.reports.figure import Figure
from probelight.reports.table import Table
from probelight.results.load import WATCH, RunSet

Maker = Callable[[RunSet], Any]  # returns a table, figure or text, a list, or None for nothing


@dataclass(frozen=True)
class Makers:
    """The functions that make the tables, figures and sentences of a section."""

    tables: Sequence[Maker] = ()
    figures: Sequence[Maker] = ()
    summary: Sequence[Maker] = ()  # sentences of its one paragraph
    printed: Mapping[str, Sequence[Maker]] = field(default_factory=dict)  # tables by command


@dataclass(frozen=True)
class Section:
    """A part of the page: a paragraph, then figures, then the tables with the numbers."""

    name: str  # its anchor in the page
    title: str
    makers: Callable[[], Makers]
    protocols: Sequence[str] = ()  # shown if there are runs of one of these; always if empty
    printed_by: Sequence[str] | None = None  # whose commands print its tables; its protocols


@dataclass(frozen=True)
class FilledSection:
    """A section with its contents."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    summary: str


def _overview() -> Makers:
    from probelight.reports.overview import glance

    return Makers((glance.verdicts_table,), (glance.arrows_figure,))


def _training() -> Makers:
    from probelight.reports import steps

    return Makers((steps.changes_table,))


def _zero_shot() -> Makers:
    from probelight.reports.zero_shot import calibration, consistency, scores

    printed = (
        scores.zero_shot_table,
        scores.parts_table,
        scores.paradigms_table,
        scores.ranks_table,
        consistency.rules_table,
        consistency.letters_table,
        consistency.flips_table,
        consistency.phrasings_table,
    )
    further = (
        scores.predicted_shares_table,
        consistency.flipped_items_table,
        calibration.calibration_table,
    )
    return Makers(
        (*printed, *further),
        (scores.zero_shot_figure, calibration.calibration_figure),
        (scores.zero_shot_sentences, consistency.verdict_sentence, consistency.unread_runs),
        {"zero_shot": printed},
    )


def _grids() -> Makers:
    from probelight.reports import grid_figures, grids

    return Makers(
        (grids.grid_table, grids.sizes_table),
        (grid_figures.age_grid_figure, grid_figures.size_grid_figure),
        (grids.grids_summary,),
        {"grid": (grids.grid_table,)},
    )


def _curves(medals: Path | None = None) -> Makers:
    from probelight.reports.curve import comparisons, figures, information, tables

    printed = (
        tables.summary_tables,
        partial(comparisons.medals_table, rule_path=medals),
        information.code_table,
        information.information_table,
    )
    not_judged = partial(comparisons.not_judged_sentence, rule_path=medals)
    return Makers(
        (*printed, tables.against_table, tables.parts_table, tables.curve_table),
        (figures.models_figure, figures.control_figures),
        (comparisons.curve_sentences, not_judged, information.over_confidence_sentences),
        {"curve": printed},
    )


def _information() -> Makers:
    from probelight.reports.curve.information import imported_table

    return Makers((imported_table,), printed={"information": (imported_table,)})


def _analyses() -> Makers:
    from probelight.reports.analyses import taxonomy_distance_table, unigrams_table

    nearer, better = (taxonomy_distance_table,), (unigrams_table,)
    return Makers((*nearer, *better), printed={"taxonomy_distance": nearer, "unigrams": better})


def _diagnostics() -> Makers:
    from probelight.reports import diagnostics

    printed = (
        diagnostics.accuracy_table,
        diagnostics.survival_table,
        diagnostics.sensitivity_table,
        diagnostics.first_words_table,
    )
    return Makers(
        (*printed, diagnostics.words_tables),
        (diagnostics.accuracy_figure, diagnostics.sensitivity_figure),
        (diagnostics.diagnostics_summary,),
        {"diagnose": printed},
    )


def _steps() -> Makers:
    from probelight.reports import steps

    printed = (steps.steps_tables,)
    return Makers(
        printed, (steps.steps_figures,), printed={"zero_shot": printed, "diagnose": printed}
    )


def _inoculation() -> Makers:
    from probelight.reports.inoculation import figures, keeping, tables, training

    original = (tables.original_table,)
    printed = (
        *original,
        tables.seeds_table,
        tables.replay_table,
        keeping.keeping_table,
        tables.inoculation_table,
        tables.inoculation_parts_table,
    )
    return Makers(
        (*printed, keeping.keeping_settings_table, training.pareto_table, training.dynamics_table),
        (
            figures.keeping_figure,
            figures.inoculation_figure,
            figures.trajectory_figure,
            training.pareto_figure,
            training.data_map_figure,
        ),
        (tables.inoculation_sentences, keeping.keeping_sentences),
        {"original": original, "inoculation": printed},
    )


def _forgetting() -> Makers:
    from probelight.reports import forgetting

    printed = (forgetting.changes_table, forgetting.classes_table)
    return Makers(
        (*printed, forgetting.concepts_table),
        summary=(forgetting.forgetting_summary,),
        printed={"inoculation": printed, "forgetting": printed},
    )


def _concepts() -> Makers:
    from probelight.reports import concepts, difficulty

    return Makers(
        (concepts.clusters_table, concepts.concepts_table, difficulty.difficulty_table),
        (difficulty.difficulty_figure,),
        (concepts.concepts_summary,),
    )


def _audit() -> Makers:
    from probelight.reports import audit

    printed = (audit.audit_table, audit.rules_table, audit.words_table)
    return Makers(printed, summary=(audit.audit_summary,), printed={"audit": printed})


def _papers() -> Makers:
    from probelight.reports import papers

    printed = (papers.paper_tables,)
    return Makers(
        (papers.listed_table, *printed),
        summary=(papers.papers_summary,),
        printed={"curve": printed, "diagnose": printed},
    )


def _fits() -> Makers:
    from probelight.reports.analyses import fits_table

    return Makers((fits_table,), printed={"fit": (fits_table,)})


def _compared() -> Makers:
    from probelight.reports import compare

    printed = (compare.systems_table, compare.differences_table)
    figures, summary = (compare.differences_figure,), (compare.comparison_summary,)
    return Makers(printed, figures, summary, printed={"compare": printed})


def _provenance() -> Makers:
    from probelight.reports.page import provenance

    weights, files = provenance.models_table, provenance.data_table
    return Makers((weights, files, provenance.software_table, provenance.runs_table))


SECTIONS = (
    Section("overview", "At a glance", _overview),
    Section("training", "What the training taught and made the model forget", _training, (WATCH,)),
    Section("before", "Accuracy on each probe", _zero_shot, ("zero_shot",)),
    Section("grids", "Every pair of values", _grids, ("grid",)),
    Section("curves", "Learning curves", _curves, ("curve",)),
    Section("information", "How much the input tells the model", _information, ("information",)),
    Section("analyses", "What the answers depend on", _analyses, ("taxonomy_distance", "unigrams")),
    Section("diagnostics", "Psycholinguistic diagnostics", _diagnostics, ("diagnose",)),
    Section("steps", "Results by training step", _steps, ("zero_shot", "diagnose", WATCH)),
    Section("inoculation", "Inoculation", _inoculation, ("original", "before", "inoculation")),
    Section("forgetting", "Items lost and gained", _forgetting, ("inoculation", "forgetting")),
    Section(
        "concepts",
        "What a model knows, concept by concept",
        _concepts,
        ("zero_shot", "curve", "inoculation"),
        printed_by=(),
    ),
    Section("audit", "Is the probe any good?", _audit, ("audit",)),
    Section("papers", "Comparison with the papers", _papers, printed_by=("curve", "diagnose")),
    Section("fits", "Validation of fits", _fits, ("fit",)),
    Section("compared", "Systems compared on the same items", _compared, ("compare",)),
    Section("provenance", "Where the numbers come from", _provenance),
)


def filled_sections(results: RunSet, medals: Path | None = None) -> list[FilledSection]:
    """Return the sections that have something to show, in the order of the page.

    `medals` is a YAML file with the rule of when a model earns a medal; None takes the shipped one.

    Raises:
        ValueError: If two tables or two figures have the same name, and so the same file.
        ConfigError: If the rule cannot be read.
    """
    sections = []
    for section in shown_sections(results):
        makers = _curves(medals) if section.name == "curves" else section.makers()
        figures, tables = (make(of, results) for of in (makers.figures, makers.tables))
        summary = " ".join(make(makers.summary, results))
        if figures or tables or summary:
            sections.append(FilledSection(section.name, section.title, figures, tables, summary))
    for kind in ("tables", "figures"):
        names = Counter(content.name for section in sections for content in getattr(section, kind))
        if twice := [name for name, number in names.items() if number > 1]:
            raise ValueError(f"{kind} of one name: {', '.join(twice)}")
    return sections


def printed(protocol: str, results: RunSet) -> tuple[Table, ...]:
    """Return the tables that a protocol's command prints when it has finished."""
    printing = [
        section
        for section in SECTIONS
        if protocol in (section.protocols if section.printed_by is None else section.printed_by)
    ]
    return make((m for s in printing for m in s.makers().printed.get(protocol, ())), results)


def shown_sections(results: RunSet) -> list[Section]:
    """Return the sections that show runs of the results' protocols."""
    protocols = {run.protocol for run in results.runs}
    return [s for s in SECTIONS if not s.protocols or protocols & {*s.protocols}]


def make(makers: Iterable[Maker], results: RunSet) -> tuple[Any, ...]:
    """Call these functions and return all they made, without None and ""."""
    outputs: list[Any] = []
    for maker in makers:
        output = maker(results)
        outputs += output if isinstance(output, list | tuple) else [output]
    return tuple(output for output in outputs if output is not None and output != "")
