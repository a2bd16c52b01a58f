"""Tables of the smaller analyses of Talmor et al. 2020: ranks, nearer hypernyms, unigrams."""

from __future__ import annotations

from collections.abc import Mapping

from reports.kit.layout import (
    ABSENT,
    BY_GROUPS,
    INTERVAL,
    Cell,
    Column,
    Table,
    accuracy_cell,
    count,
    percent,
    points,
    probability,
    size_cell,
)
from results.load import Results, Row, Run

PAPER_NEARER = 0.80  # section 4.4
PAPER_SPEARMAN = 0.22  # section 5, roberta-large against bert-large whole-word-masking
_WITH, _WITHOUT = "with a nearer distractor", "without"


def ranks_table(results: Results) -> Table | None:
    """Where the candidates stand in the whole vocabulary (section 4.5)."""
    found = [
        (run, own)
        for run in results.of("zero_shot")
        if "median_gold_rank" in (own := {row.metric: row for row in run.rows if not row.subset})
    ]
    if not found:
        return None
    heads = (
        Column("probe", "left"),
        Column("model", "left"),
        Column("median rank of the right answer"),
        Column("right answer in the top 10 %"),
        Column("all answers in the top 10 %"),
        Column("n"),
    )
    metrics = ("median_gold_rank", "gold_in_top10", "all_in_top10")
    return Table(
        "zero_shot_ranks",
        "Would the model say the answers unasked?",
        "Ranks of the candidates in the whole vocabulary at the mask, 1 is the model's first "
        f"guess. {INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}). Where the answers are far "
        "down, the accuracy chooses among words that the model would not say.",
        heads,
        tuple(
            (
                Cell(run.probe, own["median_gold_rank"].split),
                Cell(run.model),
                Cell(f"{own['median_gold_rank'].value:,.10g}"),
                accuracy_cell(own.get("gold_in_top10")),
                accuracy_cell(own.get("all_in_top10")),
                size_cell(own.get("gold_in_top10") or own["median_gold_rank"]),
            )
            for run, own in found
        ),
        tuple(
            {
                "probe": run.probe,
                "model": run.model,
                **{metric: own[metric].value for metric in metrics if metric in own},
                "num_items": own["median_gold_rank"].num_items,
            }
            for run, own in found
        ),
    )


def taxonomy_distance_table(results: Results) -> Table | None:
    """How often a distractor was chosen that is nearer to one concept (section 4.4)."""
    found = [
        (run, seed, _by_metric(run, seed))
        for run in results.of("taxonomy_distance")
        for seed in dict.fromkeys(row.seed for row in run.rows)
    ]
    found = [(run, seed, own) for run, seed, own in found if "nearer_chosen" in own]
    if not found:
        return None
    heads = (
        Column("probe", "left"),
        Column("model", "left"),
        Column("trained", "left"),
        Column("nearer one chosen %"),
        Column("by guessing"),
        Column("paper"),
        Column("n"),
        Column("with %", group="accuracy, a nearer distractor"),
        Column("without %", group="accuracy, a nearer distractor"),
    )
    return Table(
        "taxonomy_distance",
        "Does the nearer hypernym win?",
        "Of the items with a distractor that is fewer edges above one of the two concepts than the "
        "right answer is (WordNet, the nearest noun senses), the share where such a distractor was "
        f"chosen; {INTERVAL[0].lower()}{INTERVAL[1:].replace('accuracy', 'share')} ({BY_GROUPS}). "
        "Paper: Talmor et al. 2020, over its models. By guessing: such distractors among the "
        "choices.",
        heads,
        tuple(
            (
                Cell(run.probe, own["nearer_chosen"].split),
                Cell(run.model),
                Cell(_trained(own["nearer_chosen"])),
                accuracy_cell(own["nearer_chosen"]),
                Cell(percent(_value(own, "nearer_chosen_by_guessing"))),
                Cell(f"{100 * PAPER_NEARER:.0f}" if _is_paper_probe(run) else ABSENT),
                size_cell(own["nearer_chosen"]),
                accuracy_cell(own.get(_WITH)),
                accuracy_cell(own.get(_WITHOUT)),
            )
            for run, _, own in found
        ),
        tuple(
            {
                "probe": run.probe,
                "split": own["nearer_chosen"].split,
                "model": run.model,
                "mode": own["nearer_chosen"].mode,
                "num_train": own["nearer_chosen"].num_train,
                "seed": seed,
                "nearer_chosen": own["nearer_chosen"].value,
                "ci_low": own["nearer_chosen"].ci_low,
                "ci_high": own["nearer_chosen"].ci_high,
                "num_items": own["nearer_chosen"].num_items,
                "by_guessing": _value(own, "nearer_chosen_by_guessing"),
                "accuracy_with_nearer": _value(own, _WITH),
                "accuracy_without": _value(own, _WITHOUT),
            }
            for run, seed, own in found
        ),
    )


