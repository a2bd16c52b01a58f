"""Tables of the smaller analyses of Talmor et al. 2020: nearer hypernyms, and unigrams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probelight.reports.kit.columns import accuracy, attributes, number, share, size, text, whole
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import ABSENT, BY_GROUPS, INTERVAL, count, points, probability
from probelight.results.details import UnigramDetails
from probelight.results.load import Results, Run
from probelight.results.row import Row

PAPER_NEARER = 0.80  # section 4.4
PAPER_SPEARMAN = 0.22  # section 5, roberta-large against bert-large whole-word-masking
_WITH, _WITHOUT = "with a nearer distractor", "without"  # texts of the parts


@dataclass(frozen=True)
class Nearer:
    """One trained model: its rows by metric, accuracies by the part they are of."""

    run: Run
    seed: int | None
    own: Mapping[str, Row]

    @property
    def chosen(self) -> Row:
        """How often a nearer distractor was chosen."""
        return self.own["nearer_chosen"]

    @property
    def by_guessing(self) -> float | None:
        """How often it would be by guessing."""
        row = self.own.get("nearer_chosen_by_guessing")
        return None if row is None else row.value


@dataclass(frozen=True)
class Pair:
    """Two models on one probe: first minus second."""

    run: Run
    probe: str
    accuracy: Row
    log_probability: Row
    words: int | None


def taxonomy_distance_table(results: Results) -> Table | None:
    """How often a distractor was chosen that is nearer to one concept (section 4.4)."""
    found = [
        Nearer(
            run, seed, {row.subset_text or row.metric: row for row in run.rows if row.seed == seed}
        )
        for run in results.of("taxonomy_distance")
        for seed in dict.fromkeys(row.seed for row in run.rows)
    ]
    beside = "accuracy, a nearer distractor"
    columns: list[Column[Nearer]] = [
        text("probe", lambda e: e.run.probe, "probe split", lambda e: e.chosen.split),
        text("model", lambda e: e.run.model, "model"),
        text("trained", lambda e: _trained(e.chosen)),
        attributes("mode num_train", lambda e: e.chosen),
        attributes("seed"),
        accuracy("nearer one chosen %", lambda e: e.chosen, "nearer_chosen ci_low ci_high"),
        attributes("num_items", lambda e: e.chosen),
        share("by guessing", lambda e: e.by_guessing, "by_guessing"),
        number("paper", lambda e: _paper(e.run), str),
        size("n", lambda e: e.chosen),
        accuracy("with %", lambda e: e.own.get(_WITH), "accuracy_with_nearer", beside),
        accuracy("without %", lambda e: e.own.get(_WITHOUT), "accuracy_without", beside),
    ]
    return Declared(
        "taxonomy_distance",
        "Does the nearer hypernym win?",
        "Of the items with a distractor that is fewer edges above one of the two concepts than the "
        "right answer is (WordNet, the nearest noun senses), the share where such a distractor was "
        f"chosen; {INTERVAL[0].lower()}{INTERVAL[1:].replace('accuracy', 'share')} ({BY_GROUPS}). "
        "Paper: Talmor et al. 2020, over its models. By guessing: such distractors among the "
        "choices.",
        columns,
    ).of([one for one in found if "nearer_chosen" in one.own])


def unigrams_table(results: Results) -> Table | None:
    """Differences of two models per probe, and their rank correlation (section 5)."""
    runs = results.of("unigrams")
    columns: list[Column[Pair]] = [
        text("models", lambda e: e.run.model, "models", lambda e: _measure(e.run)),
        text("probe", lambda e: e.probe, "probe"),
        number(
            "accuracy, first − second", lambda e: e.accuracy.value, points, "accuracy_difference"
        ),
        number(
            "log probability, first − second",
            lambda e: e.log_probability.value,
            lambda gap: f"{gap:+.3f}".replace("-", "−"),
            "log_probability_difference",
        ),
        whole("content words", lambda e: e.words, "content_words"),
    ]
    return Declared(
        "unigrams",
        "Does the model win that read more of the probe's words?",
        " ".join(_correlation(run) for run in runs)
        + f" The paper has {PAPER_SPEARMAN} for roberta-large against bert-large with "
        "whole-word masking, over 8 probes. The permutation test takes all orders of the probes as "
        "equally likely; add-one smoothing, function words left out.",
        columns,
    ).of([_pair(run, p) for run in runs for p in dict.fromkeys(r.probe for r in run.rows) if p])


def _pair(run: Run, probe: str) -> Pair:
    own = {row.metric: row for row in run.rows if row.probe == probe and not row.subset}
    words = next((r.num_items for r in run.rows if r.probe == probe and r.num_items), None)
    return Pair(run, probe, own["accuracy_difference"], own["log_probability_difference"], words)


def _measure(run: Run) -> str:
    details = run.detail(UnigramDetails)
    return details.measure.replace("_", "-") if details else ""


def _correlation(run: Run) -> str:
    own = {row.metric: row for row in run.rows if not row.probe and not row.subset}
    rho, p_value = own.get("spearman"), own.get("spearman_p")
    if rho is None or p_value is None:
        return f"{run.model}: no correlation, as one side is the same for all probes."
    interval = "" if rho.ci_low is None else f", 95% interval {rho.ci_low:.2f} to {rho.ci_high:.2f}"
    said = (
        f"{run.model}: Spearman's correlation of the two differences is {rho.value:.2f} over "
        f"{rho.num_items} probes{interval}, permutation p {probability(p_value.value)}."
    )
    return said.replace("-0.", "−0.").replace("-1.", "−1.")


def _trained(row: Row) -> str:
    if not row.num_train:
        return "no"
    seed = "" if row.seed is None else f", seed {row.seed}"
    return f"{row.mode} on {count(row.num_train)}{seed}"


def _paper(run: Run) -> str:
    """The paper's share, for its own probe."""
    return f"{100 * PAPER_NEARER:.0f}" if run.probe == "taxonomy_conjunction" else ABSENT
