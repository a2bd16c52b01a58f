"""Every table of the three papers, and where a report has it: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.audit.facts import entries
from probelight.reports.diagnostics import labelled_runs
from probelight.reports.grids import PAPER_SIZES_MODEL, SIZES, grids
from probelight.reports.inoculation.runs import inoculations
from probelight.reports.kit.published import published_curves, published_probes
from probelight.reports.papers.beside import Beside, PaperTable
from probelight.reports.papers.choice_only import choice_only_rows
from probelight.reports.papers.ettinger import diagnostic_rows
from probelight.reports.papers.richardson import cluster_rows
from probelight.reports.papers.science_rows import ours
from probelight.reports.papers.talmor import curve_rows
from probelight.reports.released import on_released
from probelight.results.load import Results

TALMOR, RICHARDSON = "Talmor et al. 2020", "Richardson & Sabharwal 2020"
ETTINGER = "Ettinger 2020"
_CURVES = {
    2: "Age comparison", 3: "Objects comparison", 5: "Always-never", 7: "Antonym negation",
    8: "Property conjunction", 9: "Taxonomy conjunction", 10: "Encyclopedic composition",
    11: "Multi-hop composition",
}  # fmt: skip
_OF_CURVES = (
    "WS, MAX and LangSense stand here only of curves with all seven points, on the released train "
    "and dev files; a sum over fewer points stands beside no number of the paper. The paper gives "
    "whole per cent and no n, so its number is taken as exact. People: two of the authors (table "
    "1); they agreed on 92%."
)
_DIAGNOSTICS = {
    4: "CPRAG-102: expected words, and with perturbed contexts",
    5: "CPRAG-102: good completions above bad ones",
    7: "ROLE-88: expected words, and with generic nouns",
    8: "ROLE-88: expected words by the cloze value of the best one",
    9: "ROLE-88: good completions above those with roles reversed",
    11: "NEG-136-SIMP: expected words of affirmative statements",
    12: "NEG-136-SIMP: true completions above false ones",
    14: "NEG-136-NAT: true completions above false ones",
}
_OF_DIAGNOSTICS = (
    "Where the paper says how many items it had, the difference has an interval, of two "
    "independent proportions (Newcombe 1998): both are of the same items, so it is wider than "
    "need be. There is no score of people: what they say most often is what counts as right."
)
# What the paper says of people is no share that models have, so it is no column.
_OF_PEOPLE = {
    5: " The mean share of people who gave a completion is 0.74 for the good ones, and 0.004 and "
    "0.001 for the bad ones within and between categories.",
    9: " The mean share of people who gave a completion is 0.233 higher in its own context than in "
    "the reversed one.",
}
_OF_CHOICE_ONLY = (
    "Encoders that see the choices alone, trained on the probe; baselines over word vectors stand "
    "beside the paper's in the table of the audit. The paper gives no n of its accuracies, so its "
    "numbers are taken as exact. People are of the test sets, which they partly filtered."
)
_WORDS = {6: "cprag", 10: "role", 13: "neg_simp", 15: "neg_nat"}


def _has_grid(results: Results) -> bool:
    return any(grid.published and grid.name != SIZES for grid in grids(results))


def _has_sizes(results: Results) -> bool:
    return any(g.name == SIZES and g.paper_model == PAPER_SIZES_MODEL for g in grids(results))


def _has_probe(results: Results, protocol: str, probe: str) -> bool:
    return any(run.probe == probe and on_released(run, "dev") for run in results.of(protocol))


def _has_curve(results: Results) -> bool:
    probes = {row.probe for row in published_curves()}
    return any(_has_probe(results, "curve", probe) for probe in probes)


def _has_unigrams(results: Results) -> bool:
    probes = {row.probe for row in published_curves()}
    return any(probes & {row.probe for row in run.rows} for run in results.of("unigrams"))


def _has_words(results: Results, probe: str) -> bool:
    return any(run.probe == probe and on_released(run) for run, _ in labelled_runs(results))


def _has_inoculation(results: Results, needs_hops: bool) -> bool:
    known = {row.probe for row in published_probes()}
    return any(
        cell.series.probe in known
        and on_released(cell.run, cell.series.report_split)
        and (not needs_hops or any(part.kind == "difficulty" for part in cell.parts))
        for cell in inoculations(results)
    )


def _has_science(results: Results) -> bool:
    return bool(ours(results))


def _has_audit(results: Results) -> bool:
    known = {row.probe for row in published_probes()}
    return any(entry.ours and entry.probe in known for entry in entries(results))


_TALMOR = (
    PaperTable(TALMOR, "table 1", "The probes, an example of each, and what people score"),
    *(
        PaperTable(
            TALMOR,
            f"table {number}",
            holds,
            "curve",
            partial(curve_rows, table=number),
            _OF_CURVES,
        )
        for number, holds in _CURVES.items()
    ),
    PaperTable(
        TALMOR, "figure 3", "Ages and birth years, all pairs", "grid",
        shown="grid", is_shown=_has_grid,
    ),
    PaperTable(
        TALMOR, "figure 4", "Learning curves of two probes", "curve", shown="learning_curve",
        is_shown=_has_curve,
    ),
    PaperTable(
        TALMOR, "table 4", "Sizes of eight objects, all pairs", "grid",
        shown="sizes_grid", is_shown=_has_sizes,
    ),
    PaperTable(
        TALMOR, "table 6", "Always-never by template", "curve",
        shown="curve_parts",
        is_shown=partial(_has_probe, protocol="curve", probe="always_never"),
    ),
    PaperTable(
        TALMOR, "table 12", "Medals, here by a rule of ours; the paper's are not at hand", "curve",
        shown="curve_medals", is_shown=_has_curve,
    ),
    PaperTable(
        TALMOR, "section 4.4", "Whether a nearer hypernym is chosen", "taxonomy-distance",
        shown="taxonomy_distance",
        is_shown=partial(
            _has_probe, protocol="taxonomy_distance", probe="taxonomy_conjunction"
        ),
    ),
    PaperTable(
        TALMOR, "section 5", "Correlation with words of the corpora", "unigrams",
        shown="unigrams", is_shown=_has_unigrams,
    ),
)  # fmt: skip
_RICHARDSON = (
    *(
        PaperTable(RICHARDSON, f"table {number}", holds)
        for number, holds in {
            1: "The knowledge resources",
            2: "How questions are made of triples",
            3: "Three semantic clusters",
            4: "Sizes of the probes",
            5: "Entries of a dictionary",
            6: "Sizes of the original task's sets",
        }.items()
    ),
    PaperTable(
        RICHARDSON, "table 7, groups 1 and 2", "Baselines trained on the probes", "probes audit",
        choice_only_rows, _OF_CHOICE_ONLY, shown="audit", is_shown=_has_audit,
    ),
    PaperTable(
        RICHARDSON, "table 7, groups 3 and 4", "Science models before and after inoculation",
        "inoculate", shown="science_models", is_shown=_has_science,
    ),
    PaperTable(
        RICHARDSON, "figure 3", "Accuracy by hops and distractors", "inoculate",
        shown="difficulty", is_shown=partial(_has_inoculation, needs_hops=True),
    ),
    PaperTable(
        RICHARDSON, "figure 4", "Accuracy on probe and original task by dose", "inoculate",
        shown="inoculation", is_shown=partial(_has_inoculation, needs_hops=False),
    ),
    PaperTable(
        RICHARDSON,
        "table 8",
        "Whole clusters right, after inoculation (dev)",
        "inoculate",
        cluster_rows,
        "Strict: concepts with every question right. Ours is M*_k at the k with the best average "
        "on the selection items, compared where that is the paper's 3,000, the original task is "
        "the paper's, and it reports on all of the released dev set. The paper gives no n, so its "
        "number is taken as exact; its numbers of people are of the test sets.",
    ),
)  # fmt: skip
_ETTINGER = (
    *(
        PaperTable(ETTINGER, f"table {number}", f"Items of {title}")
        for number, title in {1: "CPRAG-102", 2: "ROLE-88", 3: "NEG-136-SIMP"}.items()
    ),
    *(
        PaperTable(
            ETTINGER,
            f"table {number}",
            holds,
            "diagnose",
            partial(diagnostic_rows, table=number),
            _OF_DIAGNOSTICS + _OF_PEOPLE.get(number, ""),
        )
        for number, holds in _DIAGNOSTICS.items()
    ),
    *(
        PaperTable(
            ETTINGER, f"table {number}", f"{SETS[probe].title}: the first words", "diagnose",
            shown=f"diagnostics_words_{probe}", is_shown=partial(_has_words, probe=probe),
        )
        for number, probe in _WORDS.items()
    ),
)  # fmt: skip


def _order(table: PaperTable) -> tuple[int, str]:
    kind, _, number = table.place.partition(" ")
    is_table = kind == "table"
    return (int(number.partition(",")[0]) if is_table else 99, table.place)


REGISTRY: tuple[PaperTable, ...] = tuple(
    table for paper in (_TALMOR, _RICHARDSON, _ETTINGER) for table in sorted(paper, key=_order)
)


@lru_cache(maxsize=2)
def rows_beside(results: Results) -> Mapping[PaperTable, Sequence[Beside]]:
    """The rows of every table that these results hold a number of."""
    found = {table: table.beside(results) for table in REGISTRY if table.beside is not None}
    return {table: rows for table, rows in found.items() if rows}
