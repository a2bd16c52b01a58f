"""What models scored without training on the probe, or in another program."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

import pandas as pd

from probelight.metrics.choices import NEAR
from probelight.metrics.comparisons import paired_difference
from probelight.metrics.scoring_rules import RULES
from probelight.reports import numbers
from probelight.reports import table as kit
from probelight.reports.charts import row_figure
from probelight.reports.figure import INK, PAPER, Figure, Line, model_looks
from probelight.reports.numbers import (
    BY_GROUPS,
    INTERVAL,
    VERDICTS,
    WHOLE,
    Estimate,
    named,
    verdict_of,
    with_ends,
)
from probelight.reports.table import ACCURACY, SIZE, Table
from probelight.results.frames import results_frame, with_columns
from probelight.results.importers.answers import IMPORTED
from probelight.results.load import RunSet, UnreadableResultError
from probelight.results.predictions import read_item_lines
from probelight.results.record import RunRecord

ENTRY = ["path", "name", "probe", "split"]  # identifies a model on a set
LEVELS = [
    "chance", "floor", "majority_accuracy", "macro_accuracy", "tied_share", "near_tied_share"
]  # fmt: skip
AUC = "auc auc_ci_low auc_ci_high"
FLOAT32 = RunRecord.dtype
MOST_MODELS = 6  # in the paragraph
CAUSAL = (
    "Causal likelihood: the log-likelihood of a choice behind its question; in a sentence with a "
    "blank, of the choice and of all that follows the blank, too. "
)
EMPTY_CHOICES = "Models may also pick empty choices; verdicts use chance without these. "
MAJORITY = "always the most frequent answer"
MIN_PARADIGMS = 4  # with fewer, the table is read as fast
STUCK = 0.95  # from this share of one answer on, a model "almost always" gives it
AGAINST_CHANCE = {  # verdicts in cells
    "above": "above",
    "not above the majority": "not above majority",
    "not distinguishable": "not clearly above",
    "below": "below",
}


def zero_shot_rows(results: RunSet) -> pd.DataFrame:
    """Return the rows of the zero-shot runs, with the model as `name`.

    `is_changed`: of a perturbed or controlled probe; `is_whole`: of all items of an unchanged one.
    """
    rows = results_frame(results).query("protocol == 'zero_shot'").rename(columns={"model": "name"})
    is_changed = (rows.perturbation != "") | ~rows.control.isin(WHOLE)
    return rows.assign(is_changed=is_changed, is_whole=(rows.subset == "") & ~is_changed)


@lru_cache(maxsize=2)
def zero_shots(results: RunSet) -> pd.DataFrame:
    """Return a row for each model and split of a probe, by the model's own score, sorted.

    Added to the columns of results: `accuracy` and, as fractions, `chance` (one over all choices
    scored, empty padding included), `floor` (one over the real ones, which verdicts use), the other
    `LEVELS`, and `against_chance`, the verdict. `model` has the weights or the run in brackets if
    several models share a name.
    """
    rows = zero_shot_rows(results)
    all_items = rows[rows.is_whole & (rows.scoring == "")].drop_duplicates([*ENTRY, "metric"])
    levels = all_items.pivot(index=ENTRY, columns="metric", values="value")
    entries = all_items[all_items.metric == "accuracy"].rename(columns={"value": "accuracy"})
    entries = entries.join(levels.reindex(columns=LEVELS), on=ENTRY)
    auc = dict(zip(("value", "ci_low", "ci_high"), AUC.split(), strict=True))
    entries = with_columns(entries, all_items[all_items.metric == "auc"], auc, ENTRY)
    entries["floor"] = entries.floor.fillna(entries.chance)
    namesakes = entries.groupby(["name", "probe", "split"])
    repeats = namesakes.name.transform("size")
    by_weights = namesakes.model_sha256.transform("nunique") == repeats
    suffix = entries.model_sha256.str[:8].where(by_weights, entries.run)
    entries["model"] = entries.name.where(repeats == 1, entries.name + " (" + suffix + ")")
    entries["against_chance"] = [
        verdict_of((row.ci_low, row.ci_high), row.floor, row.majority_accuracy)
        for row in entries.itertuples()
    ]
    return entries.sort_values(["probe", "split", "model"], ignore_index=True)


@lru_cache(maxsize=2)
def controlled_rows(results: RunSet) -> pd.DataFrame:
    """Return the accuracies of `zero_shots` under controls, by own scores and by further rules.

    `lower`, with its interval, is how far one by own scores is below that on the same items.
    """
    rows = zero_shot_rows(results).query("is_changed and metric == 'accuracy' and subset == ''")
    same_scorer = [*ENTRY[1:], "model_sha256", "mode"]
    pairs = rows[(rows.scoring == "") & ~rows.path.isin(zero_shots(results).path)].merge(
        zero_shots(results), on=same_scorer, suffixes=("", "_standard")
    )
    paths = zip(pairs.path_standard, pairs.path, strict=True)
    gaps = [named("lower", _gap(results, *pair)) for pair in paths]
    pairs = pairs.join(pd.DataFrame(gaps, pairs.index, with_ends("lower"), "float64"))
    rows = rows.merge(pairs[["path", "model"]], on="path")
    return rows.merge(pairs[["path", "model", "scoring", *with_ends("lower")]], "left")


def _gap(results: RunSet, path: str, other_path: str) -> Estimate | None:
    """Return the score of a run minus that of another, on the items of both."""
    try:
        lines, other_lines = (
            {line.name: line for line in read_item_lines(results, results.by_path[run_path])}
            for run_path in (path, other_path)
        )
    except UnreadableResultError:
        return None  # the section of all items says so
    names = [name for name in lines if name in other_lines]
    if not names:
        return None
    groups = [lines[name].interval_group for name in names]
    score, other_score = ([run[name].correct for name in names] for run in (lines, other_lines))
    gap = paired_difference(other_score, score, None if None in groups else groups)
    return Estimate(gap.difference, gap.low, gap.high)


def title(results: RunSet) -> str:
    """Return the title of the table and of the figure."""
    return f"Accuracy {' or '.join(dict.fromkeys(map(numbers.when_of, results.of('zero_shot'))))}"


def zero_shot_table(results: RunSet) -> Table | None:
    """Make the table of accuracy: rows are probes, columns are models."""
    entries = zero_shots(results)
    has_empty = (entries.chance != entries.floor).any()
    scorers = entries["mode"].map(numbers.scored_by)
    is_causal = entries["mode"].str.contains("causal_likelihood").any()
    dtypes = entries.path.map(lambda path: results.by_path[path].dtype).astype(str)
    return kit.table(
        "zero_shot",
        title(results),
        f"{INTERVAL} ({BY_GROUPS}); n is the number of items. Majority: the accuracy of always "
        "giving the most frequent answer. Macro: the accuracy on the items of each right answer, "
        "averaged. AUC: how well the scores of choices that all items share tell the right answers "
        "apart, whatever the threshold (50% is chance), even if the model prefers one answer. "
        "Ties: items in which n choices share the best score; each counts 1/n. "
        f"{EMPTY_CHOICES if has_empty else ''}{CAUSAL if is_causal else ''}"
        "Dtype: precision of the weights. Near-ties: items "
        f"whose best score is less than {NEAR:g} above the second.",
        entries.assign(
            _dtype=dtypes if (dtypes != FLOAT32).any() else None,
            _scorer=scorers.replace("", "the mask") if scorers.any() else None,
            _verdict=entries.against_chance.map(AGAINST_CHANCE),
            _chance=entries.chance if has_empty else None,
            _ties=entries.tied_share if entries.tied_share.any() else None,
            _near=entries.near_tied_share if entries.near_tied_share.any() else None,
        ),
        [
            kit.text("probe", "probe", "split"),
            kit.share("chance", "floor"),
            kit.share("majority", "majority_accuracy"),
        ],
        rows="probe split",
        across="model",
        each=[
            kit.accuracy("accuracy %"),
            kit.share("macro %", "macro_accuracy"),
            kit.accuracy("AUC %", "auc"),
            kit.size(),
            kit.share("chance with empty choices", "_chance"),
            kit.text("against chance", "_verdict"),
            kit.text("scored by", "_scorer"),
            kit.text("dtype", "_dtype"),
            kit.share("ties %", "_ties"),
            kit.share("near-ties %", "_near"),
        ],
        csv=f"model probe split mode {ACCURACY} {SIZE} {' '.join(LEVELS)} {AUC} against_chance",
    )


def zero_shot_figure(results: RunSet) -> Figure | None:
    """Draw the accuracies of `zero_shot_table`, with intervals and chance levels."""
    entries = zero_shots(results)
    if entries.empty:
        return None
    names = entries.probe.str.replace("_", " ")
    if entries.split.nunique() > 1:
        names += (" (" + entries.split + ")").where(entries.split != "", "")
    entries = entries.assign(
        heading="", name=names, look=entries.model, value=entries.accuracy, chance=entries.floor,
        over=(entries.accuracy - entries.floor.fillna(0)).groupby(names).transform("max"),
    ).sort_values("over", ascending=False, kind="stable")  # fmt: skip
    majority = entries.dropna(subset="majority_accuracy").drop_duplicates("name")
    return row_figure(
        "zero_shot",
        title(results),
        "Lines are 95% intervals. The vertical line of each probe is chance. The diamond is the "
        "accuracy of always giving the most frequent answer. A model whose interval reaches the "
        "chance line is not clearly above chance.",
        pd.concat([entries, majority.assign(look=MAJORITY, value=majority.majority_accuracy)]),
        {**model_looks(entries.model.unique()), MAJORITY: Line(INK, "none", "D", PAPER)},
        "accuracy, %",
    )


def predicted_shares_table(results: RunSet) -> Table | None:
    """Make the table of how often each answer was predicted, whatever the question."""
    shares = of_entries(results, zero_shot_rows(results).query("metric == 'predicted_share'"))
    return kit.table(
        "predicted_shares",
        "What the model tends to say",
        "The share of items for which each answer was predicted; if every item has its own "
        "choices, choice 1 is the first of them. A model that mostly gives one answer is right "
        "about as often as that answer is.",
        shares.rename(columns={"subset": "answer", "value": "share"}),
        [kit.text("probe", "probe", "split"), kit.text("answer", "answer")],
        rows="probe split answer",
        across="model",
        each=[kit.share("predicted %", "share")],
        csv="model probe split answer share",
    )


def parts_table(results: RunSet) -> Table | None:
    """Make the table of accuracy by template, perturbation or control."""
    rows = zero_shot_rows(results)
    is_part = rows.is_changed | ~rows.is_whole & (rows.subset_kind != "paradigm")
    part_rows = of_entries(results, rows[is_part & (rows.metric == "accuracy")])
    part_rows = pd.concat([part_rows, controlled_rows(results)])
    control = part_rows.control.where(part_rows.control != "standard", "")
    rule = ("by " + part_rows.scoring).where(part_rows.scoring != "", "")
    labels = zip(part_rows.subset, part_rows.perturbation, control, rule, strict=True)
    part_rows = part_rows.assign(part=[", ".join(filter(None, label)) for label in labels])
    return kit.table(
        "zero_shot_parts",
        "Parts and variants of the probes",
        "Accuracy by template (a sentence pattern of the probe) and by set of choices, and under "
        f"each control. {INTERVAL}, which is wide because parts have few items. Lower: how far the "
        "accuracy is below that without the control on the same items, in points.",
        part_rows.assign(accuracy=part_rows.value),
        [
            kit.text("probe", "probe", "split"),
            kit.text("part", "part"),
            kit.text("model", "model"),
            kit.accuracy("accuracy %"),
            kit.gap("lower", "lower"),
            kit.size(),
        ],
        csv=f"model probe split part {ACCURACY} {SIZE}",
    )


def paradigms_table(results: RunSet) -> Table | None:
    """Make the table of minimal pairs by paradigm: rows are paradigms, columns are models."""
    rows = zero_shot_rows(results).query("metric == 'accuracy'")
    paradigms = rows[rows.subset_kind == "paradigm"].sort_values("subset", kind="stable")
    uid_rows = pd.concat([rows[rows.is_whole & rows.path.isin(paradigms.path)], paradigms])
    uid_rows["uid"] = [subset["name"] if subset else "all" for subset in uid_rows.part]
    uid_rows = of_entries(results, uid_rows.rename(columns={"value": "accuracy"}))
    pairs = uid_rows[uid_rows.scoring == ""]
    pairs = pairs.sort_values(["probe", "split", "model"], kind="stable")
    rules = [rule for rule in RULES if rule != "sum" and rule in {*uid_rows.scoring}]
    for rule in rules:  # the sum is the model's own score
        names = {name: f"{rule}_{name}" for name in ACCURACY.split()}
        pairs = with_columns(pairs, uid_rows[uid_rows.scoring == rule], names, [*ENTRY, "uid"])
    note = f"{INTERVAL} ({BY_GROUPS}); n is the number of pairs."
    is_imported = pairs["mode"].str.startswith(IMPORTED)
    if not is_imported.all():
        note += (
            " A sentence's score is the sum of its tokens' log-probabilities. mean_token, "
            "mean_char: the sum divided by the number of tokens or characters, so that shorter "
            "sentences are not favoured."
        )
    if is_imported.any():
        note += " Imported scores are shown as they are in their files."
    columns = {rule: " ".join(f"{rule}_{name}" for name in ACCURACY.split()) for rule in rules}
    return kit.table(
        "minimal_pairs",
        "Minimal pairs by kind (UID)",
        note,
        pairs.assign(_where=(pairs.probe + ", " + pairs.split).str.strip(", ")),
        # First, as a narrow terminal repeats this column alone.
        [kit.text("UID", "uid", "_where"), kit.size()],
        rows="probe split uid",
        across="model",
        each=[
            kit.accuracy("accuracy %"),
            *(kit.accuracy(f"{rule} %", names) for rule, names in columns.items()),
        ],
        csv=f"model probe split mode uid {ACCURACY} {SIZE} {' '.join(columns.values())}",
    )


def ranks_table(results: RunSet) -> Table | None:
    """Make the table of the candidates' vocabulary ranks (Talmor et al. 2020, section 4.5)."""
    rows = zero_shot_rows(results).query("subset == ''")
    ranks = rows[rows.metric == "median_gold_rank"].rename(columns={"value": "median_gold_rank"})
    shares = ("gold_in_top10", "all_in_top10")
    columns = [f"{metric} {metric}_ci_low {metric}_ci_high" for metric in shares]
    for metric in shares:
        names = {name: f"{metric}_{name}" for name in ("ci_low", "ci_high", *SIZE.split())}
        metric_rows = rows[rows.metric == metric]
        ranks = with_columns(ranks, metric_rows, {"value": metric, **names}, ["path"])
    return kit.table(
        "zero_shot_ranks",
        "Would the model say these answers by itself?",
        "The ranks of the answers among all words of the vocabulary at the mask; 1 is the model's "
        f"first guess. {INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}). If the answers rank "
        "low, accuracy only compares words that the model would not say.",
        ranks.assign(model=ranks.name),
        [
            kit.text("probe", "probe", "split"),
            kit.text("model", "model"),
            kit.number("median rank of the right answer", "median_gold_rank", "{:,.10g}".format),
            kit.accuracy("right answer in the top 10 %", shares[0]),
            kit.accuracy("all answers in the top 10 %", shares[1]),
            kit.size("n", f"num_items {shares[0]}_num_groups"),
        ],
        csv=f"probe split model median_gold_rank {' '.join(columns)} num_items",
    )


