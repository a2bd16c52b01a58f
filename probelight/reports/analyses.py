"""Tables of small commands: two analyses of Talmor et al. 2020, contamination, and `fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.numbers import ABSENT, BY_GROUPS, INTERVAL
from probelight.reports.table import SIZE, Cell, Column, Table
from probelight.results.details import UnigramDetails
from probelight.results.frames import results_frame, with_columns
from probelight.results.load import Run, RunSet

PAPER_NEARER = {"taxonomy_conjunction": 0.80}  # section 4.4
PAPER_SPEARMAN = 0.22  # section 5, roberta-large against bert-large whole-word-masking
PARTS = {"with a nearer distractor": "accuracy_with_nearer", "without": "accuracy_without"}
CONTAMINATED = ("all", "contaminated", "clean")


def taxonomy_distance_table(results: RunSet) -> Table | None:
    """Make the table of how often a nearer distractor was chosen."""
    rows = results_frame(results).query("protocol == 'taxonomy_distance'")
    nearer = rows[rows.metric == "nearer_chosen"].rename(columns={"value": "nearer_chosen"})
    by_guessing = rows[rows.metric == "nearer_chosen_by_guessing"]
    nearer = with_columns(nearer, by_guessing, {"value": "by_guessing"}, ["path", "seed"])
    for subset, name in PARTS.items():
        ends = {end: f"{name}_{end}" for end in ("ci_low", "ci_high", *SIZE.split())}
        accuracies = rows[rows.subset == subset]
        nearer = with_columns(nearer, accuracies, {"value": name, **ends}, ["path", "seed"])
    group = "accuracy, nearer distractor"
    with_nearer, without = PARTS.values()
    return tables.table(
        "taxonomy_distance",
        "Does the model prefer a nearer hypernym?",
        "A nearer distractor is fewer edges above one of the two concepts than the right answer is "
        "(WordNet, nearest noun senses). Nearer one chosen: the share of items with such a "
        "distractor in which one was chosen. By guessing: the share of such distractors among the "
        f"choices. {INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}). Paper: Talmor et al. "
        "2020, over its models.",
        nearer.assign(_paper=nearer.probe.map(PAPER_NEARER)),
        [
            tables.text("probe", "probe", "split"),
            tables.text("model", "model"),
            tables.text("mode", "mode"),
            tables.whole("N", "num_train"),
            tables.whole("seed", "seed"),
            tables.accuracy("nearer one chosen %", "nearer_chosen ci_low ci_high"),
            tables.share("by guessing", "by_guessing"),
            tables.number("paper", "_paper", "{:.0%}".format),
            tables.size(),
            tables.accuracy("with %", with_nearer, group=group),
            tables.accuracy("without %", without, group=group),
        ],
        csv="probe split model mode num_train seed nearer_chosen ci_low ci_high num_items "
        f"by_guessing {with_nearer} {without}",
    )


def unigrams_table(results: RunSet) -> Table | None:
    """Make the table of two models' differences per probe, with their rank correlation."""
    runs = results.of("unigrams")
    rows = results_frame(results).query("protocol == 'unigrams' and probe != ''")
    key = ["path", "probe"]
    probe_rows = rows[rows.metric == "accuracy_difference"]
    probe_rows = probe_rows.rename(columns={"model": "models", "value": "accuracy_difference"})
    gaps = rows[rows.metric == "log_probability_difference"]
    probe_rows = with_columns(probe_rows, gaps, {"value": "log_probability_difference"}, key)
    word_counts = rows[rows.metric == "mean_log_probability"].drop_duplicates(key)
    probe_rows = with_columns(probe_rows, word_counts, {"num_items": "content_words"}, key)
    details = [(run.path, run.detail(UnigramDetails)) for run in runs]
    measures = {path: detail.measure.replace("_", "-") for path, detail in details if detail}
    return tables.table(
        "unigrams",
        "Is the model better that read more of the probe's words?",
        " ".join(map(_correlation, runs)) + f" The paper reports {PAPER_SPEARMAN} for "
        "roberta-large against bert-large with whole-word masking, over 8 probes. The permutation "
        "test treats all orders of the probes as equally likely. Log probabilities use add-one "
        "smoothing and leave out function words.",
        probe_rows.assign(_measure=probe_rows.path.map(measures)),
        [
            tables.text("models", "models", "_measure"),
            tables.text("probe", "probe"),
            tables.number("accuracy, first − second", "accuracy_difference", numbers.points),
            tables.number(
                "log probability, first − second", "log_probability_difference", _formatter("+.3f")
            ),
            tables.whole("content words", "content_words"),
        ],
        csv="models probe accuracy_difference log_probability_difference content_words",
    )