def unigrams_table(results: Results) -> Table | None:
    """Differences of two models per probe, and their rank correlation (section 5)."""
    runs = results.of("unigrams")
    if not runs:
        return None
    heads = (
        Column("models", "left"),
        Column("probe", "left"),
        Column("accuracy, first − second"),
        Column("log probability, first − second"),
        Column("content words"),
    )
    rows = []
    records: list[Mapping[str, object]] = []
    for run in runs:
        for probe in dict.fromkeys(row.probe for row in run.rows if row.probe):
            own = {row.metric: row for row in run.rows if row.probe == probe and not row.subset}
            words = next((r.num_items for r in run.rows if r.probe == probe and r.num_items), None)
            accuracy, common = own["accuracy_difference"], own["log_probability_difference"]
            rows.append(
                (
                    Cell(run.model, str(run.facts.get("measure", "")).replace("_", "-")),
                    Cell(probe),
                    Cell(points(accuracy.value)),
                    Cell(f"{common.value:+.3f}".replace("-", "−")),
                    Cell(count(words)),
                )
            )
            records.append(
                {
                    "models": run.model,
                    "probe": probe,
                    "accuracy_difference": accuracy.value,
                    "log_probability_difference": common.value,
                    "content_words": words,
                }
            )
    return Table(
        "unigrams",
        "Does the model win that read more of the probe's words?",
        " ".join(_correlation(run) for run in runs)
        + f" The paper has {PAPER_SPEARMAN} for roberta-large against bert-large with "
        "whole-word masking, over 8 probes. The permutation test takes all orders of the probes as "
        "equally likely; add-one smoothing, function words left out.",
        heads,
        tuple(rows),
        tuple(records),
    )


def _correlation(run: Run) -> str:
    own = {row.metric: row for row in run.rows if not row.probe and not row.subset}
    whole, p_value = own.get("spearman"), own.get("spearman_p")
    if whole is None or p_value is None:
        return f"{run.model}: no correlation, as one side is the same for all probes."
    interval = (
        "" if whole.ci_low is None else f", 95% interval {whole.ci_low:.2f} to {whole.ci_high:.2f}"
    )
    text = (
        f"{run.model}: Spearman's correlation of the two differences is {whole.value:.2f} over "
        f"{whole.num_items} probes{interval}, permutation p {probability(p_value.value)}."
    )
    return text.replace("-0.", "−0.").replace("-1.", "−1.")


def _by_metric(run: Run, seed: int | None) -> dict[str, Row]:
    """The rows of a seed by metric, accuracies by the part they are of."""
    return {row.subset or row.metric: row for row in run.rows if row.seed == seed}


def _value(own: Mapping[str, Row], metric: str) -> float | None:
    return own[metric].value if metric in own else None


def _trained(row: Row) -> str:
    if not row.num_train:
        return "no"
    seed = "" if row.seed is None else f", seed {row.seed}"
    return f"{row.mode} on {count(row.num_train)}{seed}"


def _is_paper_probe(run: Run) -> bool:
    return run.probe == "taxonomy_conjunction"
