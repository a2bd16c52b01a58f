"""Tables of small protocols: two analyses of Talmor et al. 2020, and `train.py fit`."""

from __future__ import annotations

from probelight.reports.table import Table, accuracy, number, share, size, table, text, whole
from probelight.reports.words import BY_GROUPS, INTERVAL, count, points, probability
from probelight.results.details import UnigramDetails
from probelight.results.frames import results_frame
from probelight.results.load import Results, Run

PAPER_NEARER = {"taxonomy_conjunction": 0.80}  # section 4.4
PAPER_SPEARMAN = 0.22  # section 5, roberta-large against bert-large whole-word-masking
PARTS = {"with a nearer distractor": "with_nearer", "without": "without"}  # by their texts


def taxonomy_distance_table(results: Results) -> Table | None:
    """Make the table of how often a distractor was chosen that is nearer to one concept."""
    found: list[dict[str, object]] = []
    for run in results.of("taxonomy_distance"):
        for seed in dict.fromkeys(row.seed for row in run.rows):
            by_name = {row.subset_text or row.metric: row for row in run.rows if row.seed == seed}
            if (chosen := by_name.get("nearer_chosen")) is None:
                continue
            trained = f"{chosen.mode} on {count(chosen.num_train)}"
            trained += "" if seed is None else f", seed {seed}"
            guessing = by_name.get("nearer_chosen_by_guessing")
            found.append(
                {
                    **vars(chosen),
                    "_runs": run.key,
                    "_trained": trained if chosen.num_train else "no",
                    "nearer_chosen": chosen.value,
                    "by_guessing": guessing.value if guessing else None,
                    "_paper": PAPER_NEARER.get(run.probe),
                }
            )
            for subset, name in PARTS.items():
                part = by_name.get(subset)
                for end, value in (("", "value"), ("_low", "ci_low"), ("_high", "ci_high")):
                    found[-1][f"accuracy_{name}{end}"] = getattr(part, value, None)
    beside = "accuracy, a nearer distractor"
    names = [f"accuracy_{name}" for name in PARTS.values()]
    return table(
        "taxonomy_distance",
        "Does the nearer hypernym win?",
        "Of the items with a distractor that is fewer edges above one of the two concepts than the "
        "right answer is (WordNet, the nearest noun senses), the share where such a distractor was "
        f"chosen; {INTERVAL[0].lower()}{INTERVAL[1:].replace('accuracy', 'share')} ({BY_GROUPS}). "
        "Paper: Talmor et al. 2020, over its models. By guessing: such distractors among the "
        "choices.",
        found,
        [
            text("probe", "probe", "split"),
            text("model", "model"),
            text("trained", "_trained"),
            accuracy("nearer one chosen %", "nearer_chosen ci_low ci_high"),
            share("by guessing", "by_guessing"),
            number("paper", "_paper", lambda share: f"{100 * share:.0f}"),
            size(),
            *(
                accuracy(f"{label} %", f"{name} {name}_low {name}_high", group=beside)
                for label, name in zip(("with", "without"), names, strict=True)
            ),
        ],
        csv="probe split model mode num_train seed nearer_chosen ci_low ci_high num_items "
        f"by_guessing {' '.join(names)}",
    )


def unigrams_table(results: Results) -> Table | None:
    """Make the table of differences of two models per probe, with their rank correlation."""
    runs = results.of("unigrams")
    found = []
    for run in runs:
        details = run.detail(UnigramDetails)
        for probe in dict.fromkeys(row.probe for row in run.rows if row.probe):
            rows = [row for row in run.rows if row.probe == probe]
            gaps = {row.metric: row.value for row in rows if not row.subset}
            found.append(
                {
                    "models": run.model,
                    "_measure": details.measure.replace("_", "-") if details else "",
                    "_runs": run.key,
                    "probe": probe,
                    "accuracy_difference": gaps["accuracy_difference"],
                    "log_probability_difference": gaps["log_probability_difference"],
                    "content_words": next((row.num_items for row in rows if row.num_items), None),
                }
            )
    return table(
        "unigrams",
        "Does the model win that read more of the probe's words?",
        " ".join(map(_correlation, runs)) + f" The paper has {PAPER_SPEARMAN} for roberta-large "
        "against bert-large with whole-word masking, over 8 probes. The permutation test takes all "
        "orders of the probes as equally likely; add-one smoothing, function words left out.",
        found,
        [
            text("models", "models", "_measure"),
            text("probe", "probe"),
            number("accuracy, first − second", "accuracy_difference", points),
            number(
                "log probability, first − second",
                "log_probability_difference",
                lambda gap: f"{gap:+.3f}".replace("-", "−"),
            ),
            whole("content words", "content_words"),
        ],
    )


def _correlation(run: Run) -> str:
    by_metric = {row.metric: row for row in run.rows if not row.probe and not row.subset}
    rho, p_value = by_metric.get("spearman"), by_metric.get("spearman_p")
    if rho is None or p_value is None:
        return f"{run.model}: no correlation, as one side is the same for all probes."
    interval = "" if rho.ci_low is None else f", 95% interval {rho.ci_low:.2f} to {rho.ci_high:.2f}"
    sentence = (
        f"{run.model}: Spearman's correlation of the two differences is {rho.value:.2f} over "
        f"{rho.num_items} probes{interval}, permutation p {probability(p_value.value)}."
    )
    return sentence.replace("-0.", "−0.").replace("-1.", "−1.")


def fits_table(results: Results) -> Table | None:
    """Make the table of the validation metrics of each fit."""
    rows = results_frame(results).query("protocol == 'fit'")
    last = rows[rows.extra == "last"].rename(columns={"value": "last", "epoch": "last_epoch"})
    # A metric of which no value is better than another has no best one.
    best = rows[rows.extra == "best"].rename(columns={"value": "best", "epoch": "best_epoch"})
    place = ["path", "metric"]
    found = last.merge(best[[*place, "best", "best_epoch"]], how="left", on=place)

    def form(value: float) -> str:
        return f"{value:.4g}".replace("-", "−")

    return table(
        "fits",
        "What did the fits score?",
        "Metrics of the validation as the LightningModule logs them, accuracies as fractions. The "
        "best is the best epoch's by this metric alone, so it is chosen by what it is measured on.",
        found.assign(_runs=found.run),
        [
            text("model", "model"),
            text("data", "probe"),
            text("metric", "metric"),
            number("last", "last", form),
            whole("epoch", "last_epoch"),
            number("best", "best", form),
            whole("best epoch", "best_epoch"),
        ],
        csv="model probe mode num_train seed learning_rate metric last last_epoch best best_epoch",
    )
