"""The tables of what a model scored before any training."""

from __future__ import annotations

from probelight.metrics.ties import NEAR
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    field,
    number,
    share,
    size,
    text,
)
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import ABSENT, BY_GROUPS, INTERVAL, way
from probelight.reports.zero_shot.facts import ZeroShot, zero_shots
from probelight.results.load import Results, Run
from probelight.results.row import Row


def zero_shot_table(results: Results) -> Table | None:
    """Accuracy before any training: rows are probes, columns are models."""
    found = zero_shots(results)
    with_ties = any(entry.tied for entry in found)
    with_near = any(entry.near_tied for entry in found)
    with_floor = any(entry.chance != entry.floor for entry in found)
    ways = {
        entry.probe: {e.accuracy.mode for e in found if e.probe == entry.probe} for entry in found
    }
    differ = any(len(modes) > 1 for modes in ways.values())

    def of_model(model: str) -> list[Column[ZeroShot]]:
        ties: Column[ZeroShot] = share("ties %", lambda e: e.tied, "tied_share", model)
        near: Column[ZeroShot] = share(
            "near-ties %", lambda e: e.near_tied, "near_tied_share", model
        )
        return [
            accuracy("accuracy %", lambda e: e.accuracy, ACCURACY, model),
            share("macro %", lambda e: e.macro, "macro_accuracy", model),
            size("n", lambda e: e.accuracy, SIZE, model),
            *([share("chance, empty choices too", lambda e: e.chance, "", model)] * with_floor),
            text("against chance", _verdict, group=model),
            *([text("scored by", lambda e: _way(e) or "the mask", group=model)] if differ else []),
            field("against_chance", lambda e: e.verdict),
            ties if with_ties else ties.hidden,
            near if with_near else near.hidden,
        ]

    return Declared[ZeroShot](
        "zero_shot",
        "Accuracy before any training",
        f"{INTERVAL} ({BY_GROUPS}) and the number of items n. Majority: always the most frequent "
        "answer. Macro: the mean of the accuracies of each answer."
        + (" Ties: items whose best score n choices share; they count 1/n." if with_ties else "")
        + (" Empty choices that a model was given compete; verdicts go by the others." * with_floor)
        + (f" Near-ties: the best score is less than {NEAR:g} above the second." * with_near),
        [
            field("model", lambda e: e.label),
            text("probe", lambda e: e.probe, "probe", _split_of if differ else _how),
            share("chance", lambda e: e.floor),
            field("chance", lambda e: e.chance),
            *([field("floor", lambda e: e.floor)] if with_floor else []),
            share("majority", lambda e: e.majority, "majority_accuracy"),
            attributes("split mode", lambda e: e.accuracy),
        ],
        Across(lambda e: e.label, lambda e: (e.probe, e.accuracy.split), of_model),
        f"model probe split mode {ACCURACY} {SIZE} chance floor majority_accuracy "
        "macro_accuracy tied_share near_tied_share",
    ).of(found)


def predicted_shares_table(results: Results) -> Table | None:
    """How often each answer was predicted, whatever the question."""
    found = [(entry, answer) for entry in zero_shots(results) for answer in entry.shares]
    return Declared[tuple[ZeroShot, Row]](
        "predicted_shares",
        "What the model tends to say",
        "Share of the items on which each answer was predicted. A model that mostly says one thing "
        "scores near the share of items where that happens to be right.",
        [
            field("model", lambda pair: pair[0].label),
            text("probe", lambda pair: pair[0].probe, "probe split", _split),
            text("answer", lambda pair: pair[1].subset_text, "answer"),
        ],
        Across(
            lambda pair: pair[0].label,
            lambda pair: (pair[0].probe, _split(pair), pair[1].subset_text),
            lambda model: [share("predicted %", lambda pair: pair[1].value, "share", model)],
        ),
    ).of(found)


def parts_table(results: Results) -> Table | None:
    """Zero-shot accuracy by template, perturbation or control."""
    found = [(entry, row) for entry in zero_shots(results) for row in entry.parts]
    return Declared[tuple[ZeroShot, Row]](
        "zero_shot_parts",
        "Parts and variants of the probes",
        f"{INTERVAL}; parts are small, and their intervals wide.",
        [
            text("probe", lambda pair: pair[0].probe, "probe", _split),
            text("part", lambda pair: _part(pair[1]), "part"),
            text("model", lambda pair: pair[0].label, "model"),
            accuracy("accuracy %", lambda pair: pair[1], ACCURACY),
            size("n", lambda pair: pair[1], SIZE),
        ],
        order="model probe",
    ).of(found)


def ranks_table(results: Results) -> Table | None:
    """Where the candidates stand in the whole vocabulary (Talmor et al. 2020, section 4.5)."""
    found = [
        (run, own)
        for run in results.of("zero_shot")
        if "median_gold_rank" in (own := {row.metric: row for row in run.rows if not row.subset})
    ]
    return Declared[tuple[Run, dict[str, Row]]](
        "zero_shot_ranks",
        "Would the model say the answers unasked?",
        "Ranks of the candidates in the whole vocabulary at the mask, 1 is the model's first "
        f"guess. {INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}). Where the answers are far "
        "down, the accuracy chooses among words that the model would not say.",
        [
            text(
                "probe",
                lambda pair: pair[0].probe,
                "probe",
                lambda pair: pair[1]["median_gold_rank"].split,
            ),
            text("model", lambda pair: pair[0].model, "model"),
            number(
                "median rank of the right answer",
                lambda pair: pair[1]["median_gold_rank"].value,
                lambda rank: f"{rank:,.10g}",
                "median_gold_rank",
            ),
            accuracy(
                "right answer in the top 10 %",
                lambda pair: pair[1].get("gold_in_top10"),
                "gold_in_top10",
            ),
            accuracy(
                "all answers in the top 10 %",
                lambda pair: pair[1].get("all_in_top10"),
                "all_in_top10",
            ),
            size("n", lambda pair: pair[1].get("gold_in_top10") or pair[1]["median_gold_rank"]),
            field("num_items", lambda pair: pair[1]["median_gold_rank"].num_items),
        ],
    ).of(found)


def _how(entry: ZeroShot) -> str:
    """The split, and how choices were scored where it was not by the mask's candidates."""
    return ", ".join(filter(None, (_split_of(entry), _way(entry))))


def _split_of(entry: ZeroShot) -> str:
    return entry.accuracy.split


def _way(entry: ZeroShot) -> str:
    return way(entry.accuracy.mode)


def _verdict(entry: ZeroShot) -> str:
    return ABSENT if entry.verdict == "unknown" else entry.verdict


def _split(pair: tuple[ZeroShot, Row]) -> str:
    return pair[0].accuracy.split


def _part(row: Row) -> str:
    control = "" if row.control == "standard" else row.control
    return ", ".join(filter(None, (row.subset_text, row.perturbation, control)))