def _correlation(run: Run) -> str:
    by_metric = {row.metric: row for row in run.rows if not row.probe and not row.subset}
    rho, p_value = by_metric.get("spearman"), by_metric.get("spearman_p")
    if rho is None or p_value is None:
        return f"{run.model}: no correlation, because one difference is the same for all probes."
    form, interval = _formatter(".2f"), ""
    if rho.ci_low is not None and rho.ci_high is not None:
        interval = f", 95% interval {form(rho.ci_low)} to {form(rho.ci_high)}"
    return (
        f"{run.model}: Spearman's correlation of the two differences is {form(rho.value)} over "
        f"{rho.num_items} probes{interval}, permutation p {numbers.probability(p_value.value)}."
    )


def fits_table(results: RunSet) -> Table | None:
    """Make the table of the validation metrics of each fit."""
    rows = results_frame(results).query("protocol == 'fit'")
    last = rows[rows.extra == "last"].rename(columns={"value": "last", "epoch": "last_epoch"})
    # A metric without a direction has no best value.
    best = rows[rows.extra == "best"]
    fits = with_columns(last, best, {"value": "best", "epoch": "best_epoch"}, ["path", "metric"])
    return tables.table(
        "fits",
        "Validation metrics of each fit",
        "Validation metrics as the LightningModule logs them; accuracies are fractions. Best: the "
        "best epoch by this metric alone, so it is chosen on the data that it is measured on.",
        fits,
        [
            tables.text("model", "model"),
            tables.text("data", "probe"),
            tables.text("metric", "metric"),
            tables.number("last", "last", _formatter(".4g")),
            tables.whole("epoch", "last_epoch"),
            tables.number("best", "best", _formatter(".4g")),
            tables.whole("best epoch", "best_epoch"),
        ],
        csv="model probe mode num_train seed learning_rate metric last last_epoch best best_epoch",
    )


def _formatter(form: str) -> Callable[[float], str]:
    """Return a function that formats a number, with a minus sign instead of a hyphen."""
    return lambda value: format(value, form).replace("-", "−")


def counts_table(
    counts: Iterable[Mapping[str, object]], ngram: int, min_share: float
) -> Table | None:
    """Make the table of how many items each text has, in part or entirely.

    `counts` has a record per `text` and `split`, keyed like the columns; `concept` and `answer` are
    None if items have no names. Over `min_share` of its n-grams, an item is contaminated.
    """
    least = f"more than {numbers.percent(min_share)}% of" if min_share else "any of"
    return tables.table(
        "contamination",
        "How much of the probe is in other texts?",
        f"Items that share an n-gram of {ngram} words with the text. Stem: in the stem alone. With "
        f"answer: with a word of the right answer. Contaminated: {least} an item's n-grams. "
        "Entire: all of them. An item without n-grams of its own (too short, or only words of the "
        "probe's templates) is searched for as a whole. Concept, answer: items that ask about the "
        "same concept as an item of the text, or whose right answer is the same concept, by the "
        "names in their notes.",
        counts,
        [
            tables.text("text", "text"),
            tables.text("split", "split"),
            tables.whole("items", "num_items"),
            *map(_items, ("stem", "with_answer", "contaminated", "entire", "concept", "answer")),
            tables.whole("longest, words", "longest"),
        ],
    )


def _items(name: str) -> Column:
    """Make a column of numbers of items, with their share of the split in smaller type."""

    def show(row: Any) -> Cell:
        number = getattr(row, name)
        if numbers.missing(number):
            return Cell(ABSENT)
        return Cell(numbers.count(number), f"{numbers.percent(number / row.num_items)}%")

    return Column(name.replace("_", " "), show)


def scores_table(scored: Iterable[Mapping[str, object]]) -> Table | None:
    """Make the table of accuracy on all items, on contaminated ones and on the others.

    `scored` has a record per `model`, `run`, text (`contaminated_by`) and `part`.
    """
    return tables.table(
        "contamination_scores",
        "Accuracy with and without contaminated items",
        f"{INTERVAL} ({BY_GROUPS}). Contaminated items may also differ from clean ones in other "
        "respects, and were not drawn at random, so a difference does not prove that a model "
        "remembers them.",
        scored,
        [
            tables.text("model", "model"),
            tables.text("run", "run"),
            tables.text("contaminated by", "contaminated_by"),
        ],
        rows="model run contaminated_by",
        across="part",
        each=[tables.accuracy("accuracy %"), tables.whole("n", "num_items")],
        values=CONTAMINATED,
    )