def zero_shot_sentences(results: RunSet) -> str:
    """Return which probes each model was above chance on, and what the tables do not say."""
    entries = zero_shots(results)
    if entries.empty:
        return ""
    sentences = []
    if (entries.kind == IMPORTED).any():
        sentences.append(
            "It is not known whether imported models were trained on similar items before."
        )
    for model, model_rows in islice(entries.groupby("model"), MOST_MODELS):
        by_verdict = model_rows.groupby("against_chance").probe.agg(list)
        clauses = "; ".join(
            f"{words} on {numbers.listed(list(dict.fromkeys(by_verdict[verdict])))}"
            for verdict, words in VERDICTS.items()
            if verdict in by_verdict
        )
        when = (
            "In the imported scores" if {*model_rows.kind} == {IMPORTED} else "Before any training"
        )
        sentences.append(f"{when}, {model} was {clauses}.")
    if (num_more := entries.model.nunique() - MOST_MODELS) > 0:
        sentences.append(f"The table has {num_more} more models.")
    rows = zero_shot_rows(results)
    is_paradigm = (rows.subset_kind == "paradigm") & (rows.metric == "accuracy")
    paradigms = of_entries(results, rows[is_paradigm & (rows.scoring == "")])
    paradigms = with_columns(paradigms, entries, {"chance": "chance"}, [*ENTRY, "model"])
    by_set = paradigms.groupby(["model", "probe", "split"])
    for (model, probe, _), rows in islice(by_set, MOST_MODELS):
        if len(rows) >= MIN_PARADIGMS:
            verdicts = [verdict_of((r.ci_low, r.ci_high), r.chance) for r in rows.itertuples()]
            sentences.append(
                f"Of the {len(rows)} kinds of minimal pairs of {probe}, {model} is above chance "
                f"on {verdicts.count('above')} and below it on {verdicts.count('below')}."
            )
    shares = of_entries(results, rows[rows.metric == "predicted_share"])
    biased = shares[shares.value >= STUCK]
    if len(biased):
        answers = [f"“{r.subset}” from {r.model} on {r.probe}" for r in biased.itertuples()]
        sentences.append(f"Almost always the same answer: {numbers.listed(answers)}.")
    return " ".join(sentences)


def of_entries(results: RunSet, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in the order of `zero_shots`, with its names of models."""
    entries = zero_shots(results)[[*ENTRY, "model"]]
    return entries.merge(rows, on=ENTRY)
